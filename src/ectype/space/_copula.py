"""The Gaussian copula of a space: the correlation of its columns' normal scores, learned from rows and checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype.space._column_base import ColumnBase

Correlation = tuple[tuple[float, ...], ...]


def fit_correlation(columns: Sequence[ColumnBase], table: np.ndarray) -> Correlation:
    """Correlations of the columns' normal scores, then of the missing-value indicators."""
    gaps = [np.isnan(table[:, j]).astype(float) for j, column in enumerate(columns) if column.missing]
    scores = normal_scores(np.column_stack([table, *gaps]))
    there = ~np.isnan(scores)
    filled = np.where(there, scores, 0.0)
    squares = (filled**2).T @ there  # of each column, over the rows where each other column has a value
    product = np.sqrt(squares * squares.T)
    correlation = np.where(product > 0, filled.T @ filled / np.where(product > 0, product, 1.0), 0.0)
    np.fill_diagonal(correlation, 1.0)
    return tuple(tuple(row) for row in _nearest_correlation(np.clip(correlation, -1, 1)).round(6).tolist())


def normal_scores(table: np.ndarray) -> np.ndarray:
    """Normal scores of the ranks, mid-ranks for ties, centred; NaN where there is no value."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    counts = (~np.isnan(table)).sum(axis=0)
    scores = ndtri((rankdata(table, axis=0, nan_policy="omit") - 0.5) / counts)
    return scores - np.nanmean(scores, axis=0)


def _nearest_correlation(correlation: np.ndarray) -> np.ndarray:
    """A positive semidefinite correlation, by clipping eigenvalues (Rebonato and Jaeckel 1999).

    Correlations that are estimated pair by pair, each from other rows, may contradict each other.
    """
    values, vectors = np.linalg.eigh(correlation)
    if values[0] >= -1e-8:
        return correlation
    positive = (vectors * np.clip(values, 0, None)) @ vectors.T
    scale = np.sqrt(np.clip(np.diag(positive), 1e-12, None))
    positive = positive / np.outer(scale, scale)
    np.fill_diagonal(positive, 1.0)
    return np.clip((positive + positive.T) / 2, -1, 1)


def check_correlation(correlation: Correlation, d: int, gaps: int) -> None:
    """Raise ValueError for a matrix that is no correlation of d columns, and perhaps of missing-value indicators."""
    sizes = {d, d + gaps}
    if len(correlation) not in sizes or {len(row) for row in correlation} != {len(correlation)}:
        indicators = f", or {max(sizes)} x {max(sizes)} with those for gaps" if len(sizes) > 1 else ""
        raise ValueError(
            f"expected a correlation of {d} x {d}, one row and one column per column{indicators}, found another"
        )
    array = np.asarray(correlation)
    if not (np.allclose(array, array.T, atol=1e-8) and np.allclose(np.diag(array), 1, atol=1e-6)):
        raise ValueError("expected a correlation that is symmetric, with ones on its diagonal, found another")
    if np.linalg.eigvalsh(array)[0] < -1e-4:  # room for correlations written with a few digits
        raise ValueError("expected a correlation with no negative eigenvalue, found another")
