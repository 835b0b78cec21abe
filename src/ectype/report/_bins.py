"""The values of a column in a few groups, in words: intervals, levels, and the gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ectype.conditions.formatting import word
from ectype.space import Boolean, Category, Column

# Intervals of a number, values that are groups of their own, and levels that are named: others are one group.
INTERVALS, VALUES, LEVELS = 6, 8, 9
MISSING = "missing"
GAP = "\N{EN DASH}"
# What is left out of a time: nothing but a date, or a whole minute.
MIDNIGHT, MINUTE = " 00:00:00", ":00"
# Milliseconds in what the numbers of dates count: days, and in those of timestamps: seconds.
UNITS = {"date": 86_400_000, "timestamp": 1000}
# What edges are rounded to: days and about months; seconds, minutes, hours, days.
STEPS = {"date": (1, 30), "timestamp": (1, 60, 3600, 86_400)}
# Edges are rounded to about this part of what lies between the outer ones.
FINE = 40
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Bins:
    """The groups of one column."""

    column: Column
    names: tuple[str, ...]
    edges: np.ndarray | None
    """Between intervals of a number; None where values or levels are groups of their own."""
    codes: np.ndarray | None
    """Of values or levels: which number each group stands for, those of the last group left out if it is all others."""

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The group of every value."""
        if self.edges is not None:
            found = np.searchsorted(self.edges, values, side="left")
        else:
            assert self.codes is not None
            found = np.full(len(values), len(self.codes))
            for place, code in enumerate(self.codes):
                found[values == code] = place
        return np.where(np.isnan(values), len(self.names) - 1, found) if self.column.missing else found

    @property
    def numeric(self) -> bool:
        """Whether its groups are intervals."""
        return self.edges is not None


def value_of(column: Column, value: float) -> str:
    """A value of a matrix as people read it; dates are numbers there."""
    if value != value:
        return GAP
    if isinstance(column, Category):
        return word(column.levels[int(value)])
    if isinstance(column, Boolean):
        return word(bool(value))
    if unit_of(column) == 1:
        return format_number(float(f"{value:.5g}"))
    written = str(column.present(np.array([value])).iloc[0])
    return written.removesuffix(MIDNIGHT) if written.endswith(MIDNIGHT) else written.removesuffix(MINUTE)


def unit_of(column: Column) -> int:
    """The milliseconds that a column's numbers count, where they are dates or timestamps; else 1."""
    return UNITS.get(column.kind, 1)


def bins_of(column: Column, drawn: np.ndarray) -> Bins:
    """The groups of a column, by values that were drawn from it.

    >>> from ectype.space import Space
    >>> bins = bins_of(Space.uniform(0, 6, 1).columns[0], np.linspace(0, 6, 601))
    >>> bins.names, bins(np.array([0.5, 5.5])).tolist()
    (('up to 1', '1 to 2', '2 to 3', '3 to 4', '4 to 5', 'above 5'), [0, 5])
    """
    gap = (MISSING,) if column.missing else ()
    if isinstance(column, Boolean):
        return Bins(column, ("false", "true", *gap), None, np.array([0.0, 1.0]))
    if isinstance(column, Category):
        return _levels(column, gap)
    there = drawn[~np.isnan(drawn)]
    distinct = np.unique(there)
    if len(distinct) <= VALUES:
        return Bins(column, (*(value_of(column, value) for value in distinct), *gap), None, distinct)
    edges = _edges(there, STEPS.get(column.kind, ()))
    words = [(format_number(edge) if unit_of(column) == 1 else value_of(column, edge)) for edge in edges]
    return Bins(column, (*_intervals(words), *gap), edges, None)


def _levels(column: Category, gap: tuple[str, ...]) -> Bins:
    order = np.arange(len(column.levels))
    if len(order) > LEVELS + 1:
        order = np.sort(np.argsort(-column.weights, kind="stable")[:LEVELS])
    names = [word(column.levels[code]) for code in order]
    others = len(column.levels) - len(order)
    more = (f"{others} other levels",) if others else ()
    return Bins(column, (*names, *more, *gap), None, order.astype(float))


def _edges(values: np.ndarray, steps: Sequence[int]) -> np.ndarray:
    """Rounded as people would, so that what is said of an interval is true of it; to `steps`, if there are some."""
    found = np.quantile(values, np.arange(1, INTERVALS) / INTERVALS)
    spread = float(found[-1] - found[0]) or abs(float(found[0])) or 1.0
    if steps:
        step = max(step for step in steps if step <= max(spread / FINE, steps[0]))
        return np.unique(np.round(found / step) * step)
    digits = int(np.clip(np.ceil(-np.log10(spread / FINE)), -12, 12))
    return np.unique(np.round(found, digits))


def _intervals(ends: Sequence[str]) -> tuple[str, ...]:
    words = [f"{MINUS}{end[1:]}" if end.startswith("-") else end for end in ends]
    middle = [f"{low} to {high}" for low, high in pairwise(words)]
    return (f"up to {words[0]}", *middle, f"above {words[-1]}")


def format_number(number: float) -> str:
    """A number for people: thousands apart, and no more digits than tell it.

    >>> format_number(1234567.0), format_number(1885.9), format_number(-3.0), format_number(0.00012)
    ('1,234,567', '1,885.9', '-3', '0.00012')
    """
    if number == int(number) and abs(number) < 1e10:
        return f"{int(number):,}"
    return f"{number:.6g}" if not 1e3 <= abs(number) < 1e6 else f"{number:,.3f}".rstrip("0").rstrip(".")
