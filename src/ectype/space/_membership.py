"""Membership: which rows of another source a space can have, and the reason why it cannot have the others."""

from __future__ import annotations

import numpy as np

from ectype.space._columns import UNKNOWN_LEVEL, Category, Column, Number
from ectype.space._space import Space

# Reasons why a space cannot have a row: an unknown level, another impossible value, a broken rule.
UNKNOWN_LEVELS, IMPOSSIBLE_VALUES, BROKEN_RULES = "levels", "values", "rules"


def outside_by_reason(space: Space, rows: np.ndarray) -> dict[str, np.ndarray]:
    """By reason, which rows of a matrix the space cannot have; the first reason counts.

    A space has every number between its bounds, also beyond the quantiles that it was learned from: these are of a
    sample. It has no other numbers than its values, where it lists them, and no gaps in columns without any.

    >>> space = Space.uniform(0, 1, 2)
    >>> {why: which.tolist() for why, which in outside_by_reason(space, np.array([[0.5, 0.5], [0.5, 3.0]])).items()}
    {'levels': [False, False], 'values': [False, True], 'rules': [False, False]}
    """
    values = np.column_stack([_allowed(column, rows[:, j]) for j, column in enumerate(space.columns)])
    levels = np.column_stack([_known(column, rows[:, j]) for j, column in enumerate(space.columns)])
    known = np.asarray(levels.all(axis=1))
    right = known & np.asarray(values.all(axis=1))
    broken = right.copy()
    broken[right] = ~space.keeps_rules(rows[right])
    return {UNKNOWN_LEVELS: ~known, IMPOSSIBLE_VALUES: known & ~right, BROKEN_RULES: broken}


def has_required_values(space: Space, rows: np.ndarray, columns: list[int] | None = None) -> np.ndarray:
    """Which rows of a matrix have a value in every column, or in these, that has no gaps in the space.

    >>> has_required_values(Space.normal(2), np.array([[0.0, np.nan], [0.0, 1.0]])).tolist()
    [False, True]
    """
    needed = [j for j in range(space.d) if not space.columns[j].missing and (columns is None or j in columns)]
    return ~np.isnan(rows[:, needed]).any(axis=1)


def is_representable(space: Space, rows: np.ndarray) -> np.ndarray:
    """Which rows of a matrix are of a table, whether the space can have them or not: no number in them is infinite, and
    every category's is that of a level, or of none that is known.

    >>> is_representable(Space.normal(1), np.array([[2.0], [np.nan], [np.inf]])).tolist()
    [True, True, False]
    """
    found = ~np.isinf(rows).any(axis=1)
    for j, column in enumerate(space.columns):
        if isinstance(column, Category):
            codes = np.where(np.isnan(rows[:, j]), UNKNOWN_LEVEL, rows[:, j])
            found &= (codes == np.rint(codes)) & (codes >= UNKNOWN_LEVEL) & (codes < len(column.levels))
    return found


def _known(column: Column, values: np.ndarray) -> np.ndarray:
    return values != UNKNOWN_LEVEL if isinstance(column, Category) else np.ones(len(values), bool)


def _allowed(column: Column, values: np.ndarray) -> np.ndarray:
    """Which values a column may have."""
    missing, allowed = np.isnan(values), np.ones(len(values), bool)
    if isinstance(column, Number):
        allowed &= (column.low is None) | (values >= (column.low or 0.0))
        allowed &= (column.high is None) | (values <= (column.high or 0.0))
        allowed &= (not column.whole) | (values == np.rint(values))
        allowed &= (column.values is None) | np.isin(values, column.values or ())
    return np.where(missing, bool(column.missing), allowed)
