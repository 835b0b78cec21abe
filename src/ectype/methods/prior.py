"""What is known before the first query: answers, rows to begin with, an earlier run, labels, and a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ectype.algorithm.sample_set import SampleSet
from ectype.methods.acquisition import SHARE
from ectype.methods.earlier_run import EarlierRun
from ectype.methods.user_rows import UserRows
from ectype.original import LabelledRows, Labels
from ectype.plan.plan import Plan
from ectype.queries import DRIFT_TEST_FACTOR, PriorAnswers

# How many given answers are asked for again, to see whether the original is the same.
AGAIN = 16


@dataclass(frozen=True)
class Prior:
    """What a run knows before its first query. A first copy of an original knows nothing: `Prior()`."""

    answers: PriorAnswers | None = None
    """Answers that were paid for before. They are points of the first round, once a few of them were asked again."""
    again: int = AGAIN
    """How many of them are asked again."""
    deterministic: bool = False
    """Whether the original always answers alike, so that a single answer that differs is another original's."""
    user_rows: UserRows | None = None
    """Rows of the user's own."""
    opening: np.ndarray | None = None
    """Rows to begin with, instead of random ones."""
    held_out: np.ndarray | None = None
    """Rows to certify the copy with, before fresh ones are drawn."""
    earlier: EarlierRun | None = None
    """A run of the same original before it changed."""
    labels: Labels | None = None
    """The labels that are known."""
    margin_share: float = SHARE
    """The share of a batch that margin sampling chooses."""
    seed: tuple[int, ...] = ()
    """Appended to the parts of every random stream, so that rows differ from those of the runs that were before."""

    @property
    def told(self) -> LabelledRows | None:
        """The given rows and answers, for the run's ledger."""
        return None if self.answers is None else self.answers.labelled_rows

    @property
    def rechecks(self) -> int:
        """The most given answers that are asked for again; as many at most are asked once more."""
        return 0 if self.answers is None else min(DRIFT_TEST_FACTOR * self.again, len(self.answers))

    def random_first(self, plan: Plan) -> int:
        """The random queries before active learning begins; none, where the rows to begin with are random ones."""
        return plan.ask.random_first if self.opening is None else 0

    def training_queries(self, plan: Plan) -> int:
        """The most training queries."""
        return plan.ask.queries if self.opening is None else len(self.opening) + sum(plan.ask.sizes[1:])

    def knowing(self, labels: Labels) -> Prior:
        """The same with these labels, and those of the earlier copy."""
        if self.earlier is None:
            return replace(self, labels=labels)
        return replace(self, labels=Labels([*labels.classes.tolist(), *self.earlier.classes.classes.tolist()]))

    def with_hints(self, points: SampleSet, labels: Labels) -> SampleSet:
        """Points for quick models that help to choose: beside the earlier rows, with the likeliest answers of today."""
        return points if self.earlier is None else self.earlier.with_hints(points, labels)

    def with_lessons(self, points: SampleSet, labels: Labels) -> SampleSet:
        """Points that copies are made of: beside the earlier rows, with the probabilities of today's answers."""
        return points if self.earlier is None else self.earlier.with_lessons(points, labels)
