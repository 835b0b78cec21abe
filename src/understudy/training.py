"""Step 2 of the paper: fit the copy to the sample set (Algorithms 3 and 4), a whole round in one compiled loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy.errors import SettingError
from understudy.hypothesis.mlp import MLP, forward, scores
from understudy.memory import Penalty, bounded
from understudy.samples import Samples
from understudy.uncertainty import LOSSES, rho, rho_squared

# Sample sets are padded to this size times a power of two, so that a growing set compiles a handful of programs.
SMALLEST_BUCKET = 512
# Rows per pass when the risk of a whole sample set is evaluated: bounds its memory, and what padding costs.
EVALUATION_CHUNK = 512
# Steps per draw of random numbers: one draw for many steps costs next to nothing beside the steps.
BLOCK = 64
# Places by which groups of rows are drawn, for every class.
SLOTS = 32
# How much shorter steps are in the last rounds.
GENTLE = 40
# Weight matrices up to this size are multiplied inside the fused loop, without calling a matrix kernel.
SMALL_PRODUCT = 32


class Schedule(NamedTuple):
    """How long a round trains: Algorithm 3 with early stopping as its capacity control.

    Stage k trains until the risk falls below its bound eps_k, or its capacity Omega_k (in epochs) is used up. Then the
    bound halves towards `epsilon`, the capacity doubles, and a new stage starts from where the last one ended. A round
    ends when the risk is below `epsilon`, or after `epochs` in all. With `anneal`, the step size falls to zero over
    those epochs, by a cosine; else it is constant. An epoch is a pass over the sample set, unless `steps` says how many
    steps it has.
    """

    epochs: int
    epsilon: float = -1.0
    bound: float = -1.0
    capacity: int = 2**30
    look_every: int = 2**30
    anneal: bool = False
    steps: int = 0


def plain(epochs: int = 1000) -> Schedule:
    """The setting of the paper's experiments: a fixed number of epochs, whatever the risk."""
    return Schedule(epochs)


def annealed(epochs: int = 1000) -> Schedule:
    """A fixed number of epochs, with a step size that falls to zero over them.

    A constant step leaves each round wherever its last noisy step landed; docs/choices.md has what that costs.
    """
    return Schedule(epochs, anneal=True)


def steps(n: int) -> Schedule:
    """A fixed number of steps, whatever the number of points: a round costs the same early and late in a run."""
    return Schedule(1, anneal=True, steps=n)


def staged(
    epsilon: float = 1e-6, *, epochs: int = 1000, bound: float = 0.25, capacity: int = 64, look_every: int = 8
) -> Schedule:
    """Algorithm 3: bounds that halve from `bound` to `epsilon`, capacities that double from `capacity` epochs."""
    return Schedule(epochs, epsilon, bound, capacity, look_every)


PLAIN = plain()


class Trained(NamedTuple):
    """The outcome of a round: parameters, and how well they compress the sample set they were fitted to."""

    theta: np.ndarray
    risk: float
    mean_rho: float
    epochs: int
    stages: int


class Train(Protocol):
    """A training policy: from theta, over S, with memory weight lam, in round t."""

    def __call__(self, theta: np.ndarray, S: Samples, lam: float, t: int) -> Trained:
        """Fit the copy to S."""


@dataclass(frozen=True)
class Trainer:
    """Algorithm 4: minimise R_emp(theta) + lam * penalty(theta - theta_{t-1}) by Adam on balanced batches.

    With lam = 0 this is Algorithm 3. In a balanced batch every class present in S is equally likely, whatever its
    share. Adam starts afresh in every stage. With `decay`, every step also shrinks theta by that share of its size.

    With `rehearse`, which gives rows for round t that cost nothing, the memory term is no distance between parameters,
    but lam times the loss on those rows, with the labels that the copy gives them before the round.
    """

    network: MLP
    schedule: Schedule = PLAIN
    penalty: Penalty | None = bounded
    rehearse: Callable[[int], np.ndarray] | None = None
    loss: str = "rho"
    batch: int = 32
    balanced: bool = True
    rate: float = 5e-4
    adam_epsilon: float = 1e-8
    decay: float = 0.0
    seed: int = 0
    room: int = 0
    """How many points the sample set may grow to, where that is known: what is compiled for it serves all rounds."""
    ending: int = 2**31
    """From this round on the sample set shrinks, and steps are short: what is known should stay known."""

    def __call__(self, theta: np.ndarray, S: Samples, lam: float, t: int) -> Trained:
        """Fit the copy to S, from theta."""
        if len(S) == 0:  # everything is compressed: nothing to learn
            return Trained(theta, 0.0, 0.0, 0, 0)
        if self.schedule.epochs * (self.schedule.steps or -(-len(S) // self.batch)) >= 2**31:
            found = f"{self.schedule.epochs} epochs of {self.schedule.steps or len(S)}"
            raise SettingError("schedule", "fewer than 2**31 steps a round", found, "train for fewer epochs")
        points, groups = self._with_rehearsed(theta, S, lam, t)
        size = bucket(max(len(points), self.room))
        X, y = np.zeros((size, S.X.shape[1]), np.float32), np.zeros(size, np.int32)
        X[: len(points)], y[: len(points)] = points.X, points.y
        key = np.array([self.seed & 0xFFFFFFFF, t], np.uint32)
        rate = self.rate if t < self.ending else self.rate / GENTLE
        adam = (np.float32(rate), np.float32(self.adam_epsilon), np.float32(self.decay))
        end = _compiled()(
            Kind(self.network, LOSSES[self.loss], None if self.rehearse else self.penalty, self.batch),
            theta, X, y, np.int32(len(S)), groups, np.float32(lam), key, adam, _numbers(self.schedule),
            self._compressed(theta, S),
        )  # fmt: skip
        if not np.isfinite(end.risk):
            hint = "lower memory, or the step size, or describe the inputs in a space of their own scale"
            raise SettingError("training", "a finite risk", float(end.risk), hint)
        return Trained(np.asarray(end.theta), float(end.risk), float(end.mean_rho), int(end.epochs), int(end.k))

    def _with_rehearsed(self, theta: np.ndarray, S: Samples, lam: float, t: int) -> tuple[Samples, Groups]:
        """S, sorted by class, then what is rehearsed; and how often each part is drawn."""
        order = np.argsort(S.y, kind="stable")
        points = Samples(S.X[order], S.y[order])
        counts = np.bincount(S.y) if self.balanced else np.array([len(S)])
        groups = Groups.of(counts, SLOTS * self.network.n_c)
        if self.rehearse is None or not lam:
            return points, groups
        rows = self.rehearse(t)
        answers = self.network.probabilities(theta, rows).argmax(axis=1)
        return points | Samples(rows, answers.astype(np.int32)), groups.before(len(S), len(rows), lam)

    def _compressed(self, theta: np.ndarray, S: Samples) -> tuple[np.float32, np.float32]:
        """The risk of S before the round and the mean of rho, where they may be what ends it."""
        if self.schedule.epsilon <= 0:
            return np.float32(np.inf), np.float32(np.inf)
        values = rho(self.network.probabilities(theta, S.X), S.y)
        return np.float32(np.mean(values**2)), np.float32(np.mean(values))


def bucket(n: int) -> int:
    """The padded size of a sample set of n points.

    >>> bucket(100), bucket(513), bucket(3000)
    (512, 1024, 4096)
    """
    return SMALLEST_BUCKET * 2 ** max(0, (n - 1).bit_length() - (SMALLEST_BUCKET - 1).bit_length())


class Groups(NamedTuple):
    """Where each group of rows starts, and how many rows it has: the first n of these are drawn equally often."""

    starts: Any
    counts: Any
    n: Any

    @classmethod
    def of(cls, counts: np.ndarray, size: int) -> Groups:
        """The classes that have points, in a sample set that is sorted by class, padded to `size`."""
        present = counts > 0
        pad = (0, size - int(present.sum()))
        return cls(
            np.pad((np.cumsum(counts) - counts)[present], pad).astype(np.int32),
            np.pad(counts[present], pad, constant_values=1).astype(np.uint32),
            np.uint32(present.sum()),
        )

    def before(self, start: int, count: int, weight: float) -> Groups:
        """These, and one more from `start` on, which is drawn `weight` times as often as all of them together.

        Each takes as many of the places as its weight says, in whole numbers.
        """
        size = len(self.starts)
        old = np.arange(max(int(self.n), round(size / (1 + weight)))) % int(self.n)
        new = size - len(old)
        return Groups(
            np.concatenate([self.starts[old], np.full(new, start, np.int32)]),
            np.concatenate([self.counts[old], np.full(new, count, np.uint32)]),
            np.uint32(size),
        )


def draw_rows(key: Any, groups: Groups, shape: tuple[int, ...]) -> Any:
    """Row numbers for batches: a group, each equally likely, then a row of that group, each equally likely."""
    import jax
    import jax.numpy as jnp

    group, row = jax.random.bits(key, (2, *shape), jnp.uint32)
    group = (group % groups.n).astype(jnp.int32)
    return groups.starts[group] + (row % groups.counts[group]).astype(jnp.int32)


class Kind(NamedTuple):
    """What a training round is compiled for, beside the sizes of what it is given."""

    network: MLP
    loss: Callable[[Any, Any], Any]
    penalty: Penalty | None
    batch: int


def gradient(kind: Kind, theta: Any, previous: Any, lam: Any, x: Any, y: Any) -> Any:
    """The gradient of the loss over a batch plus lam * penalty(theta - previous)."""
    import jax
    import jax.numpy as jnp

    # With respect to the layers, not the flat vector: the transpose of a slice is a pad of the whole vector.
    layers = jax.grad(lambda layers: kind.loss(scores(layers, x, _product), y))(kind.network.layers(theta))
    flat = jnp.concatenate([part.ravel() for part in jax.tree.leaves(layers)])
    return flat if kind.penalty is None else flat + lam * jax.grad(kind.penalty)(theta - previous)


def _product(x: Any, weights: Any) -> Any:
    """x @ weights; spelled out for a layer of few weights, where calling a matrix kernel costs more than its work."""
    small = weights.size <= SMALL_PRODUCT
    return (x[:, :, None] * weights).sum(axis=1) if small else x @ weights


def evaluate(network: MLP, theta: Any, X: Any, y: Any, n: Any) -> tuple[Any, Any]:
    """R_emp and the mean of rho over the first n rows, a chunk at a time."""
    import jax.numpy as jnp
    from jax import lax

    layers = network.layers(theta)
    chunk = min(EVALUATION_CHUNK, len(X))

    def add(at: Any, sums: Any) -> Any:
        rows = at * chunk + jnp.arange(chunk)
        squared = jnp.where(rows < n, rho_squared(forward(layers, X[rows]), y[rows]), 0.0)
        return sums[0] + jnp.sum(squared), sums[1] + jnp.sum(jnp.sqrt(squared))

    zero = jnp.float32(0)
    squares, roots = lax.fori_loop(0, (n + chunk - 1) // chunk, add, (zero, zero))
    return squares / n, roots / n


def _numbers(schedule: Schedule) -> Schedule:
    """The schedule as numbers that the compiled program takes, so that changing it compiles nothing."""
    kinds: Any = (np.int32, np.float32, np.float32, np.int32, np.int32, np.float32, np.int32)
    return Schedule(*(kind(value) for kind, value in zip(kinds, schedule, strict=True)))


class _Stage(NamedTuple):
    """Where a round stands between two looks at the risk."""

    theta: Any
    m: Any  # Adam's moments, afresh in every stage
    v: Any
    k: Any
    bound: Any
    capacity: Any
    used: Any  # epochs in this stage
    epochs: Any  # epochs in all
    looks: Any
    risk: Any
    mean_rho: Any


@cache
def _compiled() -> Any:
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
        except RuntimeError:  # a user without a home
            return
        jax.config.update("jax_compilation_cache_dir", str(Path(base) / "understudy" / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def _round(
    kind: Kind,
    theta: Any, X: Any, y: Any, n: Any, groups: Groups, lam: Any, key_data: Any, adam: tuple[Any, ...],
    schedule: Schedule, compressed: tuple[Any, Any],
) -> _Stage:  # fmt: skip
    """One round of training: looks at the risk, between them blocks of steps, until the schedule says stop.

    The first n rows are the sample set, and its risk is what counts. `compressed` is the risk before the round, and the
    mean of rho.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    previous, batch = theta, kind.batch
    rate, adam_epsilon, decay = adam
    key = jax.random.wrap_key_data(key_data, impl="threefry2x32")  # whatever the user's default is
    steps_per_epoch = jnp.where(schedule.steps > 0, schedule.steps, (n + batch - 1) // batch)

    def step_sizes(in_stage: Any, in_round: Any) -> Any:
        """Adam's corrected step sizes for a block, after so many steps in the stage and in the round."""
        i = jnp.arange(BLOCK)
        k = (in_stage + i + 1).astype(jnp.float32)
        progress = (in_round + i) / (schedule.epochs * steps_per_epoch)
        annealed = 1 - schedule.anneal * (0.5 - 0.5 * jnp.cos(jnp.pi * progress))
        return annealed * rate * jnp.sqrt(1 - 0.999**k) / (1 - 0.9**k)

    def step(rows: Any, sizes: Any, i: Any, state: Any) -> Any:
        """One step of Adam."""
        theta, m, v = state
        g = gradient(kind, theta, previous, lam, X[rows[i]], y[rows[i]])
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return theta - sizes[i] * (m / (jnp.sqrt(v) + adam_epsilon) + decay * theta), m, v

    def look(stage: _Stage) -> _Stage:
        """Train for a few epochs, see what the risk is, and move on to the next stage if this one is done."""
        left = jnp.minimum(schedule.epochs - stage.epochs, stage.capacity - stage.used)
        epochs = jnp.minimum(schedule.look_every, left)
        steps = epochs * steps_per_epoch
        look_key = jax.random.fold_in(key, stage.looks)

        def run_block(b: Any, state: Any) -> Any:
            rows = draw_rows(jax.random.fold_in(look_key, b), groups, (BLOCK, batch))
            sizes = step_sizes(*(done * steps_per_epoch + b * BLOCK for done in (stage.used, stage.epochs)))
            return lax.fori_loop(0, jnp.minimum(BLOCK, steps - b * BLOCK), partial(step, rows, sizes), state)

        blocks = (steps + BLOCK - 1) // BLOCK
        theta, m, v = lax.fori_loop(0, blocks, run_block, (stage.theta, stage.m, stage.v))
        risk, mean_rho = evaluate(kind.network, theta, X, y, n)
        used = stage.used + epochs
        done = (risk < stage.bound) | (used >= stage.capacity)
        return _Stage(
            theta=theta,
            m=jnp.where(done, 0.0, m),
            v=jnp.where(done, 0.0, v),
            k=stage.k + done,
            bound=jnp.where(done, jnp.maximum(stage.bound / 2, schedule.epsilon), stage.bound),
            capacity=jnp.where(done, 2 * jnp.minimum(stage.capacity, 2**29), stage.capacity),
            used=jnp.where(done, 0, used),
            epochs=stage.epochs + epochs,
            looks=stage.looks + 1,
            risk=risk,
            mean_rho=mean_rho,
        )

    def unfinished(stage: _Stage) -> Any:
        return (stage.risk >= schedule.epsilon) & (stage.epochs < schedule.epochs)

    none, zero = jnp.zeros_like(theta), jnp.int32(0)
    start = _Stage(theta, none, none, zero, schedule.bound, schedule.capacity, zero, zero, zero, *compressed)
    return lax.while_loop(unfinished, look, start)
