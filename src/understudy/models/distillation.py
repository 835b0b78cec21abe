"""Copies of families without a warm start, by relay: a better copy labels rows that cost nothing to learn from.

Whether that pays depends on the original. A network that has learned a smooth boundary teaches a tree more than the
paid points alone can; of an original that is made of trees it has lost what another tree would have found. So the
choice of the teacher, or of none, is left to held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from understudy.algorithm.samples import Samples
from understudy.errors import SettingError
from understudy.models.base import Model, size_of
from understudy.models.families import FITTED, ROUNDS, Family, Limits, fit
from understudy.models.fitted import Fitted
from understudy.models.trees import of_boosting

NOBODY, MLP = "nobody", "mlp"
# Who may teach: networks, the one that chose the queries among them, boosting fitted to the answers, or all of these by
# their mean.
TEACHERS = (MLP, "boosting", "both")
# Networks beside the one that chose the queries: what several of them agree on is right more often than what one says.
BESIDE = 3
# Free rows that a network learns from a teacher.
RELAYED = 20_000
# No limit on free rows but what a family can make use of.
ANY = 2**62
# One in so many paid points is kept back to choose by, where nothing else was held out.
HOLD_BACK = 5
# Boosting that is not turned into arrays.
AS_FITTED = replace(FITTED["boosting"], model=Fitted)


@dataclass(frozen=True)
class Effort:
    """What goes into copies of families without a warm start."""

    relay_steps: int = 20_000
    """Steps of a network that learns from a teacher."""
    beside_steps: int = 12_000
    """Steps of a network that teaches beside the first."""
    rounds: int = ROUNDS
    """Rounds of boosting."""
    free_rows: int = ANY
    """The most free rows that any family learns from."""


@dataclass(frozen=True)
class Candidate:
    """A model that may be handed out: its family, who taught it, and how it did on held-out rows."""

    family: str
    teacher: str
    model: Model
    fidelity: float

    @property
    def size(self) -> int:
        """What it takes to write it down, in bytes."""
        return size_of(self.model)

    def as_json(self) -> dict[str, Any]:
        """What a run remembers of it."""
        return {"family": self.family, "teacher": self.teacher, "fidelity": self.fidelity, "bytes": self.size}


@dataclass(frozen=True)
class Workshop:
    """What models are made of: the paid points, the network that chose them, and rows without end that cost nothing."""

    paid: Samples
    network: Model
    free: Callable[[int], np.ndarray]
    train: Callable[[Samples], Model]
    """Trains a network on points, from the one there is."""
    another: Callable[[Samples, int], Model]
    """Trains a network on points from nothing; each number gives another."""
    limits: Limits
    seed: int
    others: Mapping[str, Family] = field(default_factory=lambda: FITTED)
    """How families beside networks are fitted."""
    free_rows: int = ANY
    """The most free rows that any family learns from."""

    @property
    def n_c(self) -> int:
        """How many classes there are."""
        return self.network.n_c

    def fitted(self, family: str, points: Samples) -> Model:
        """A model of the family, from these points."""
        if family == MLP:
            return self.train(points)
        return fit(self.others[family], points.X, points.y, self.n_c, self.limits, self.seed)

    @cached_property
    def networks(self) -> list[Model]:
        """The network that chose the queries, and others that know all the answers to them."""
        return [self.network, *(self.another(self.paid, k) for k in range(BESIDE))]

    @cached_property
    def boosting(self) -> Model:
        """Boosting fitted to the paid points as scikit-learn has it, which is faster than our arrays on many rows."""
        return fit(AS_FITTED, self.paid.X, self.paid.y, self.n_c, self._unlimited, self.seed)

    @property
    def _unlimited(self) -> Limits:
        """No limits but how long boosting goes on."""
        return Limits(rounds=self.limits.rounds)

    def alone(self, family: str) -> Model:
        """A model of the family, from the paid points and nothing else."""
        if family == MLP:
            return self.network
        if family == "boosting" and self.limits == self._unlimited and isinstance(self.boosting, Fitted):
            return of_boosting(self.boosting.estimator, self.n_c)
        return self.fitted(family, self.paid)

    def taught(self, family: str, lesson: Samples) -> Model:
        """A model of the family, from the paid points and as much of a lesson as it can use."""
        return self.fitted(family, self.paid | lesson.where(np.arange(len(lesson)) < self.usable(family)))

    def usable(self, family: str) -> int:
        """How many free rows a family can make use of."""
        return min(self.free_rows, RELAYED if family == MLP else self.others[family].relayed)

    def answers(self, teacher: str, X: np.ndarray) -> np.ndarray:
        """What a teacher says of rows."""
        said = [] if teacher == "boosting" else [np.mean([one.probabilities(X) for one in self.networks], axis=0)]
        if teacher != MLP:
            said.append(self.boosting.probabilities(X))
        return np.mean(said, axis=0).argmax(axis=1)

    def lesson(self, teacher: str, families: Sequence[str]) -> Samples:
        """What a teacher says of free rows, as many as any of these families can use."""
        X = self.free(max(map(self.usable, families)))
        return Samples(X, self.answers(teacher, X))

    def again(self, candidate: Candidate) -> Model:
        """The same once more, from all the points there are."""
        if candidate.teacher == NOBODY:
            return self.alone(candidate.family)
        return self.taught(candidate.family, self.lesson(candidate.teacher, [candidate.family]))


class Relay:
    """Whoever of the teachers does best on held-out rows, and what families make of what it says."""

    def __init__(self, workshop: Workshop, held_out: Samples, families: Sequence[str]):
        self.held_out = held_out
        self.best = max(TEACHERS, key=lambda name: self._agrees(workshop.answers(name, held_out.X)))
        self.lesson = workshop.lesson(self.best, families)

    def candidates(self, family: str, workshop: Workshop) -> list[Candidate]:
        """A model of the family from the paid points alone, and one that was taught, as the workshop makes them."""
        models = {NOBODY: workshop.alone(family)}
        if family != self.best or family == MLP:  # boosting would learn from itself what it knows
            models[self.best] = workshop.taught(family, self.lesson)
        return [
            Candidate(family, teacher, model, self._agrees(model.probabilities(self.held_out.X).argmax(axis=1)))
            for teacher, model in models.items()
        ]

    def _agrees(self, decided: np.ndarray) -> float:
        return float((decided == self.held_out.y).mean())


def choose(
    families: Sequence[str],
    workshop: Workshop,
    held_out: Samples,
    reaches: Callable[[float], bool] | None = None,
    refused: Callable[[Candidate], str | None] = lambda candidate: None,
) -> tuple[Candidate, list[Candidate]]:
    """The candidate to hand out, and all there were, that one first.

    The most faithful on the held-out rows; or the smallest of those that reach what was asked for, if any does. None
    that is `refused`, which says why. Where there are no held-out rows, every fifth paid point is kept back to choose
    by, and the choice is then made of all.
    """
    if not len(held_out):
        back = np.arange(len(workshop.paid)) % HOLD_BACK == 0
        part = replace(workshop, paid=workshop.paid.where(~back))
        best, tried = choose(families, part, workshop.paid.where(back), reaches, refused)
        return replace(best, model=workshop.again(best)), tried
    relay = Relay(workshop, held_out, families)
    tried = [one for family in families for one in relay.candidates(family, workshop)]
    reasons = [refused(one) for one in tried]
    allowed = [one for one, reason in zip(tried, reasons, strict=True) if reason is None]
    if not allowed:
        found = ", ".join(f"{one.family} with {reason}" for one, reason in zip(tried, reasons, strict=True))
        hint = "allow more, or another family"
        raise SettingError("max_bytes, max_latency", "a copy that keeps to them", found, hint)
    enough = [one for one in allowed if reaches is not None and reaches(one.fidelity)]
    if enough:
        best = min(enough, key=lambda one: (one.size, -one.fidelity))
    else:
        best = max(allowed, key=lambda one: (one.fidelity, -one.size))
    return best, [best, *(one for one in tried if one is not best)]


def outcomes(families: Sequence[str]) -> int:
    """How many models might have been handed out: what a bound has to allow for.

    >>> outcomes(["tree"]), outcomes(["boosting", "tree"])
    (4, 7)
    """
    return sum(1 + len(TEACHERS) - (family == "boosting") for family in families)
