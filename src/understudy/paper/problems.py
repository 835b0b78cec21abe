"""The paper's UCI problems, read from a folder: one `<name>.csv.gz` each, and an index.csv that lists them."""

from __future__ import annotations

import csv
import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.errors import SettingError, SpaceError

# The paper's split: 80 % to train originals on, 20 % to measure on.
TEST_SHARE = 0.2


@dataclass(frozen=True)
class Problem:
    """A classification problem, split and standardised; labels are the codes 0, 1, ... of the sorted classes."""

    name: str
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def d(self) -> int:
        """How many columns there are."""
        return self.X_train.shape[1]

    @property
    def n_classes(self) -> int:
        """How many classes there are; every one is in the training part."""
        return int(self.y_train.max()) + 1


def names(folder: str | Path) -> tuple[str, ...]:
    """The problems that the folder's index lists, sorted."""
    path = Path(folder) / "index.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            listed = [row.get("name") for row in csv.DictReader(file)]
    except (OSError, ValueError, csv.Error) as error:
        raise SettingError(str(path), "a readable list of problems", str(error)) from error
    known = sorted({name for name in listed if name})
    if not known:
        raise SettingError(str(path), "a column called name, with one problem per row", "none")
    return tuple(known)


def load(folder: str | Path, name: str, seed: int = 0) -> Problem:
    """Read a problem, split it in a stratified way, and standardise it by its training part.

    The seed decides the split only.
    """
    if name not in names(folder):
        raise SettingError("name", f"a problem listed in {Path(folder) / 'index.csv'}", repr(name))
    X, y = _read(Path(folder) / f"{name}.csv.gz")
    test = split(y, seed)
    mean, std = X[~test].mean(axis=0), X[~test].std(axis=0)
    X = (X - mean) / np.where(std > 0, std, 1.0)
    return Problem(name, X[~test], y[~test], X[test], y[test])


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
    """The rows of a file, and the codes of its last column, which must be called label."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
            table = np.loadtxt(file, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
        raise SpaceError(str(path), "a compressed table of numbers with a header", str(error)) from error
    if len(header) < 2 or header[-1] != "label":
        raise SpaceError(str(path), "columns of inputs, then one called label", header[-3:])
    if table.shape[1] != len(header) or not np.isfinite(table).all():
        found = f"{table.shape[1]} columns, {np.size(table) - np.isfinite(table).sum()} cells that are not finite"
        raise SpaceError(str(path), f"finite numbers in {len(header)} columns", found)
    classes, y = np.unique(table[:, -1], return_inverse=True)
    if len(classes) < 2 or not split(y, 0).any():
        found = f"{len(table)} rows of {len(classes)} classes"
        raise SpaceError(str(path), "at least two classes, and rows enough to test on", found)
    return table[:, :-1], y
