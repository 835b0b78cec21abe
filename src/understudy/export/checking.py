"""The content of a file in each format, and its answers once it is read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from understudy.errors import ExportError
from understudy.models.classifier import CopyClassifier
from understudy.models.fitted import Fitted
from understudy.models.trees import Trees
from understudy.space.tables import is_frame
from understudy.types import Label, Table

# One row in so many may be answered differently: float32 sums depend on their order, SQL has no float32 to round to,
# and rules have rounded numbers. Trees compare and add exactly.
ONE_IN = {"onnx": 10_000, "sql": 10_000, "rules": 1000}


def content(copy: CopyClassifier, kind: str) -> bytes:
    """The bytes of the file."""
    if isinstance(copy.model, Fitted) and kind != "skops":
        expected, hint = "a family that is written as numbers", "write it as skops, or copy to another family"
        raise ExportError(kind, expected, type(copy.model.estimator).__name__, hint)
    if kind == "onnx":
        from understudy.export.onnx import onnx_model

        return onnx_model(copy).SerializeToString()
    if kind == "skops":
        from understudy.export.skops import skops_bytes

        return skops_bytes(copy)
    if kind == "sql":
        from understudy.export.sql import sql_text

        return sql_text(copy).encode()
    from understudy.export.rules import rules_text

    return rules_text(copy).encode()


def tolerance(copy: CopyClassifier, kind: str, rows: int) -> int:
    """How many of so many rows may be answered differently."""
    exact = isinstance(copy.model, Trees) and copy.model.link == "shares" and kind != "rules"
    return 0 if exact or kind == "skops" else rows // ONE_IN[kind]


def disagreements(copy: CopyClassifier, kind: str, path: Path, rows: int, seed: int) -> int:
    """On how many fresh rows file and copy disagree."""
    fresh = copy.space.present(copy.space.sample(rows, np.random.default_rng(seed)))
    return int((np.asarray(_answers(copy, kind, path, fresh)) != copy.predict(fresh)).sum())


def _answers(copy: CopyClassifier, kind: str, path: Path, rows: Table) -> np.ndarray | list[Label]:
    if kind == "onnx":
        return onnx_answers(copy, path, rows)
    if kind == "skops":
        from understudy.export.skops import skops_answers

        return skops_answers(copy, path, rows)
    return sql_answers(copy, _expression(copy, kind, path), rows)


def onnx_answers(copy: CopyClassifier, path: Path, rows: Table) -> np.ndarray:
    """An ONNX file's answers to rows as in production."""
    import onnxruntime

    from understudy.export.onnx import feeds

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, feeds(copy.space, rows))[0]


def sql_answers(copy: CopyClassifier, expression: str, rows: Table) -> list[Label]:
    """An SQL expression's answers to rows as in production."""
    import sqlite3
    from contextlib import closing

    from understudy.export.sql import quoted

    names = ", ".join(map(quoted, copy.space.names))
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute(f"CREATE TABLE fresh ({names})")
            marks = ", ".join("?" * copy.space.d)
            database.executemany(f"INSERT INTO fresh VALUES ({marks})", _records(copy, rows))
            return [label for (label,) in database.execute(f"SELECT ({expression}) FROM fresh ORDER BY rowid")]
    except sqlite3.Error as error:
        raise ExportError("sql", "an expression that SQLite computes", str(error), "nothing was written") from error


def _expression(copy: CopyClassifier, kind: str, path: Path) -> str:
    """The file itself; for rules, which only people read, SQL with the same rules and numbers."""
    if kind == "sql":
        return path.read_text(encoding="utf-8")
    from understudy.export.sql import expression
    from understudy.logic.conditions import DIGITS, logic_of

    return expression(logic_of(copy, DIGITS), copy.classes)


def _records(copy: CopyClassifier, rows: Table) -> list[Sequence[object]]:
    """Rows as values that a database takes, None for a gap."""
    if not is_frame(rows):
        return [[None if value != value else value for value in row] for row in np.asarray(rows).tolist()]
    columns = [rows[name].astype(object) for name in copy.space.names]
    return list(zip(*(column.where(column.notna(), None).tolist() for column in columns), strict=True))
