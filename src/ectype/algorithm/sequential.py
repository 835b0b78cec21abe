"""Algorithms 1 and 5 of the paper: alternate between choosing points and training on them.

One loop serves them all; what differs is which policies are passed in.

=====================  =================================  ==========================
method                 select                             memory
=====================  =================================  ==========================
Algorithm 1            `selection.keep_all`               `memory.Fixed(0)`
Algorithm 5            `selection.drop_compressed(...)`   `memory.Automatic()`
online single-pass     `selection.keep_fresh`             `memory.Fixed(0)`
one-shot single-pass   any: only the first step is taken, with n = all points
=====================  =================================  ==========================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from time import perf_counter

import numpy as np

from ectype.algorithm.memory import Memory
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import Select
from ectype.algorithm.training import Train, Trained


@dataclass(frozen=True)
class Step:
    """The state after round t, and how it came about.

    >>> from ectype.algorithm.training import Trained
    >>> S = SampleSet(np.zeros((3, 1), np.float32), np.zeros(3, np.int32))
    >>> step = Step(0, S, 0.0, Trained(np.ones(2), 0.1, 0.2, 5, 0), dropped=0, moved=1.0, seconds=0.01)
    >>> len(step.S), step.theta.tolist()
    (3, [1.0, 1.0])
    """

    t: int
    S: SampleSet
    lam: float
    trained: Trained
    dropped: int
    moved: float
    """||theta_t - theta_{t-1}||, which goes to 0 as the copy converges (Theorem 2)."""
    seconds: float

    @property
    def theta(self) -> np.ndarray:
        """The copy's parameters."""
        return self.trained.theta


def sequential(
    draw: Callable[[int, np.ndarray], SampleSet],
    theta: np.ndarray,
    *,
    select: Select,
    memory: Memory,
    train: Train,
    after: Step | None = None,
) -> Iterator[Step]:
    """Yield one step per iteration, for as long as the consumer asks.

    `draw(t, theta)` gives the n freshly drawn and labelled points of iteration t, which may depend on the copy so far;
    theta are the initial parameters. With `after`, an earlier step, the loop resumes from there.

    Algorithm 1, for an original that is the sign of its only column:

    >>> from itertools import islice
    >>> from ectype import memory, selection, training
    >>> from ectype.algorithm.mlp import MLP
    >>> network, rng = MLP(1, (4,), 2), np.random.default_rng(0)
    >>> def draw(t, theta):
    ...     X = rng.normal(size=(20, 1)).astype(np.float32)
    ...     return SampleSet(X, (X[:, 0] > 0).astype(np.int32))
    >>> train = training.Trainer(network, training.plain(5))
    >>> policies = {"select": selection.keep_all, "memory": memory.Fixed(0.0), "train": train}
    >>> [(step.t, len(step.S)) for step in islice(sequential(draw, network.initial(rng), **policies), 3)]
    [(0, 20), (1, 40), (2, 60)]
    """
    if after is None:
        clock = perf_counter()
        S = draw(0, theta)
        trained = train(theta, S, 0.0, 0)
        after = Step(0, S, 0.0, trained, 0, _distance(trained.theta, theta), perf_counter() - clock)
        yield after
    S, trained, lam = after.S, after.trained, after.lam if after.t else memory.initial
    for t in count(after.t + 1):
        clock = perf_counter()
        theta, S_before, fresh = trained.theta, S, draw(t, trained.theta)
        S = select(theta, S_before, fresh, t)  # Algorithm 2
        lam = memory(lam, len(S), len(S_before))  # automatic lambda
        trained = train(theta, S, lam, t)  # Algorithm 4
        dropped = len(S_before) + len(fresh) - len(S)
        yield Step(t, S, lam, trained, dropped, _distance(trained.theta, theta), perf_counter() - clock)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a.astype(np.float64) - b))
