"""Originals that are gone: a CSV of rows with the answers they once gave, which are then all that can be asked."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from understudy.errors import SettingError
from understudy.original.base import Original
from understudy.original.labels import Labels, label_array
from understudy.types import Classes, Frame, Table

# The column of answers, unless another is named.
LABEL = "label"


def open_table(spec: str, classes: Classes = None, *, label: str = LABEL) -> Original:
    """A table of stored answers: every column but the one of labels is an input."""
    frame = read_csv(spec)
    if label not in frame:
        found = f"columns {list(frame.columns)[:20]}"
        raise SettingError(spec, f"a column {label!r} with the answers", found, "name it with label=... or --label")
    rows = frame.drop(columns=label)
    if not len(rows) or not len(rows.columns):
        raise SettingError(spec, "rows with at least one input beside the answer", f"a table of shape {rows.shape}")
    if frame[label].isna().any():
        row = int(frame[label].isna().to_numpy().argmax())
        raise SettingError(spec, "an answer in every row", f"none in row {row}", "remove rows without an answer")
    try:
        labels = label_array(frame[label].tolist())
    except ValueError as error:
        raise SettingError(spec, "answers of one type", str(error)) from error
    declared = Labels(labels if classes is None else classes)
    declared.encode(labels)
    digest = sha256(Path(spec).read_bytes()).hexdigest()
    original = Original(
        _cannot, declared.classes, d=rows.shape[1], names=list(rows.columns), name=Path(spec).name, fingerprint=digest
    )
    original.stored = rows, labels
    return original


def read_csv(path: str) -> Frame:
    """A CSV file with a header as a data frame, or an error that says why not."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, encoding="utf-8", low_memory=False)  # or a column's type would depend on its length
    except (OSError, ValueError, pd.errors.ParserError) as error:  # not found, not text, not a table
        raise SettingError(str(path), "a CSV file with a header", str(error)) from error
    unnamed = [str(name) for name in frame.columns if str(name).startswith("Unnamed: ")]
    if unnamed:
        hint = "give every column a name; a table saved with its index has one without"
        raise SettingError(str(path), "a name for every column", f"{len(unnamed)} without", hint)
    return frame


def _cannot(rows: Table) -> NoReturn:
    raise RuntimeError("stored answers are all there are")
