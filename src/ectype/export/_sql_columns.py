"""Raw columns in SQL: how a dialect writes a column's values, and conditions that a value lies in some of its cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ectype.conditions.partitions import Cells, interval, runs
from ectype.export._category_text import are_words, words_of
from ectype.export._sql_dialects import Dialect, refuse_nul
from ectype.space import Boolean, Category, Column


@dataclass(frozen=True)
class SqlCondition:
    """A column as conditions write it."""

    value: str
    """What is compared."""
    gap: str
    """What is NULL at a gap."""
    levels: list[str]
    """What a value is compared with, for each level."""
    dialect: Dialect


def column_in(dialect: Dialect, cells: Cells) -> SqlCondition:
    """A column of a user's table."""
    name = dialect.quoted(cells.column.name)
    if not cells.levels:
        return SqlCondition(dialect.cleaned(name), dialect.cleaned(name), [], dialect)
    value = dialect.compared(name) if are_words(cells.column) else name
    return SqlCondition(value, name, literal_levels(dialect, cells.column), dialect)


def literal_levels(dialect: Dialect, column: Column) -> list[str]:
    """What the levels of a column are compared with; words where any of them is one."""
    if isinstance(column, Boolean):
        return [dialect.truth(False), dialect.truth(True)]
    assert isinstance(column, Category)
    if not are_words(column):
        return [str(level) for level in column.levels]
    words = words_of(column)
    refuse_nul(dialect, words)
    return [dialect.level(word) for word in words]


def literal_labels(dialect: Dialect, classes: np.ndarray) -> list[str]:
    """The labels as a dialect writes them."""
    labels = classes.tolist()
    refuse_nul(dialect, [label for label in labels if isinstance(label, str)])
    return [dialect.label(label) for label in labels]


def condition(cells: Cells, inside: np.ndarray, column: SqlCondition) -> str:
    """The condition that a column's value lies in some of its cells; empty if every value does."""
    if inside.all():
        return ""
    there = inside[:-1] if cells.gap else inside
    parts = _levels(there, column) if cells.levels else _intervals(cells, runs(there), column)
    return _either(parts, cells.gap and bool(inside[-1]), column)


def below(cells: Cells, count: int, gap: bool, column: SqlCondition) -> str:
    """The condition that a number lies in the first so many of its cells, or is a gap; empty if every value does."""
    if count > len(cells.cuts) and gap == cells.gap:
        return ""
    return _either(_intervals(cells, [(0, count)] if count else [], column), gap, column)


def _either(parts: list[str], gap: bool, column: SqlCondition) -> str:
    parts = [*parts, f"{column.gap} IS NULL"] if gap else parts
    return parts[0] if len(parts) == 1 else "(" + " OR ".join(parts) + ")"


def _intervals(cells: Cells, runs: list[tuple[int, int]], column: SqlCondition) -> list[str]:
    if runs == [(0, len(cells.cuts) + 1)]:
        return [f"{column.gap} IS NOT NULL"]
    parts = []
    for low, high in (interval(cells, *run) for run in runs):
        sides = [column.dialect.compare(column.value, ">", low)] if low is not None else []
        sides += [column.dialect.compare(column.value, "<=", high)] if high is not None else []
        parts.append(" AND ".join(sides))
    return parts


def _levels(inside: np.ndarray, column: SqlCondition) -> list[str]:
    levels = column.levels
    other = len(inside) > len(levels) and bool(inside[-1])  # levels that the space does not have
    chosen = [level for level, within in zip(levels, inside, strict=False) if within != other]
    if not chosen:
        return [f"{column.gap} IS NOT NULL"] if other else []
    if len(chosen) == 1:
        return [f"{column.value} {'<>' if other else '='} {chosen[0]}"]
    return [f"{column.value} {'NOT IN' if other else 'IN'} ({', '.join(chosen)})"]
