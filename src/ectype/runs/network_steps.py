"""The loop of a run: Algorithm 5 according to the plan; new labels widen the network, rounds are checkpointed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np

from ectype._common.bounded_io import UNREADABLE, check_type
from ectype.algorithm.mlp import Network
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.sequential import Step, sequential
from ectype.algorithm.training import Train, Trained
from ectype.errors import IntegrityError
from ectype.ledger import Ledger
from ectype.original import LabelledRows, Labels
from ectype.runs.query_session import QuerySession
from ectype.types import Json


class _NewLabelError(Exception):
    """A label turned up that no earlier answer had, and that nobody declared."""


class Loop:
    """One step per round, for as long as the consumer asks; `labels` and `network` are the current ones.

    `_latest` is the number of the round, with its encoded rows and answers.
    """

    def __init__(self, inquiry: QuerySession, labels: Labels, first: LabelledRows, ledger: Ledger | None = None):
        self.inquiry, self.plan, self.start, self.labels = inquiry, inquiry.plan, inquiry.start, labels
        self.ledger = ledger
        self.spared: dict[int, float] = {}
        """The training seconds of rounds that were restored from the ledger."""
        self._latest: tuple[int, LabelledRows] = 0, (inquiry.view(first[0]), first[1])
        self.network, self._theta = self.start.network(inquiry, labels)

    def __iter__(self) -> Iterator[Step]:
        """A label that is new gives the network one more output, and the loop resumes."""
        latest: Step | None = None
        while True:
            select, memory, train = self.start.policies(self)
            train = self._remembered(train)
            try:
                for step in sequential(
                    self._drawn, self._theta, select=select, memory=memory, train=train, after=latest
                ):
                    latest = step
                    yield step
            except _NewLabelError:
                assert latest is not None  # the first answers are known before the loop begins
                latest = self._widened(latest)

    def points(self, step: Step) -> SampleSet:
        """The paid points that there are after a round: all of them, or under a bound on memory those kept."""
        return step.S if self.plan.bounded else self.inquiry.paid(self.labels)

    def _drawn(self, t: int, theta: np.ndarray) -> SampleSet:
        """The points of round t; asked once, even if the loop restarts."""
        if self._latest[0] != t:
            self._latest = t, self.inquiry.next(t, Network(self.network, theta), self.labels)
        told = self._latest[1]
        if self.inquiry.original.declared is None and (self.labels.find(told[1].labels) < 0).any():
            raise _NewLabelError
        return self.inquiry.points([told], self.labels)

    def _widened(self, step: Step) -> Step:
        """The step with a network that is widened to the new labels."""
        before, found = self.labels, self._latest[1][1].labels
        self.labels = Labels([*before.classes.tolist(), *found.tolist()])
        places = self.labels.encode(before.classes)
        self.network, theta = self.network.widened(step.theta, places, len(self.labels))
        self.inquiry.learned = self.inquiry.learned.widened(places)
        return replace(step, S=SampleSet(step.S.X, places[step.S.y]), trained=step.trained._replace(theta=theta))

    def _remembered(self, train: Train) -> Train:
        """A training policy with checkpoints: rounds are restored from the ledger if it has them, else stored there."""
        ledger = self.ledger
        if ledger is None:
            return train

        def remembered(theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
            # A blend that learns is not in the ledger: it is made again, by the same answers to the same bits.
            known = None if self.plan.bounded else ledger.round(t)
            if known is not None:
                restored, self.spared[t] = _restored(ledger, t, known, len(theta))
                return restored
            clock = perf_counter()
            trained = train(theta, S, lam, t)
            about = {key: value for key, value in trained._asdict().items() if key != "theta"}
            ledger.keep_round(t, trained.theta, {**about, "seconds": perf_counter() - clock})
            return trained

        return remembered


def _restored(ledger: Ledger, t: int, known: tuple[np.ndarray, Json], size: int) -> tuple[Trained, float]:
    """A round as it was trained, and the seconds that it took."""
    theta, about = known
    try:
        seconds, trained = about.pop("seconds"), Trained(theta=theta, **about)
        check_type(trained, Trained, f"round {t}")
        check_type(seconds, float, f"round {t}: seconds")
        if len(theta) != size:
            raise ValueError(f"{len(theta)} parameters for a network of {size}")
    except UNREADABLE as error:
        hint = "restore it from a backup, or copy again in another directory"
        raise IntegrityError(str(ledger.path), "the rounds of this run", str(error), hint) from error
    return trained, seconds
