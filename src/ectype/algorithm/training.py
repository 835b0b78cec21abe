"""Step 2 of the paper: fit the copy to the sample set (Algorithms 3 and 4), for as long as a schedule says.

>>> steps(200).in_all(n=1000, batch=32), plain(10).in_all(n=1000, batch=32)
(200, 320)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ectype._kernel import KernelTraining, RowGroups, TrainingMethod
from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.uncertainty import rho
from ectype.errors import SettingError
from ectype.rng import Stream, stream

__all__ = ["PLAIN", "Schedule", "Train", "Trained", "Trainer", "annealed", "plain", "staged", "steps"]

# Places by which groups of rows are drawn, for every class.
SLOTS = 32


class Schedule(NamedTuple):
    """How long a round trains: Algorithm 3 with early stopping as its capacity control.

    Stage k trains until the risk falls below its bound eps_k, or its capacity Omega_k (in epochs) is used up. Then the
    bound halves towards `epsilon`, the capacity doubles, and a new stage starts from where the last one ended. A round
    ends when the risk is below `epsilon`, or after `epochs` in all. The step size has a linear warm-up over the first
    `warm` steps of a stage, is then constant, and falls to zero by cosine annealing over the last share `anneal` of the
    epochs. An epoch is a pass over the sample set, unless `steps` says how many steps it has, and `last` how many in
    the last round of a run.
    """

    epochs: int
    epsilon: float = -1.0
    bound: float = -1.0
    capacity: int = 2**30
    look_every: int = 2**30
    anneal: float = 0.0
    steps: int = 0
    last: int = 0
    warm: int = 0

    def of_round(self, last: bool) -> Schedule:
        """The schedule of a round, which may be the last."""
        return self._replace(steps=self.last) if last and self.last else self

    def in_all(self, n: int, batch: int) -> int:
        """The steps of a round with n points that runs all of its epochs."""
        return self.epochs * (self.steps or -(-n // batch))


def plain(epochs: int = 1000) -> Schedule:
    """The setting of the paper's experiments: a fixed number of epochs, whatever the risk."""
    return Schedule(epochs)


def annealed(epochs: int = 1000) -> Schedule:
    """A fixed number of epochs, with a step size that falls to zero over them.

    A constant step leaves each round wherever its last noisy step landed; research/tuning.md has the cost.
    """
    return Schedule(epochs, anneal=1.0)


def steps(n: int, last: int = 0, anneal: float = 1.0, warm: int = 0) -> Schedule:
    """A fixed number of steps, whatever the number of points: a round costs the same early and late in a run.

    `last` is the number for the last round of a run: earlier rounds only have to find out where to ask.
    """
    return Schedule(1, anneal=anneal, steps=n, last=last, warm=warm)


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

    def __call__(self, theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
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
    penalty: str = "bounded"
    """The memory term between parameters: "bounded", "norm", or "none"."""
    rehearse: Callable[[int], np.ndarray] | None = None
    loss: str = "rho"
    batch: int = 32
    balanced: bool = True
    order: str = "drawn"
    """Rows drawn with replacement, or "shuffled": each once before any comes again."""
    rate: float = 5e-4
    adam_epsilon: float = 1e-8
    decay: float = 0.0
    seed: int = 0
    last: int = 2**31
    """The round that is the last of a run, where that is known: it may take longer."""

    def __call__(self, theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
        """Fit the copy to S, from theta."""
        if len(S) == 0:  # everything is compressed: nothing to learn
            return Trained(theta, 0.0, 0.0, 0, 0)
        schedule = self.schedule.of_round(last=t == self.last)
        if schedule.in_all(len(S), self.batch) >= 2**31:
            found = f"{schedule.epochs} epochs of {schedule.steps or len(S)}"
            raise SettingError("schedule", "fewer than 2**31 steps a round", found, "train for fewer epochs")
        trained = self._staged(theta, S, self._training(theta, S, lam, t, schedule), schedule)
        if not np.isfinite(trained.risk):
            hint = "lower memory, or the step size, or describe the inputs in a space of their own scale"
            raise SettingError("training", "a finite risk", trained.risk, hint)
        return trained

    def _staged(self, theta: np.ndarray, S: SampleSet, training: KernelTraining, schedule: Schedule) -> Trained:
        """Algorithm 3: bounds halve and capacities double from stage to stage, until the risk is low enough."""
        bound, capacity, used, epochs, stages = schedule.bound, schedule.capacity, 0, 0, 0
        per_epoch = schedule.in_all(len(S), self.batch) // schedule.epochs
        # The risk before the round may end it, where there is a risk to end it.
        risk, mean_rho = self._risk(theta, S) if schedule.epsilon > 0 else (np.inf, np.inf)
        while risk >= schedule.epsilon and epochs < schedule.epochs:
            look = min(schedule.look_every, schedule.epochs - epochs, capacity - used)
            training.run(look * per_epoch)
            theta = training.theta
            risk, mean_rho = self._risk(theta, S)
            used, epochs = used + look, epochs + look
            if risk < bound or used >= capacity:
                training.restart()
                used, stages = 0, stages + 1
                bound, capacity = max(bound / 2, schedule.epsilon), 2 * min(capacity, 2**29)
        return Trained(theta, risk, mean_rho, epochs, stages)

    def _training(self, theta: np.ndarray, S: SampleSet, lam: float, t: int, schedule: Schedule) -> KernelTraining:
        """A round that is about to begin."""
        points, groups = self._with_rehearsed(theta, S, lam, t)
        method = TrainingMethod(
            batch=self.batch,
            rate=self.rate,
            loss=self.loss,
            order=self.order,
            penalty="none" if self.rehearse else self.penalty,
            lam=0.0 if self.rehearse else lam,
            epsilon=self.adam_epsilon,
            decay=self.decay,
            anneal=schedule.anneal,
            warm=schedule.warm,
        )
        seed = int(stream(self.seed, Stream.BATCHES, t).integers(2**63))
        steps = schedule.in_all(len(S), self.batch)
        return KernelTraining(
            self.network.widths, theta, points.X, points.targets, method, steps=steps, groups=groups, seed=seed
        )

    def _with_rehearsed(self, theta: np.ndarray, S: SampleSet, lam: float, t: int) -> tuple[SampleSet, RowGroups]:
        """S, sorted by class, then what is rehearsed; and how often each part is drawn."""
        order = np.argsort(S.y, kind="stable")
        points = S.where(order)
        groups = RowGroups.of(np.bincount(S.y) if self.balanced else np.array([len(S)]))
        if self.rehearse is None or not lam:
            return points, groups
        rows = self.rehearse(t)
        answers = self.network.probabilities(theta, rows).argmax(axis=1)
        places = SLOTS * self.network.n_c
        return points | SampleSet(rows, answers.astype(np.int32)), groups.beside(len(S), len(rows), lam, places)

    def _risk(self, theta: np.ndarray, S: SampleSet) -> tuple[float, float]:
        """The risk of S, and the mean of rho."""
        values = rho(self.network.probabilities(theta, S.X), S.y)
        return float(np.mean(values**2)), float(np.mean(values))
