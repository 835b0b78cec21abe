"""The sample set S_t: labelled points, as the copy sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SampleSet:
    """Encoded rows X (float32) with the codes y (int32) of the original's answers, and its scores, if it gave some.

    >>> scored = SampleSet(np.zeros((1, 2)), np.array([1]), np.array([[0.25, 0.75]], np.float32))
    >>> (scored | SampleSet(np.zeros((1, 2)), np.array([0]))).targets.tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """

    X: np.ndarray
    y: np.ndarray
    p: np.ndarray | None = None
    """A probability for every class (float32)."""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def targets(self) -> np.ndarray:
        """What to learn: the scores, or the codes where there are none."""
        return self.y if self.p is None else self.p

    def soft(self, n_c: int) -> np.ndarray:
        """The scores, or probabilities of 1 for the answers."""
        return np.eye(n_c, dtype=np.float32)[self.y] if self.p is None else self.p

    def __or__(self, other: SampleSet) -> SampleSet:
        scored = [part.p.shape[1] for part in (self, other) if part.p is not None]
        p = np.concatenate([self.soft(scored[0]), other.soft(scored[0])]) if scored else None
        return SampleSet(np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y]), p)

    def where(self, keep: np.ndarray) -> SampleSet:
        """The points for which keep is true."""
        return SampleSet(self.X[keep], self.y[keep], None if self.p is None else self.p[keep])
