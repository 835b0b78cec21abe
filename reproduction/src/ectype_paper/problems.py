"""The paper's UCI problems: from a folder of `<name>.csv.gz` with an index.csv, or built in."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ectype.errors import SettingError, SpaceError
from ectype.toy_problems import TOYS
from ectype_paper.builtin_problems import BUILT_IN

# The paper's split: 80 % to train originals on, 20 % to measure on.
TEST_SHARE = 0.2
# The most characters of a file, unpacked; the largest of the paper's problems has a tenth of that.
LARGEST = 2**29
WITHOUT_FOLDER = "without a folder there are " + ", ".join(sorted(BUILT_IN | TOYS))


@dataclass(frozen=True)
class Problem:
    """A classification problem, split and standardised; labels are the codes 0, 1, ... of the sorted classes."""

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str = "folder"
    """Where it came from: `folder`, or `built-in`."""

    @property
    def d(self) -> int:
        """How many columns there are."""
        return self.X_train.shape[1]

    @property
    def n_classes(self) -> int:
        """How many classes there are; every one is in the training part."""
        return int(self.y_train.max()) + 1

    @property
    def digest(self) -> str:
        """A hash of all its rows and labels."""
        return digest(self.X_train, self.y_train, self.X_test, self.y_test)


def digest(*arrays: np.ndarray) -> str:
    """A hash of arrays: their numbers, types and shapes.

    >>> digest(np.arange(4)) == digest(np.arange(4)), digest(np.arange(4)) == digest(np.arange(4).reshape(2, 2))
    (True, False)
    """
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(f"{array.dtype.str}{array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()


def names(folder: str | Path | None = None) -> tuple[str, ...]:
    """The problems that the folder's index lists, or those that are built in, sorted."""
    if folder is None:
        return tuple(sorted(BUILT_IN | TOYS))
    path = Path(folder) / "index.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            listed = [row.get("name") for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error) as error:
        raise SettingError(str(path), "a readable list of problems", str(error), WITHOUT_FOLDER) from error
    known = sorted({name for name in listed if name})
    if not known:
        raise SettingError(str(path), "a column called name, with one problem per row", "none", WITHOUT_FOLDER)
    return tuple(known)


def load(folder: str | Path | None, name: str, seed: int = 0) -> Problem:
    """A problem from the folder, if there is one that lists it, else built in: split and standardised.

    The split is stratified, and the seed decides nothing else. The training part gives means and deviations.

    >>> load(None, "iris").X_train.shape
    (120, 4)
    """
    if folder is not None and name in names(folder):
        return prepare(name, *_read(Path(folder) / f"{name}.csv.gz"), seed=seed)
    made = {**BUILT_IN, **TOYS}.get(name)
    if made is not None:
        return prepare(name, *made(), seed=seed, source="built-in")
    listed = "a problem that is built in" if folder is None else f"a problem listed in {Path(folder) / 'index.csv'}"
    raise SettingError("name", listed, repr(name), WITHOUT_FOLDER)


def prepare(name: str, X: np.ndarray, y: np.ndarray, *, seed: int, source: str = "folder") -> Problem:
    """Split a problem in a stratified way, and standardise it by its training part."""
    test = split(y, seed)
    mean, std = X[~test].mean(axis=0), X[~test].std(axis=0)
    X = (X - mean) / np.where(std > 0, std, 1.0)
    return Problem(name, X[~test], y[~test], X[test], y[test], source)


def split(y: np.ndarray, seed: int) -> np.ndarray:
    """Which rows are for testing: of every class its share, rounded, so that a class of one or two only trains.

    >>> test = split(np.array([0] * 10 + [1] * 5 + [2]), seed=0)
    >>> int(test[:10].sum()), int(test[10:15].sum()), bool(test[15])
    (2, 1, False)
    """
    rng = np.random.default_rng(seed)
    test = np.zeros(len(y), bool)
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        test[members[: round(TEST_SHARE * len(members))]] = True
    return test


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a file as numbers, and the codes of its last column, which must be called label."""
    text = _text(path)
    header = next(csv.reader(io.StringIO(text)), [])
    if len(header) < 2 or header[-1] != "label":
        raise SpaceError(f"{path}, line 1", "columns of inputs, then one called label", header[-3:])
    table = _numbers(text)
    if table is None or table.shape[1] != len(header) or not np.isfinite(table).all():
        table = _coded(path, text, len(header))  # words among the numbers, or damage: it tells which, and where
    classes, y = np.unique(table[:, -1], return_inverse=True)
    if len(classes) < 2 or not split(y, 0).any():
        found = f"{len(table)} rows of {len(classes)} classes"
        raise SpaceError(str(path), "at least two classes, and rows enough to test on", found)
    return table[:, :-1], y


def _text(path: Path) -> str:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            text = file.read(LARGEST + 1)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise SpaceError(str(path), "a compressed table with a header", str(error)) from error
    if len(text) > LARGEST:
        raise SpaceError(str(path), f"at most {LARGEST} characters, unpacked", "more")
    return text


def _numbers(text: str) -> np.ndarray | None:
    """The rows after the header, if there is nothing but numbers in them; fast."""
    with warnings.catch_warnings(action="ignore"):  # of a table without rows
        try:
            return np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2, skiprows=1, comments=None)
        except ValueError:
            return None


def _coded(path: Path, text: str, width: int) -> np.ndarray:
    """A table whose nominal columns, those without any number, are coded by their levels in order."""
    rows, lines = _cells(path, text, width)
    columns = [_column(path, cells, lines) for cells in zip(*rows, strict=True)]
    return np.column_stack(columns) if columns else np.empty((0, width))


def _cells(path: Path, text: str, width: int) -> tuple[list[list[str]], list[int]]:
    """The cells of every row after the header, and the lines they are on."""
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text))
    try:
        next(reader)
        for row in reader:
            if row and len(row) != width:
                raise SpaceError(f"{path}, line {reader.line_num}", f"{width} cells", f"{len(row)}: {row[:8]}")
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise SpaceError(f"{path}, line {reader.line_num}", "a row of a table", str(error)) from error
    return rows, lines


def _column(path: Path, cells: tuple[str, ...], lines: list[int]) -> np.ndarray:
    numbers = np.array([_number(cell) for cell in cells])
    broken = np.flatnonzero(~np.isfinite(numbers))
    if len(broken) == len(cells) and not any(_spells_number(cell) for cell in cells):
        return np.unique(np.array(cells), return_inverse=True)[1].astype(float)
    if len(broken):
        found, hint = repr(cells[broken[0]]), "a column holds numbers in every row, or in none"
        raise SpaceError(f"{path}, line {lines[broken[0]]}", "a finite number", found, hint)
    return numbers


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


def _spells_number(cell: str) -> bool:
    """Whether a cell that is no finite number was meant as one, or is empty."""
    return cell.strip().lower().lstrip("+-") in ("", "nan", "inf", "infinity")
