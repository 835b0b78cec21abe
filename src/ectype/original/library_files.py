"""Originals that are model files of other libraries, each run by its own library in a process of its own.

A file that is damaged, or made to do harm, may crash compiled code: that is then an error, and no more.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import NamedTuple, Unpack

import numpy as np

from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original import library_loaders
from ectype.original.base import Original
from ectype.original.decode import check_decoding, with_decoding
from ectype.original.labels import Labels, label_array
from ectype.original.model_worker_client import ModelProcess
from ectype.original.onnx_inputs import number_column
from ectype.original.options import LabelReader
from ectype.original.sklearn_files import ModelBytes, read_file
from ectype.original.subprocess_io import patience
from ectype.space import INT64_TYPE, STRING_TYPE, dates_as_text, wire_type_of_values
from ectype.types import Classes, Json, Series, Table


class Library(NamedTuple):
    """The library that runs a file: its name in words, and its module, which the extra of the same name brings."""

    words: str
    module: str
    extra: str


LIGHTGBM = Library("LightGBM", "lightgbm", "lightgbm")
XGBOOST = Library("XGBoost", "xgboost", "xgboost")
CATBOOST = Library("CatBoost", "catboost", "catboost")
PMML = Library("PyPMML", "pypmml", "pmml")


def open_lightgbm(
    spec: str, classes: Classes = None, *, timeout: float = 60.0, **reading: Unpack[LabelReader]
) -> Original:
    """The classifier in a text file that LightGBM saved. Its classes are 0, 1, ..., unless `classes` names them."""
    return _opened(ModelFile(LIGHTGBM, spec, timeout), classes, **reading)


def open_xgboost(
    spec: str, classes: Classes = None, *, timeout: float = 60.0, **reading: Unpack[LabelReader]
) -> Original:
    """The classifier in a JSON or UBJSON file that XGBoost saved. Its classes are 0, 1, ..., unless they are named."""
    return _opened(ModelFile(XGBOOST, spec, timeout), classes, **reading)


def open_catboost(
    spec: str, classes: Classes = None, *, timeout: float = 60.0, **reading: Unpack[LabelReader]
) -> Original:
    """The classifier in a file that CatBoost saved, which knows its classes."""
    return _opened(ModelFile(CATBOOST, spec, timeout), classes, **reading)


def open_pmml(spec: str, classes: Classes = None, *, timeout: float = 60.0, **reading: Unpack[LabelReader]) -> Original:
    """The classifier in a PMML file, asked in one JVM that lasts as long as the original."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise SettingError(spec, "a JVM, to run it", "no java", "install one, Java 8 or newer, or set JAVA_HOME")
    _refuse_entities(read_file(spec))
    return _opened(ModelFile(PMML, spec, timeout), classes, **reading)


class ModelFile:
    """A file, the process that runs it, and what the model says about itself: columns and classes."""

    def __init__(self, library: Library, spec: str, timeout: float):
        seconds, self.file = patience(timeout), read_file(spec)
        _refuse_missing(library, self.file)
        setting = {"loader": library_loaders.__file__, "library": library.module}
        self.process = ModelProcess(self.file.name, self.file.content, setting, seconds, library.words)
        self.about = _about(self.process, library, self.file)

    def ask(self, rows: Table) -> tuple[np.ndarray, np.ndarray]:
        """The code of each row's class, and a table of scores; both the same, of a model without classes."""
        codes, scores = self.process.ask(_feeds(rows, self.about["names"], self.file.name))
        return codes, scores


def _opened(model: ModelFile, classes: Classes, **reading: Unpack[LabelReader]) -> Original:
    """An original of labels and probabilities, or of the scores alone where that is how they are to be read."""
    about, file, kind = model.about, model.file, check_decoding(reading.get("decode"))
    given = None if classes is None else list(classes)
    original = Original(model.ask, d=about["d"], names=about["names"], name=file.name, fingerprint=file.sha256)
    original.failures = model.process.failures
    if kind != "label" or not about["classes"]:
        original.predict = lambda rows: _scores(model, rows, kind)
        return with_decoding(original, given, **reading)
    labels = label_array(about["classes"] if given is None else given)
    if len(labels) != len(about["classes"]):
        found = f"{len(labels)}, where {file.name} has {len(about['classes'])}"
        raise SettingError("classes", "a label for each class of the model, in its order", found)
    original.predict, original.declared = lambda rows: labels[model.ask(rows)[0]], Labels(labels)
    original.predict_with_scores = lambda rows: _labels_and_scores(model, rows, labels)
    return with_decoding(original, None, **reading)


def _labels_and_scores(model: ModelFile, rows: Table, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities in the order of the sorted classes."""
    codes, scores = model.ask(rows)
    if scores.shape[1:] != (len(labels),):
        hint = "save it with an objective that gives probabilities, or leave out scores"
        raise OriginalError(model.file.name, "a probability for each class", "labels alone", hint)
    return labels[codes], scores[:, np.argsort(labels)]


def _scores(model: ModelFile, rows: Table, kind: str) -> np.ndarray:
    """Scores to be read; a threshold is about the second class of two."""
    codes, scores = model.ask(rows)
    if model.about["classes"] and scores.shape[1] == 0:
        return codes
    return scores[:, 1] if kind == "threshold" and scores.ndim == 2 and scores.shape[1] == 2 else scores


def _refuse_missing(library: Library, file: ModelBytes) -> None:
    if find_spec(library.module) is None:
        hint = f"pip install 'ectype[{library.extra}]'"
        raise SettingError(file.name, f"{library.words}, to run it", "no such package", hint)


def _refuse_entities(file: ModelBytes) -> None:
    """Refuse XML that declares entities: they may grow without end, or read other files."""
    if b"<!DOCTYPE" in file.content.replace(b"\0", b""):
        raise SettingError(file.name, "PMML, which has no DOCTYPE", "one", "it may be made to do harm")


def _about(process: ModelProcess, library: Library, file: ModelBytes) -> Json:
    """The model's columns and classes; a file that cannot be loaded is found before anything is asked."""
    try:
        return process.start()
    except OutageError as error:
        hint = "it is damaged, something else, or was saved by a newer version"
        raise SettingError(file.name, f"a model that {library.words} can load", error.found, hint) from error


def _feeds(rows: Table, names: list[str] | None, name: str) -> dict[str, np.ndarray]:
    """A matrix under no name, or the columns of a data frame, in the order and under the names of the model's."""
    if isinstance(rows, np.ndarray):
        return {"": np.asarray(rows, np.float64)}
    found = [str(column) for column in rows.columns]
    if names is not None and set(found) != set(names):
        hint = "describe the space from a table with these columns"
        raise OriginalError(name, f"a data frame with the columns {names}", f"the columns {found}", hint)
    columns = {column: _column(rows.iloc[:, at], f"{name}: column {column}") for at, column in enumerate(found)}
    return columns if names is None else {column: columns[column] for column in names}


def _column(column: Series, where: str) -> np.ndarray:
    """Numbers, or words with None for a gap. Whole numbers stay whole: they may be names of groups."""
    import pandas as pd

    typed = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    kind, gone = wire_type_of_values(typed), column.isna()
    if kind == STRING_TYPE:
        return dates_as_text(column).astype(object).where(~gone, None).to_numpy(dtype=object)
    return number_column(column, np.dtype(np.int64 if kind == INT64_TYPE and not gone.any() else np.float64), where)
