"""Radial basis functions by the kernel: how near a row is to each of some centres, weighted and added up."""

from __future__ import annotations

import numpy as np

from understudy.engine.library import address, library
from understudy.errors import KernelError

# Centres that the kernel takes at a time.
ASIDE = 256


class Radial:
    """Sums of exp(-gamma |row - centre|^2), weighted for every class. A row's sums do not depend on other rows.

    >>> Radial(np.zeros((1, 2), np.float32), np.array([[1.0, 3.0]], np.float32), 0.5)(np.zeros((1, 2), np.float32))
    array([[1., 3.]], dtype=float32)
    """

    def __init__(self, centres: np.ndarray, weights: np.ndarray, gamma: float):
        n, self._d = centres.shape
        if weights.shape[:1] != (n,) or weights.ndim != 2 or not n:
            raise KernelError("weights", f"a row for each of {n} centres", f"shape {weights.shape}")
        self._classes, self._gamma = weights.shape[1], float(gamma)
        self._apart = -(-n // ASIDE) * ASIDE
        self._centres = np.zeros((self._d, self._apart), np.float32)
        self._centres[:, :n] = centres.T
        self._weights = np.zeros((self._classes, self._apart), np.float32)
        self._weights[:, :n] = weights.T

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The sums of every row."""
        X = np.ascontiguousarray(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self._d:
            raise KernelError("rows", f"{self._d} inputs each", f"shape {X.shape}")
        found = np.empty((len(X), self._classes), np.float32)
        library().radial_answer(
            address(self._centres), self._apart, address(self._weights), self._d, self._classes, self._gamma,
            address(X), len(X), address(found),
        )  # fmt: skip
        return found
