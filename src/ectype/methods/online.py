"""Online single-pass, the paper's baseline that keeps no point."""

from __future__ import annotations

from collections.abc import Iterator

from ectype.algorithm.memory import Fixed
from ectype.algorithm.mlp import MLP
from ectype.algorithm.selection import keep_fresh
from ectype.methods.asker import RoundAsker
from ectype.methods.base import Round
from ectype.methods.network_steps import Policies, network_rounds
from ectype.methods.prior import Prior
from ectype.original import Labels
from ectype.plan.plan import Plan


def online(plan: Plan, prior: Prior, asker: RoundAsker) -> Iterator[Round]:
    """Train on every batch once, and throw it away."""

    def policies(network: MLP, labels: Labels) -> Policies:
        return Policies(keep_fresh, Fixed(0.0), plan.learn.trainer(network))

    return network_rounds(plan, prior, asker, policies)
