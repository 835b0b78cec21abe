"""Which columns the original and the copy depend on, by surrogate models of their answers to the same rows.

Permutation importance (Breiman, 2001), here the share of answers that change, and partial dependence (Friedman, 2001).
Where the two models differ, it is because the answers do. They see every column: also those that the copy may not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ectype._kernel import LEAF
from ectype.conditions.formatting import word
from ectype.models.base import Model
from ectype.report import _charts as charts
from ectype.report._answers import PaidAnswers
from ectype.report._bins import MISSING, Bins, unit_of, value_of
from ectype.types import Label

# Rows whose columns are shuffled, and rows that a dependence is the mean over.
SHUFFLED, AVERAGED = 1000, 150
# Columns and labels whose dependence is drawn, and the points of a curve.
COLUMNS, LABELS, POINTS = 12, 6, 13


@dataclass(frozen=True)
class Importance:
    """How many answers change if a column is shuffled."""

    name: str
    original: float
    copy: float
    bars: tuple[str, str]


@dataclass(frozen=True)
class Dependence:
    """How often a label is given, by one column: a chart, or a line for every level."""

    name: str
    chart: str | None
    levels: list[tuple[str, float, float, str]]


@dataclass(frozen=True)
class Importances:
    """Every column's importance, and for some labels the partial dependence on the most important columns."""

    importance: list[Importance]
    dependence: list[tuple[Label, list[Dependence]]]


def importances_of(paid: PaidAnswers, bins: Sequence[Bins], drawn: np.ndarray) -> Importances | None:
    """The importances for original and copy, over rows drawn from the space; None without answers."""
    both = paid.surrogates
    if both is None:
        return None
    changes = [_changes(paid, model, drawn[:SHUFFLED]) for model in both]
    scale = charts.AxisScale(0.0, max(float(np.max(changes)), 1e-9))
    importance = [
        Importance(name, one, two, (charts.bar(one, "original", scale), charts.bar(two, "copy", scale)))
        for name, one, two in zip(paid.result.space.names, *(part.tolist() for part in changes), strict=True)
    ]
    order = np.argsort(-np.maximum(*changes), kind="stable")
    columns = [j for j in order[:COLUMNS].tolist() if max(changes[0][j], changes[1][j]) > 0]
    found = {j: _curves(paid, both, bins[j], drawn, j) for j in columns}
    classes = paid.result.copy.classes
    labels = _labels(paid, len(classes))
    dependence = [
        (classes[code].item(), [_dependence(bins[j], *found[j], code, classes[code].item()) for j in columns])
        for code in labels
    ]
    return Importances([importance[j] for j in order.tolist()], dependence)


def _labels(paid: PaidAnswers, n_c: int) -> list[int]:
    """The labels that are drawn: of two the last, of others the commonest."""
    if n_c == 2:
        return [1]
    proof = paid.result.certificate
    counts = {} if proof is None else {label: bound.n for label, bound in proof.per_class.items()}
    seen = [counts.get(label, 0) for label in paid.result.copy.classes.tolist()]
    return np.argsort(-np.array(seen), kind="stable")[:LABELS].tolist()


def _predict(paid: PaidAnswers, model: Model, rows: np.ndarray) -> np.ndarray:
    return model.probabilities(paid.encoding(rows)).argmax(axis=1)


def _changes(paid: PaidAnswers, model: Model, rows: np.ndarray) -> np.ndarray:
    """For every column, the share of answers that change when its values change places among the rows."""
    before = _predict(paid, model, rows)
    used = {int(paid.encoding.sources[k]) for k in np.unique(getattr(model, "feature", [])) if k != LEAF}
    found = np.zeros(rows.shape[1])
    for j in used:
        moved = rows.copy()
        moved[:, j] = np.roll(rows[:, j], len(rows) // 2)  # rows were drawn at random: this is a shuffle
        found[j] = float((_predict(paid, model, moved) != before).mean())
    return found


def _curves(
    paid: PaidAnswers, models: tuple[Model, Model], bins: Bins, drawn: np.ndarray, j: int
) -> tuple[np.ndarray, np.ndarray]:
    """Partial dependence: the values of a column, and how often each label is given if all rows had that value.

    By model, value and label.
    """
    values, rows = _values(bins, drawn[:, j]), drawn[:AVERAGED]
    moved = np.repeat(rows[None], len(values), axis=0)
    moved[:, :, j] = values[:, None]
    flat, n_c = moved.reshape(-1, rows.shape[1]), models[0].n_c
    codes = [_predict(paid, model, flat).reshape(len(values), -1) for model in models]
    return values, np.stack([(one[:, :, None] == np.arange(n_c)).mean(axis=1) for one in codes])


def _values(bins: Bins, drawn: np.ndarray) -> np.ndarray:
    """The values of a column that a dependence is computed at."""
    gap = [np.nan] if bins.column.missing else []
    if not bins.numeric:
        assert bins.codes is not None
        return np.array([*bins.codes, *gap])
    there = drawn[~np.isnan(drawn)]
    return np.array([*np.unique(np.quantile(there, np.linspace(0.01, 0.99, POINTS), method="nearest")), *gap])


def _dependence(bins: Bins, values: np.ndarray, shares: np.ndarray, code: int, label: Label) -> Dependence:
    """The dependence of one label on one column."""
    scale, there = charts.AxisScale(0.0, 1.0), ~np.isnan(values)
    original, copy = shares[0, :, code], shares[1, :, code]
    levels = [
        (MISSING if value != value else value_of(bins.column, value), one, two, charts.pair(one, two, scale))
        for value, one, two in zip(values.tolist(), original.tolist(), copy.tolist(), strict=True)
        if value != value or not bins.numeric
    ]
    if not bins.numeric:
        return Dependence(bins.column.name, None, levels)
    x = values[there]
    x_label = None if unit_of(bins.column) == 1 else partial(value_of, bins.column)
    axes = charts.Axes(
        charts.AxisScale(float(x[0]), float(x[-1])), scale, "", size=(charts.WIDTH, 150), x_label=x_label
    )
    lines = [
        charts.Line(list(zip(x.tolist(), part[there].tolist(), strict=True)), kind)
        for part, kind in ((original, "original"), (copy, "copy"))
    ]
    ends = [f"from {100 * part[there][0]:.0f} % to {100 * part[there][-1]:.0f} %" for part in (original, copy)]
    across = f"Share of “{word(label)}” from the lowest to the highest {bins.column.name}"
    title = f"{across}: original {ends[0]}, copy {ends[1]}"
    return Dependence(bins.column.name, charts.chart(axes, lines, title), levels)
