"""Step 2 of the paper: fit the copy to the sample set (Algorithms 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from understudy.algorithm.memory import Penalty, bounded
from understudy.algorithm.network import MLP
from understudy.algorithm.samples import Samples
from understudy.algorithm.training import compiled, uncompiled
from understudy.algorithm.training.batches import Groups
from understudy.algorithm.training.schedule import PLAIN, Schedule
from understudy.algorithm.uncertainty import LOSSES, rho
from understudy.errors import SettingError
from understudy.streams import Stream, stream

# Slots per class in the table from which groups of rows are drawn.
SLOTS = 32
# The step size is divided by this in the last rounds.
GENTLE = 40


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
    share. Adam's moments are reset in every stage. `decay` is decoupled weight decay (AdamW): a multiple of the step
    size by which every step also shrinks theta.

    With `rehearse`, which gives unlabelled rows for round t, the memory term is not a distance between parameters but
    rehearsal: lam times the loss on those rows, with the labels that the previous copy gives them. This is knowledge
    distillation from the previous model.
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
    """The size that the sample set may grow to, where known: one program of that size serves all rounds."""
    ending: int = 2**31
    """From this round on the sample set shrinks, and steps are short, so that nothing is forgotten."""

    last: int = 2**31
    """The last round of a run, where known: it may train longer."""
    compiled: bool = True
    """Whether to compile even where NumPy could train: NumPy takes longer, but does not compile first."""

    def __call__(self, theta: np.ndarray, S: Samples, lam: float, t: int) -> Trained:
        """Fit the copy to S, from theta."""
        if len(S) == 0:  # everything is compressed: nothing to learn
            return Trained(theta, 0.0, 0.0, 0, 0)
        schedule = self.schedule.of_round(last=t == self.last)
        if schedule.in_all(len(S), self.batch) >= 2**31:
            found = f"{schedule.epochs} epochs of {schedule.steps or len(S)}"
            raise SettingError("schedule", "fewer than 2**31 steps a round", found, "train for fewer epochs")
        simple = self.loss == "cross-entropy" and (self.rehearse or not self.penalty) and not schedule.stops
        train = self._uncompiled if simple and not self.compiled else self._compiled
        trained = train(theta, S, lam, t, schedule)
        if not np.isfinite(trained.risk):
            hint = "lower memory, or the step size, or describe the inputs in a space of their own scale"
            raise SettingError("training", "a finite risk", trained.risk, hint)
        return trained

    def _compiled(self, theta: np.ndarray, S: Samples, lam: float, t: int, schedule: Schedule) -> Trained:
        """A round as one compiled program."""
        points, groups = self._with_rehearsed(theta, S, lam, t)
        size = compiled.bucket(max(len(points), self.room))
        X, y = np.zeros((size, S.X.shape[1]), np.float32), np.zeros(size, np.int32)
        X[: len(points)], y[: len(points)] = points.X, points.y
        key = np.array([self.seed & 0xFFFFFFFF, t], np.uint32)
        adam = (np.float32(self._rate(t)), np.float32(self.adam_epsilon), np.float32(self.decay))
        before = self._risk(theta, S) if schedule.epsilon > 0 else (np.inf, np.inf)  # it may end the round
        end = compiled.program()(
            compiled.Kind(self.network, LOSSES[self.loss], None if self.rehearse else self.penalty, self.batch),
            theta, X, y, np.int32(len(S)), groups, np.float32(lam), key, adam, compiled.numbers(schedule),
            tuple(map(np.float32, before)),
        )  # fmt: skip
        return Trained(np.asarray(end.theta), float(end.risk), float(end.mean_rho), int(end.epochs), int(end.k))

    def _uncompiled(self, theta: np.ndarray, S: Samples, lam: float, t: int, schedule: Schedule) -> Trained:
        """A round in NumPy."""
        points, groups = self._with_rehearsed(theta, S, lam, t)
        theta = uncompiled.train(
            self.network, theta, points, groups,
            steps=schedule.in_all(len(S), self.batch), schedule=schedule, batch=self.batch, rate=self._rate(t),
            epsilon=self.adam_epsilon, decay=self.decay, rng=stream(self.seed, Stream.BATCHES, t),
        )  # fmt: skip
        return Trained(theta, *self._risk(theta, S), schedule.epochs, 0)

    def _rate(self, t: int) -> float:
        return self.rate if t < self.ending else self.rate / GENTLE

    def _with_rehearsed(self, theta: np.ndarray, S: Samples, lam: float, t: int) -> tuple[Samples, Groups]:
        """S, sorted by class, then the rehearsed rows; and how often each part is drawn."""
        order = np.argsort(S.y, kind="stable")
        points = Samples(S.X[order], S.y[order])
        counts = np.bincount(S.y) if self.balanced else np.array([len(S)])
        groups = Groups.of(counts, SLOTS * self.network.n_c)
        if self.rehearse is None or not lam:
            return points, groups
        rows = self.rehearse(t)
        answers = self.network.probabilities(theta, rows).argmax(axis=1)
        return points | Samples(rows, answers.astype(np.int32)), groups.before(len(S), len(rows), lam)

    def _risk(self, theta: np.ndarray, S: Samples) -> tuple[float, float]:
        """The risk of S, and the mean of rho."""
        values = rho(self.network.probabilities(theta, S.X), S.y)
        return float(np.mean(values**2)), float(np.mean(values))
