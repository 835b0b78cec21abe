"""Knowledge distillation for families without a warm start: a teacher labels unlabelled rows, which cost no query.

Whether that pays depends on the original. A network that has learned a smooth boundary teaches a tree more than the
paid points alone can; of an original made of trees, it has lost what another tree would have found. So held-out rows
choose the teacher, or none.
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
# The teachers: an ensemble of networks, boosting fitted to the answers, or the mean of both.
TEACHERS = (MLP, "boosting", "both")
# Networks in the ensemble beside the one that chose the queries: an ensemble errs less often than one network.
BESIDE = 3
# Unlabelled rows that a teacher labels for a network.
RELAYED = 20_000
# No limit on unlabelled rows beyond that of each family.
ANY = 2**62
# One in so many paid points goes to a validation set, where nothing else was held out.
HOLD_BACK = 5
# Boosting that is not converted to arrays.
AS_FITTED = replace(FITTED["boosting"], model=Fitted)


@dataclass(frozen=True)
class Effort:
    """How much training goes into families without a warm start."""

    relay_steps: int = 20_000
    """Training steps of a student network."""
    beside_steps: int = 12_000
    """Training steps of each further teacher network."""
    rounds: int = ROUNDS
    """Boosting rounds."""
    free_rows: int = ANY
    """The most unlabelled rows that any student learns from."""


@dataclass(frozen=True)
class Candidate:
    """A model that may be handed out: its family, its teacher, and its fidelity on held-out rows."""

    family: str
    teacher: str
    model: Model
    fidelity: float

    @property
    def size(self) -> int:
        """The bytes that it takes when saved."""
        return size_of(self.model)

    def as_json(self) -> dict[str, Any]:
        """What run.json says of it."""
        return {"family": self.family, "teacher": self.teacher, "fidelity": self.fidelity, "bytes": self.size}


@dataclass(frozen=True)
class Workshop:
    """What models are made from: the paid points, the network that chose them, and any number of unlabelled rows."""

    paid: Samples
    network: Model
    free: Callable[[int], np.ndarray]
    train: Callable[[Samples], Model]
    """Trains a network on points, warm-started from that network."""
    another: Callable[[Samples, int], Model]
    """Trains a network on points from scratch; the number seeds its parameters."""
    limits: Limits
    seed: int
    others: Mapping[str, Family] = field(default_factory=lambda: FITTED)
    """How families other than networks are fitted."""
    free_rows: int = ANY
    """The most unlabelled rows that any student learns from."""

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return self.network.n_c

    def fitted(self, family: str, points: Samples) -> Model:
        """A model of the family, fitted to these points."""
        if family == MLP:
            return self.train(points)
        return fit(self.others[family], points.X, points.y, self.n_c, self.limits, self.seed)

    @cached_property
    def networks(self) -> list[Model]:
        """The ensemble: the network that chose the queries, and others trained on all the answers."""
        return [self.network, *(self.another(self.paid, k) for k in range(BESIDE))]

    @cached_property
    def boosting(self) -> Model:
        """Boosting fitted to the paid points, as a scikit-learn estimator: faster than our arrays on many rows."""
        return fit(AS_FITTED, self.paid.X, self.paid.y, self.n_c, self._unlimited, self.seed)

    @property
    def _unlimited(self) -> Limits:
        """No limits but the boosting rounds."""
        return Limits(rounds=self.limits.rounds)

    def alone(self, family: str) -> Model:
        """A model of the family, fitted to the paid points alone."""
        if family == MLP:
            return self.network
        if family == "boosting" and self.limits == self._unlimited and isinstance(self.boosting, Fitted):
            return of_boosting(self.boosting.estimator, self.n_c)
        return self.fitted(family, self.paid)

    def taught(self, family: str, lesson: Samples) -> Model:
        """A student: a model of the family, fitted to the paid points and as many rows of a lesson as it can use."""
        return self.fitted(family, self.paid | lesson.where(np.arange(len(lesson)) < self.usable(family)))

    def usable(self, family: str) -> int:
        """How many unlabelled rows a student of the family learns from."""
        return min(self.free_rows, RELAYED if family == MLP else self.others[family].relayed)

    def answers(self, teacher: str, X: np.ndarray) -> np.ndarray:
        """The labels, as codes, that a teacher gives to rows."""
        said = [] if teacher == "boosting" else [np.mean([one.probabilities(X) for one in self.networks], axis=0)]
        if teacher != MLP:
            said.append(self.boosting.probabilities(X))
        return np.mean(said, axis=0).argmax(axis=1)

    def lesson(self, teacher: str, families: Sequence[str]) -> Samples:
        """Unlabelled rows with a teacher's labels, as many as any of these families can use."""
        X = self.free(max(map(self.usable, families)))
        return Samples(X, self.answers(teacher, X))

    def again(self, candidate: Candidate) -> Model:
        """The candidate fitted again, to all paid points."""
        if candidate.teacher == NOBODY:
            return self.alone(candidate.family)
        return self.taught(candidate.family, self.lesson(candidate.teacher, [candidate.family]))


class Relay:
    """Distillation from the teacher that does best on held-out rows."""

    def __init__(self, workshop: Workshop, held_out: Samples, families: Sequence[str]):
        self.held_out = held_out
        self.best = max(TEACHERS, key=lambda name: self._agrees(workshop.answers(name, held_out.X)))
        self.lesson = workshop.lesson(self.best, families)

    def candidates(self, family: str, workshop: Workshop) -> list[Candidate]:
        """Two models of the family, made in this workshop: one from the paid points alone, and a student."""
        models = {NOBODY: workshop.alone(family)}
        if family != self.best or family == MLP:  # boosting gains nothing from itself
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
    """The candidate to hand out, and all candidates, that one first.

    It is the smallest that reaches the target, if any does, else the most faithful on the held-out rows. `refused` says
    why a candidate is not allowed. Without held-out rows, every fifth paid point is a validation set for the choice,
    and the chosen candidate is fitted again to all of them.
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
    """How many models might have been handed out: what a Bonferroni correction divides by.

    >>> outcomes(["tree"]), outcomes(["boosting", "tree"])
    (4, 7)
    """
    return sum(1 + len(TEACHERS) - (family == "boosting") for family in families)
