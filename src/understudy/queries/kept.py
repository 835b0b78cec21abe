"""The answers of a run without a ledger, kept for its page."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from understudy.original import Said, Told, told_together

# The bytes of rows that are kept for each purpose: 50,000 rows of 40 columns.
MOST = 16_000_000


class Kept:
    """The first rows and answers for each purpose, until they take so many bytes; what comes later is let go.

    >>> kept = Kept(most=40)
    >>> kept.add("training", np.zeros((3, 1)), Said(np.array(["a", "b", "c"])))
    >>> kept.add("training", np.ones((3, 1)), Said(np.array(["d", "e", "f"])))
    >>> kept.answers["training"][1].labels.tolist()
    ['a', 'b', 'c', 'd', 'e']
    """

    def __init__(self, most: int = MOST):
        self._most, self._bytes = most, defaultdict[str, int](int)
        self._found = defaultdict[str, list[Told]](list)

    def add(self, purpose: str, rows: np.ndarray, said: Said) -> None:
        """Keep what there is room for; labels alone, for nothing else is shown."""
        room = (self._most - self._bytes[purpose]) // max(rows[:1].nbytes, 1)
        rows, labels = rows[: max(room, 0)], said.labels[: max(room, 0)]
        if len(rows):
            self._bytes[purpose] += rows.nbytes
            self._found[purpose].append((rows, Said(labels)))

    @property
    def answers(self) -> dict[str, Told]:
        """By purpose, as the ledger gives them."""
        return {purpose: told_together(chunks) for purpose, chunks in self._found.items()}
