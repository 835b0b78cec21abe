"""Tables of users: their type, their columns, and their rows as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, TypeGuard

import numpy as np

from understudy.errors import SpaceError
from understudy.types import Frame, Rows


def as_matrix(rows: Rows, where: str, gaps: Sequence[bool] = ()) -> np.ndarray:
    """Rows of numbers as a float64 matrix, finite except in columns where `gaps` allows missing values."""
    if is_frame(rows):
        text = [str(n) for n, kind in zip(rows.columns, rows.dtypes, strict=True) if kind.kind not in "biuf"]
        if text:
            raise SpaceError(where, "numeric columns", f"{text} with other contents", "encode or leave them out")
        table = rows.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        try:
            table = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise SpaceError(where, "a table of numbers", str(error)) from error
        if table.ndim != 2:
            raise SpaceError(where, "a table of rows and columns", f"an array of shape {table.shape}")
    if table.shape[1] == 0:
        raise SpaceError(where, "at least one column", "none")
    wrong = ~np.isfinite(table)
    if len(gaps) == table.shape[1]:
        wrong &= ~(np.isnan(table) & np.asarray(gaps))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        found = f"{table[row, column]} in row {row}, column {column} ({int(wrong.sum())} such cells)"
        raise SpaceError(where, "finite numbers", found, "remove or fill those rows")
    return table


def is_frame(rows: object) -> TypeGuard[Frame]:
    """Whether this is a data frame, of pandas or with its interface."""
    return hasattr(rows, "iloc") and hasattr(rows, "columns")


def chosen(frame: Frame, columns: Sequence[str], where: str) -> Frame:
    """Some columns of a data frame, by name."""
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise SpaceError(where, f"columns among {list(frame.columns)}", unknown, "check their spelling")
    found = frame[list(columns)]
    refuse_repeated(found, where)
    return found


def refuse_choice(rows: Rows, columns: Sequence[str], where: str) -> NoReturn:
    """Say why columns cannot be chosen by name."""
    if is_frame(rows):
        raise SpaceError(where, f"the columns {list(columns)}", f"columns called {list(rows.columns)[:8]}")
    raise SpaceError(where, "a data frame, to choose columns by name", "an array")


def refuse_repeated(frame: Frame, where: str) -> None:
    """Refuse a data frame in which several columns have the same name."""
    if not frame.columns.is_unique:
        repeated = sorted(set(frame.columns[frame.columns.duplicated()]))
        raise SpaceError(where, "columns with names of their own", f"{repeated} more than once", "rename them")
