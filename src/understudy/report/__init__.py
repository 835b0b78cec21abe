"""One self-contained HTML page about a copy: no script, no request to anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from understudy.report import figures
from understudy.result import Result


def write_report(path: str | Path, results: Mapping[str, Result], *, original: Any = None, title: str) -> Path:
    """Write the page about the first of the results, with the others beside it.

    In two dimensions the copy's decisions are drawn, and the original's beside them if it is given; that asks it for
    the label of every pixel, so give only an original whose answers are free.
    """
    path = Path(path)
    page = _template().render(
        title=title,
        results=results,
        main=next(iter(results.values())),
        boundaries=figures.boundaries(next(iter(results.values())), original),
        curves=figures.curves(results),
        original_drawn=original is not None,
    )
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(page, encoding="utf-8")
    os.replace(unfinished, path)
    return path


def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("understudy.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html")
