"""A bound on memory: at most `max_kept` points are kept from round to round, and a blend rehearses what others taught.

While a round learns there is its batch beside them, which is never larger; all other answers are gone, or in the
ledger. The blend (`ectype.models.self_distillation`) chooses the queries, and is the copy, or the teacher of one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.uncertainty import margins
from ectype.methods.acquisition import VoteModel
from ectype.methods.asker import RoundAsker
from ectype.methods.base import Round
from ectype.methods.network_steps import NetworkSteps, Policies
from ectype.methods.prior import Prior
from ectype.methods.sequential import memory_and_training
from ectype.models.self_distillation import BlendState, Curriculum, rehearse
from ectype.original import Labels
from ectype.plan.plan import Plan
from ectype.rng import Stream

# Unlabelled rows to rehearse for every point that may be kept, in a round and in the last; and the fewest.
ROWS, LAST_ROWS, FEWEST = 2, 4, 2000


def bounded(plan: Plan, prior: Prior, asker: RoundAsker) -> Iterator[Round]:
    """A blend learns each batch and rehearses its own answers (Robins 1995); only then are points dropped."""
    most, state = plan.learn.most_kept, BlendState()

    def keep(theta: np.ndarray, S: SampleSet, fresh: SampleSet, t: int) -> SampleSet:
        assert state.blend is not None
        return keep_unsure(state.blend, S | fresh, most, asker.rng(Stream.KEPT, t))

    def policies(network: MLP, labels: Labels) -> Policies:
        return Policies(keep, *memory_and_training(plan, network, asker))

    steps = NetworkSteps(plan, prior, asker, policies)
    for t in range(plan.ask.rounds):
        batch = asker.ask(t, state.blend)
        places = steps.include(batch)
        state = state if places is None else state.widened(places)
        fresh = steps.coded(batch)
        kept = fresh.where(np.zeros(len(fresh), bool)) if steps.S is None else steps.S
        curriculum = Curriculum(
            plan.ask.queries, plan.ask.rounds, len(steps.labels), plan.make.capacity, plan.asked.seed
        )
        dropped = sum(plan.ask.sizes[:t]) > len(kept)
        rehearsed = max((LAST_ROWS if t == plan.ask.rounds - 1 else ROWS) * most, FEWEST)
        rows = asker.unlabelled(t)[-rehearsed:] if dropped else fresh.X[:0]
        state = rehearse(state, curriculum, t, kept, fresh, rows)
        assert state.blend is not None
        yield steps.round(steps.feed(batch), state.blend, None, state.blend)


def keep_unsure(copy: VoteModel, pool: SampleSet, most: int, rng: np.random.Generator) -> SampleSet:
    """At most so many points: half are those with the smallest margins, half are random ones of the others.

    >>> from ectype.models.families import constant
    >>> pool = SampleSet(np.zeros((9, 1), np.float32), np.zeros(9, np.int32))
    >>> len(keep_unsure(constant(0, 2), pool, 4, np.random.default_rng(0)))
    4
    """
    if len(pool) <= most:
        return pool
    ranking = np.argsort(margins(copy.probabilities(pool.X)), kind="stable")
    half = most - most // 2
    keep = np.zeros(len(pool), bool)
    keep[ranking[:half]] = keep[rng.permutation(ranking[half:])[: most - half]] = True
    return pool.where(keep)
