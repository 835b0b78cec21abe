"""Algorithm 5 of the paper: drop what the copy has compressed, and remember it by the memory term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ectype.algorithm.memory import FUNCTION, Automatic, Fixed, Memory, OnceDropped
from ectype.algorithm.mlp import MLP
from ectype.algorithm.selection import drop_compressed
from ectype.algorithm.training import Trainer
from ectype.methods.asker import RoundAsker
from ectype.methods.base import Round
from ectype.methods.network_steps import Policies, network_rounds
from ectype.methods.prior import Prior
from ectype.original import Labels
from ectype.plan.plan import Plan


def sequential(plan: Plan, prior: Prior, asker: RoundAsker) -> Iterator[Round]:
    """The sequential approach: select points by their uncertainty, weigh the memory term, train."""

    def policies(network: MLP, labels: Labels) -> Policies:
        select = drop_compressed(network, plan.learn.delta, plan.learn.most_kept, plan.learn.free)  # Algorithm 2
        memory, train = memory_and_training(plan, network, asker)  # automatic lambda, Algorithms 3 and 4
        return Policies(select, memory, train)

    return network_rounds(plan, prior, asker, policies)


def memory_and_training(plan: Plan, network: MLP, asker: RoundAsker) -> tuple[Memory, Trainer]:
    """The weight of the memory term, and training with it: a penalty on parameters, or rehearsal of candidates."""
    train = plan.learn.trainer(network)
    if plan.learn.penalty == FUNCTION and plan.learn.memory not in ("none", 0.0):
        return OnceDropped(_weight(plan.learn.memory), plan.ask.batch), replace(train, rehearse=asker.unlabelled)
    return Automatic() if plan.learn.memory == "automatic" else Fixed(_weight(plan.learn.memory)), train


def _weight(memory: str | float) -> float:
    if memory == "automatic":
        return Automatic().initial
    return memory if isinstance(memory, float) else 0.0
