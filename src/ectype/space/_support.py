"""The support of a space: rows outside it are unlike any that a copy was asked about, and outside every certificate.

A distribution that was learned from a sample ends where the sample ended. So a number may lie beyond the outermost
quantiles, by as much again as the outermost twentieth is wide; a normal distribution ends at six deviations. Each
column is looked at by itself, then the rules: a row may be inside, and yet combine values as no row ever did.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isfinite

import numpy as np

from ectype.space._columns import Category, Column, Number
from ectype.space._space import Space
from ectype.types import Json

# The share of rows in each tail that says how far beyond it a number may be; and deviations of a normal distribution.
TAIL, DEVIATIONS = 0.05, 6.0


@dataclass(frozen=True)
class Support:
    """The values that each column of a space may have, and the rules between them.

    >>> support = Support.of(Space.normal(2))
    >>> support.outside(np.array([[0.0, 5.0], [0.0, -7.0], [np.nan, 0.0]])).tolist()
    [False, True, True]
    """

    space: Space
    low: np.ndarray
    high: np.ndarray
    complete: np.ndarray
    """Which columns have no gaps."""
    whole: list[int]
    """The columns of whole numbers."""
    listed: dict[int, np.ndarray]
    """The values of columns that have no others."""
    single: list[int]
    """The columns that production has in single precision: their values are compared so."""

    @classmethod
    def of(cls, space: Space) -> Support:
        """The support of a space."""
        low, high = np.array([_ends(column) for column in space.columns]).T
        numbers = {j: column for j, column in enumerate(space.columns) if isinstance(column, Number)}
        listed = {j: np.asarray(column.values) for j, column in numbers.items() if column.values is not None}
        whole = [j for j, column in numbers.items() if column.whole and j not in listed]
        complete = np.array([not column.missing for column in space.columns])
        single = [j for j, column in numbers.items() if (column.dtype or "").lower() == "float32"]
        return cls(space, low, high, complete, whole, listed, single)

    def as_json(self) -> list[Json]:
        """What each column may be, but for gaps, as JSON values; no end is null."""
        ends = zip(self.low.tolist(), self.high.tolist(), strict=True)
        values = {j: found.tolist() for j, found in self.listed.items()}
        return [
            {
                "low": low if isfinite(low) else None,
                "high": high if isfinite(high) else None,
                "whole": j in self.whole,
                "values": values.get(j),
                "single": j in self.single,
            }
            for j, (low, high) in enumerate(ends)
        ]

    def outside(self, rows: np.ndarray) -> np.ndarray:
        """Which rows of a matrix are outside."""
        if self.single:
            rows = rows.copy()
            rows[:, self.single] = rows[:, self.single].astype(np.float32)
        gap = np.isnan(rows)
        found = ((rows < self.low) | (rows > self.high) | (gap & self.complete)).any(axis=1)
        for j in self.whole:
            found |= ~gap[:, j] & (rows[:, j] != np.rint(rows[:, j]))
        for j, values in self.listed.items():
            found |= ~gap[:, j] & ~np.isin(rows[:, j], values)
        if self.space.rules:
            found[~found] = ~self.space.keeps_rules(rows[~found])
        return found


def _ends(column: Column) -> tuple[float, float]:
    """The lowest and the highest number that a column may have: of levels, their positions."""
    if not isinstance(column, Number):
        return 0.0, float(len(column.levels) - 1 if isinstance(column, Category) else 1)
    if column.values is not None:
        return min(column.values), max(column.values)
    low, high = -inf, inf
    if column.mean is not None and column.std is not None:
        low, high = column.mean - DEVIATIONS * column.std, column.mean + DEVIATIONS * column.std
    elif column.quantiles is not None:
        found, k = column.quantiles, ceil(TAIL * (len(column.quantiles) - 1))
        low, high = 2 * found[0] - found[k], 2 * found[-1] - found[-1 - k]
    least, most = (end if bound is None else bound for bound, end in ((column.low, low), (column.high, high)))
    return max(low, least), min(high, most)
