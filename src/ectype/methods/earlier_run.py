"""What a run of the original before it changed says of the original as it is now."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ectype.algorithm.mlp import MLP, Network
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.training import Train, Trained, Trainer
from ectype.models.base import Model
from ectype.models.blend import BLEND, FAMILIES
from ectype.models.families import FamilyLimits, fit
from ectype.models.label_transfer import LabelTransfer
from ectype.original import Labels
from ectype.plan.plan import Plan

# The step size relative to a first run's: fine-tuning takes shorter steps.
SHORTER = 0.25


@dataclass(frozen=True)
class EarlierRun:
    """A network to start from, and answers of which most still hold.

    `ectype.models.label_transfer` finds out which, by the answers of today.
    """

    plan: Plan
    """Of the run that starts from it."""
    network: Network
    classes: Labels
    """Those of its copy and its network."""
    X: np.ndarray
    """The encoded rows that taught it."""
    answers: np.ndarray
    """The labels that they had."""
    copy: Model | None = None
    """Its copy, if that is a blend that may teach; else one is made of its answers."""
    _transfers: dict[int, LabelTransfer] = field(default_factory=dict, repr=False)
    """What was learned from it, by today's number of classes."""

    def start(self, labels: Labels) -> tuple[MLP, np.ndarray]:
        """Its network, with outputs for new labels."""
        return self.network.mlp.widened(self.network.theta, labels.encode(self.classes.classes), len(labels))

    def trainer(self, usual: Trainer, labels: Labels) -> Train:
        """Training on today's answers, and on the earlier ones that seem still right."""
        shorter = replace(usual, rate=SHORTER * usual.rate)

        def train(theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
            transfers = len(self.answers) and not self.plan.make.network
            old = self._transfer(labels).quickly(S) if transfers else self._still_right(shorter, S, t, labels)
            # Today's answers have double weight: they are known to be right.
            return shorter(theta, old | S | S, lam, t)

        return train

    def with_hints(self, points: SampleSet, labels: Labels) -> SampleSet:
        """Today's points, and the earlier rows with the answers that they seem to have today."""
        if not len(self.answers) or self.plan.make.network:
            return points
        return self._transfer(labels).quickly(points) | points

    def with_lessons(self, points: SampleSet, labels: Labels) -> SampleSet:
        """Today's points, and the earlier rows with the probabilities of the answers that they have today."""
        return self._transfer(labels).carefully(points) | points if len(self.answers) else points

    def _still_right(self, train: Trainer, S: SampleSet, t: int, labels: Labels) -> SampleSet:
        """The earlier answers that its network predicts too, once it was trained on today's answers alone."""
        mlp, theta = self.start(labels)
        network, old = Network(mlp, train(theta, S, 0.0, t).theta), self._points(labels)
        return old.where(network.probabilities(old.X).argmax(axis=1) == old.y)

    def _points(self, labels: Labels) -> SampleSet:
        return SampleSet(self.X, labels.encode(self.answers))

    def _transfer(self, labels: Labels) -> LabelTransfer:
        n_c, effort, seed = len(labels), self.plan.make.capacity, self.plan.asked.seed
        if n_c not in self._transfers:
            old, places = self._points(labels), labels.encode(self.classes.classes)
            self._transfers[n_c] = LabelTransfer(old, self._teacher(), places, n_c, effort, seed)
        return self._transfers[n_c]

    def _teacher(self) -> Model:
        if self.copy is not None:
            return self.copy
        old, limits = self._points(self.classes), FamilyLimits(effort=self.plan.make.capacity)
        return fit(FAMILIES[BLEND], old.X, old.y, len(self.classes), limits, self.plan.asked.seed)
