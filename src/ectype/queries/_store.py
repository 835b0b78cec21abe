"""Where answers are stored: the ledger of a run, or memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Protocol

import numpy as np

from ectype.ledger import Purpose, RowCounts
from ectype.original import Answers, LabelledRows, concatenate
from ectype.queries._dispatch import Journal

# The bytes of rows that memory holds for each purpose: 50,000 rows of 40 columns.
MOST = 16_000_000


class Batch(Journal[Any], Protocol):
    """Rows that are queried together, and the journal of the requests about those without an answer yet."""

    fresh: np.ndarray
    """The places of the rows without an answer."""

    def end(self, failures: Counter[str]) -> None:
        """Wait until everything is on disk; `failures` are counted by their kind."""

    @property
    def answers(self) -> Answers:
        """The answers to all rows, once those to the fresh ones are in the journal."""


class Store(Protocol):
    """Stores answers, and may have some already. A `Ledger` is one."""

    counts: RowCounts

    def batch(self, rows: np.ndarray, purpose: Purpose, scores: int) -> Batch:
        """Rows that are queried together, each with so many scores."""


class MemoryStore:
    """The first rows and labels for each purpose, up to a number of bytes. It looks nothing up.

    A row that is queried twice is sent twice, so a run without a directory may send more rows than one with a ledger.

    >>> store = MemoryStore(most=40)
    >>> store.add(Purpose.TRAINING, np.zeros((3, 1)), Answers(np.array(["a", "b", "c"])))
    >>> store.add(Purpose.TRAINING, np.ones((3, 1)), Answers(np.array(["d", "e", "f"])))
    >>> store.answers["training"][1].labels.tolist()
    ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(self, most: int = MOST):
        self.counts = RowCounts()
        self._most, self._bytes = most, Counter[str]()
        self._chunks = defaultdict[str, list[LabelledRows]](list)

    def batch(self, rows: np.ndarray, purpose: Purpose, scores: int) -> Batch:
        """Rows that are queried together, all of them fresh."""
        return _MemoryBatch(self, rows, purpose)

    def add(self, purpose: Purpose, rows: np.ndarray, answers: Answers) -> None:
        """Store what there is room for. Scores are not shown on any page, and are left out."""
        room = (self._most - self._bytes[purpose]) // max(rows[:1].nbytes, 1)
        rows, labels = rows[: max(room, 0)], answers.labels[: max(room, 0)]
        if len(rows):
            self._bytes[purpose] += rows.nbytes
            self._chunks[str(purpose)].append((rows, Answers(labels)))

    @property
    def answers(self) -> dict[str, LabelledRows]:
        """Rows and labels by purpose, as `ectype.ledger.read_answers` gives them."""
        return {purpose: concatenate(chunks) for purpose, chunks in self._chunks.items()}


class _MemoryBatch(Journal[slice]):
    """A journal that writes nothing, and holds the answers until all have come."""

    def __init__(self, store: MemoryStore, rows: np.ndarray, purpose: Purpose):
        self._store, self._rows, self._purpose = store, rows, purpose
        self._parts: dict[int, Answers] = {}
        self.fresh = np.arange(len(rows))

    def announce(self, part: slice) -> slice:
        return part

    def answered(self, ticket: slice, answers: Answers) -> None:
        self._parts[ticket.start] = answers

    def end(self, failures: Counter[str]) -> None:
        pass

    @property
    def answers(self) -> Answers:
        answers = Answers.together(self._parts[start] for start in sorted(self._parts))
        self._store.add(self._purpose, self._rows, answers)
        return answers
