"""Rows into JSON."""

from __future__ import annotations

import math

import numpy as np

from ectype.errors import OriginalError
from ectype.space import dates_as_text
from ectype.types import Label, Series, Table


def columns(rows: Table) -> dict[str, list[Label | None]]:
    """Rows by column: a list of values for each."""
    return {name: cells(f"column {name}", values) for name, values in _columns(rows)}


def lists(rows: Table) -> list[list[Label | None]]:
    """Rows as lists of their values."""
    return [list(row) for row in zip(*columns(rows).values(), strict=True)]


def objects(rows: Table) -> list[dict[str, Label | None]]:
    """Rows as objects, with a key for each column."""
    by_name = columns(rows)
    return [dict(zip(by_name, row, strict=True)) for row in zip(*by_name.values(), strict=True)]


def names(rows: Table) -> list[str]:
    """The names of the columns."""
    return [name for name, _ in _columns(rows)]


def cells(where: str, values: np.ndarray | Series) -> list[Label | None]:
    """A column's values as JSON has them, None where they are missing."""
    import pandas as pd

    missing = pd.isna(values)
    return [
        None if gone else _cell(where, row, value)
        for row, (value, gone) in enumerate(zip(_words(values).astype(object).tolist(), missing, strict=True))
    ]


def _words(values: np.ndarray | Series) -> np.ndarray | Series:
    """Dates as text; all else as it is."""
    return values if isinstance(values, np.ndarray) else dates_as_text(values)


def _columns(rows: Table) -> list[tuple[str, np.ndarray | Series]]:
    """The columns by name; those of an array are called as a space calls them."""
    if isinstance(rows, np.ndarray):
        return [(f"x{j}", rows[:, j]) for j in range(rows.shape[1])]
    return [(str(name), rows.iloc[:, j]) for j, name in enumerate(rows.columns)]


def _cell(where: str, row: int, value: object) -> Label:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, (str, bool, int)) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    expected, hint = "a word, a boolean, a finite number or a missing value", "JSON has no way to write it"
    raise OriginalError(where, expected, f"{plain!r} in row {row}", hint)
