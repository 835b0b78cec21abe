"""A whole training round as one program, compiled by JAX: any loss, any penalty, in stages."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from understudy.algorithm.memory import Penalty
from understudy.algorithm.network import MLP, forward, scores
from understudy.algorithm.training.batches import BLOCK, Groups, draw_rows
from understudy.algorithm.training.schedule import FIRST_MOMENT, SECOND_MOMENT, Schedule, step_sizes
from understudy.algorithm.uncertainty import rho_squared
from understudy.types import Array

# Sample sets are padded to this size times a power of two, so that a growing set compiles a handful of programs.
SMALLEST_BUCKET = 512
# Rows per pass when the risk of a whole sample set is evaluated: bounds its memory, and what padding costs.
EVALUATION_CHUNK = 512
# Weight matrices up to this size are multiplied inside the fused loop, without calling a matrix kernel.
SMALL_PRODUCT = 32


def bucket(n: int) -> int:
    """The padded size of a sample set of n points.

    >>> bucket(100), bucket(513), bucket(3000)
    (512, 1024, 4096)
    """
    return SMALLEST_BUCKET * 2 ** max(0, (n - 1).bit_length() - (SMALLEST_BUCKET - 1).bit_length())


class Kind(NamedTuple):
    """The static arguments of a compiled training round; it is also compiled anew for other array shapes."""

    network: MLP
    loss: Callable[[Array, Array], Array]
    penalty: Penalty | None
    batch: int


def gradient(kind: Kind, theta: Array, previous: Array, lam: Array, x: Array, y: Array) -> Array:
    """The gradient of the loss over a batch plus lam * penalty(theta - previous)."""
    import jax
    import jax.numpy as jnp

    # With respect to the layers, not the flat vector: the transpose of a slice is a pad of the whole vector.
    layers = jax.grad(lambda layers: kind.loss(scores(layers, x, _product), y))(kind.network.layers(theta))
    flat = jnp.concatenate([part.ravel() for part in jax.tree.leaves(layers)])
    return flat if kind.penalty is None else flat + lam * jax.grad(kind.penalty)(theta - previous)


def _product(x: Array, weights: Array) -> Array:
    """x @ weights; spelled out for a layer of few weights, where calling a matrix kernel costs more than its work."""
    small = weights.size <= SMALL_PRODUCT
    return (x[:, :, None] * weights).sum(axis=1) if small else x @ weights


def evaluate(network: MLP, theta: Array, X: Array, y: Array, n: Array) -> tuple[Array, Array]:
    """R_emp and the mean of rho over the first n rows, a chunk at a time."""
    import jax.numpy as jnp
    from jax import lax

    layers = network.layers(theta)
    chunk = min(EVALUATION_CHUNK, len(X))

    def add(at: Array, sums: Array) -> Array:
        rows = at * chunk + jnp.arange(chunk)
        squared = jnp.where(rows < n, rho_squared(forward(layers, X[rows]), y[rows]), 0.0)
        return sums[0] + jnp.sum(squared), sums[1] + jnp.sum(jnp.sqrt(squared))

    zero = jnp.float32(0)
    squares, roots = lax.fori_loop(0, (n + chunk - 1) // chunk, add, (zero, zero))
    return squares / n, roots / n


def numbers(schedule: Schedule) -> Schedule:
    """The schedule as traced scalars: changing it does not recompile the program."""
    kinds: Any = (np.int32, np.float32, np.float32, np.int32, np.int32, np.float32, np.int32, np.int32, np.int32)
    return Schedule(*(kind(value) for kind, value in zip(kinds, schedule, strict=True)))


class _Stage(NamedTuple):
    """The state of a round between two evaluations of the risk."""

    theta: Array
    m: Array  # Adam's moments, reset in every stage
    v: Array
    k: Array
    bound: Array
    capacity: Array
    used: Array  # epochs in this stage
    epochs: Array  # epochs in all
    looks: Array
    risk: Array
    mean_rho: Array


def _looked(stage: _Stage, epochs: Array, schedule: Schedule) -> _Stage:
    """The state after so many more epochs; if the stage is done, the start of the next one."""
    import jax.numpy as jnp

    used = stage.used + epochs
    done = (stage.risk < stage.bound) | (used >= stage.capacity)
    return stage._replace(
        m=jnp.where(done, 0.0, stage.m),
        v=jnp.where(done, 0.0, stage.v),
        k=stage.k + done,
        bound=jnp.where(done, jnp.maximum(stage.bound / 2, schedule.epsilon), stage.bound),
        capacity=jnp.where(done, 2 * jnp.minimum(stage.capacity, 2**29), stage.capacity),
        used=jnp.where(done, 0, used),
        epochs=stage.epochs + epochs,
        looks=stage.looks + 1,
    )


@cache
def program() -> Array:
    """The training round as a JAX program; JAX is imported and configured on first use."""
    import jax

    _use_compilation_cache()
    return jax.jit(_round, static_argnums=0)


def _use_compilation_cache() -> None:
    """Keep compiled programs between processes, unless the user has configured a cache of their own."""
    import jax

    if jax.config.jax_compilation_cache_dir is None and not os.environ.get("UNDERSTUDY_NO_CACHE"):
        try:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        except RuntimeError:  # no home directory
            return
        jax.config.update("jax_compilation_cache_dir", str(Path(base) / "understudy" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def _round(
    kind: Kind,
    theta: Array, X: Array, y: Array, n: Array, groups: Groups, lam: Array, key_data: Array, adam: tuple[Array, ...],
    schedule: Schedule, compressed: tuple[Array, Array],
) -> _Stage:  # fmt: skip
    """One training round: blocks of steps between evaluations of the risk, until the schedule says stop.

    The first n rows are the sample set; the risk is measured on them alone. `compressed` is the risk before the round,
    and the mean of rho.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    previous, batch = theta, kind.batch
    rate, adam_epsilon, decay = adam
    key = jax.random.wrap_key_data(key_data, impl="threefry2x32")  # not the user's default generator
    steps_per_epoch = jnp.where(schedule.steps > 0, schedule.steps, (n + batch - 1) // batch)

    def sizes_after(in_stage: Array, in_round: Array) -> Array:
        """The step sizes of a block, after so many steps in the stage and in the round."""
        i = jnp.arange(BLOCK)
        k = (in_stage + i + 1).astype(jnp.float32)
        return step_sizes(rate, k, (in_round + i) / (schedule.epochs * steps_per_epoch), schedule)

    def step(rows: Array, sizes: Array, i: Array, state: Array) -> Array:
        """One step of Adam."""
        theta, m, v = state
        g = gradient(kind, theta, previous, lam, X[rows[i]], y[rows[i]])
        m = FIRST_MOMENT * m + (1 - FIRST_MOMENT) * g
        v = SECOND_MOMENT * v + (1 - SECOND_MOMENT) * g * g
        return theta - sizes[i] * (m / (jnp.sqrt(v) + adam_epsilon) + decay * theta), m, v

    def look(stage: _Stage) -> _Stage:
        """Train for a few epochs, evaluate the risk, and start the next stage if this one is done."""
        left = jnp.minimum(schedule.epochs - stage.epochs, stage.capacity - stage.used)
        epochs = jnp.minimum(schedule.look_every, left)
        steps = epochs * steps_per_epoch
        look_key = jax.random.fold_in(key, stage.looks)

        def run_block(b: Array, state: Array) -> Array:
            bits = jax.random.bits(jax.random.fold_in(look_key, b), (2, BLOCK, batch), jnp.uint32)
            rows = draw_rows(bits, groups)
            sizes = sizes_after(*(done * steps_per_epoch + b * BLOCK for done in (stage.used, stage.epochs)))
            return lax.fori_loop(0, jnp.minimum(BLOCK, steps - b * BLOCK), partial(step, rows, sizes), state)

        blocks = (steps + BLOCK - 1) // BLOCK
        theta, m, v = lax.fori_loop(0, blocks, run_block, (stage.theta, stage.m, stage.v))
        risk, mean_rho = evaluate(kind.network, theta, X, y, n)
        trained = stage._replace(theta=theta, m=m, v=v, risk=risk, mean_rho=mean_rho)
        return _looked(trained, epochs, schedule)

    def unfinished(stage: _Stage) -> Array:
        return (stage.risk >= schedule.epsilon) & (stage.epochs < schedule.epochs)

    none, zero = jnp.zeros_like(theta), jnp.int32(0)
    start = _Stage(theta, none, none, zero, schedule.bound, schedule.capacity, zero, zero, zero, *compressed)
    return lax.while_loop(unfinished, look, start)
