"""Answers as points to learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ectype.algorithm.sample_set import SampleSet
from ectype.original import Answers, LabelledRows, Labels, concatenate

# How often each of the user's own rows counts at the most.
EMPHASIS = 3


@dataclass(frozen=True)
class LabelledBatch:
    """The encoded rows of a round, and what the original answered."""

    X: np.ndarray
    answers: Answers
    own: int = 0
    """How many of them, the last ones, are rows of the user's own."""

    def __len__(self) -> int:
        return len(self.X)

    @property
    def told(self) -> LabelledRows:
        """Rows and answers."""
        return self.X, self.answers

    @property
    def told_of_own(self) -> LabelledRows:
        """The user's own rows, and the answers to them."""
        scores = None if self.answers.scores is None else self.answers.scores[-self.own :]
        return self.X[-self.own :], Answers(self.answers.labels[-self.own :], scores)


@dataclass(frozen=True)
class TrainingAnswers:
    """All answers of a run that a copy may learn from, batch by batch, and the labels that the original declares."""

    declared: Labels | None
    batches: tuple[LabelledBatch, ...] = ()

    def plus(self, batch: LabelledBatch) -> TrainingAnswers:
        """The same with one more batch."""
        return replace(self, batches=(*self.batches, batch))

    def points(self, labels: Labels, latest: int | None = None) -> SampleSet:
        """The points of all batches, or of the latest ones."""
        chosen = self.batches if latest is None else self.batches[-latest:]
        return points([batch.told for batch in chosen], labels, self.declared)

    def emphasised_points(self, labels: Labels) -> SampleSet:
        """All points, with those of the user's own rows so often that they count as much as all others do."""
        own = [batch.told_of_own for batch in self.batches if batch.own]
        found = self.points(labels)
        return emphasise(found, points(own, labels, self.declared)) if own else found


def points(told: Iterable[LabelledRows], labels: Labels, declared: Labels | None) -> SampleSet:
    """Encoded rows and what was said to them, in terms of these labels; scores are of the declared ones.

    A copy may know labels that the original no longer gives: they have a probability of zero.

    >>> from ectype.original import Answers
    >>> said = Answers(np.array(["no"]), np.array([[0.75, 0.25]], np.float32))
    >>> points([(np.zeros((1, 2)), said)], Labels(["maybe", "no", "yes"]), Labels(["no", "yes"])).p.tolist()
    [[0.0, 0.75, 0.25]]
    """
    X, said = concatenate(told)
    return SampleSet(X, labels.encode(said.labels), _placed(said.scores, labels, declared))


def emphasise(paid: SampleSet, own: SampleSet) -> SampleSet:
    """The points, with those of the user's own rows so often that they count as much as all others do."""
    for _ in range(emphasis(len(paid) - len(own), len(own)) - 1):
        paid = paid | own
    return paid


def emphasis(others: int, own: int) -> int:
    """How often every one of the user's own rows counts, beside so many others.

    >>> emphasis(2250, 750), emphasis(500, 500), emphasis(2900, 100)
    (3, 1, 3)
    """
    return max(1, min(EMPHASIS, round(others / own)))


def _placed(scores: np.ndarray | None, labels: Labels, declared: Labels | None) -> np.ndarray | None:
    if scores is None or declared is None or len(declared) == len(labels):
        return scores
    placed = np.zeros((len(scores), len(labels)), scores.dtype)
    placed[:, labels.encode(declared.classes)] = scores
    return placed
