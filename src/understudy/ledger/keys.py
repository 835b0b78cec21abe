"""Keys of rows: which rows are the same, and in which request each was answered."""

from __future__ import annotations

import sys

import numpy as np

# Rows of more columns than this have keys of the upper halves of their numbers.
WIDE = 4
_ODD = np.random.default_rng(0x1ED6E2).integers(2**63, size=4096, dtype=np.uint64) | np.uint64(1)


def keys_of(rows: np.ndarray) -> np.ndarray:
    """A number for each row that hardly any other row has."""
    # By halves of a number: the low bits of whole numbers are all zero, and a product would keep them so. Of many
    # numbers the upper halves tell rows apart well enough.
    halves = rows.view(np.uint32)
    if rows.shape[1] > WIDE:
        halves = halves[:, 1::2] if sys.byteorder == "little" else halves[:, ::2]
    odd = np.resize(_ODD, halves.shape[1])
    return np.einsum("ij,j->i", halves, odd, dtype=np.uint64, casting="safe")


def first_of_each(rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """For every row the position of the first that is the same."""
    first, ordered = np.arange(len(rows)), np.sort(keys)
    if (ordered[1:] == ordered[:-1]).any():
        seen: dict[bytes, int] = {}
        for at, row in enumerate(rows):
            first[at] = seen.setdefault(row.tobytes(), at)
    return first


class Index:
    """In which request each row was answered, found by the row's key."""

    def __init__(self) -> None:
        self._keys = np.empty(0, np.uint64)
        self._numbers = np.empty(0, np.int64)
        self._new: list[tuple[np.ndarray, int]] = []

    def add(self, keys: np.ndarray, number: int) -> None:
        """Take up the keys of an answered request."""
        self._new.append((keys, number))

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions of keys that are known, with the numbers of their requests."""
        self._merge()
        if not len(self._keys):
            return np.empty(0, int), np.empty(0, int)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        where = np.flatnonzero(self._keys[at] == keys)
        return where, self._numbers[at[where]]

    def _merge(self) -> None:
        if self._new:
            keys = np.concatenate([self._keys, *(found for found, _ in self._new)])
            numbers = np.concatenate([self._numbers, *(np.full(len(found), k) for found, k in self._new)])
            order = np.argsort(keys, kind="stable")
            self._keys, self._numbers, self._new = keys[order], numbers[order], []
