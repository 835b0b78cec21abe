"""The content of a file in each format, and its answers once it is read back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

from ectype.errors import EctypeWarning, ExportError
from ectype.export._sql import TABLE, is_query, sql_text
from ectype.export._sql_dialects import DIALECTS, Dialect
from ectype.export._sql_verification import engine_of, sql_answers, version_of
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.sklearn_model import SklearnModel
from ectype.models.trees import Trees
from ectype.space import Category, Date, is_frame
from ectype.types import Label, Table

# One row in so many may be answered differently: float32 sums depend on their order, SQL has no float32 to round to,
# and rules have rounded numbers. Trees compare and add exactly.
ONE_IN = {"onnx": 10_000, "mlflow": 10_000, "sql": 10_000, "c": 10_000, "rules": 1000}
# How long a database may take to answer, in seconds: after that, the rows that it answered are all that is compared.
SECONDS = 10.0
# In one row of so many, a category has a level that its space does not know.
UNKNOWN_EVERY = 50


@dataclass(frozen=True)
class ExportOptions:
    """The format of a file, and its options."""

    format: str
    dialect: Dialect = DIALECTS["ansi"]
    table: str = TABLE
    keep: tuple[str, ...] = ()
    name: str = "copy"
    """The beginning of all names in a C file."""


@dataclass(frozen=True)
class ReadBack:
    """A file's answers, what computed them, and how long that took."""

    labels: np.ndarray | list[Label] | None
    """None if there is nothing here that computes them."""
    engine: str
    seconds: float

    @property
    def rows(self) -> int:
        """How many rows it answered."""
        return 0 if self.labels is None else len(self.labels)


def write(copy: CopyClassifier, options: ExportOptions, path: Path) -> int:
    """Write the file, or fill the folder; gives its bytes."""
    if options.format != "mlflow":
        return path.write_bytes(content(copy, options))
    _refuse_fitted(copy, options)
    from ectype.export._mlflow import write_mlflow

    write_mlflow(copy, path)
    return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())


def _refuse_fitted(copy: CopyClassifier, options: ExportOptions) -> None:
    if isinstance(copy.model, SklearnModel) and options.format != "skops":
        expected, hint = "a family that is written as numbers", "write it as skops, or copy to another family"
        raise ExportError(options.format, expected, type(copy.model.estimator).__name__, hint)


def content(copy: CopyClassifier, options: ExportOptions) -> bytes:
    """The bytes of the file."""
    _refuse_fitted(copy, options)
    if options.format == "onnx":
        from ectype.export._onnx import onnx_model

        return onnx_model(copy).SerializeToString()
    if options.format == "skops":
        from ectype.export._skops import skops_bytes

        return skops_bytes(copy)
    if options.format == "sql":
        return sql_text(copy, options.dialect, options.table, options.keep).encode()
    if options.format == "c":
        from ectype.export._c import c_text

        return c_text(copy, options.name).encode()
    from ectype.export._rules import rules_text

    return rules_text(copy).encode()


def tolerance(copy: CopyClassifier, kind: str, rows: int) -> int:
    """How many of so many rows may be answered differently."""
    exact = isinstance(copy.model, Trees) and copy.model.link == "shares" and kind != "rules"
    return 0 if exact or kind == "skops" else rows // ONE_IN[kind]


def compare_with_copy(
    copy: CopyClassifier, options: ExportOptions, path: Path, rows: int, seed: int
) -> tuple[int, ReadBack]:
    """On how many fresh rows file and copy disagree, and the file's answers: to fewer rows, if it is slow."""
    fresh = fresh_rows(copy, rows, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EctypeWarning)  # that there are unknown levels
        expected, found = copy.predict(fresh), _read_back(copy, options, path, fresh)
    return (0 if found.labels is None else int((np.asarray(found.labels) != expected[: found.rows]).sum())), found


def fresh_rows(copy: CopyClassifier, n: int, seed: int) -> Table:
    """Fresh rows as files take them, as in production but for dates; some have levels that the space does not know."""
    drawn = copy.space.sample(n, np.random.default_rng(seed))
    rows = copy.space.present(drawn)
    if is_frame(rows):
        for j, column in enumerate(copy.space.columns):
            if isinstance(column, Category):
                values = rows[column.name].astype(object)
                values.iloc[j % UNKNOWN_EVERY :: UNKNOWN_EVERY] = unknown_level(column)
                rows[column.name] = values
            elif isinstance(column, Date):  # a file has no calendar
                rows[column.name] = drawn[:, j] if column.missing else drawn[:, j].astype(np.int64)
    return rows


def unknown_level(column: Category) -> str | int:
    """A level that the space does not know."""
    numbers = [level for level in column.levels if isinstance(level, int)]
    if len(numbers) == len(column.levels):
        return max(numbers) + 1
    return "".join(str(level) for level in column.levels) + "?"


def _read_back(copy: CopyClassifier, options: ExportOptions, path: Path, rows: Table) -> ReadBack:
    started = perf_counter()
    if options.format == "onnx":
        import onnxruntime

        engine = f"onnxruntime {onnxruntime.__version__}"
        labels: np.ndarray | list[Label] = onnx_answers(copy, path, rows)
    elif options.format == "skops":
        from ectype.export._skops import skops_answers

        engine, labels = "ectype", skops_answers(copy, path, rows)
    elif options.format == "mlflow":
        from ectype.export._mlflow import mlflow_answers

        engine, labels = "the loader in its folder", mlflow_answers(path, rows)
    elif options.format == "c":
        from ectype.export._c_verification import c_answers

        return c_answers(copy, path, options.name, rows)
    else:
        engine, labels = _in_database(copy, options, path.read_text(encoding="utf-8"), rows)
    return ReadBack(labels, engine, perf_counter() - started)


def onnx_answers(copy: CopyClassifier, path: Path, rows: Table) -> np.ndarray:
    """An ONNX file's answers to rows as in production."""
    import onnxruntime

    from ectype.export._onnx import feeds

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, feeds(copy.space, rows))[0]


def _in_database(copy: CopyClassifier, options: ExportOptions, text: str, rows: Table) -> tuple[str, list[Label]]:
    """The file itself where a database for its dialect is at hand; else the same logic as SQLite writes it."""
    if options.format == "rules":
        return f"{version_of('sqlite')}, the same rules as SQL", sql_answers(copy, _rules(copy), rows)
    engine = engine_of(options.dialect)
    if options.dialect.name == "ansi" and not is_query(text):
        engine = "sqlite"  # which reads standard expressions too, but would compute a query's stages again and again
    said, table, keep = version_of(engine or "sqlite"), options.table, options.keep
    if not engine:
        said = f"{said}, the same logic in its dialect: no {options.dialect.name} here"
        engine, text, table, keep = "sqlite", sql_text(copy, DIALECTS["sqlite"]), TABLE, ()
    return said, sql_answers(copy, text, rows, engine, table, keep, SECONDS)


def _rules(copy: CopyClassifier) -> str:
    """Rules, which only people read, as SQL with the same rules and numbers."""
    from ectype.conditions.conditions import DIGITS, logic_of
    from ectype.export._sql import expression

    return expression(logic_of(copy, DIGITS), copy.classes, DIALECTS["sqlite"])
