"""The default: a committee chooses which rows to ask, and copies are made of all answers afterwards."""

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


def active(plan: Plan, prior: Prior, asker: RoundAsker) -> Iterator[Round]:
    """Query by committee (Seung, Opper and Sompolinsky 1992), learning from every answer.

    The first batch is random. Later ones lie where a log-linear pool of quick models has the smallest margins. The
    network is that of Algorithm 1, and one vote among them. In a refresh it goes on from the earlier run's, and learns
    the earlier answers that still hold as well.
    """

    def policies(network: MLP, labels: Labels) -> Policies:
        train = plan.learn.trainer(network)
        return Policies(keep_all, Fixed(0.0), train if prior.earlier is None else prior.earlier.trainer(train, labels))

    return network_rounds(plan, prior, asker, policies)
