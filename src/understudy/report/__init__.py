"""One self-contained HTML page about a copy: no scripts, no external requests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.certificate.values import Certificate
from understudy.files import write_text
from understudy.original import Original
from understudy.report import figures
from understudy.runs.result import Result
from understudy.types import Label

if TYPE_CHECKING:
    from jinja2 import Template

# With more labels than this, pairs are listed in place of a matrix. Of more columns, examples show the first.
LABELS, COLUMNS = 12, 30


def write_report(
    path: str | Path, results: Mapping[str, Result], *, original: Original | None = None, title: str
) -> Path:
    """Write the page about the first of the results, with the others beside it.

    In two dimensions the copy's decisions are drawn, and the original's beside them if it is given; that asks it for
    the label of every pixel, so give only an original whose answers are free.
    """
    path, main = Path(path), next(iter(results.values()))
    page = _template().render(
        title=title,
        results=results,
        main=main,
        matrix=None if main.certificate is None else flip_matrix(main.certificate),
        columns=main.space.names[:COLUMNS],
        boundaries=figures.boundaries(main, original),
        curves=figures.curves(results),
        original_drawn=original is not None,
    )
    return write_text(path, page)


def flip_matrix(proof: Certificate) -> list[tuple[Label, list[int]]] | None:
    """The confusion matrix: a row for each label of the original, with the copy's labels counted; None if too large."""
    if proof.differences is None:
        return None
    flips = {(flip.original, flip.copy): flip.n for flip in proof.differences.flips}
    labels = list(dict.fromkeys([*proof.per_class, *(label for pair in flips for label in pair)]))
    agreed = {label: round(bound.estimate * bound.n) for label, bound in proof.per_class.items()}
    if len(labels) > LABELS:
        return None
    return [
        (one, [agreed.get(one, 0) if one == other else flips.get((one, other), 0) for other in labels])
        for one in labels
    ]


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("understudy.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html")
