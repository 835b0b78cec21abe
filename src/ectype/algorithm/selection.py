"""Step 1 of the paper: which labelled points to train on next.

A selection policy takes the previous parameters, the sample set S_{t-1}, the fresh points and t, and gives S_t.

>>> S = SampleSet(np.zeros((2, 1), np.float32), np.array([0, 1]))
>>> len(keep_all(np.zeros(0), S, S, t=1)), len(keep_fresh(np.zeros(0), S, S, t=1))
(4, 2)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.uncertainty import rho

Select = Callable[[np.ndarray, SampleSet, SampleSet, int], SampleSet]
UNLIMITED = 2**62


def keep_all(theta: np.ndarray, S: SampleSet, fresh: SampleSet, t: int) -> SampleSet:
    """Algorithm 1: the sample set only grows."""
    return S | fresh


def keep_fresh(theta: np.ndarray, S: SampleSet, fresh: SampleSet, t: int) -> SampleSet:
    """Online single-pass: every batch is used once and thrown away."""
    return fresh


def drop_compressed(network: MLP, delta: float, most: int = UNLIMITED, free: int = 0) -> Select:
    """Algorithm 2: of the old and the fresh points, keep those with rho(z, theta_{t-1}) >= delta.

    Up to `free` points, all are kept: a copy made from so few may be confidently wrong. If more than `most` are
    left, half of the places go to the most uncertain, and the other half to points spread evenly over the rest of the
    ranking: the most uncertain alone are mistakes and outliers, from which a copy does not learn the usual case.
    """

    def select(theta: np.ndarray, S: SampleSet, fresh: SampleSet, t: int) -> SampleSet:
        pool = S | fresh
        if len(pool) <= free or (delta <= 0 and len(pool) <= most):
            return pool
        uncertainty = rho(network.probabilities(theta, pool.X), pool.y)
        keep = uncertainty >= delta
        if keep.sum() > most:
            ranking = np.argsort(-uncertainty, kind="stable")[: keep.sum()]
            half = most - most // 2
            spread = np.linspace(half, len(ranking) - 1, most - half).astype(int)
            keep = np.zeros(len(pool), bool)
            keep[ranking[:half]] = keep[ranking[spread]] = True
        return pool.where(keep)

    return select
