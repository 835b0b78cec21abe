"""A run under a bound on memory: which points it keeps, and the blend that knows the others.

At most `max_kept` points are kept from round to round. While a round learns there is its batch beside them, which is
never larger; all other answers are gone, or in the ledger. What they taught is in a blend that rehearses
(`ectype.models.self_distillation`): it chooses the queries, and is the copy, or the teacher of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.training import Trained
from ectype.algorithm.uncertainty import margins
from ectype.methods.acquisition import VoteModel
from ectype.models.self_distillation import Curriculum, rehearse
from ectype.rng import Stream

if TYPE_CHECKING:
    from ectype.runs.initialisation import Policies
    from ectype.runs.network_steps import Loop

# Unlabelled rows to rehearse for every point that may be kept, in a round and in the last; and the fewest.
ROWS, LAST_ROWS, FEWEST = 2, 4, 2000


def bounded(loop: Loop, usual: Policies) -> Policies:
    """The usual policies for the network beside the blend; fresh points are learned by the blend before any goes."""
    inquiry, plan, most = loop.inquiry, loop.plan, loop.plan.most_kept

    def known(S: SampleSet, fresh: SampleSet, t: int) -> None:
        course = Curriculum(plan.queries, plan.iterations, len(loop.labels), plan.preset.effort, plan.asked.seed)
        rehearsed = max((LAST_ROWS if t == plan.iterations - 1 else ROWS) * most, FEWEST)
        dropped = sum(plan.sizes[:t]) > len(S)
        rows = inquiry.unlabelled(t)[-rehearsed:] if dropped else fresh.X[:0]
        inquiry.learned = rehearse(inquiry.learned, course, t, S, fresh, rows)

    def select(theta: np.ndarray, S: SampleSet, fresh: SampleSet, t: int) -> SampleSet:
        known(S, fresh, t)
        assert inquiry.learned.blend is not None
        return keep_unsure(inquiry.learned.blend, S | fresh, most, inquiry.stream(Stream.KEPT, t))

    def train(theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
        if t == 0:  # nothing is dropped before there is a blend
            known(S.where(np.zeros(len(S), bool)), S, t)
        return usual.train(theta, S, lam, t)

    return usual._replace(select=select, train=train)


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
