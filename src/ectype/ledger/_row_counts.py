"""How many rows were sent to an original, from the beginning of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RowCounts:
    """Rows as they were sent.

    `lost` were under way when an earlier process was killed. Whether they arrived nobody knows.

    >>> RowCounts(sent=12, different=10, answered=9).again
    2
    """

    sent: int = 0
    different: int = 0
    """How many of them were sent for the first time."""
    answered: int = 0
    lost: int = 0

    @property
    def again(self) -> int:
        """Rows that were sent beyond their first time; below zero while those that were lost are yet to be."""
        return self.sent - self.different - self.lost
