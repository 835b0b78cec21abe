"""Inference of a network: its weights are laid out once, then it gives class probabilities for any rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ectype._kernel._ffi import address, flat, library
from ectype._kernel._piecewise_linear import PiecewiseLinear
from ectype._kernel._training import ACTIVATIONS, parameters, sizes_fit
from ectype.errors import KernelError

# Rows at a time: what is made on the way stays in the processor's cache.
ROWS = 64


class NetworkInference:
    """A network that answers. A row's answer is the same, to the bit, alone and among others.

    >>> NetworkInference((1, 2), np.zeros(4, np.float32))(np.zeros((3, 1), np.float32)).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(
        self, widths: Sequence[int], theta: np.ndarray, activation: str = "relu", pieces: PiecewiseLinear | None = None
    ):
        self._widths, self._theta = np.array(widths, np.int32), flat(theta, np.float32)
        if not sizes_fit(self._widths):
            raise KernelError("widths", "from two to seventeen sizes above zero", str(widths))
        if self._theta.shape != (parameters(self._widths),):
            raise KernelError("theta", "one number for each weight and bias", f"shape {self._theta.shape}")
        if activation not in ACTIVATIONS:
            raise KernelError("activation", f"one of {', '.join(ACTIVATIONS)}", activation)
        if pieces is not None and pieces.width != widths[0]:
            raise KernelError("pieces", f"{widths[0]} inputs with the columns", str(pieces.width))
        self._made_of = tuple(widths), self._theta, activation, pieces
        self._pieces = pieces
        self._inputs, self._classes = int(widths[0]) if pieces is None else pieces.columns, int(widths[-1])
        self._shape = address(self._widths), len(widths) - 1
        self._how = ACTIVATIONS.index(activation), None if pieces is None else pieces.address
        self._mine = threading.local()
        self._kernel = library()

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Class probabilities, float32, a row each."""
        X = flat(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self._inputs:
            raise KernelError("rows", f"{self._inputs} inputs each", f"shape {X.shape}")
        found = np.empty((len(X), self._classes), np.float32)
        widths, layers = self._shape
        activation, pieces = self._how
        self._kernel.network_answer(
            widths, layers, activation, pieces, ROWS, self._block(), X.ctypes.data, len(X), found.ctypes.data
        )
        return found

    def __reduce__(
        self,
    ) -> tuple[type[NetworkInference], tuple[tuple[int, ...], np.ndarray, str, PiecewiseLinear | None]]:
        return NetworkInference, self._made_of  # what is laid out belongs to a process, and to its threads

    def _block(self) -> int:
        """The network laid out, and room to compute in: each thread has its own."""
        known: int | None = getattr(self._mine, "at", None)
        return self._laid_out() if known is None else known

    def _laid_out(self) -> int:
        widths, layers = self._shape
        block = np.empty(self._kernel.network_size(widths, layers, ROWS), np.uint8)
        self._kernel.network_fold(address(self._theta), widths, layers, ROWS, address(block))
        self._mine.block, self._mine.at = block, block.ctypes.data
        return self._mine.at
