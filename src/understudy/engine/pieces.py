"""Piecewise-linear inputs: beside each number, how far it is through each of several bins, from 0 to 1.

A network that sees numbers alone has to bend where an original has a threshold, which takes it many steps. With one
input for every bin it only has to weigh them (Gorishniy, Rubachev and Babenko, "On embeddings for numerical features in
tabular deep learning", 2022).
"""

from __future__ import annotations

import ctypes as ct
from functools import cached_property

import numpy as np

from understudy.engine.library import PiecesOf, address
from understudy.errors import KernelError


class Pieces:
    """Which column each piece is of, and where it begins and ends.

    >>> pieces = Pieces(1, np.array([0, 0]), np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    >>> pieces(np.array([[-1.0], [2.0]], np.float32)).tolist()
    [[-1.0, 0.0, 0.0], [2.0, 1.0, 0.5]]
    """

    def __init__(self, columns: int, column: np.ndarray, low: np.ndarray, high: np.ndarray):
        self.columns = columns
        self.column = np.ascontiguousarray(column, np.int32)
        self.low, self.high = np.ascontiguousarray(low, np.float32), np.ascontiguousarray(high, np.float32)
        one = self.column.ndim == 1 and self.column.shape == self.low.shape == self.high.shape
        within = one and bool((self.column >= 0).all() and (self.column < columns).all())
        if not within or not bool(np.isfinite(self.slope).all() and np.isfinite(self.shift).all()):
            raise KernelError("pieces", f"a column of {columns}, a start and a greater end for each", "something else")

    @property
    def width(self) -> int:
        """The number of inputs: the columns, then their pieces."""
        return self.columns + len(self.column)

    @cached_property
    def slope(self) -> np.ndarray:
        """What a column is multiplied by."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return (np.float32(1) / (self.high - self.low)).astype(np.float32)

    @cached_property
    def shift(self) -> np.ndarray:
        """What is added to that."""
        with np.errstate(invalid="ignore", over="ignore"):
            return (-self.low * self.slope).astype(np.float32)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The inputs, as the kernel makes them on its way."""
        cut = np.clip(X[:, self.column] * self.slope + self.shift, np.float32(0), np.float32(1))
        return np.concatenate([X, cut], axis=1)

    @cached_property
    def laid_out(self) -> PiecesOf:
        """The pieces as the kernel reads them; they live as long as this object."""
        return PiecesOf(address(self.column), address(self.slope), address(self.shift), self.columns, len(self.column))

    @property
    def address(self) -> int:
        """Where the kernel finds them."""
        return ct.addressof(self.laid_out)


def quantile_pieces(X: np.ndarray, bins: int) -> Pieces:
    """Pieces between the quantiles of every column; one with two values has none, since it is a piece itself.

    >>> quantile_pieces(np.arange(9, dtype=np.float32)[:, None], 2).high.tolist()
    [4.0, 8.0]
    """
    columns, low, high = [], list[float](), list[float]()
    for j, values in enumerate(np.sort(X.T, axis=1)):
        edges = np.unique(values[np.round(np.linspace(0, len(values) - 1, bins + 1)).astype(int)])
        if len(edges) > 2:
            columns += [j] * (len(edges) - 1)
            low += edges[:-1].tolist()
            high += edges[1:].tolist()
    return Pieces(X.shape[1], np.array(columns, np.int32), np.array(low), np.array(high))
