"""The labels in a ledger and their codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.errors import OriginalError
from understudy.original import label_array


class Vocabulary:
    """The labels an original has answered so far, and their codes in the order they came.

    >>> vocabulary = Vocabulary(["no"])
    >>> vocabulary.codes(np.array(["yes", "no"]))
    (array([1, 0], dtype=int32), [(1, 'yes')])
    """

    def __init__(self, values: list[Any]):
        self.values: list[Any] = []
        self._learn(values)

    def codes(self, labels: np.ndarray) -> tuple[np.ndarray, list[tuple[int, Any]]]:
        """The codes of labels, and the codes and values of those that are new."""
        known = len(self.values)
        if (codes := self._find(labels)) is not None:
            return codes, []
        seen = set(self.values)
        self._learn([value for value in dict.fromkeys(labels.tolist()) if value not in seen])
        codes = self._find(labels)
        assert codes is not None
        return codes, list(enumerate(self.values[known:], known))

    def _find(self, labels: np.ndarray) -> np.ndarray | None:
        """The codes of labels, if all of them are known."""
        if not self.values or (labels.dtype.kind == "U") != (self.table.dtype.kind == "U"):
            return None
        at = self._sorted.searchsorted(labels)
        return self._order.take(at) if (self._sorted.take(at, mode="clip") == labels).all() else None

    def _learn(self, values: list[Any]) -> None:
        if not values:
            return
        try:
            self.table = label_array(self.values + values)
        except ValueError as error:
            raise OriginalError("the original's answers", "labels of one type", str(error)) from error
        self.values += values
        self._order = np.argsort(self.table, kind="stable").astype(np.int32)
        self._sorted = self.table[self._order]
