"""Radial basis functions: scores that are weighted sums of how near a row is to each of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from understudy.algorithm.uncertainty import softmax
from understudy.engine.radial import Radial as Sums

# How much an answer counts beside its neighbours', and how far it reaches in comparison with the spread of all rows.
RIDGE, REACH = 0.3, 1.0
# The most centres, and the most rows that their weights are fitted to.
CENTRES, ROWS = 1000, 20_000
# Rows at a time, while weights are fitted: what is made on the way stays small.
BLOCK = 512
# How sure of itself the highest score is.
SHARPNESS = 5.0


@dataclass(frozen=True)
class Radial:
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


def fitted(X: np.ndarray, y: np.ndarray, n_c: int, rng: np.random.Generator) -> Radial:
    """Kernel ridge regression on the labels (a least-squares support vector machine), with some rows as centres."""
    from threadpoolctl import threadpool_limits

    order = rng.permutation(len(X))[:ROWS]
    rows, wanted = X[order], (np.eye(n_c)[y] if y.ndim == 1 else y)[order].astype(np.float64)
    centres = rows[:CENTRES].astype(np.float64)
    gamma = REACH / max(float(rows.var(axis=0, dtype=np.float64).sum()), 1e-9)
    offset = wanted.mean(axis=0)
    with threadpool_limits(1, "blas"):  # on busy cores, threads wait for each other more than they work
        normal = RIDGE * _near(centres, centres, gamma) + 1e-4 * np.eye(len(centres))
        right = np.zeros((len(centres), n_c))
        for at in range(0, len(rows), BLOCK):
            near = _near(rows[at : at + BLOCK].astype(np.float64), centres, gamma)
            normal += near.T @ near
            right += near.T @ (wanted[at : at + BLOCK] - offset)
        weights = np.linalg.solve(normal, right)
    parts = centres.astype(np.float32), weights.astype(np.float32), offset.astype(np.float32)
    return Radial(*parts, gamma, SHARPNESS)


def _near(rows: np.ndarray, centres: np.ndarray, gamma: float) -> np.ndarray:
    found = rows @ (-2 * centres.T)
    found += (rows**2).sum(axis=1)[:, None]
    found += (centres**2).sum(axis=1)
    np.maximum(found, 0.0, out=found)
    found *= -gamma
    return np.exp(found, out=found)
