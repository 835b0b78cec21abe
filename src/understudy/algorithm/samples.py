"""The sample set S_t: labelled points, as the copy sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Samples:
    """Encoded rows X (float32) with the codes y (int32) of the original's answers.

    Where an answer is not known for sure, y has a probability for every class instead (float32).
    """

    X: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def __or__(self, other: Samples) -> Samples:
        return Samples(np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y]))

    def where(self, keep: np.ndarray) -> Samples:
        """The points for which keep is true."""
        return Samples(self.X[keep], self.y[keep])

    def chances(self, n_c: int) -> np.ndarray:
        """The answers as a probability for every class."""
        return self.y if self.y.ndim == 2 else np.eye(n_c, dtype=np.float32)[self.y]

    @property
    def decided(self) -> Samples:
        """The same points with codes: of probabilities, those of the likeliest answers."""
        return self if self.y.ndim == 1 else Samples(self.X, self.y.argmax(axis=1).astype(np.int32))
