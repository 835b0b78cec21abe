"""Data frames and arrays of users: selection of columns, and conversion to a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import numpy as np

from ectype._common import validation
from ectype._common.formatting import join_names
from ectype.errors import SpaceError
from ectype.types import Frame, Plain, Rows, Series

# Suffixes of table files that can be read; those of spreadsheets cannot.
CSV_SUFFIXES, PARQUET_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz"), (".parquet", ".pq")
SPREADSHEET_SUFFIXES = (".xlsx", ".xls", ".xlsm", ".ods")


def as_matrix(rows: Rows, where: str, gaps: Sequence[bool] = ()) -> np.ndarray:
    """Rows of numbers as a float64 matrix, finite except in columns where `gaps` allows missing values."""
    rows = as_pandas(rows)
    if getattr(getattr(rows, "dtype", None), "kind", "") == "c":
        raise SpaceError(where, "numbers", "complex ones", "give their real and imaginary parts as columns")
    if isinstance(rows, (str, Path)):
        raise SpaceError(where, "rows", f"the name {str(rows)!r}", "read the file first, as by pandas.read_csv")
    if is_frame(rows):
        text = [str(n) for n, kind in zip(rows.columns, rows.dtypes, strict=True) if kind.kind not in "biuf"]
        if text:
            raise SpaceError(where, "numeric columns", f"{text} with other contents", "encode or leave them out")
        table = rows.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        try:
            plain = np.asarray(rows)
            if plain.dtype.kind in "OSU":
                validation.numerals(plain.flat)
            table = np.asarray(plain, dtype=np.float64)
        except (TypeError, ValueError) as error:
            hint = "give a data frame if some columns hold words or dates"
            raise SpaceError(where, "a table of numbers", str(error), hint) from error
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


def as_pandas(rows: Rows) -> Plain:
    """Rows as they are, but a data frame of Polars as one of pandas; neither Polars nor PyArrow is needed for it."""
    table: Any = rows
    if is_frame(rows) or not hasattr(rows, "collect_schema"):
        return table
    import pandas as pd

    eager = table if hasattr(table, "get_columns") else table.collect()
    return pd.DataFrame({series.name: _converted(series) for series in eager.get_columns()})


def _converted(series: Any) -> Series:
    """A column of Polars as one of pandas."""
    import pandas as pd

    kind = series.dtype
    if kind.is_decimal():
        series = series.cast(float)
    if not (kind.is_numeric() or str(kind).startswith("Date")):
        return pd.Series(series.to_list())
    column, zone = pd.Series(series.to_numpy()), getattr(kind, "time_zone", None)
    return column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)


def name_columns(rows: Plain, names: Sequence[str], where: str) -> Frame:
    """Rows without names as a data frame with these column names."""
    import pandas as pd

    try:
        frame = pd.DataFrame(rows)
    except (TypeError, ValueError) as error:
        raise SpaceError(where, "a table of rows and columns", str(error)) from error
    if frame.shape[1] != len(names):
        single = getattr(rows, "ndim", 2) == 1
        hint = "a single row is a table too: frame.iloc[[0]], or [row]" if single else ""
        raise SpaceError(where, f"rows of {len(names)} columns", f"{frame.shape[1]}", hint)
    return frame.set_axis(list(names), axis=1)


def select_columns(frame: Frame, columns: Sequence[str], where: str) -> Frame:
    """The columns of a space, of a data frame that has them and perhaps others."""
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        alike = {name: get_close_matches(name.lower(), list(map(str.lower, frame.columns)), 1) for name in absent}
        given = {name.lower(): name for name in frame.columns}
        meant = [f"{given[found[0]]!r} for {name!r}" for name, found in alike.items() if found]
        hint = f"is it {', '.join(meant[:3])}?" if meant else "give it all columns that the space has"
        found = (
            f"no {join_names([*map(repr, absent)])} among those given: {join_names([*map(repr, frame.columns)], 12)}"
        )
        raise SpaceError(where, f"all {len(columns)} columns of the space", found, hint)
    return choose_columns(frame, columns, where)


def refuse_table_file(path: object) -> None:
    """Refuse a table of rows where a space.json is expected, and say how one is made of the other."""
    name = str(path).lower()
    if not isinstance(path, (str, Path)) or not name.endswith(
        (*CSV_SUFFIXES, *PARQUET_SUFFIXES, *SPREADSHEET_SUFFIXES)
    ):
        return
    saved = "" if not name.endswith(SPREADSHEET_SUFFIXES) else "save it as CSV or Parquet, then "
    shown = str(path) if not saved else f"{Path(path).stem}.csv"
    hint = f"{saved}describe its rows first: ectype space {shown} --out space.json"
    raise SpaceError(str(path), "a space.json", "a table of rows", hint)


def choose_columns(frame: Frame, columns: Sequence[str], where: str) -> Frame:
    """Some columns of a data frame, by name."""
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise SpaceError(where, f"columns among {list(frame.columns)}", unknown, "check their spelling")
    found = frame[list(columns)]
    refuse_repeated_columns(found, where)
    return found


def refuse_text(where: str, what: str, given: object) -> None:
    """Refuse a text where a list of some is expected: its letters would be taken for them."""
    if isinstance(given, str):
        raise SpaceError(where, f"a list of {what}", repr(given), f"{where.rpartition(': ')[2]}=[{given!r}]")


def refuse_choice_by_name(rows: Rows, columns: Sequence[str], where: str) -> NoReturn:
    """Raise an error: columns of these rows cannot be chosen by name."""
    if is_frame(rows):
        raise SpaceError(where, f"the columns {list(columns)}", f"columns called {list(rows.columns)[:8]}")
    raise SpaceError(where, "a data frame, to choose columns by name", "an array")


def refuse_repeated_columns(frame: Frame, where: str) -> None:
    """Refuse a data frame in which several columns have the same name."""
    if not frame.columns.is_unique:
        repeated = sorted(set(frame.columns[frame.columns.duplicated()]))
        raise SpaceError(where, "columns with names of their own", f"{repeated} more than once", "rename them")
