"""The labels in a ledger and their codes."""

from __future__ import annotations

import numpy as np

from ectype.errors import OriginalError
from ectype.original import Labels, label_array
from ectype.types import Label


class LabelCodes:
    """The labels that an original has answered so far, with codes in the order of their first answer.

    `Labels` finds a label among those that are known, sorted; `_codes` has the code of each in that order.

    >>> codes = LabelCodes(["no"])
    >>> codes.codes(np.array(["yes", "no"]))
    (array([1, 0], dtype=int32), [(1, 'yes')])
    """

    def __init__(self, values: list[Label]):
        self.values: list[Label] = []
        self.table: np.ndarray = np.empty(0)
        self._learn(values)

    def codes(self, labels: np.ndarray) -> tuple[np.ndarray, list[tuple[int, Label]]]:
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
        if not self.values:
            return None
        at = self._known.find(labels)
        return None if (at < 0).any() else self._codes[at]

    def _learn(self, values: list[Label]) -> None:
        if not values:
            return
        try:
            self.table = label_array(self.values + values)
        except ValueError as error:
            raise OriginalError("the original's answers", "labels of one type", str(error)) from error
        self.values += values
        self._known = Labels(self.table)
        self._codes = np.unique(self.table, return_index=True)[1].astype(np.int32)
