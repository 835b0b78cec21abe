"""What every copying method is: it asks, learns and repeats, as a generator of rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ectype.algorithm.mlp import Network
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.sequential import Step
from ectype.methods.asker import RoundAsker
from ectype.methods.prior import Prior
from ectype.methods.training_points import TrainingAnswers
from ectype.models.base import Model
from ectype.original import Labels
from ectype.plan.plan import Plan


@dataclass(frozen=True)
class Round:
    """The state after a round."""

    step: Step
    """The state of the loop, with what it was trained on and how far it moved."""
    labels: Labels
    """The labels known by now."""
    network: Network
    chooser: Model
    """What chooses the next rows."""
    answers: TrainingAnswers | None = None
    """All answers, for copies of other families; none under a bound on memory."""
    blend: Model | None = None
    """The copy, or the teacher of one, where the method makes it itself."""
    spared: float = 0.0
    """The training seconds of a round that was restored from the ledger."""

    @property
    def t(self) -> int:
        """The number of the round, from 0."""
        return self.step.t

    @property
    def points(self) -> SampleSet:
        """The points that there are: all that were paid for or given, or under a bound on memory those kept."""
        return self.step.S if self.answers is None else self.answers.points(self.labels)

    @property
    def emphasised_points(self) -> SampleSet:
        """The points that copies are made of: those of the user's own rows count as much as all others do."""
        return self.step.S if self.answers is None else self.answers.emphasised_points(self.labels)


Method: TypeAlias = Callable[[Plan, Prior, RoundAsker], Iterator[Round]]
