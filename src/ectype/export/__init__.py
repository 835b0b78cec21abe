"""Export a copy as one file: ONNX, skops, rules, SQL or C; or as MLflow's folder.

It is compared with the copy before it gets its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ectype import progress
from ectype._common import validation
from ectype._common.atomic_io import atomic_file, atomic_folder
from ectype._common.extras import require_extra
from ectype.errors import DirectoryError, ExportError, SettingError

if TYPE_CHECKING:
    from ectype.export._verification import ExportOptions
    from ectype.models.copy_classifier import CopyClassifier

# The format that a file's ending implies.
SUFFIXES = {".onnx": "onnx", ".skops": "skops", ".rules": "rules", ".txt": "rules", ".sql": "sql", ".c": "c"}
FORMATS = ("onnx", "skops", "rules", "sql", "c", "mlflow")
# What SQL may be written for; `_sql_dialects` says how each differs.
DIALECTS = ("ansi", "postgresql", "mysql", "sqlite", "duckdb")
ROWS = 10_000


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how it compares with the copy."""

    path: Path
    format: str
    rows: int
    """The fresh rows of the space on which both were compared: fewer than were asked for, if answers took long; 0 where
    nothing could compute them."""
    disagreements: int
    tolerance: int
    """How many disagreements would have been accepted."""
    bytes: int
    engine: str
    """What computed the file's answers."""
    seconds: float
    """How long that took."""
    dialect: str | None = None

    def as_json(self) -> dict[str, Any]:
        """In the shape that `--json` prints."""
        return {**asdict(self), "path": str(self.path)}


def export(
    copy: CopyClassifier,
    path: str | Path,
    format: str | None = None,
    *,
    dialect: str | None = None,
    table: str | None = None,
    keep: Sequence[str] = (),
    rows: int = ROWS,
    seed: int = 0,
) -> Exported:
    """Write a copy as a file: `onnx`, `skops`, `rules`, `sql` or `c`; without a format, the file's ending decides.

    The format `mlflow` is a new folder, for `mlflow models serve`.

    The file is read back and compared with the copy on fresh rows of its space. If they disagree on more rows than the
    format allows, nothing is written. Where a database is slow, those are compared that it answers in ten seconds or
    so.

    SQL is written in a `dialect`: `ansi` unless another is named. Trees and linear copies are an expression, others a
    query of a `table`, which hands on the columns to `keep`, or else those of the copy.

    >>> from tempfile import TemporaryDirectory
    >>> from ectype import Space, copy_classifier
    >>> settings = {"budget": 300, "preset": "fast", "to": "linear"}
    >>> result = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), **settings)
    >>> with TemporaryDirectory() as folder:
    ...     found = export(result.copy, f"{folder}/copy.sql")
    >>> found.format, found.rows, found.disagreements
    ('sql', 10000, 0)
    """
    from ectype.export import _verification as verification
    from ectype.export._c import c_name
    from ectype.models.copy_classifier import CopyClassifier

    path, kind = _path(path), format_of(path, format)
    if not isinstance(copy, CopyClassifier):
        raise SettingError("copy", "the copy of a result, as result.copy", type(copy).__name__)
    options = replace(export_options(kind, dialect, table, keep), name=c_name(path.stem))
    rows, seed = validation.count("rows", rows, ROWS), validation.count("seed", seed, 0)
    with _made(path) if kind == "mlflow" else atomic_file(path) as part:
        progress.report_activity("the file is written")
        size = verification.write(copy, options, part)
        progress.report_activity(f"{size:,} bytes are compared with the copy")
        differ, found = verification.compare_with_copy(copy, options, part, rows, seed)
        tolerance = verification.tolerance(copy, kind, found.rows)
        if differ > tolerance:
            expected = f"at most {tolerance} of {found.rows} rows answered otherwise"
            raise ExportError(str(path), expected, f"{differ}", "nothing was written; please report it")
    spoken = options.dialect.name if kind == "sql" else None
    return Exported(path, kind, found.rows, differ, tolerance, size, found.engine, found.seconds, spoken)


def export_options(kind: str, dialect: str | None, table: str | None, keep: Sequence[str]) -> ExportOptions:
    """The options of an export, checked: only SQL has a dialect, a table and columns to keep; ONNX needs an extra."""
    from ectype.export._sql import TABLE
    from ectype.export._sql_dialects import DIALECTS as KNOWN
    from ectype.export._verification import ExportOptions

    given = {"dialect": dialect, "table": table, "keep": keep or None}
    for name, value in given.items():
        if value is not None and kind != "sql":
            raise SettingError(name, "a file of SQL", f"{value!r} for {kind}", "leave it out, or write FILE.sql")
    if kind in ("onnx", "mlflow"):
        require_extra(f"format {kind}", "onnx", "onnx", "onnxruntime")
    spoken = KNOWN[validation.choice("dialect", dialect or "ansi", DIALECTS)]
    if table is not None and (not isinstance(table, str) or not all(table.split("."))):
        raise SettingError("table", "the name of a table", repr(table))
    return ExportOptions(kind, spoken, table or TABLE, tuple(keep))


def format_of(path: str | Path, format: str | None) -> str:
    """The format asked for, or the one that a file's ending implies."""
    if format is not None:
        return validation.choice("format", format, FORMATS)
    ending = Path(path).suffix.lower()
    if ending not in SUFFIXES:
        hint = "or say which with format= or --format"
        raise SettingError("file", "a file that ends in " + ", ".join(SUFFIXES), f"{Path(path).name!r}", hint)
    return SUFFIXES[ending]


@contextmanager
def _made(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes `path` at the end, which must not be there yet."""
    with atomic_folder(path) as part:
        if path.exists():
            raise DirectoryError(str(path), "the name of a new folder", "something of that name is there")
        yield part


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise SettingError("path", "the name of a file", repr(path))
    return Path(path)


def load_skops(path: str | Path, trusted: Iterable[str] = ()) -> CopyClassifier:
    """Load a copy that was exported as a skops file, of version 0.1 or later; no code in the file is run.

    `trusted` are further classes that it may hold, such as the scikit-learn classifier that the copy is.
    """
    from ectype.export._skops import load_copy

    return load_copy(path, trusted)
