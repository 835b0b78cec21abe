"""Query by committee (Seung, Opper and Sompolinsky 1992): quick models of several kinds choose together where to ask.

A committee is a log-linear pool. A round's answers are unseen by the committee that chose its rows, so they weight the
members of the next one without a hold-out: an original that is linear is soon asked where a linear model is unsure.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

import numpy as np

from ectype.algorithm.mlp import Network
from ectype.algorithm.sample_set import SampleSet
from ectype.methods.prior import Prior
from ectype.methods.training_points import TrainingAnswers
from ectype.models import rbf
from ectype.models.base import Model
from ectype.models.blend import TOGETHER, Blend, fit_pool_weights
from ectype.models.capacity import Capacity
from ectype.models.families import Family, FamilyLimits, Labels, Make, fit, fit_boosting, linear_network
from ectype.original import Labels as ClassLabels
from ectype.plan.plan import Plan
from ectype.rng import Stream, stream

# Centres of radial functions, and rows that these are fitted to: enough to find out where to ask.
CENTRES, ROWS = 300, 5000
# How many of the latest answers members see, unless batches grow: a batch then costs the same late as early.
LATEST = 2000


def next_committee(
    plan: Plan, prior: Prior, network: Network, answers: TrainingAnswers, labels: ClassLabels, before: Model | None
) -> Blend:
    """The committee for the next round, fitted to the answers; where rounds are few, weighted by those of the last."""
    latest = None if plan.ask.grows else ceil(LATEST / plan.ask.batch)
    points = prior.with_hints(answers.points(labels, latest), labels)
    found = fit_committee(network, points, len(labels), plan.make.capacity, plan.asked.seed, plan.ask.grows)
    if not isinstance(before, Blend) or not plan.ask.grows:
        return found
    return reweight(found, before, answers.points(labels, 1))


def fit_committee(network: Model, points: SampleSet, n_c: int, effort: Capacity, seed: int, many: bool) -> Blend:
    """The network and trees together; where rounds are few, linear and radial models as well."""
    makes: list[Make] = [partial(fit_boosting, how=effort.chooser(points.X.shape[1], n_c))]
    makes += [linear_network, _radial] if many else []
    limits = FamilyLimits(effort=effort)
    models = [fit(Family(make, 0, soft=True), points.X, points.targets, n_c, limits, seed) for make in makes]
    return Blend((network, *models), np.full(1 + len(models), TOGETHER / (1 + len(models))))


def reweight(committee: Blend, before: Blend, newest: SampleSet) -> Blend:
    """Fit the members' weights to what the members before said of the newest answers, which they had not seen."""
    if before.n_c != committee.n_c:
        return committee
    opinions = [member.probabilities(newest.X) for member in before.members]
    return replace(committee, powers=fit_pool_weights(opinions, newest.targets))


def _radial(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return rbf.fit_radial(X, y, n_c, stream(seed, Stream.CENTRES), CENTRES, ROWS)
