"""Random rows by the kernel: normal scores that depend on each other, each taken through a column's distribution."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ectype._kernel._ffi import SamplingStruct, address, block, expect, flat, library

NORMAL_MARGINAL, QUANTILE_MARGINAL, DISCRETE_MARGINAL = range(3)
# Scores that the kernel sums at once.
TOGETHER = 4
# A score is taken for a sum of others where they leave no more of its variance: correlations are written to six digits.
LEAST = 1e-5
# The work of one call, some hundredths of a second, after which an interrupt is heard: products and values.
CALL = 2**26
# What a value costs beside the products that make its score.
VALUE = 64


class Marginal(NamedTuple):
    """The distribution of one column."""

    kind: int
    """Normal; a curve, values at even probabilities with straight lines between them; or steps, one for each value."""
    numbers: np.ndarray
    """Mean and deviation; the curve's values, at least two; or the values."""
    ends: np.ndarray = np.empty(0)
    """Where steps end, but for the last."""
    whole: bool = False
    """Whether values are rounded."""
    low: float = -np.inf
    high: float = np.inf
    missing: float | None = None
    """Above which score of its own there is no value."""


class RowSampler:
    """Rows of columns with these distributions, joined by a Gaussian copula: any number, the same for the same seed.

    The correlation is that of all scores: one for each column, then one for each column with gaps.

    >>> uniform = Marginal(QUANTILE_MARGINAL, np.array([0.0, 1.0]))
    >>> both = RowSampler([uniform, Marginal(NORMAL_MARGINAL, np.array([5.0, 2.0]))])
    >>> both(3, seed=1).shape, bool((both(3, seed=1) == both(5, seed=1)[:3]).all())
    ((3, 2), True)
    """

    def __init__(self, columns: Sequence[Marginal], correlation: np.ndarray | None = None):
        self._made_of = tuple(columns), correlation
        gaps = [j for j, column in enumerate(columns) if column.missing is not None]
        self.columns, scores = len(columns), len(columns) + len(gaps)
        expect("columns", self.columns > 0, "at least one")
        numbers = [_numbers(column) for column in columns]
        sizes = np.array([len(part) for part in numbers])
        self._arrays = {
            "kinds": np.array([column.kind for column in columns], np.int32),
            "starts": np.cumsum(sizes) - sizes,
            "counts": np.array([_count(column) for column in columns], np.int32),
            "numbers": np.concatenate(numbers),
            "whole": np.array([column.whole for column in columns], np.int32),
            "low": np.array([column.low for column in columns], np.float64),
            "high": np.array([column.high for column in columns], np.float64),
            "gaps": np.full(self.columns, -1, np.int32),
            "cuts": np.array([column.missing or 0.0 for column in columns], np.float64),
        }
        self._arrays["gaps"][gaps] = np.arange(self.columns, scores)
        rank = 0
        if correlation is not None:
            found, order = copula_loadings(correlation, scores)
            self._arrays |= {"factor": _factor(found, order), "order": order}
            rank = len(found)
        self._job = SamplingStruct(
            **{name: address(array) for name, array in self._arrays.items()},
            columns=self.columns,
            scores=scores,
            rank=rank,
        )
        self._size = library().rows_size(ct.addressof(self._job))
        self._piece = max(1, CALL // (scores * (rank // 2 + VALUE)))

    def __call__(self, n: int, seed: int) -> np.ndarray:
        """n rows, float64."""
        job, room, rows = SamplingStruct.from_buffer_copy(self._job), block(self._size), np.empty((n, self.columns))
        job.seed = seed
        for at in range(0, n, self._piece):
            part = rows[at : at + self._piece]
            library().rows_draw(ct.addressof(job), address(room), at, len(part), address(part))
        return rows

    def __reduce__(self) -> tuple[type[RowSampler], tuple[tuple[Marginal, ...], np.ndarray | None]]:
        return RowSampler, self._made_of  # addresses belong to a process


def copula_loadings(correlation: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """What each of some normal numbers adds to all scores, to give them this correlation; the first scores' order.

    >>> found, order = copula_loadings(np.array([[1.0, 0.6], [0.6, 1.0]]), 2)
    >>> found.round(6).tolist(), order.tolist()
    ([[1.0, 0.6], [0.0, 0.8]], [0, 1])
    """
    shape = correlation.shape
    expect("correlation", shape == (size, size) and size < 2**31, f"{size} by {size} numbers", f"shape {shape}")
    correlation = flat(correlation, np.float64)
    expect("correlation", bool(np.isfinite(correlation).all()), "numbers", "some that are infinite or none")
    found, left, order = np.zeros((size, size)), np.empty(size), np.empty(size, np.int32)
    at = (address(array) for array in (found, left, order))
    rank = library().rows_factor(address(correlation), size, LEAST, *at)
    return found[:rank], order


def _factor(found: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Loads as the kernel reads them: of some scores at a time, without what numbers after them would add."""
    rank, size = found.shape
    padded = np.zeros((rank, -(-size // TOGETHER) * TOGETHER))
    padded[:, :size] = found[:, order]
    return np.concatenate([padded[: i + TOGETHER, i : i + TOGETHER].ravel() for i in range(0, size, TOGETHER)])


def _numbers(column: Marginal) -> np.ndarray:
    """A column's numbers as the kernel reads them, if they are what it needs."""
    numbers, ends = np.asarray(column.numbers, np.float64), np.asarray(column.ends, np.float64)
    n = len(numbers)
    fit = {
        NORMAL_MARGINAL: n == 2,
        QUANTILE_MARGINAL: 2 <= n < 2**31,
        DISCRETE_MARGINAL: 1 <= n < 2**30 and len(ends) == n - 1,
    }
    expect("column", numbers.ndim == ends.ndim == 1 and fit.get(column.kind, False), "the numbers of its kind")
    if column.kind != DISCRETE_MARGINAL:
        return numbers
    more = _count(column) - n
    return np.concatenate([ends, np.full(more, np.inf), numbers, np.full(more, numbers[-1])])


def _count(column: Marginal) -> int:
    """The intervals of a curve; the steps, filled up to a power of two."""
    n = len(column.numbers)
    return n - 1 if column.kind == QUANTILE_MARGINAL else 1 << (n - 1).bit_length()


def hash_rows(rows: np.ndarray, odd: np.ndarray, both: bool) -> np.ndarray:
    """A hash of every row by odd constants, as many as it has halves of numbers; by the upper halves, or by both.

    >>> hash_rows(np.array([[1.0], [1.0], [2.0]]), np.array([3, 5], np.uint64), both=True).tolist()
    [3218079744, 3218079744, 3221225472]
    """
    bits, odd = flat(rows, np.float64), flat(odd, np.uint64)
    expect("rows", bits.ndim == 2, "a matrix", f"shape {bits.shape}")
    n, d = bits.shape
    expect("odd", odd.shape == (2 * d,), f"{2 * d} numbers", f"shape {odd.shape}")
    found = np.empty(n, np.uint64)
    library().rows_keys(address(bits), n, d, address(odd), both, address(found))
    return found
