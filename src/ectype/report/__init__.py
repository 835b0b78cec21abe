"""One self-contained HTML page about a copy, for the person who decides whether it may replace the original.

No request leaves it: its one script, which computes the copy's answers, and its one style stand in it, named by their
hashes in its content security policy.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ectype._common.atomic_io import write_text
from ectype.original import Original
from ectype.report._answers import PaidAnswers
from ectype.report._card import card
from ectype.report._filters import FILTERS
from ectype.report._frontier_chart import frontier
from ectype.report._markdown import table
from ectype.runs.result import Result

__all__ = ["PaidAnswers", "card", "frontier", "table"]

if TYPE_CHECKING:
    from jinja2 import Environment

# The parts of the page's script, in order.
SCRIPTS = ("scorer.js", "page.js")


def write_report(
    path: str | Path,
    results: Mapping[str, Result],
    *,
    original: Original | None = None,
    title: str,
    answers: str | Path | PaidAnswers | None = None,
) -> Path:
    """Write the page about the first of the results, with the others beside it.

    `answers` is the directory of its run, whose ledger has every answer: by default the one that the result knows.
    Without it, the page says less. In two dimensions the copy's decisions are drawn, and the original's beside them if
    it is given; that asks it for the label of every pixel, so give only an original whose answers are free.
    """
    from ectype.report._context import content

    main = next(iter(results.values()))
    evidence = answers if isinstance(answers, PaidAnswers) else PaidAnswers.of(main, answers or main.directory)
    found = content(evidence, results, original)
    return write_page(path, "page.html", title, **found)


def write_page(path: str | Path, template: str, title: str, **content: Any) -> Path:
    """Write a page of the kind that reports are: one file, whose policy lets nothing in and nothing out."""
    style, script = asset("style.css"), "\n".join(asset(name) for name in SCRIPTS)
    known = {"title": title, "style": style, "script": script, "policy": _policy(style, script)}
    return write_text(Path(path), _environment().get_template(template).render(**content, **known))


def asset(name: str) -> str:
    """A file that pages are made from."""
    return (resources.files(__name__) / "page" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing may be loaded, and nothing run but this."""
    hashes = [f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in (style, script)]
    return f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__name__, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS, data=_data)
    return environment


def _data(value: Any) -> str:
    """JSON inside a script element, which nothing in it may end."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))
