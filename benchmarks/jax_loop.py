"""A training round as one program, compiled by JAX: the engine we had before our own, to measure ours beside it.

The paper's loss rho^2 with a memory term, Adam, batches in which every class is equally likely. Random numbers are
drawn for many steps at a time, and the parameters are one vector, so that Adam is a single fused operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

# Steps per draw of random numbers.
BLOCK = 64
# Weight matrices up to this size are multiplied without calling a matrix kernel.
SMALL_PRODUCT = 32
FIRST_MOMENT, SECOND_MOMENT, LEAST = 0.9, 0.999, 1e-8
Array = Any


def loop(widths: Sequence[int], batch: int, rate: float, lam: float) -> Callable[..., Array]:
    """A program of (theta, X, y, starts, counts, steps, seed), with rows sorted by class, that gives the new theta."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def run(theta: Array, X: Array, y: Array, starts: Array, counts: Array, steps: Array, seed: Array) -> Array:
        slope = jax.grad(_loss)

        def step(rows: Array, sizes: Array, i: Array, state: Array) -> Array:
            now, m, v = state
            g = _flat(slope(_layers(widths, now), X[rows[i]], y[rows[i]]))
            g += lam * jax.grad(_bounded)(now - theta)
            m = FIRST_MOMENT * m + (1 - FIRST_MOMENT) * g
            v = SECOND_MOMENT * v + (1 - SECOND_MOMENT) * g * g
            return now - sizes[i] * m / (jnp.sqrt(v) + LEAST), m, v

        def block(b: Array, state: Array) -> Array:
            group, row = jax.random.bits(jax.random.fold_in(jax.random.key(seed), b), (2, BLOCK, batch), jnp.uint32)
            group = group % len(starts)
            rows = starts[group] + (row % counts[group]).astype(jnp.int32)
            k = (b * BLOCK + jnp.arange(BLOCK) + 1).astype(jnp.float32)
            sizes = rate * jnp.sqrt(1 - SECOND_MOMENT**k) / (1 - FIRST_MOMENT**k)
            return lax.fori_loop(0, jnp.minimum(BLOCK, steps - b * BLOCK), partial(step, rows, sizes), state)

        none = jnp.zeros_like(theta)
        return lax.fori_loop(0, (steps + BLOCK - 1) // BLOCK, block, (theta, none, none))[0]

    return jax.jit(run)


def _loss(layers: list[tuple[Array, Array]], x: Array, y: Array) -> Array:
    """The mean of rho^2 over a batch."""
    import jax.numpy as jnp
    from jax.lax import stop_gradient

    for weights, biases in layers[:-1]:
        x = jnp.maximum(_product(x, weights) + biases, 0.0)
    scores = _product(x, layers[-1][0]) + layers[-1][1]
    e = jnp.exp(scores - stop_gradient(scores.max(axis=1, keepdims=True)))
    p = e / e.sum(axis=1, keepdims=True)
    others = jnp.where(y[:, None] == jnp.arange(p.shape[1]), 0.0, p)
    return jnp.mean(others.sum(axis=1) ** 2 + (others**2).sum(axis=1)) / p.shape[1]


def _product(x: Array, weights: Array) -> Array:
    """x @ weights; spelled out where calling a matrix kernel costs more than its work."""
    return (x[:, :, None] * weights).sum(axis=1) if weights.size <= SMALL_PRODUCT else x @ weights


def _bounded(difference: Array) -> Array:
    """The memory term: it pulls back, but not without bound."""
    import jax.numpy as jnp

    return jnp.tanh(jnp.mean(difference**2))


def _layers(widths: Sequence[int], theta: Array) -> list[tuple[Array, Array]]:
    layers, at = [], 0
    for a, b in pairwise(widths):
        layers.append((theta[at : at + a * b].reshape(a, b), theta[at + a * b : at + a * b + b]))
        at += a * b + b
    return layers


def _flat(layers: list[tuple[Array, Array]]) -> Array:
    import jax.numpy as jnp

    return jnp.concatenate([part.ravel() for layer in layers for part in layer])
