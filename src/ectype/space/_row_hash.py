"""Hashes of rows: which rows are equal, which were asked before, and in which request each was answered."""

from __future__ import annotations

import numpy as np

from ectype._kernel import hash_rows

# Rows of more columns than this are hashed by the upper halves of their numbers, which tell them apart well enough.
WIDE = 4
_ODD = np.random.default_rng(0x1ED6E2).integers(2**63, size=4096, dtype=np.uint64) | np.uint64(1)


def row_hashes(rows: np.ndarray) -> np.ndarray:
    """A multilinear hash of each row, 64 bits."""
    d = rows.shape[1]
    return hash_rows(rows, np.resize(_ODD, 2 * d), both=d <= WIDE)


def first_occurrences(rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """For every row the position of the first equal row."""
    first = np.arange(len(rows))
    if _any_twice(keys):
        seen: dict[bytes, int] = {}
        for at, row in enumerate(rows):
            first[at] = seen.setdefault(row.tobytes(), at)
    return first


def _any_twice(keys: np.ndarray) -> bool:
    """Whether a key occurs more than once; by a hash table, since sorting takes four times as long."""
    size = min(3 + len(keys).bit_length(), 22)  # at least eight slots per key, up to 2**22 slots
    place = (keys >> np.uint64(64 - size)).astype(np.intp)
    positions = np.arange(len(keys), dtype=np.int32)
    owner = np.empty(2**size, np.int32)  # the last key in each slot
    owner[place] = positions
    owners = owner[place]
    others = owners != positions
    left = keys[others]  # of equal keys, all but one are in here, or equal the owner of their slot
    return bool((left == keys[owners[others]]).any()) or len(np.unique(left)) < len(left)


class RowIndex:
    """In which request each row was answered, by the row's key: a log-structured merge of sorted runs.

    Each run is at least twice as long as the next, so that there are few, and adding a request costs about the same
    however many came before it.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        self._new: list[tuple[np.ndarray, int]] = []

    def add(self, keys: np.ndarray, number: int) -> None:
        """Add the keys of an answered request."""
        self._new.append((keys, number))

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions of keys that are known, with the numbers of their requests."""
        self._merge()
        found = np.full(len(keys), -1)
        for known, numbers in reversed(self._runs):  # of two requests with the same key, the earlier one wins
            at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            found = np.where(known[at] == keys, numbers[at], found)
        where = np.flatnonzero(found >= 0)
        return where, found[where]

    def _merge(self) -> None:
        if self._new:
            new = [(keys, np.full(len(keys), number)) for keys, number in self._new if len(keys)]
            self._new = []
            if new:
                self._runs.append(_sorted(new))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._runs[-2:] = [_sorted(self._runs[-2:])]


class SeenRows:
    """The rows that were already asked: in a space of few distinct rows, asking again teaches nothing.

    >>> seen, rows = SeenRows(), np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> seen.add(rows[1:2])
    >>> seen.new(rows, at_least=1).tolist(), seen.new(rows, at_least=3).tolist()
    ([0, 3], [0, 3, 1, 2])
    """

    def __init__(self) -> None:
        self._index = RowIndex()

    def add(self, rows: np.ndarray) -> None:
        """Mark rows as asked."""
        self._index.add(row_hashes(rows), 0)

    def new(self, rows: np.ndarray, at_least: int) -> np.ndarray:
        """Positions of rows not asked yet, without duplicates; if fewer than `at_least`, the others follow."""
        keys, first = np.unique(row_hashes(rows), return_index=True)
        known, _ = self._index.find(keys)
        new = np.sort(np.delete(first, known))
        return new if len(new) >= at_least else np.concatenate([new, np.delete(np.arange(len(rows)), new)])


def _sorted(runs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Keys and numbers of several runs as one; equal keys stay in their order."""
    keys, numbers = (np.concatenate(part) for part in zip(*runs, strict=True))
    order = np.argsort(keys, kind="stable")
    return keys[order], numbers[order]
