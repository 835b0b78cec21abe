"""The cells of a raw column, which a copy can tell apart: intervals of numbers, levels, other levels, or a gap.

A tree compares encoded inputs, in float32. The largest double that still goes left is found by bisection over all
doubles, so that comparing the raw number splits them exactly where the tree does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ectype.space import CLIP_DEVIATIONS, UNKNOWN_LEVEL, Boolean, Column, Encoding, Number, Space


@dataclass(frozen=True)
class Cells:
    """The cells of one column, and a value in each of them, as in a space's matrix."""

    column: Column
    cuts: np.ndarray
    """For a number, the upper ends of its cells, inclusive."""
    values: np.ndarray
    """A value in every cell: numbers in ascending order, or each level and UNKNOWN for others; last, NaN for a gap."""

    @property
    def levels(self) -> list[Any]:
        """For booleans and categories, the raw value of every cell but those of other levels and of gaps."""
        return [False, True] if isinstance(self.column, Boolean) else list(getattr(self.column, "levels", ()))

    @property
    def gap(self) -> bool:
        """Whether the last cell is a gap."""
        return bool(np.isnan(self.values[-1]))

    def of(self, values: np.ndarray) -> np.ndarray:
        """The cell that each value of a space's matrix lies in."""
        if self.levels:
            found = np.where(values == UNKNOWN_LEVEL, len(self.levels), np.nan_to_num(values)).astype(int)
        else:
            found = np.searchsorted(self.cuts, values)  # a cut belongs to the cell below it
        return np.where(np.isnan(values), len(self.values) - 1, found)


def cells_of(space: Space, encoding: Encoding, thresholds: dict[int, np.ndarray]) -> list[Cells]:
    """The cells of every column, where inputs (by their position) are compared with these thresholds."""
    return [_cells(column, j, encoding, thresholds) for j, column in enumerate(space.columns)]


def intervals(cells: Cells, inside: np.ndarray) -> list[tuple[float | None, float | None]]:
    """Runs of adjacent cells of a number, as half-open intervals (low, high]; None where unbounded."""
    return [interval(cells, *run) for run in runs(inside)]


def runs(inside: np.ndarray) -> list[tuple[int, int]]:
    """Runs of adjacent cells: the first of each, and the first after it.

    >>> runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]])))
    return [(start, stop) for start, stop in edges.reshape(-1, 2).tolist()]


def interval(cells: Cells, start: int, stop: int) -> tuple[float | None, float | None]:
    """A run of adjacent cells of a number, as a half-open interval (low, high]; None where unbounded."""
    kind = int if getattr(cells.column, "whole", False) else float
    low = kind(cells.cuts[start - 1]) if start else None
    return low, kind(cells.cuts[stop - 1]) if stop <= len(cells.cuts) else None


def inputs_of(cells: Cells, j: int, encoding: Encoding) -> np.ndarray:
    """Column j's cells as encoded inputs, a row for each; only the inputs made from that column have a meaning."""
    rows = np.zeros((len(cells.values), encoding.d))
    rows[:, j] = cells.values
    return encoding(rows)


def _cells(column: Column, j: int, encoding: Encoding, thresholds: dict[int, np.ndarray]) -> Cells:
    cuts = np.zeros(0)
    if isinstance(column, Number):
        k = encoding.numbers.index(j)
        cuts = raw_cuts(thresholds.get(k, cuts), encoding.center[k], encoding.scale[k])
        few = next((values for at, values in encoding.values if at == j), None)
        if few is not None:
            cuts = np.append(cuts, value_cuts(few))
        cuts = np.unique(cuts)
        if column.whole:
            cuts = np.unique(np.floor(cuts))
        inside = np.append(cuts, np.nextafter(cuts[-1], np.inf) if len(cuts) else 0.0)
        if column.whole and len(cuts):
            inside[-1] = cuts[-1] + 1
    elif isinstance(column, Boolean):
        inside = np.array([0.0, 1.0])
    else:
        inside = np.append(np.arange(len(column.levels), dtype=np.float64), UNKNOWN_LEVEL)
    return Cells(column, cuts, np.append(inside, np.nan) if column.missing else inside)


def raw_cuts(thresholds: np.ndarray, center: float, scale: float) -> np.ndarray:
    """For each threshold, the largest double that is encoded as at most that; none beyond the clipped range.

    >>> raw_cuts(np.array([0.5], np.float32), 10.0, 2.0) >= 11
    array([ True])
    """
    reached = thresholds[(thresholds >= -CLIP_DEVIATIONS) & (thresholds < CLIP_DEVIATIONS)]

    def below(x: np.ndarray) -> np.ndarray:
        return np.clip((x - center) / scale, -CLIP_DEVIATIONS, CLIP_DEVIATIONS).astype(np.float32) <= reached

    return _last(below, len(reached))


def value_cuts(values: np.ndarray) -> np.ndarray:
    """Between neighbours of some values, the largest double that is still nearest to the lower one.

    >>> value_cuts(np.array([4.0, 1.0, 2.0])).tolist()
    [1.5, 2.9999999999999996]
    """
    order = np.sort(values)
    rank = np.searchsorted(order, values)

    def below(x: np.ndarray) -> np.ndarray:
        within = np.clip(x, order[0], order[-1])  # further out, distances to all of them round to the same double
        return rank[np.abs(within[:, None] - values).argmin(axis=1)] <= np.arange(len(values) - 1)

    return _last(below, len(values) - 1)


def _last(below: Callable[[np.ndarray], np.ndarray], n: int) -> np.ndarray:
    """For each of n conditions that hold up to some double, that double, by bisection."""
    low, high = (np.full(n, _place(np.array(end))) for end in (-np.finfo(float).max, np.finfo(float).max))
    while (high > low + 1).any():  # their difference, or sum, would overflow
        middle = low // 2 + high // 2 + (low % 2 + high % 2) // 2
        holds = below(_double(middle))
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return _double(low)


def _place(x: np.ndarray) -> np.ndarray:
    """Doubles as integers in the same order: adjacent doubles become adjacent integers."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _double(place: np.ndarray) -> np.ndarray:
    return np.where(place < 0, np.iinfo(np.int64).min - place, place).view(np.float64)
