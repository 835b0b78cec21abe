"""Knowledge distillation (Hinton, Vinyals and Dean, Distilling the knowledge in a neural network, 2015).

The teacher is a blend of all that the answers allow. A student learns from the answers, and from the teacher's
probabilities for a transfer set: unlabelled rows, which cost no query. No temperature is raised, since the blend is
calibrated; families that learn from labels alone get the likeliest.

What the user may ship is often less than the blend: a tree, a linear model, a small network. Whether the blend helps
it depends on the original, so held-out rows choose between a student and a model of the answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ectype.algorithm.sample_set import SampleSet
from ectype.errors import SettingError
from ectype.models.base import Model, size_of
from ectype.models.blend import BLEND, FAMILIES, Blend, duplicate_groups
from ectype.models.families import Family, FamilyLimits, fit
from ectype.models.temperature import calibrate, fit_temperature, temper
from ectype.progress import report_activity

NO_TEACHER = "nobody"
# Unlabelled rows that calibrate a copy.
CALIBRATING = 2000
# One in so many paid points goes to a validation set, where nothing else was held out.
HOLD_BACK = 5


@dataclass(frozen=True)
class Candidate:
    """A model to choose from: its family, its teacher, and its fidelity on held-out rows."""

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
class FitContext:
    """What models are fitted to: the paid points, and any number of unlabelled rows."""

    paid: SampleSet
    n_c: int
    free: Callable[[int], np.ndarray]
    limits: FamilyLimits
    seed: int
    families: Mapping[str, Family] = field(default_factory=lambda: FAMILIES)
    known: Mapping[str, Model] = field(default_factory=dict)
    """Models that were fitted already: to the paid points alone, or to others too, which are gone."""
    worth: float = 1.0
    """How many labels an answer is worth."""
    shared: FitContext | None = None
    """A context over the same points, whose blend and transfer set are used instead of making them again."""

    def fit_direct(self, family: str) -> Model:
        """A model of the family, fitted to the paid points alone."""
        if family in self.known:
            return self.known[family]
        if family == BLEND:
            return self.teacher
        return self._fit_to_answers(family, self.limits)

    @cached_property
    def teacher(self) -> Model:
        """The blend of all that the answers allow, whatever the limits."""
        if self.shared is not None:
            return self.shared.teacher
        if BLEND in self.known:
            return self.known[BLEND]
        report_activity("making the blend that teaches")
        found = self._fit_to_answers(BLEND, FamilyLimits(effort=self.limits.effort))
        return replace(found, powers=found.powers / self._power) if isinstance(found, Blend) else found

    def _fit_to_answers(self, family: str, limits: FamilyLimits) -> Model:
        """A model of the paid points, with the effort that they are worth: with scores, there is more to learn."""
        limits = replace(limits, effort=replace(limits.effort, worth=self.worth))
        labels = self.paid.y if self.paid.p is None else temper(self.paid.p, self._power)
        return fit(self.families[family], self.paid.X, labels, self.n_c, limits, self.seed)

    @cached_property
    def _power(self) -> float:
        """The power of the scores that models learn; the blend's own powers undo it."""
        return fit_temperature(self.paid.p) if self.worth > 1 and self.paid.p is not None else 1.0

    @cached_property
    def transfer_set(self) -> tuple[np.ndarray, np.ndarray]:
        """Unlabelled rows with the blend's probabilities: as many as any family can use, then some for calibration."""
        if self.shared is not None:
            return self.shared.transfer_set
        X = self.free(max(map(self.usable, self.families)) + CALIBRATING)
        report_activity(f"the blend labels {len(X)} rows")
        return X, self.teacher.probabilities(X)

    def fit_student(self, family: str) -> Model:
        """A student: a model of the family, fitted to the paid points and to part of the transfer set."""
        n = self.usable(family)
        X, p = (part[:n] for part in self.transfer_set)
        rows = np.concatenate([self.paid.X, X])
        labels = np.concatenate([self.paid.soft(self.n_c), p.astype(np.float32)])
        return fit(self.families[family], rows, temper(labels, self._power), self.n_c, self.limits, self.seed)

    def calibrate(self, family: str, model: Model) -> Model:
        """A model of a family whose probabilities follow the blend's, which is calibrated by itself.

        A classifier of the user's own keeps the probabilities that it has.
        """
        if family == BLEND or family not in FAMILIES:
            return model
        X, p = (part[-CALIBRATING:] for part in self.transfer_set)
        return calibrate(model, X, p)

    def usable(self, family: str) -> int:
        """How many unlabelled rows a student of the family learns from."""
        return min(self.limits.effort.free_rows, self.families[family].student_rows)

    def fit(self, family: str, teacher: str) -> Model:
        """A model of the family, with or without a teacher."""
        return self.fit_direct(family) if teacher == NO_TEACHER else self.fit_student(family)

    def candidates(self, family: str, held_out: SampleSet, place: str = "") -> list[Candidate]:
        """Models of the family with every teacher that it may have, measured on held-out rows.

        `place` begins the messages of progress: which family of how many it is.
        """
        made = dict[str, Model]()
        for teacher in teachers(family):
            report_activity(f"{place}fitting a {family}" if teacher == NO_TEACHER else f"{place}teaching a {family}")
            made[teacher] = self.fit(family, teacher)
        return [Candidate(family, name, model, _agrees(model, held_out)) for name, model in made.items()]


def teachers(family: str) -> tuple[str, ...]:
    """The teachers that a family may have: none, or the blend, which does not teach itself."""
    return (NO_TEACHER,) if family == BLEND else (NO_TEACHER, BLEND)


def _agrees(model: Model, held_out: SampleSet) -> float:
    return float((model.probabilities(held_out.X).argmax(axis=1) == held_out.y).mean()) if len(held_out) else 0.0


def choose(
    families: Sequence[str],
    context: FitContext,
    held_out: SampleSet,
    reaches: Callable[[float], bool] | None = None,
    refused: Callable[[Candidate], str | None] = lambda candidate: None,
) -> tuple[Candidate, list[Candidate]]:
    """The best candidate, and all candidates, that one first.

    It is the smallest that reaches the target, if any does, else the most faithful on the held-out rows. `refused` says
    why a candidate is not allowed. Without held-out rows, every fifth paid point is a validation set for the choice,
    and the chosen candidate is fitted again to all of them.
    """
    if not len(held_out) and outcomes(families) > 1:
        back = duplicate_groups(context.paid.X) % HOLD_BACK == 0
        gone = {name: model for name, model in context.known.items() if name == BLEND}  # cannot be made again
        part = replace(context, paid=context.paid.where(~back), known=gone, shared=None)
        best, tried = choose(families, part, context.paid.where(back), reaches, refused)
        made = context.fit(best.family, best.teacher)
        return replace(best, model=context.calibrate(best.family, made)), tried
    tried = list[Candidate]()
    for k, family in enumerate(families, 1):
        place = f"family {k} of {len(families)}, " if len(families) > 1 else ""
        tried += context.candidates(family, held_out, place)
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
    others = [one for one in tried if one is not best]
    best = replace(best, model=context.calibrate(best.family, best.model))
    return best, [best, *others]


def outcomes(families: Sequence[str]) -> int:
    """How many models the choice is among, for a Bonferroni correction (Dunn, 1961) of the certificate.

    >>> outcomes(["blend"]), outcomes(["boosting", "tree"])
    (1, 4)
    """
    return sum(len(teachers(family)) for family in families)
