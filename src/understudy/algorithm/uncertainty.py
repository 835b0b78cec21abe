"""The uncertainty rho of a copy at a labelled point, and the empirical risk it adds up to.

Written once for NumPy and JAX arrays alike. In both, 1 - p_y is the sum of the other probabilities: subtracting p_y
from 1 would lose everything below 1e-7 in float32, and the thresholds of the paper go down to 1e-10.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from understudy.types import Array


def softmax(logits: Array, axis: int = -1) -> Array:
    """Class probabilities f_C(z) from the network's last layer, with classes along this axis."""
    xp = logits.__array_namespace__()
    e = xp.exp(logits - _constant(xp.max(logits, axis=axis, keepdims=True)))
    return e / xp.sum(e, axis=axis, keepdims=True)


def rho_squared(p: Array, y: Array) -> Array:
    """rho(z)^2 = ||f_C(z) - f_O(z)||^2 / n_c, with f_C(z) = p and f_O(z) the one-hot form of the code y."""
    xp = p.__array_namespace__()
    n_c = p.shape[-1]
    others = xp.where(y[..., None] == xp.arange(n_c), 0.0, p)
    missing = xp.sum(others, axis=-1)  # 1 - p_y
    return (missing**2 + xp.sum(others**2, axis=-1)) / n_c


def rho(p: Array, y: Array) -> Array:
    """The uncertainty rho(z) = ||f_C(z) - f_O(z)|| / sqrt(n_c): 0 where a point is compressed, large where it is not.

    >>> rho(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([0, 0])).tolist()
    [0.5, 1.0]
    """
    return p.__array_namespace__().sqrt(rho_squared(p, y))


def empirical_risk(p: Array, y: Array) -> Array:
    """R_emp: the mean of rho^2 over a sample set; 0 over an empty one, where nothing is left to learn."""
    n = p.shape[0]
    return p.__array_namespace__().sum(rho_squared(p, y)) / max(n, 1)


def margins(p: np.ndarray) -> np.ndarray:
    """The margin of every row: the probability of the likeliest class minus that of the next.

    >>> margins(np.array([[0.5, 0.25, 0.25], [0.25, 0.0, 0.75]])).tolist()
    [0.25, 0.5]
    """
    if p.shape[1] < 2:
        return np.ones(len(p))
    runner_up, best = np.partition(p, (-2, -1), axis=1)[:, -2:].T
    return best - runner_up


def squared(scores: Array, y: Array) -> Array:
    """The paper's loss: R_emp of the softmax of these scores, which is the Brier score divided by n_c."""
    return empirical_risk(softmax(scores), y)


def cross_entropy(scores: Array, y: Array) -> Array:
    """The mean of -log f_C(z)_y.

    Where a copy is confidently wrong, the gradient of rho^2 vanishes; that of the logarithm is largest there.
    """
    import jax.numpy as jnp

    return jnp.mean(_log_sum(scores) - jnp.take_along_axis(scores, y[:, None], axis=-1)[:, 0])


def _log_sum(scores: Array) -> Array:
    """log-sum-exp of every row."""
    import jax.numpy as jnp

    largest = _constant(jnp.max(scores, axis=-1))
    return largest + jnp.log(jnp.sum(jnp.exp(scores - largest[:, None]), axis=-1))


LOSSES: dict[str, Callable[[Array, Array], Array]] = {"cross-entropy": cross_entropy, "rho": squared}


def _constant(x: Array) -> Array:
    """x, with no gradient through it: the shift inside a softmax cancels, so its gradient would be wasted work."""
    if isinstance(x, np.ndarray):
        return x
    from jax.lax import stop_gradient

    return stop_gradient(x)
