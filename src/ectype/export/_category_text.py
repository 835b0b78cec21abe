"""Levels of categories as words: in files, a level that is a number among words is its word."""

from __future__ import annotations

from collections.abc import Collection

from ectype.errors import SettingError
from ectype.space import Category, Column


def are_words(column: Column) -> bool:
    """Whether a column's levels are words; if all are whole numbers, they stay numbers."""
    return isinstance(column, Category) and not all(isinstance(level, int) for level in column.levels)


def words_of(column: Category, gaps: Collection[str] = ()) -> list[str]:
    """The levels as words, which have to differ from each other and from what stands for a gap."""
    words = [str(level) for level in column.levels]
    if len(set(words)) < len(words):
        _refuse(column, "levels that differ as words", f"{column.levels[:8]}")
    if column.missing and set(gaps) & set(words):
        found = ", ".join(repr(word) for word in words if word in gaps)
        _refuse(column, "levels that differ as words from those of a gap", found)
    return words


def _refuse(column: Category, expected: str, found: str) -> None:
    raise SettingError(f"column {column.name}", expected, found, "rename them, and copy again")
