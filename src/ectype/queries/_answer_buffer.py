"""Where answers go: the ledger of a run, or, without one, memory, which keeps some of them for the run's page."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, Protocol

import numpy as np

from ectype.errors import OriginalError
from ectype.original import Answers, LabelledRows, concatenate
from ectype.queries._dispatch import Journal

# The bytes of rows that are kept for each purpose: 50,000 rows of 40 columns.
MOST = 16_000_000


class Batch(Journal[Any], Protocol):
    """Rows that are asked about together, and the journal of the requests about those that are fresh."""

    fresh: np.ndarray
    """The places of the rows that nothing is known of."""

    def end(self, failures: Counter[str]) -> None:
        """Wait until all of it is safe; `failures` are counted by their kind."""

    @property
    def answers(self) -> Answers:
        """What the original says to all of the rows, once those that are fresh have been answered."""


class AnswerStore(Protocol):
    """What may know answers already, and keeps those that come."""

    def batch(self, rows: np.ndarray, purpose: str, scores: int) -> Batch:
        """Rows that are asked about together, each with so many scores."""


class AnswerBuffer:
    """The first rows and answers for each purpose, until they take so many bytes; what comes later is let go.

    >>> kept = AnswerBuffer(most=40)
    >>> kept.add("training", np.zeros((3, 1)), Answers(np.array(["a", "b", "c"])))
    >>> kept.add("training", np.ones((3, 1)), Answers(np.array(["d", "e", "f"])))
    >>> kept.answers["training"][1].labels.tolist()
    ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(self, most: int = MOST):
        self._most, self._bytes = most, defaultdict[str, int](int)
        self._found = defaultdict[str, list[LabelledRows]](list)

    def batch(self, rows: np.ndarray, purpose: str, scores: int) -> Batch:
        """Rows that are asked about together. All are fresh: memory looks nothing up, and asks the same row twice."""
        return _Unwritten(self, rows, purpose)

    def add(self, purpose: str, rows: np.ndarray, said: Answers) -> None:
        """Keep what there is room for; labels alone, for nothing else is shown."""
        room = (self._most - self._bytes[purpose]) // max(rows[:1].nbytes, 1)
        rows, labels = rows[: max(room, 0)], said.labels[: max(room, 0)]
        if len(rows):
            self._bytes[purpose] += rows.nbytes
            self._found[purpose].append((rows, Answers(labels)))

    @property
    def answers(self) -> dict[str, LabelledRows]:
        """By purpose, as the ledger gives them."""
        return {purpose: concatenate(chunks) for purpose, chunks in self._found.items()}


class _Unwritten:
    """The journal of requests that are written down nowhere."""

    def __init__(self, kept: AnswerBuffer, rows: np.ndarray, purpose: str):
        self._kept, self._rows, self._purpose = kept, rows, purpose
        self._parts: list[tuple[int, Answers]] = []
        self.fresh = np.arange(len(rows))

    @property
    def answers(self) -> Answers:
        """All of it, in the order of the rows."""
        said = Answers.concatenate(said for _, said in sorted(self._parts, key=lambda part: part[0]))
        self._kept.add(self._purpose, self._rows, said)
        return said

    def answered(self, ticket: slice, said: Answers) -> None:
        """Keep the answers."""
        self._parts.append((ticket.start, said))

    def announce(self, part: slice) -> slice:
        """Write nothing."""
        return part

    def asked_before(self, part: slice) -> int:
        """None."""
        return 0

    def ready(self, ticket: slice) -> None:
        """Wait for nothing."""

    def withdraw(self, ticket: slice) -> None:
        """Write nothing."""

    def again(self, ticket: slice, n: int) -> None:
        """Write nothing."""

    def failed(self, ticket: slice, error: OriginalError) -> None:
        """Write nothing."""

    def end(self, failures: Counter[str]) -> None:
        """Wait for nothing."""
