"""What a file answers once it is read back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ectype.types import Label


@dataclass(frozen=True)
class ReadBack:
    """A file's answers, by what they were computed, and how long it took."""

    labels: np.ndarray | list[Label] | None
    """None if there is nothing here that computes them."""
    engine: str
    seconds: float

    @property
    def rows(self) -> int:
        """How many rows it answered."""
        return 0 if self.labels is None else len(self.labels)
