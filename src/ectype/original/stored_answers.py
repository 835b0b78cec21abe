"""Originals that are gone: a table of rows with the answers they once gave, which are then all that can be asked."""

from __future__ import annotations

import re
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ectype._common.formatting import join_names, shorten
from ectype.errors import SettingError
from ectype.original.base import Original
from ectype.original.decode import as_written, word_reader
from ectype.original.labels import Labels, label_array
from ectype.original.options import LABEL
from ectype.space import PARQUET_SUFFIXES, SPREADSHEET_SUFFIXES
from ectype.types import Classes, Frame, Label, Series, Table

# Whole numbers that may name something: with zeros before them, or with more digits than a float has.
_NAMING = re.compile(r"\s*[+-]?(0[0-9]|[0-9]{16})")


def open_table(spec: str, classes: Classes = None, *, label: str = LABEL) -> Original:
    """A table of stored answers: every column but the one of labels is an input."""
    listed = None if classes is None else list(classes)
    rows, labels = split_labels(read_table(spec, label, listed), spec, label, "name it with label=... or --label")
    declared = Labels(labels if listed is None else listed)
    declared.encode(labels)
    digest = sha256(Path(spec).read_bytes()).hexdigest()
    original = Original(
        _cannot, declared.classes, d=rows.shape[1], names=list(rows.columns), name=Path(spec).name, fingerprint=digest
    )
    original.stored = rows, labels
    return original


def split_labels(frame: Frame, where: str, label: str = LABEL, hint: str = "rename it") -> tuple[Frame, np.ndarray]:
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


def read_table(path: str, label: str | None = None, classes: Classes = None) -> Frame:
    """A CSV file with a header, or a Parquet file, as a data frame, or an error that says why not.

    Numbers that name something, such as postcodes, stay words. `label` is a column of labels: they are as `classes`
    are or, where none are declared, as they stand, if as numbers they would not be told apart.
    """
    name = str(path).lower()
    if name.endswith(SPREADSHEET_SUFFIXES):
        code = f"import pandas; pandas.read_excel('{path}').to_csv('rows.csv', index=False)"
        hint = f'save it as CSV: python -c "{code}"'
        raise SettingError(str(path), "a CSV or Parquet file", "a spreadsheet", hint)
    if name.endswith(".json"):
        hint = "give rows; a space.json goes with --space"
        raise SettingError(str(path), "a CSV or Parquet file of rows", "JSON", hint)
    return _named(_read_parquet(path) if name.endswith(PARQUET_SUFFIXES) else _read_csv(path, label, classes), path)


def _read_csv(path: str, label: str | None, classes: Classes) -> Frame:
    import pandas as pd

    text: dict[str, Any] = {"encoding": "utf-8", "dtype": str, "keep_default_na": False}
    try:
        header = pd.read_csv(path, header=None, nrows=1, **text).iloc[0].tolist()
        _refuse_header(header, path)
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):  # of fields it would drop
            # At once, or a column's type would depend on its length.
            frame = pd.read_csv(path, encoding="utf-8", low_memory=False, index_col=False)
        read = [j for j, name in enumerate(frame) if name == label or _of_numbers(frame[name])]
        words = pd.read_csv(path, usecols=read, index_col=False, **text) if read else frame[[]]
    except pd.errors.ParserWarning as error:
        hint = "give every column a name, and no row more fields than there are names"
        raise SettingError(
            str(path), f"rows of {len(header)} fields, as its header has", "more fields", hint
        ) from error
    except (OSError, ValueError) as error:  # not found, not text, not a table
        if isinstance(error, SettingError):
            raise
        raise SettingError(str(path), "a CSV file with a header", str(error)) from error
    for name in words:
        if name == label:
            frame[name] = _labels(words[name], np.asarray(frame[name].isna()), path, classes)
        elif _name_things(words[name].unique().tolist()):
            frame[name] = words[name].where(frame[name].notna())
    return frame


def _refuse_header(header: list[str], path: str) -> None:
    """Refuse names that pandas would change, and columns that commas do not separate."""
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        found = f"{join_names([*map(repr, repeated)])} more than once"
        raise SettingError(str(path), "columns with names of their own", found, "rename them")
    if len(header) == 1 and (mark := next((mark for mark in ";\t|" if mark in header[0]), None)):
        found = f"one column called {shorten(header[0], 60)!r}"
        raise SettingError(str(path), "columns separated by commas", found, f"write commas in place of {mark!r}")


def _of_numbers(values: Series) -> bool:
    """Whether all values were read as numbers; those of very many digits come as objects."""
    from pandas.api.types import infer_dtype

    return values.dtype.kind in "iuf" or (values.dtype == object and infer_dtype(values, skipna=True) == "integer")


def _name_things(words: list[str]) -> bool:
    """Whether numbers name something: as numbers they would lose the zeros before them, or their last digits."""
    found = [word.strip().lstrip("+-") for word in words if _NAMING.match(word)]
    return any(word.startswith("0") or (word.isdecimal() and int(word) != int(float(word))) for word in found)


def _labels(words: Series, gaps: np.ndarray, path: str, classes: Classes) -> Series:
    """A column of labels as they are written; what pandas takes for a missing value is a label if it is declared."""
    import pandas as pd

    declared = set() if classes is None else set(Labels(classes).classes.tolist())
    empty = np.array([not word.strip() for word in words], bool)
    for row in np.flatnonzero(gaps & ~empty & ~words.isin([*map(str, declared)]).to_numpy()):
        word = f"{words.iloc[row]!r} in row {row}, which may mean that none is known"
        hint = "remove such rows; or, if it is a label, name all labels with classes=[...] or --classes"
        raise SettingError(path, "an answer in every row", word, hint)
    there = words[~empty]
    found = as_written(there.tolist()) if classes is None else _declared(there, path, classes)
    return pd.Series(found, index=there.index, dtype=object).reindex(words.index)


def _declared(words: Series, path: str, classes: Classes) -> list[Label]:
    """Words as labels of the type of the declared classes."""
    read, found = word_reader(classes), list[Label]()
    for row, word in words.items():
        try:
            found.append(read(word))
        except ValueError as error:
            hint = "it is of another type than the declared classes: name all labels as they stand there"
            raise SettingError(path, f"{error} in column {words.name!r}", f"{word!r} in row {row}", hint) from error
    return found


def _read_parquet(path: str) -> Frame:
    import pandas as pd

    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        hint = 'install it: pip install "ectype[parquet]"'
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
