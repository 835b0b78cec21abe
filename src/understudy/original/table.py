"""Originals that are gone: a table of rows with the answers they once gave, which are then all that can be asked."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import numpy as np

from understudy.errors import SettingError
from understudy.original.base import Original
from understudy.original.labels import Labels, label_array
from understudy.space.tables import PARQUET, SHEETS
from understudy.types import Classes, Frame, Table

# The column of answers, unless another is named.
LABEL = "label"


def open_table(spec: str, classes: Classes = None, *, label: str = LABEL) -> Original:
    """A table of stored answers: every column but the one of labels is an input."""
    rows, labels = labelled(read_table(spec), spec, label, "name it with label=... or --label")
    declared = Labels(labels if classes is None else classes)
    declared.encode(labels)
    digest = sha256(Path(spec).read_bytes()).hexdigest()
    original = Original(
        _cannot, declared.classes, d=rows.shape[1], names=list(rows.columns), name=Path(spec).name, fingerprint=digest
    )
    original.stored = rows, labels
    return original


def labelled(frame: Frame, where: str, label: str = LABEL, hint: str = "rename it") -> tuple[Frame, np.ndarray]:
    """The rows of a table and their labels, which are in the column of this name; all others are inputs."""
    if label not in frame:
        raise SettingError(where, f"a column {label!r} with the answers", f"columns {list(frame.columns)[:20]}", hint)
    rows = frame.drop(columns=label)
    if not len(rows) or not len(rows.columns):
        raise SettingError(where, "rows with at least one input beside the answer", f"a table of shape {rows.shape}")
    if frame[label].isna().any():
        row = int(frame[label].isna().to_numpy().argmax())
        raise SettingError(where, "an answer in every row", f"none in row {row}", "remove rows without an answer")
    try:
        return rows, label_array(frame[label].tolist())
    except ValueError as error:
        raise SettingError(where, "answers of one type", str(error)) from error


def read_table(path: str) -> Frame:
    """A CSV file with a header, or a Parquet file, as a data frame, or an error that says why not."""
    import pandas as pd

    name = str(path).lower()
    if name.endswith(SHEETS):
        code = f"import pandas; pandas.read_excel('{path}').to_csv('rows.csv', index=False)"
        hint = f'save it as CSV: python -c "{code}"'
        raise SettingError(str(path), "a CSV or Parquet file", "a spreadsheet", hint)
    if name.endswith(".json"):
        hint = "give rows; a space.json goes with --space"
        raise SettingError(str(path), "a CSV or Parquet file of rows", "JSON", hint)
    if name.endswith(PARQUET):
        return _named(_read_parquet(path), path)
    try:
        frame = pd.read_csv(path, encoding="utf-8", low_memory=False)  # or a column's type would depend on its length
    except (OSError, ValueError, pd.errors.ParserError) as error:  # not found, not text, not a table
        raise SettingError(str(path), "a CSV file with a header", str(error)) from error
    return _named(frame, path)


def _read_parquet(path: str) -> Frame:
    import pandas as pd

    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        hint = 'install it: pip install "understudy[parquet]"'
        raise SettingError(str(path), "pyarrow, which reads Parquet", "nothing", hint) from error
    except FileNotFoundError as error:
        raise SettingError(str(path), "a Parquet file", "no such file") from error
    except (OSError, ValueError) as error:
        raise SettingError(str(path), "a Parquet file", str(error)) from error


def _named(frame: Frame, path: str) -> Frame:
    """A table, if all of its columns have names."""
    unnamed = [
        name for name in frame.columns if not isinstance(name, str) or name.startswith(("Unnamed: ", "__index_"))
    ]
    if unnamed:
        hint = "give every column a name; a table saved with its index has one without"
        raise SettingError(str(path), "a name for every column", f"{len(unnamed)} without", hint)
    return frame


def _cannot(rows: Table) -> NoReturn:
    raise RuntimeError("stored answers are all there are")
