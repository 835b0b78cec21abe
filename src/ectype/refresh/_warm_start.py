"""The warm start of a refresh: the answers of a check, and an earlier run's copy, network and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ectype.algorithm.memory import Fixed
from ectype.algorithm.mlp import MLP, Network
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import keep_all
from ectype.algorithm.training import Trained, Trainer
from ectype.ledger import Purpose
from ectype.methods.acquisition import POLICIES, Policy, margin
from ectype.models.base import Model
from ectype.models.blend_fitting import BLEND, FAMILIES
from ectype.models.families import FamilyLimits, fit
from ectype.models.label_transfer import LabelTransfer
from ectype.original import LabelledRows, Labels, concatenate
from ectype.plan.plan import Plan
from ectype.queries import DriftTest
from ectype.rng import Stream, stream
from ectype.runs.initialisation import NoPriorAnswers, Policies
from ectype.runs.network_steps import Loop
from ectype.runs.previous_run import PreviousRun
from ectype.runs.prior_answers_start import PriorAnswersMixin
from ectype.runs.query_session import QuerySession
from ectype.types import Answered

# The step size relative to a first run's: fine-tuning takes shorter steps.
SHORTER = 0.25
# The share of a batch that margin sampling chooses: with few queries, each should be chosen well.
UNSURE = 0.9


@dataclass(frozen=True)
class WarmStart(NoPriorAnswers):
    """A run that is warm-started from an earlier one, and from the rows of a check, which are already answered."""

    past: PreviousRun
    check: DriftTest
    held_out_before: Answered
    """The earlier run's held-out rows and answers, to be asked again for this run's certificate."""
    learned: Answered
    """The earlier run's training rows and answers."""
    _known: dict[int, LabelTransfer] = field(default_factory=dict)
    """What was learned from the earlier run, by today's number of classes."""
    choices: Mapping[str, Policy] = field(default_factory=lambda: {**POLICIES, "margin": partial(margin, share=UNSURE)})

    def stream(self, seed: int, purpose: Stream, t: int) -> np.random.Generator:
        """Random numbers of its own: the earlier run used those of the seed alone."""
        return stream(seed, purpose, t, self.past.seed)

    def random_first(self, plan: Plan) -> int:
        """None: the rows of the check were random."""
        return 0

    def training_queries(self, plan: Plan) -> int:
        """The rows of the check, and the batches of all rounds after the first."""
        return len(self.check.places) + sum(plan.sizes[1:])

    def held_out(self, inquiry: QuerySession) -> Answered:
        """The earlier run's held-out rows, asked again, then fresh ones."""
        n = inquiry.plan.asked.certificate_n
        rows = self.held_out_before[0][:n]
        if not len(rows):
            return inquiry.fresh(Purpose.CERTIFICATE, n, Stream.HELD_OUT)
        again = rows, inquiry.queries.query_labels(Purpose.CERTIFICATE, rows)
        if len(rows) == n:
            return again
        more = inquiry.fresh(Purpose.CERTIFICATE, n - len(rows), Stream.MORE_HELD_OUT)
        return np.concatenate([again[0], more[0]]), np.concatenate([again[1], more[1]])

    def first(self, inquiry: QuerySession) -> LabelledRows:
        """The rows of the check, already answered."""
        rows = self.past.rows[self.check.places]
        return rows, inquiry.queries.query(Purpose.TRAINING, rows)

    def labels(self, found: Labels) -> Labels:
        """The labels found, and those of the earlier copy."""
        return Labels([*found.classes.tolist(), *self.past.result.copy.classes.tolist()])

    def network(self, inquiry: QuerySession, labels: Labels) -> tuple[MLP, np.ndarray]:
        """The earlier run's network, with outputs for new labels."""
        places = labels.encode(self.past.result.copy.classes)
        return self.past.network.mlp.widened(self.past.network.theta, places, len(labels))

    def policies(self, loop: Loop) -> Policies:
        """Keep every answer, and train on the earlier run's answers that seem still right as well."""
        train = self._trainer(loop)

        def warm(theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
            # Today's answers have double weight: they are known to be right.
            return train(theta, self._earlier(loop, S, t) | S | S, lam, t)

        return Policies(keep_all, Fixed(0.0), warm)

    def hints(self, inquiry: QuerySession, labels: Labels, paid: SampleSet) -> SampleSet:
        """The paid points, and the earlier rows with the answers that they seem to have today."""
        known = len(self.learned[1]) and not inquiry.plan.network
        return self._transfer(inquiry, labels).quickly(paid) | paid if known else paid

    def lessons(self, inquiry: QuerySession, labels: Labels, paid: SampleSet) -> SampleSet:
        """The paid points, and the earlier rows with the probabilities of the answers that they have today."""
        if not len(self.learned[1]):
            return paid
        return self._transfer(inquiry, labels).carefully(paid) | paid

    def _trainer(self, loop: Loop) -> Trainer:
        usual = loop.plan.trainer(loop.network)
        return replace(usual, rate=SHORTER * usual.rate)

    def _earlier(self, loop: Loop, S: SampleSet, t: int) -> SampleSet:
        """The earlier rows, as far as their answers of today can be told."""
        if loop.plan.network or not len(self.learned[1]):
            return self._still_right(loop, S, t)
        return self._transfer(loop.inquiry, loop.labels).quickly(S)

    def _still_right(self, loop: Loop, S: SampleSet, t: int) -> SampleSet:
        """The earlier answers that a scout predicts too: the earlier network, trained on today's answers alone."""
        _, theta = self.network(loop.inquiry, loop.labels)
        scout = Network(loop.network, self._trainer(loop)(theta, S, 0.0, t).theta)
        old = self._old(loop.inquiry, loop.labels)
        return old.where(scout.probabilities(old.X).argmax(axis=1) == old.y)

    def _old(self, inquiry: QuerySession, labels: Labels) -> SampleSet:
        return SampleSet(inquiry.view(self.learned[0]), labels.encode(self.learned[1]))

    def _transfer(self, inquiry: QuerySession, labels: Labels) -> LabelTransfer:
        """What the earlier run knows, in terms of today's labels."""
        n_c, plan = len(labels), inquiry.plan
        if n_c not in self._known:
            copy, places = self._copy(inquiry), labels.encode(self.past.result.copy.classes)
            old, effort = self._old(inquiry, labels), plan.preset.effort
            self._known[n_c] = LabelTransfer(old, copy, places, n_c, effort, plan.asked.seed)
        return self._known[n_c]

    def _copy(self, inquiry: QuerySession) -> Model:
        """The earlier copy, if it is a blend that was not selected by rows that certify this one; else a blend anew."""
        result = self.past.result
        if result.copy.model.kind == BLEND and not (result.tried and len(self.held_out_before[1])):
            return result.copy.model
        old, effort = self._old(inquiry, Labels(result.copy.classes)), inquiry.plan.preset.effort
        return fit(
            FAMILIES[BLEND],
            old.X,
            old.y,
            len(result.copy.classes),
            FamilyLimits(effort=effort),
            inquiry.plan.asked.seed,
        )


@dataclass(frozen=True)
class WarmStartWithAnswers(PriorAnswersMixin, WarmStart):
    """A warm start that is given answers of today as well: points like those that are asked for, at no cost."""

    def stream(self, seed: int, purpose: Stream, t: int) -> np.random.Generator:
        """Random numbers of its own: the answers may be those of another refresh of the same run."""
        return stream(seed, purpose, t, self.past.seed, self.known.seed)

    def first(self, inquiry: QuerySession) -> LabelledRows:
        """The answers given, and the rows of the check."""
        return concatenate([self.known.labelled_rows, super().first(inquiry)])
