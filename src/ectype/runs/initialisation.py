"""How a run starts: its first queries, its initial network, and what it has besides its own answers.

A run that copies an original for the first time starts from scratch: `ColdStart`. One that refreshes a copy is
warm-started from an earlier run: `ectype.refresh._warm_start`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ectype.algorithm.memory import FUNCTION, Automatic, Fixed, Memory, OnceDropped
from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import Select, drop_compressed, keep_all, keep_fresh
from ectype.algorithm.training import Train
from ectype.ledger import Purpose
from ectype.methods.acquisition import POLICIES, Policy
from ectype.original import LabelledRows, Labels
from ectype.rng import Stream, stream
from ectype.runs.bounded_memory import bounded
from ectype.types import Answered

if TYPE_CHECKING:
    from ectype.plan.plan import Plan
    from ectype.runs.network_steps import Loop
    from ectype.runs.query_session import QuerySession


class Policies(NamedTuple):
    """What the loop is given: which points to keep, how much memory, and how to train."""

    select: Select
    memory: Memory
    train: Train


class Start(Protocol):
    """A policy for how a run starts."""

    @property
    def choices(self) -> Mapping[str, Policy]:
        """How rows are chosen, by the name in the settings."""

    @property
    def given(self) -> LabelledRows | None:
        """Answers that the run was given, for its ledger."""

    @property
    def checks(self) -> Mapping[Purpose, int]:
        """By purpose, the most queries that the run makes beside its plan."""

    def prepare(self, inquiry: QuerySession) -> None:
        """What is to be found out before anything else is asked."""

    def random_first(self, plan: Plan) -> int:
        """The random queries before active learning begins."""

    def stream(self, seed: int, purpose: Stream, t: int) -> np.random.Generator:
        """Random numbers for a purpose in round t."""

    def training_queries(self, plan: Plan) -> int:
        """The most training queries."""

    def held_out(self, inquiry: QuerySession) -> Answered:
        """The certificate's rows and answers."""

    def first(self, inquiry: QuerySession) -> LabelledRows:
        """The rows and answers that the loop begins with."""

    def labels(self, found: Labels) -> Labels:
        """The labels that the copy may give; `found` are those declared or answered."""

    def network(self, inquiry: QuerySession, labels: Labels) -> tuple[MLP, np.ndarray]:
        """The network, and its initial parameters."""

    def policies(self, loop: Loop) -> Policies:
        """What the loop is given."""

    def hints(self, inquiry: QuerySession, labels: Labels, paid: SampleSet) -> SampleSet:
        """The training points of trees that only help to choose; `paid` are those of this run."""

    def lessons(self, inquiry: QuerySession, labels: Labels, paid: SampleSet) -> SampleSet:
        """The training points of copies that are made of all answers; `paid` are those of this run."""


class NoPriorAnswers:
    """What a start has in common with others that are given no answers."""

    @property
    def given(self) -> LabelledRows | None:
        """None."""
        return None

    @property
    def checks(self) -> Mapping[Purpose, int]:
        """None."""
        return {}

    def prepare(self, inquiry: QuerySession) -> None:
        """Nothing."""


@dataclass(frozen=True)
class ColdStart(NoPriorAnswers):
    """A run that starts from scratch, with an original and a space."""

    choices: Mapping[str, Policy] = field(default_factory=lambda: POLICIES)

    def random_first(self, plan: Plan) -> int:
        """Those of the plan."""
        return plan.random_first

    def stream(self, seed: int, purpose: Stream, t: int) -> np.random.Generator:
        """Random numbers for a purpose in round t."""
        return stream(seed, purpose, t)

    def training_queries(self, plan: Plan) -> int:
        """Those of the plan."""
        return plan.queries

    def held_out(self, inquiry: QuerySession) -> Answered:
        """Fresh rows."""
        return inquiry.fresh(Purpose.CERTIFICATE, inquiry.plan.asked.certificate_n, Stream.HELD_OUT)

    def first(self, inquiry: QuerySession) -> LabelledRows:
        """A batch of fresh rows."""
        return inquiry.opening()

    def labels(self, found: Labels) -> Labels:
        """The labels that were declared or found."""
        return found

    def network(self, inquiry: QuerySession, labels: Labels) -> tuple[MLP, np.ndarray]:
        """A network with random parameters."""
        network = MLP(inquiry.view.encoding.width, inquiry.plan.layers, len(labels))
        return network, network.initial(inquiry.stream(Stream.INITIAL))

    def policies(self, loop: Loop) -> Policies:
        """What the method in the plan passes to the loop."""
        plan, train = loop.plan, loop.plan.trainer(loop.network)
        if plan.asked.method != "sequential" or not plan.drops:
            kept = keep_fresh if plan.asked.method == "online" else keep_all
            return Policies(kept, Fixed(0.0), train)
        memory: Memory = Automatic() if plan.memory == "automatic" else Fixed(_weight(plan.memory))
        if plan.penalty == FUNCTION and plan.memory not in ("none", 0.0):
            memory = OnceDropped(memory.initial, plan.batch)
            train = replace(train, rehearse=loop.inquiry.unlabelled)
        policies = Policies(drop_compressed(loop.network, plan.delta, plan.most_kept, plan.free), memory, train)
        return bounded(loop, policies) if plan.bounded else policies

    def hints(self, inquiry: QuerySession, labels: Labels, paid: SampleSet) -> SampleSet:
        """The paid points."""
        return paid

    def lessons(self, inquiry: QuerySession, labels: Labels, paid: SampleSet) -> SampleSet:
        """The paid points."""
        return paid


def _weight(memory: str | float) -> float:
    return memory if isinstance(memory, float) else 0.0
