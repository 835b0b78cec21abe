"""The paper's loop, fed one batch at a time: new labels widen its network, and its rounds are kept in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from ectype._common.bounded_io import UNREADABLE, check_type
from ectype.algorithm.memory import Memory
from ectype.algorithm.mlp import MLP, Network
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import Select
from ectype.algorithm.sequential import Step, sequential
from ectype.algorithm.training import Train, Trained
from ectype.errors import IntegrityError
from ectype.ledger import Ledger
from ectype.methods.asker import RoundAsker
from ectype.methods.base import Round
from ectype.methods.committee import next_committee
from ectype.methods.prior import Prior
from ectype.methods.training_points import LabelledBatch, TrainingAnswers, points
from ectype.models.base import Model
from ectype.original import Labels
from ectype.plan.plan import Plan
from ectype.rng import Stream
from ectype.types import Json


class Policies(NamedTuple):
    """What the loop is given: which points to keep, how much memory, and how to train."""

    select: Select
    memory: Memory
    train: Train


PoliciesFor = Callable[[MLP, Labels], Policies]
"""From a network and the labels of its outputs to the policies that train it."""


class NetworkSteps:
    """The steps of `ectype.algorithm.sequential`; `network` and `labels` are those after the latest."""

    def __init__(self, plan: Plan, prior: Prior, asker: RoundAsker, policies: PoliciesFor):
        assert prior.labels is not None  # the first answers are known before the first round
        self.plan, self.asker, self.labels = plan, asker, prior.labels
        self.spared = 0.0
        """The training seconds of the latest round, if it was restored from the ledger."""
        self._policies = policies
        self._latest: Step | None = None
        self._fresh: SampleSet
        self._mlp, self._theta = _initial(plan, prior, asker)
        self._steps = self._loop()

    @property
    def network(self) -> Network:
        """The network after the latest step."""
        return Network(self._mlp, self._theta if self._latest is None else self._latest.theta)

    @property
    def S(self) -> SampleSet | None:
        """The sample set after the latest step."""
        return None if self._latest is None else self._latest.S

    def coded(self, batch: LabelledBatch) -> SampleSet:
        """A batch as points, in terms of the labels that are known."""
        return points([batch.told], self.labels, self.asker.declared)

    def include(self, batch: LabelledBatch) -> np.ndarray | None:
        """Take in labels that no earlier answer had; gives the new codes of the earlier ones, if there are some."""
        if self.asker.declared is not None or (self.labels.find(batch.answers.labels) >= 0).all():
            return None
        assert self._latest is not None  # labels of the first answers are known from the beginning
        before, step = self.labels, self._latest
        self.labels = Labels([*before.classes.tolist(), *batch.answers.labels.tolist()])
        places = self.labels.encode(before.classes)
        self._mlp, theta = self._mlp.widened(step.theta, places, len(self.labels))
        S = SampleSet(step.S.X, places[step.S.y])
        self._latest = replace(step, S=S, trained=step.trained._replace(theta=theta))
        self._steps = self._loop(after=self._latest)
        return places

    def feed(self, batch: LabelledBatch) -> Step:
        """The next step, of which these are the fresh points."""
        self.include(batch)
        self._fresh, self.spared = self.coded(batch), 0.0
        self._latest = next(self._steps)
        return self._latest

    def round(self, step: Step, chooser: Model, answers: TrainingAnswers | None, blend: Model | None = None) -> Round:
        """What a method gives after a step."""
        return Round(step, self.labels, self.network, chooser, answers, blend, self.spared)

    def _loop(self, after: Step | None = None) -> Iterator[Step]:
        select, memory, train = self._policies(self._mlp, self.labels)
        return sequential(
            lambda t, theta: self._fresh,
            self._theta,
            select=select,
            memory=memory,
            train=self._checkpointed(train),
            after=after,
        )

    def _checkpointed(self, train: Train) -> Train:
        """A training policy that takes rounds from the ledger if it has them, and else stores them there."""
        ledger = self.asker.ledger
        if ledger is None:
            return train

        def restored_or_trained(theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
            # A blend that learns is not in the ledger: it is made again, by the same answers to the same bits.
            known = None if self.plan.method == "bounded" else ledger.round(t)
            if known is not None:
                restored, self.spared = _restored(ledger, t, known, len(theta))
                return restored
            clock = perf_counter()
            trained = train(theta, S, lam, t)
            about = {key: value for key, value in trained._asdict().items() if key != "theta"}
            ledger.keep_round(t, trained.theta, {**about, "seconds": perf_counter() - clock})
            return trained

        return restored_or_trained


def network_rounds(plan: Plan, prior: Prior, asker: RoundAsker, policies: PoliciesFor) -> Iterator[Round]:
    """Rounds in which a network learns by these policies, and chooses the next rows, with a committee if asked for."""
    steps, answers = NetworkSteps(plan, prior, asker, policies), TrainingAnswers(asker.declared)
    chooser: Model | None = None
    for t in range(plan.ask.rounds):
        batch = asker.ask(t, chooser)
        step, answers = steps.feed(batch), answers.plus(batch)
        if plan.ask.draw == "committee" and (plan.asked.certificate_n or asker.chooses(t + 1)):
            chooser = next_committee(plan, prior, steps.network, answers, steps.labels, chooser)
        else:
            chooser = steps.network
        yield steps.round(step, chooser, answers)


def _initial(plan: Plan, prior: Prior, asker: RoundAsker) -> tuple[MLP, np.ndarray]:
    """The network, and its initial parameters: random ones, or those of an earlier run."""
    assert prior.labels is not None
    if prior.earlier is not None:
        return prior.earlier.start(prior.labels)
    mlp = MLP(asker.view.encoding.width, plan.learn.layers, len(prior.labels))
    return mlp, mlp.initial(asker.rng(Stream.INITIAL))


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
