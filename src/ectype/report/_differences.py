"""Where copy and original differ: by column and group of values, by labels, and row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ectype.certificate.bounds import lower_bound
from ectype.certificate.certificate import Certificate, Example
from ectype.certificate.differences import Comparison, known_levels
from ectype.conditions.formatting import word
from ectype.report import _charts as charts
from ectype.report._answers import PaidAnswers
from ectype.report._bins import GAP, Bins, format_number, value_of
from ectype.report._verdict import confusion
from ectype.space import Space
from ectype.types import Label

# With more labels than this, pairs are listed in place of a matrix.
LABELS = 12
# The most rows that are shown, of so many columns; and the most columns by which fidelity is.
EXAMPLES, CELLS, COLUMNS = 100, 60, 120
# Groups of fewer rows do not decide where the common scale begins.
FEW = 30
# The shares of a label's rows from which on a cell of the matrix is shaded darker.
SHADES = (0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class ValueGroup:
    """A group of values: its rows, how many agree, and a chart of that."""

    name: str
    n: int
    fidelity: float
    lower: float
    svg: str


@dataclass(frozen=True)
class DifferencesByColumn:
    """Fidelity by the values of one column."""

    name: str
    parts: list[ValueGroup]
    apart: float
    """By how much groups differ, in comparison with chance: large where the column matters."""


@dataclass(frozen=True)
class Row:
    """A row on which they differ, in words; and as numbers, for the form."""

    original: str
    copy: str
    chance: float | None
    cells: list[str]
    numbers: list[float | None] | None


@dataclass(frozen=True)
class Cell:
    """A cell of the flip matrix."""

    n: int
    shade: str


def differences_by_column(
    paid: PaidAnswers, bins: Sequence[Bins]
) -> tuple[list[DifferencesByColumn], charts.AxisScale]:
    """Fidelity by column and group, those columns first whose groups differ most, all on one scale."""
    comparison, proof = paid.comparison, paid.result.certificate
    if comparison is None or proof is None:
        return [], charts.AxisScale(0, 1)
    agree, found = ~comparison.differ, list[tuple[Bins, np.ndarray, np.ndarray]]()
    for j, groups in enumerate(bins):
        place = groups(comparison.rows[:, j])
        counts = np.bincount(place, minlength=len(groups.names))
        found.append((groups, counts, np.bincount(place, agree, len(groups.names)).astype(int)))
    many = [a / n for _, counts, agreed in found for n, a in zip(counts, agreed, strict=True) if n >= FEW]
    scale = charts.share_scale(many)
    overall = float(agree.mean())
    columns = [_column(*one, overall, proof.confidence, scale) for one in found]
    return sorted(columns, key=lambda one: -one.apart)[:COLUMNS], scale


def _column(
    groups: Bins, counts: np.ndarray, agreed: np.ndarray, overall: float, confidence: float, scale: charts.AxisScale
) -> DifferencesByColumn:
    parts = []
    for name, n, alike in zip(groups.names, counts.tolist(), agreed.tolist(), strict=True):
        if not n:
            continue
        low, high = lower_bound(alike, n, confidence), 1 - lower_bound(n - alike, n, confidence)
        parts.append(ValueGroup(name, n, alike / n, low, charts.interval(alike / n, low, scale, overall, high)))
    spread = overall * (1 - overall) or 1.0
    apart = sum(part.n * (part.fidelity - overall) ** 2 for part in parts) / spread / max(1, len(parts) - 1)
    return DifferencesByColumn(groups.column.name, parts, apart)


def flip_matrix(proof: Certificate) -> list[tuple[Label, list[Cell]]] | None:
    """The confusion matrix: a row for each label of the original, with the copy's labels counted; None if too large."""
    if proof.differences is None:
        return None
    counts = confusion(proof)
    labels = list(dict.fromkeys([*proof.per_class, *(label for pair in counts for label in pair)]))
    if len(labels) > LABELS:
        return None

    def cell(one: Label, other: Label) -> Cell:
        n, every = counts[one, other], sum(counts[one, label] for label in labels)
        return Cell(n, "same" if one == other else f"h{int(np.searchsorted(SHADES, n / every)) + 1}" if n else "")

    return [(one, [cell(one, other) for other in labels]) for one in labels]


def differing_rows(paid: PaidAnswers) -> list[Row]:
    """Rows on which they differ, those first that the copy is surest of; none where rows may not be shown."""
    proof = paid.result.certificate
    stored = proof.differences.examples if proof is not None and proof.differences is not None else ()
    comparison = paid.comparison
    if comparison is None or not stored:
        return [_example_row(one) for one in stored]
    return [_row(paid, comparison, row) for row in _surest_first(comparison, paid.result.space)]


def _surest_first(comparison: Comparison, space: Space) -> list[int]:
    sure = np.zeros(len(comparison.rows)) if comparison.margins is None else comparison.margins
    found = np.flatnonzero(comparison.differ & known_levels(space, comparison.rows))
    return found[np.argsort(-sure[found], kind="stable")][:EXAMPLES].tolist()


def _row(paid: PaidAnswers, comparison: Comparison, row: int) -> Row:
    space, copy = paid.result.space, paid.result.copy
    values = dict(zip(space.names, comparison.rows[row].tolist(), strict=True))
    cells = [value_of(column, values[column.name]) for column in space.columns[:CELLS]]
    chance = None if comparison.probabilities is None else float(comparison.probabilities[row].max())
    labels = word(comparison.answers[row].item()), word(comparison.predicted[row].item())
    return Row(*labels, chance, cells, numbers_of([values[name] for name in copy.space.names]))


def _example_row(example: Example) -> Row:
    cells = [GAP if value is None else _plain(value) for value in islice(example.row.values(), CELLS)]
    return Row(word(example.original), word(example.copy), None, cells, None)


def _plain(value: Label) -> str:
    return format_number(value) if isinstance(value, float) else word(value)


def numbers_of(row: Sequence[float]) -> list[float | None]:
    """A row for JSON, which has no NaN."""
    return [None if value != value else int(value) if value == int(value) else value for value in row]
