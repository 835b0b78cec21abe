"""Rows that clients sent, as the original takes them in production, and which of them the space can say."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from understudy.errors import SpaceError
from understudy.serve.reading import Rows
from understudy.serve.tensors import Cell
from understudy.space import Space
from understudy.space.columns import Boolean, Column, Number
from understudy.types import Series, Table


def presented(rows: Rows, space: Space) -> tuple[Table, np.ndarray]:
    """Rows as the original takes them, and which of them are rows of the space.

    Others are asked as they came: those with an unknown level, or a fraction where there are whole numbers.
    """
    if not space.frame:
        columns = enumerate(space.columns)
        return rows.matrix.copy(), _all([_of_type(column, rows.matrix[:, j]) for j, column in columns])
    import pandas as pd

    cells = rows.cells
    found = [_column(column, rows.matrix[:, j], cells[j]) for j, column in enumerate(space.columns)]
    table = pd.DataFrame({name: series for name, (series, _) in zip(space.names, found, strict=True)})
    return table, _all([said for _, said in found])


def _all(masks: list[np.ndarray]) -> np.ndarray:
    return np.logical_and.reduce(masks)


def _of_type(column: Column, numbers: np.ndarray) -> np.ndarray:
    """Which numbers of an array a column may hold; a gap is only read where there may be one."""
    if isinstance(column, Boolean):
        return np.isnan(numbers) | np.isin(numbers, (0.0, 1.0))
    whole = isinstance(column, Number) and column.whole
    return np.isnan(numbers) | (numbers == np.floor(numbers)) if whole else np.ones(len(numbers), bool)


def _column(column: Column, numbers: np.ndarray, cells: list[Cell]) -> tuple[Series, np.ndarray]:
    """A column in its type of production; as it came, if that type cannot say all of it.

    What came is then what the original is asked, and in the space only if it reads the same.
    """
    import pandas as pd

    if (series := _said(column, numbers)) is not None:
        return series, np.ones(len(numbers), bool)
    came = pd.Series(cells, dtype=object).infer_objects()
    return came, np.array([_same(column, numbers[i : i + 1], cell) for i, cell in enumerate(cells)], bool)


def _said(column: Column, numbers: np.ndarray) -> Series | None:
    """Numbers in the type of production, if that says them all."""
    with suppress(SpaceError), np.errstate(invalid="ignore"):
        series = column.present(numbers)
        if np.array_equal(column.read(series, "shadow"), numbers, equal_nan=True):
            return series
    return None


def _same(column: Column, number: np.ndarray, cell: Cell) -> bool:
    """Whether a value came as production has it: 1 is not the level "1", nor a text the date that it names."""
    if np.isnan(number[0]):
        return cell is None or cell != cell
    series = _said(column, number)
    return series is not None and bool(series.iloc[0] == cell)
