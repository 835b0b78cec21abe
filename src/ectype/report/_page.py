"""One self-contained HTML page about a copy, for the person who decides whether it may replace the original.

No request leaves it: its one script, which computes the copy's answers, and its one style stand in it, named by their
hashes in its content security policy.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from ectype._common.atomic_io import write_text
from ectype.certificate.certificate import Certificate
from ectype.certificate.formatting import about_rows, caveats
from ectype.original import Original
from ectype.plan.resolve import resolve
from ectype.plan.settings import Settings
from ectype.report import _charts as charts
from ectype.report._answers import PaidAnswers
from ectype.report._bins import bins_of
from ectype.report._card import file_hashes, known_limits
from ectype.report._decision_map import decision_maps
from ectype.report._differences import differences_by_column, differing_rows, flip_matrix
from ectype.report._importance import importances_of
from ectype.report._learning_curve import learning_curve, paper_curves
from ectype.report._templates import environment, percent
from ectype.report._try_form import build_form
from ectype.report._verdict import verdict
from ectype.rng import Stream, stream
from ectype.runs.decision_grid import COLOURS
from ectype.runs.result import Result
from ectype.types import Json

# The parts of the page's script, in order.
SCRIPTS = ("scorer.js", "page.js")
# Rows of the space that cost nothing: they show what values a column has.
DRAWN = 4000


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
    main = next(iter(results.values()))
    paid = answers if isinstance(answers, PaidAnswers) else PaidAnswers.of(main, answers or main.directory)
    found = page_context(paid, results, original)
    return write_page(path, "page.html", title, **found)


def write_page(path: str | Path, template: str, title: str, **page_context: Any) -> Path:
    """Write a page of the kind that reports are: one file, whose policy lets nothing in and nothing out."""
    style, script = page_file("style.css"), "\n".join(page_file(name) for name in SCRIPTS)
    known = {"title": title, "style": style, "script": script, "policy": _policy(style, script)}
    return write_text(Path(path), environment().get_template(template).render(**page_context, **known))


def page_file(name: str) -> str:
    """A file that pages are made from."""
    return (resources.files("ectype.report") / "page" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing may be loaded, and nothing run but this."""
    hashes = [f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in (style, script)]
    return f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"


def page_context(paid: PaidAnswers, results: Mapping[str, Result], original: Original | None) -> Json:
    """The variables of the template `page.html`."""
    result = paid.result
    drawn = result.space.sample(DRAWN, stream(0, Stream.PAGE))
    bins = [bins_of(column, drawn[:, j]) for j, column in enumerate(result.space.columns)]
    columns, scale = differences_by_column(paid, bins)
    examples, proof = differing_rows(paid), result.certificate
    head = verdict(paid)
    return {
        "main": result,
        "proof": proof,
        "caveats": [] if proof is None else list(caveats(proof, percent)),
        "results": results,
        "verdict": head,
        "bars": [] if proof is None else _bars(proof.estimate, [rival.fidelity for rival in head.baselines]),
        "classes": {} if proof is None else _classes(result),
        "matrix": None if proof is None else flip_matrix(proof),
        "columns": columns,
        "scale": scale,
        "examples": examples,
        "drivers": importances_of(paid, bins, drawn),
        "reached": learning_curve(result),
        "curves": list(paper_curves({name: one for name, one in results.items() if one.remade is None})),
        "spent": paid.spent,
        "maps": decision_maps(result, original, paid.run),
        "colours": len(COLOURS),
        "original_drawn": original is not None and result.space.d == result.copy.space.d,
        "own_rows": [] if proof is None else _own_rows(proof),
        "form": build_form(paid, drawn, examples),
        "limits": list(known_limits(result, str)),
        "given": changed_settings(result),
        "excluded": result.settings.get("exclude") or [],
        "hashes": [] if paid.directory is None else list(file_hashes(paid.directory)),
    }


def _own_rows(proof: Certificate) -> list[str]:
    """The caveats of the fidelity on the user's own rows."""
    return (
        [] if proof.on_data is None else [*caveats(proof.on_data, percent), *islice(about_rows(proof.on_data), 1, None)]
    )


def _bars(copy: float, baselines: list[float]) -> list[str]:
    scale = charts.AxisScale(0.0, 1.0)
    return [charts.bar(copy, "copy", scale), *(charts.bar(rival, "original", scale) for rival in baselines)]


def _classes(result: Result) -> Json:
    """The tracks of fidelity by label, near the boundary and away from it, all on one scale."""
    proof = result.certificate
    assert proof is not None
    bounds = [*proof.per_class.values(), *(one for one in (proof.near, proof.away) if one)]
    scale = charts.share_scale(bound.lower for bound in bounds)
    tracks = [charts.interval(bound.estimate, bound.lower, scale, proof.estimate) for bound in bounds]
    return {"tracks": tracks, "scale": scale}


def changed_settings(result: Result) -> Json:
    """The settings that differ from the defaults."""
    usual = resolve(Settings()).as_json()
    return {key: value for key, value in result.settings.items() if key in usual and value != usual[key]}
