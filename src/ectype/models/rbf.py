"""Radial basis functions: kernel logistic regression with a Gaussian kernel (Zhu and Hastie, 2005).

The centres are a random sample of the rows, and the ridge is on the norm of the function (Nystroem's method, Williams
and Seeger, 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ectype._kernel import RbfKernel as Sums
from ectype.algorithm.uncertainty import softmax
from ectype.models.capacity import FLAT

# How near a centre's rows are in comparison with the spread of all rows, also where inputs are few and boundaries bend
# most; and how large its weight may become.
REACH, BENT, RIDGE = 0.5, 4.0, 0.01
# The most centres, and the most rows that their weights are fitted to.
CENTRES, ROWS = 500, 20_000
# Centres that are nearly the same count as apart by this much, or large weights would cancel, and float32 lose them.
APART = 0.03
# Rows at a time: what is made on the way stays small.
BLOCK = 512
# Steps to the likeliest weights: boundaries no longer move after about so many.
STEPS = 30


@dataclass(frozen=True)
class RadialModel:
    """Scores that are sums over centres; the sharper, the larger the probability of the highest."""

    centres: np.ndarray
    weights: np.ndarray
    offset: np.ndarray
    gamma: float
    sharpness: float
    kind = "radial"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return len(self.offset)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        return softmax(self.sharpness * (self._sums(X) + self.offset))

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.centres, self.weights, self.gamma)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""
        arrays = {"centres": self.centres, "weights": self.weights, "offset": self.offset}
        return {"gamma": self.gamma, "sharpness": self.sharpness}, arrays

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes."""
        centres, weights, offset = (arrays[name] for name in ("centres", "weights", "offset"))
        n = len(centres)
        if not n or centres.shape != (n, inputs) or weights.shape != (n, n_c) or offset.shape != (n_c,):
            raise ValueError(f"{centres.shape} centres with {weights.shape} weights for {inputs} inputs")
        if {centres.dtype, weights.dtype, offset.dtype} != {np.dtype(np.float32)}:
            raise ValueError("centres and weights that are not float32")
        return cls(centres, weights, offset, float(about["gamma"]), float(about["sharpness"]))


def fit_radial(
    X: np.ndarray, y: np.ndarray, n_c: int, rng: np.random.Generator, most: int = CENTRES, of: int = ROWS
) -> RadialModel:
    """Fit the weights of up to `most` centres to up to `of` rows."""
    from threadpoolctl import threadpool_limits

    order = rng.permutation(len(X))[:of]
    rows, wanted = X[order], (np.eye(n_c)[y] if y.ndim == 1 else y)[order].astype(np.float32)
    centres = rows[:most].astype(np.float64)
    gamma = (BENT if X.shape[1] <= FLAT else REACH) / max(float(rows.var(axis=0, dtype=np.float64).sum()), 1e-9)
    with threadpool_limits(1, "blas"):  # on busy cores, threads wait for each other more than they work
        among = _near(centres, centres, gamma) + APART * np.eye(len(centres))
        root = np.linalg.inv(np.linalg.cholesky(among)).T
        found = _likeliest(_inputs(rows, centres.astype(np.float32), gamma, root.astype(np.float32)), wanted)
        weights = root @ found[:-1]
    parts = centres.astype(np.float32), weights.astype(np.float32), found[-1].astype(np.float32)
    return RadialModel(*parts, gamma, 1.0)


def _inputs(rows: np.ndarray, centres: np.ndarray, gamma: float, root: np.ndarray) -> np.ndarray:
    """How near rows are to the centres, in coordinates in which weights count by their size alone; and ones."""
    inputs = np.ones((len(rows), len(centres) + 1), np.float32)
    for block in _blocks(len(rows)):
        inputs[block, :-1] = _near(rows[block], centres, gamma) @ root
    return inputs


def _blocks(n: int) -> list[slice]:
    return [slice(at, at + BLOCK) for at in range(0, n, BLOCK)]


def _near(rows: np.ndarray, centres: np.ndarray, gamma: float) -> np.ndarray:
    found = rows @ (-2 * centres.T)
    found += (rows**2).sum(axis=1)[:, None]
    found += (centres**2).sum(axis=1)
    np.maximum(found, 0.0, out=found)
    found *= -gamma
    return np.exp(found, out=found)


def _likeliest(inputs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression with a ridge on them, by steps that a bound on the curvature keeps safe.

    The curvature of the likelihood is nowhere more than half of the inputs' (Boehning, 1992), so one inverse serves for
    all classes and steps; these gain momentum, as long as they keep their direction (Nesterov, 1983).
    """
    curvature = sum((inputs[block].T @ inputs[block]).astype(np.float64) for block in _blocks(len(inputs)))
    bound = np.linalg.inv(0.5 * curvature + RIDGE * np.eye(inputs.shape[1]))
    weights = ahead = np.zeros((inputs.shape[1], wanted.shape[1]))
    pace = 1.0
    for _ in range(STEPS):
        slope = inputs.T @ (softmax(inputs @ ahead.astype(np.float32)) - wanted) + RIDGE * ahead
        after = ahead - bound @ slope
        if ((ahead - after) * (after - weights)).sum() > 0:
            pace = 1.0
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        weights, ahead = after, after + (pace - 1) / faster * (after - weights)
        pace = faster
    return weights
