"""Export a copy as one file: ONNX, skops, rules or SQL. It is compared with the copy before it gets its name."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy import checks
from understudy.errors import ExportError, SettingError
from understudy.files import written

if TYPE_CHECKING:
    from understudy.models.classifier import CopyClassifier

# The format that a file's ending implies.
SUFFIXES = {".onnx": "onnx", ".skops": "skops", ".rules": "rules", ".txt": "rules", ".sql": "sql"}
FORMATS = ("onnx", "skops", "rules", "sql")
ROWS = 10_000


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how it compares with the copy."""

    path: Path
    format: str
    rows: int
    """The fresh rows of the space on which both were compared."""
    disagreements: int
    tolerance: int
    """How many disagreements would have been accepted."""
    bytes: int

    def as_json(self) -> dict[str, Any]:
        """In the shape that `--json` prints."""
        return {**asdict(self), "path": str(self.path)}


def export(
    copy: CopyClassifier, path: str | Path, format: str | None = None, *, rows: int = ROWS, seed: int = 0
) -> Exported:
    """Write a copy as a file: `onnx`, `skops`, `rules` or `sql`; without a format, the file's ending decides.

    The file is read back and compared with the copy on fresh rows of its space. If they disagree on more rows than the
    format allows, nothing is written.

    >>> from tempfile import TemporaryDirectory
    >>> from understudy import Space, copy_classifier
    >>> settings = {"budget": 300, "preset": "fast", "to": "linear"}
    >>> result = copy_classifier(lambda rows: rows[:, 0] > 0, Space.normal(1), **settings)
    >>> with TemporaryDirectory() as folder:
    ...     found = export(result.copy, f"{folder}/copy.sql")
    >>> found.format, found.rows, found.disagreements
    ('sql', 10000, 0)
    """
    from understudy.export import checking
    from understudy.models.classifier import CopyClassifier

    path, kind = _path(path), format_of(path, format)
    if not isinstance(copy, CopyClassifier):
        raise SettingError("copy", "the copy of a result, as result.copy", type(copy).__name__)
    rows = checks.count("rows", rows, ROWS)
    content, tolerance = checking.content(copy, kind), checking.tolerance(copy, kind, rows)
    with written(path) as part:
        part.write_bytes(content)
        found = checking.disagreements(copy, kind, part, rows, checks.count("seed", seed, 0))
        if found > tolerance:
            expected = f"at most {tolerance} of {rows} rows answered otherwise"
            raise ExportError(str(path), expected, f"{found}", "nothing was written; please report it")
    return Exported(path, kind, rows, found, tolerance, len(content))


def format_of(path: str | Path, format: str | None) -> str:
    """The format asked for, or the one that a file's ending implies."""
    if format is not None:
        return checks.choice("format", format, FORMATS)
    ending = Path(path).suffix.lower()
    if ending not in SUFFIXES:
        hint = "or say which with format= or --format"
        raise SettingError("file", "a file that ends in " + ", ".join(SUFFIXES), f"{Path(path).name!r}", hint)
    return SUFFIXES[ending]


def _path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise SettingError("path", "the name of a file", repr(path))
    return Path(path)
