"""The memory term lambda * penalty, against catastrophic forgetting of points that were dropped.

A weight policy has the `initial` lambda and maps (lambda, |S_t|, |S_{t-1}|) to the next one. A penalty maps the
difference to the previous parameters to a number that is 0 at 0. One more, `FUNCTION`, works in function space: it
rehearses the previous copy's answers to unlabelled rows. See `training.Trainer`.

>>> Automatic()(0.5, kept=200, kept_before=100)
0.25
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Penalty = Callable[[np.ndarray], float]
# Far above any weight that lets a copy learn, and far below what float32 can hold.
LARGEST = 1e6


class Memory(Protocol):
    """A policy for the weight of the memory term."""

    @property
    def initial(self) -> float:
        """The weight before the first update."""

    def __call__(self, lam: float, kept: int, kept_before: int) -> float:
        """The weight for a round whose sample set went from kept_before to kept points."""


@dataclass(frozen=True)
class Automatic:
    """The paper's rule: halve lambda while the sample set does not shrink, else raise it by half.

    An empty sample set counts as shrinking: everything is compressed, and worth keeping. Lambda stops growing at
    `LARGEST`, where parameters no longer move.

    >>> Automatic()(0.5, kept=200, kept_before=100), Automatic()(0.5, kept=90, kept_before=100)
    (0.25, 0.75)
    """

    initial: float = 0.5

    def __call__(self, lam: float, kept: int, kept_before: int) -> float:
        """The next lambda."""
        grows = kept >= kept_before and kept > 0
        return lam / 2 if grows else min(1.5 * lam, LARGEST)


@dataclass(frozen=True)
class Fixed:
    """The same lambda in every round; 0 is no memory at all."""

    initial: float

    def __call__(self, lam: float, kept: int, kept_before: int) -> float:
        """The next lambda."""
        return self.initial


@dataclass(frozen=True)
class OnceDropped:
    """0 until a round drops a point, since nothing can be forgotten before that; then the same lambda in every round.

    >>> OnceDropped(3.0, n=100)(0.0, kept=200, kept_before=100), OnceDropped(3.0, n=100)(0.0, kept=199, kept_before=100)
    (0.0, 3.0)
    """

    weight: float
    n: int
    """New points per round."""
    initial: float = 0.0

    def __call__(self, lam: float, kept: int, kept_before: int) -> float:
        """The next lambda."""
        return self.weight if lam or kept < kept_before + self.n else 0.0


def norm(difference: np.ndarray) -> float:
    """The penalty as printed in the paper: ||theta - theta'||. Its gradient at 0 is taken for 0.

    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    return float(np.sqrt(np.sum(difference**2)))


def bounded(difference: np.ndarray) -> float:
    """tanh of the mean square: its pull grows with the distance, then lets go, whatever the number of parameters.

    >>> bounded(np.zeros(3)), round(bounded(np.ones(3)), 4)
    (0.0, 0.7616)
    """
    return float(np.tanh(np.mean(difference**2)))


PENALTIES: dict[str, Penalty] = {"bounded": bounded, "norm": norm}
FUNCTION = "function"
