"""Piecewise-linear inputs: beside each number, how far it is through each of several bins, from 0 to 1.

A network that sees numbers alone has to bend where an original has a threshold, which takes it many steps. With one
input for every bin it only has to weigh them (Gorishniy, Rubachev and Babenko, "On embeddings for numerical features in
tabular deep learning", 2022).
"""

from __future__ import annotations

import ctypes as ct

import numpy as np

from ectype._kernel._ffi import PiecewiseStruct, address, expect

# Pieces shorter than this are none: what a column is multiplied by would be infinite.
SHORTEST = np.float32(1e-37)
TINIEST = np.finfo(np.float32).tiny


class PiecewiseLinear:
    """Which column each piece is of, and where it begins and ends.

    >>> import numpy as np
    >>> pieces = PiecewiseLinear(1, np.array([0, 0]), np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    >>> pieces(np.array([[-1.0], [2.0]], np.float32)).tolist()
    [[-1.0, 0.0, 0.0], [2.0, 1.0, 0.5]]
    """

    def __init__(self, columns: int, column: np.ndarray, low: np.ndarray, high: np.ndarray):
        self.columns, self.column = int(columns), np.array(column, np.int32)
        self.low, self.high = np.array(low, np.float32), np.array(high, np.float32)
        one = self.columns >= 1 and self.column.ndim == 1 and self.column.shape == self.low.shape == self.high.shape
        there = one and bool(((self.column >= 0) & (self.column < self.columns)).all())
        expected = f"a column of {columns}, a start and a greater end for each"
        expect("pieces", there and bool((self.low < self.high).all()), expected)
        with np.errstate(all="ignore"):
            slope = np.float32(1) / (self.high - self.low)
            # What a column is multiplied by, and what is added to that. The kernel takes the tiniest numbers for zero.
            self.slope = np.where(slope < TINIEST, np.float32(0), slope)
            self.shift = -self.low * self.slope
        expect("pieces", bool(np.isfinite(self.slope).all() and np.isfinite(self.shift).all()), expected)
        self._laid_out = PiecewiseStruct(
            address(self.column), address(self.slope), address(self.shift), self.columns, len(self.column)
        )

    @property
    def width(self) -> int:
        """The number of inputs: the columns, then their pieces."""
        return self.columns + len(self.column)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The inputs, as the kernel makes them on its way."""
        X = np.asarray(X, np.float32)
        cut = np.clip(X[:, self.column] * self.slope + self.shift, np.float32(0), np.float32(1))
        return np.concatenate([X, cut], axis=1)

    def __reduce__(self) -> tuple[type[PiecewiseLinear], tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        return PiecewiseLinear, (self.columns, self.column, self.low, self.high)  # addresses belong to a process

    @property
    def address(self) -> int:
        """Where the kernel finds them, as long as this object lives."""
        return ct.addressof(self._laid_out)


def quantile_pieces(X: np.ndarray, bins: int) -> PiecewiseLinear:
    """Pieces between the quantiles of every column; one with two values has none, since it is a piece itself.

    >>> quantile_pieces(np.arange(9, dtype=np.float32)[:, None], 2).high.tolist()
    [4.0, 8.0]
    """
    expect("X", X.ndim == 2 and X.shape[0] > 0 and X.shape[1] > 0, "rows of at least one column", f"shape {X.shape}")
    expect("bins", bins >= 1, "at least one", bins)
    with np.errstate(over="ignore"):
        X = np.asarray(X, np.float32)
    expect("X", bool(np.isfinite(X).all()), "numbers", "some that are infinite or none")
    columns, low, high = [], list[float](), list[float]()
    for j, values in enumerate(np.sort(X.T, axis=1)):
        edges = np.unique(values[np.round(np.linspace(0, len(values) - 1, bins + 1)).astype(int)])
        with np.errstate(over="ignore"):
            edges = edges[np.append(True, np.diff(edges) > SHORTEST)]
        if len(edges) > 2:
            columns += [j] * (len(edges) - 1)
            low += edges[:-1].tolist()
            high += edges[1:].tolist()
    return PiecewiseLinear(X.shape[1], np.array(columns, np.int32), np.array(low), np.array(high))
