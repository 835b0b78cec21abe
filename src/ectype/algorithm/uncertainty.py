"""The uncertainty rho of a copy at a labelled point, and the empirical risk it adds up to.

1 - p_y is computed as the sum of the other probabilities: subtracting p_y from 1 would lose everything below 1e-7 in
float32, and the thresholds of the paper go down to 1e-10.
"""

from __future__ import annotations

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Class probabilities from scores, a row each."""
    e = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rho_squared(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """rho(z)^2 = ||f_C(z) - f_O(z)||^2 / n_c, with f_C(z) = p and f_O(z) the one-hot form of the code y."""
    n_c = p.shape[-1]
    others = np.where(y[..., None] == np.arange(n_c), 0.0, p)
    missing = np.sum(others, axis=-1)  # 1 - p_y
    return (missing**2 + np.sum(others**2, axis=-1)) / n_c


def rho(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The uncertainty rho(z) = ||f_C(z) - f_O(z)|| / sqrt(n_c): 0 where a point is compressed, large where it is not.

    >>> rho(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0, 0])).tolist()
    [0.5, 1.0]
    """
    return np.sqrt(rho_squared(p, y))


def empirical_risk(p: np.ndarray, y: np.ndarray) -> float:
    """R_emp: the mean of rho^2 over a sample set; 0 over an empty one, where nothing is left to learn."""
    n = p.shape[0]
    return float(np.sum(rho_squared(p, y))) / max(n, 1)


def margins(p: np.ndarray) -> np.ndarray:
    """The margin of every row: the probability of the likeliest class minus that of the next.

    >>> margins(np.array([[0.5, 0.25, 0.25], [0.25, 0.0, 0.75]])).tolist()
    [0.25, 0.5]
    """
    if p.shape[1] < 2:
        return np.ones(len(p))
    runner_up, best = np.partition(p, (-2, -1), axis=1)[:, -2:].T
    return best - runner_up
