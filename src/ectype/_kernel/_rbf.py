"""Radial basis functions by the kernel: how near a row is to each of some centres, weighted and added up."""

from __future__ import annotations

import numpy as np

from ectype._kernel._ffi import address, expect, flat, library
from ectype.errors import KernelError

# Centres that the kernel takes at a time.
ASIDE = 256
# The work of one call, some hundredths of a second, after which an interrupt is heard: inputs and outputs of centres.
CALL = 2**26
# What a centre costs beside its inputs and outputs: an exponential.
NEAR = 16


class RbfKernel:
    """Sums of exp(-gamma |row - centre|^2), weighted for every class. A row's sums do not depend on other rows.

    >>> RbfKernel(np.zeros((1, 2), np.float32), np.array([[1.0, 3.0]], np.float32), 0.5)(np.zeros((1, 2), np.float32))
    array([[1., 3.]], dtype=float32)
    """

    def __init__(self, centres: np.ndarray, weights: np.ndarray, gamma: float):
        some = centres.ndim == 2 and centres.size > 0
        expect("centres", some, "rows of at least one input", f"shape {centres.shape}")
        n, self._d = centres.shape
        fit = weights.ndim == 2 and len(weights) == n and weights.shape[1] > 0
        expect("weights", fit, f"a row for each of {n} centres", f"shape {weights.shape}")
        expect("gamma", 0 <= gamma < 1e38, "a number not below zero", gamma)
        self._classes, self._gamma = weights.shape[1], float(gamma)
        self._apart = -(-n // ASIDE) * ASIDE
        self._centres = np.zeros((self._d, self._apart), np.float32)
        self._centres[:, :n] = centres.T
        self._weights = np.zeros((self._classes, self._apart), np.float32)
        self._weights[:, :n] = weights.T
        self._piece = max(1, CALL // (self._apart * (self._d + self._classes + NEAR)))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The sums of every row."""
        X = flat(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self._d:
            raise KernelError("rows", f"{self._d} inputs each", f"shape {X.shape}")
        found = np.empty((len(X), self._classes), np.float32)
        how = address(self._centres), self._apart, address(self._weights), self._d, self._classes, self._gamma
        for at in range(0, len(X), self._piece):
            part, out = X[at : at + self._piece], found[at : at + self._piece]
            library().radial_answer(*how, address(part), len(part), address(out))
        return found
