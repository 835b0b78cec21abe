"""Knowledge distillation: a blend of all that the answers allow labels unlabelled rows, which cost no query.

What the user may ship is often less than the blend: a tree, a linear model, a small network. Whether a lesson of the
blend helps it depends on the original, so held-out rows choose between a student and a model of the answers alone.
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
from ectype.models.blend import Blend
from ectype.models.blend_fitting import BLEND, FAMILIES, duplicate_groups
from ectype.models.calibration import calibrated
from ectype.models.families import Family, FamilyLimits, fit
from ectype.models.temperature import fit_temperature, temper
from ectype.progress import report_activity

NO_TEACHER = "nobody"
# Unlabelled rows that calibrate a copy.
CALIBRATING = 2000
# One in so many paid points goes to a validation set, where nothing else was held out.
HOLD_BACK = 5


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
class FitContext:
    """What models are made from: the paid points, and any number of unlabelled rows."""

    paid: SampleSet
    n_c: int
    free: Callable[[int], np.ndarray]
    limits: FamilyLimits
    seed: int
    families: Mapping[str, Family] = field(default_factory=lambda: FAMILIES)
    known: Mapping[str, Model] = field(default_factory=dict)
    """Models that were made already: of the paid points alone, or of others too, that are gone."""
    worth: float = 1.0
    """How many labels an answer is worth."""
    lent: FitContext | None = None
    """One of the same points, whose blend and lesson are used instead of making them again."""

    def alone(self, family: str) -> Model:
        """A model of the family, fitted to the paid points alone."""
        if family in self.known:
            return self.known[family]
        if family == BLEND:
            return self.teacher
        return self._of_answers(family, self.limits)

    @cached_property
    def teacher(self) -> Model:
        """The blend of all that the answers allow, whatever the limits."""
        if self.lent is not None:
            return self.lent.teacher
        if BLEND in self.known:
            return self.known[BLEND]
        report_activity("making the blend that teaches")
        found = self._of_answers(BLEND, FamilyLimits(effort=self.limits.effort))
        return replace(found, powers=found.powers / self._power) if isinstance(found, Blend) else found

    def _of_answers(self, family: str, limits: FamilyLimits) -> Model:
        """A model of the paid points, with the effort that they are worth: with scores, there is more to learn."""
        limits = replace(limits, effort=replace(limits.effort, worth=self.worth))
        labels = self.paid.y if self.paid.p is None else temper(self.paid.p, self._power)
        return fit(self.families[family], self.paid.X, labels, self.n_c, limits, self.seed)

    @cached_property
    def _power(self) -> float:
        """The power of scores that models learn; the blend's powers take it back, to where the original's are."""
        return fit_temperature(self.paid.p) if self.worth > 1 and self.paid.p is not None else 1.0

    @cached_property
    def lesson(self) -> tuple[np.ndarray, np.ndarray]:
        """Unlabelled rows with the blend's probabilities: as many as any family can use, then some for calibration."""
        if self.lent is not None:
            return self.lent.lesson
        X = self.free(max(map(self.usable, self.families)) + CALIBRATING)
        report_activity(f"the blend labels {len(X)} rows")
        return X, self.teacher.probabilities(X)

    def taught(self, family: str) -> Model:
        """A student: a model of the family, fitted to the paid points and as many rows of the lesson as it can use."""
        n = self.usable(family)
        X, p = (part[:n] for part in self.lesson)
        rows = np.concatenate([self.paid.X, X])
        labels = np.concatenate([self.paid.soft(self.n_c), p.astype(np.float32)])
        return fit(self.families[family], rows, temper(labels, self._power), self.n_c, self.limits, self.seed)

    def calibrated(self, family: str, model: Model) -> Model:
        """A model of a family whose probabilities follow the blend's, which is calibrated by itself.

        A classifier of the user's own keeps the probabilities that it has.
        """
        if family == BLEND or family not in FAMILIES:
            return model
        X, p = (part[-CALIBRATING:] for part in self.lesson)
        return calibrated(model, X, p)

    def usable(self, family: str) -> int:
        """How many unlabelled rows a student of the family learns from."""
        return min(self.limits.effort.free_rows, self.families[family].relayed)

    def made(self, family: str, teacher: str) -> Model:
        """A model of the family, with or without a teacher."""
        return self.alone(family) if teacher == NO_TEACHER else self.taught(family)

    def candidates(self, family: str, held_out: SampleSet, place: str = "") -> list[Candidate]:
        """Models of the family with every teacher that it may have, measured on held-out rows.

        `place` says which family of how many it is, to whoever watches.
        """
        made = dict[str, Model]()
        for teacher in teachers(family):
            report_activity(f"{place}fitting a {family}" if teacher == NO_TEACHER else f"{place}teaching a {family}")
            made[teacher] = self.made(family, teacher)
        return [Candidate(family, name, model, _agrees(model, held_out)) for name, model in made.items()]


def teachers(family: str) -> tuple[str, ...]:
    """Who may teach a family: nobody, or the blend, which does not teach itself."""
    return (NO_TEACHER,) if family == BLEND else (NO_TEACHER, BLEND)


def _agrees(model: Model, held_out: SampleSet) -> float:
    return float((model.probabilities(held_out.X).argmax(axis=1) == held_out.y).mean()) if len(held_out) else 0.0


def choose(
    families: Sequence[str],
    workshop: FitContext,
    held_out: SampleSet,
    reaches: Callable[[float], bool] | None = None,
    refused: Callable[[Candidate], str | None] = lambda candidate: None,
) -> tuple[Candidate, list[Candidate]]:
    """The candidate to hand out, and all candidates, that one first.

    It is the smallest that reaches the target, if any does, else the most faithful on the held-out rows. `refused` says
    why a candidate is not allowed. Without held-out rows, every fifth paid point is a validation set for the choice,
    and the chosen candidate is fitted again to all of them.
    """
    if not len(held_out) and outcomes(families) > 1:
        back = duplicate_groups(workshop.paid.X) % HOLD_BACK == 0
        gone = {name: model for name, model in workshop.known.items() if name == BLEND}  # cannot be made again
        part = replace(workshop, paid=workshop.paid.where(~back), known=gone, lent=None)
        best, tried = choose(families, part, workshop.paid.where(back), reaches, refused)
        made = workshop.made(best.family, best.teacher)
        return replace(best, model=workshop.calibrated(best.family, made)), tried
    tried = list[Candidate]()
    for k, family in enumerate(families, 1):
        place = f"family {k} of {len(families)}, " if len(families) > 1 else ""
        tried += workshop.candidates(family, held_out, place)
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
    best = replace(best, model=workshop.calibrated(best.family, best.model))
    return best, [best, *others]


def outcomes(families: Sequence[str]) -> int:
    """How many models might have been handed out: what a Bonferroni correction divides by.

    >>> outcomes(["blend"]), outcomes(["boosting", "tree"])
    (1, 4)
    """
    return sum(len(teachers(family)) for family in families)
