"""Conditions over raw columns in words: a region of a tree, an interval, some levels, a gap."""

from __future__ import annotations

import numpy as np

from ectype.conditions.conditions import DecisionRegions, Region
from ectype.conditions.partitions import Cells, intervals
from ectype.space import Number

ANYTHING = "in every row"


def condition_of(tree: DecisionRegions, region: Region) -> str:
    """What holds in a region, in words."""
    parts = [_condition(tree.cells[j], inside) for j, inside in region.inside.items()]
    return " and ".join(filter(None, parts)) or ANYTHING


def _condition(cells: Cells, inside: np.ndarray) -> str:
    if inside.all():
        return ""
    name = cells.column.name
    there = inside[:-1] if cells.gap else inside
    parts = [_levels(cells, there)] if cells.levels else [interval_of(cells, *run) for run in intervals(cells, there)]
    if cells.gap and inside[-1]:
        parts.append(f"{name} is missing")
    elif cells.gap and there.all():
        return f"{name} is not missing"
    parts = [part for part in parts if part]
    return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"


def interval_of(cells: Cells, low: float | None, high: float | None) -> str:
    """The condition low < column <= high, in words."""
    column = cells.column
    assert isinstance(column, Number)
    below = "" if low is None else column.word(low, exact=True)
    above = "" if high is None else column.word(high, exact=True)
    if not above:
        return f"{column.name} > {below}" if below else column.name
    return f"{below} < {column.name} <= {above}" if below else f"{column.name} <= {above}"


def _levels(cells: Cells, inside: np.ndarray) -> str:
    other = len(inside) > len(cells.levels) and bool(inside[-1])
    chosen = [word(level) for level, within in zip(cells.levels, inside, strict=False) if within != other]
    if not chosen:
        return f"{cells.column.name} is any level" if other else ""
    if len(chosen) == 1:
        return f"{cells.column.name} is {'not ' if other else ''}{chosen[0]}"
    return f"{cells.column.name} is {'none' if other else 'one'} of {', '.join(chosen)}"


def word(value: object) -> str:
    """A level or a label as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
