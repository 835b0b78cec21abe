"""One-shot single-pass, the paper's baseline that asks everything at once."""

from __future__ import annotations

from collections.abc import Iterator

from ectype.algorithm.memory import Fixed
from ectype.algorithm.mlp import MLP
from ectype.algorithm.selection import keep_all
from ectype.methods.asker import RoundAsker
from ectype.methods.base import Round
from ectype.methods.network_steps import Policies, network_rounds
from ectype.methods.prior import Prior
from ectype.original import Labels
from ectype.plan.plan import Plan


def one_shot(plan: Plan, prior: Prior, asker: RoundAsker) -> Iterator[Round]:
    """One round of random rows: all queries at once. A run that goes on with a larger budget adds another round."""

    def policies(network: MLP, labels: Labels) -> Policies:
        return Policies(keep_all, Fixed(0.0), plan.learn.trainer(network))

    return network_rounds(plan, prior, asker, policies)
