"""The sample set S_t: labelled points, as the copy sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Samples:
    """Encoded rows X (float32) with the codes y (int32) of the original's answers."""

    X: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def __or__(self, other: Samples) -> Samples:
        return Samples(np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y]))

    def where(self, keep: np.ndarray) -> Samples:
        """The points for which keep is true."""
        return Samples(self.X[keep], self.y[keep])
