"""Scouts: quick models that find out together where to ask next.

The answers of a round are news to the scouts that chose its rows. So they weigh the kinds of scouts for the next round,
and nothing has to be held out: an original that is linear is soon asked where a linear scout wavers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from ectype.algorithm.sample_set import SampleSet
from ectype.models import rbf
from ectype.models.base import Model
from ectype.models.blend import TOGETHER, Blend, fit_pool_weights
from ectype.models.capacity import Capacity
from ectype.models.families import Family, FamilyLimits, Labels, Make, fit, fit_boosting, linear_network
from ectype.rng import Stream, stream

# Centres of radial functions, and rows that these are fitted to: enough to find out where to ask.
CENTRES, ROWS = 300, 5000


def fit_committee(network: Model, points: SampleSet, n_c: int, effort: Capacity, seed: int, many: bool) -> Blend:
    """The network and trees together; where rounds are few, linear and radial scouts as well."""
    makes: list[Make] = [partial(fit_boosting, how=effort.chooser(points.X.shape[1], n_c))]
    makes += [linear_network, _radial] if many else []
    limits = FamilyLimits(effort=effort)
    models = [fit(Family(make, 0, soft=True), points.X, points.targets, n_c, limits, seed) for make in makes]
    return Blend((network, *models), np.full(1 + len(models), TOGETHER / (1 + len(models))))


def reweight(scouts: Blend, before: Blend, news: SampleSet) -> Blend:
    """The scouts, each kind with the power that news give to what it said before."""
    if before.n_c != scouts.n_c:
        return scouts
    return replace(
        scouts, powers=fit_pool_weights([member.probabilities(news.X) for member in before.members], news.targets)
    )


def _radial(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return rbf.fit_radial(X, y, n_c, stream(seed, Stream.CENTRES), CENTRES, ROWS)
