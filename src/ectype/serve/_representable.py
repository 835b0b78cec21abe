"""Which rows of clients the space represents exactly: with its levels, in its types."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from ectype.errors import SpaceError
from ectype.serve._row_parser import ParsedRows
from ectype.serve._tensors import Cell
from ectype.space import Boolean, Column, Number, Space
from ectype.types import Series


def round_trip(column: Column, numbers: np.ndarray) -> Series | None:
    """Numbers in a column's type of production; None if they do not survive it, as unknown levels do not."""
    with suppress(SpaceError), np.errstate(invalid="ignore"):
        series = column.present(numbers)
        if np.array_equal(column.read(series, "shadow"), numbers, equal_nan=True):
            return series
    return None


def representable(rows: ParsedRows, space: Space) -> np.ndarray:
    """Which rows the space represents exactly, so that the original is asked about the same values."""
    columns, cells = enumerate(space.columns), rows.cells if space.frame else []
    if not space.frame:
        return np.logical_and.reduce([_of_type(column, rows.matrix[:, j]) for j, column in columns])
    return np.logical_and.reduce([_of_frame(column, rows.matrix[:, j], cells[j]) for j, column in columns])


def _of_type(column: Column, numbers: np.ndarray) -> np.ndarray:
    """Which numbers of an array a column may hold; gaps were checked when they were read."""
    if isinstance(column, Boolean):
        return np.isnan(numbers) | np.isin(numbers, (0.0, 1.0))
    whole = isinstance(column, Number) and column.whole
    return np.isnan(numbers) | (numbers == np.floor(numbers)) if whole else np.ones(len(numbers), bool)


def _of_frame(column: Column, numbers: np.ndarray, cells: list[Cell]) -> np.ndarray:
    """Which values of a data frame's column; the others reach the original in the form in which they came."""
    if round_trip(column, numbers) is not None:
        return np.ones(len(numbers), bool)
    return np.array([_same(column, numbers[i : i + 1], cell) for i, cell in enumerate(cells)], bool)


def _same(column: Column, number: np.ndarray, cell: Cell) -> bool:
    """Whether a value came as production has it: 1 is not the level "1", nor a text the date that it names."""
    if np.isnan(number[0]):
        return cell is None or cell != cell
    series = round_trip(column, number)
    return series is not None and bool(series.iloc[0] == cell)
