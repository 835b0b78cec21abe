"""Step 1 of the paper: which labelled points to train on next.

A selection policy takes the previous parameters, the sample set S_{t-1} and the fresh points, and gives S_t.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from understudy.hypothesis.mlp import MLP
from understudy.samples import Samples
from understudy.uncertainty import rho

Select = Callable[[np.ndarray, Samples, Samples], Samples]


def keep_all(theta: np.ndarray, S: Samples, fresh: Samples) -> Samples:
    """Algorithm 1: the sample set only grows."""
    return S | fresh


def keep_fresh(theta: np.ndarray, S: Samples, fresh: Samples) -> Samples:
    """Online single-pass: every batch is used once and thrown away."""
    return fresh


def drop_compressed(network: MLP, delta: float, most: int | None = None, free: int = 0) -> Select:
    """Algorithm 2: of the old and the fresh points, keep those with rho(z, theta_{t-1}) >= delta.

    Up to `free` points, all are kept: what a copy made from so few takes for certain may well be wrong. If more than
    `most` are left, half of the places go to the most uncertain, and the other half to points spread
    evenly over the rest of the ranking: the most uncertain alone are mistakes and oddities, from which no copy learns
    what is usual.
    """

    def select(theta: np.ndarray, S: Samples, fresh: Samples) -> Samples:
        pool = S | fresh
        if len(pool) <= free:
            return pool
        uncertainty = rho(network.probabilities(theta, pool.X), pool.y)
        keep = uncertainty >= delta
        if most is not None and keep.sum() > most:
            ranking = np.argsort(-uncertainty, kind="stable")[: keep.sum()]
            half = most - most // 2
            spread = np.linspace(half, len(ranking) - 1, most - half).astype(int)
            keep = np.zeros(len(pool), bool)
            keep[ranking[:half]] = keep[ranking[spread]] = True
        return pool.where(keep)

    return select
