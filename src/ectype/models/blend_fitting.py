"""Making a blend: members of several kinds, weighed by answers that they did not see, then fitted to all of them.

Which kinds there are depends on how many answers there are. Trees find thresholds, networks and radial functions find
smooth boundaries, and few answers bear small models only; a kind that does not help gets no weight, and is left out.
"""

from __future__ import annotations

import numpy as np

from ectype.models import rbf
from ectype.models.base import Model
from ectype.models.blend import Blend, fit_pool_weights
from ectype.models.capacity import FEW
from ectype.models.families import (
    FITTED,
    Family,
    FamilyLimits,
    Labels,
    Make,
    boosted,
    boosting,
    fit,
    forest,
    linear_network,
    network,
    plain_network,
)
from ectype.rng import Stream, stream

# Below so many answers, each is held out once (cross-fitting), and there are forests and a second network in pieces.
CROSSED, FOLDS = 2000, 4
# Below so many, members are fitted again to all, and there are radial functions.
REFITTED = 20_000
# A tenth is held out, but not fewer than are needed to weigh the members, if that is no more than a fifth; and not more
# than the most.
HELD_OUT, NEEDED, FIFTH, MOST_HELD_OUT = 0.1, 300, 0.2, 2000
# A member whose power is below this share of all is left out.
LEAST = 0.03

Members = dict[str, Family]
Trial = tuple[list[np.ndarray], np.ndarray, dict[str, Model]]
"""What members say of the answers held out, which these are, and the members, if one was fitted to all others."""


def members_of(answers: int, scored: bool = False) -> Members:
    """The kinds of members that so many answers may be blended from."""
    made: dict[str, Make] = {
        "boosting": boosting,
        "network": network,
        "plain network": plain_network,
        "linear": linear_network,
    }
    if answers < CROSSED:
        made |= {"another network": _another_network, "forest": forest}
    else:
        made |= {"stumps": _stumps}
    if FEW <= answers < CROSSED or (scored and answers < REFITTED):
        made |= {"small trees": _small_trees}
    if answers < REFITTED:
        made |= {"radial": _radial}
    return {name: Family(make, 0, soft=True) for name, make in made.items()}


def _another_network(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return network(X, y, n_c, limits, seed + 1)


def _small_trees(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return boosted(X, y, n_c, limits, seed, limits.effort.small(X.shape[1], n_c))


def _stumps(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return boosted(X, y, n_c, limits, seed, limits.effort.stumps(X.shape[1], n_c))


def _radial(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return rbf.fitted(X, y, n_c, stream(seed, Stream.CENTRES))


def fit_blend(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    """The blend, in which only the members are that held-out answers give weight to."""
    effort = limits.effort
    unlimited, members = FamilyLimits(effort=effort), members_of(effort.labels(len(X)), effort.scored)
    opinions, held, models = trial(members, X, y, n_c, unlimited, seed)
    worth, powers = weighed(opinions, y[held])
    names = [list(members)[k] for k in worth]
    if effort.labels(len(X)) < REFITTED:
        models = {name: fit(members[name], X, y, n_c, unlimited, seed) for name in names}
    return Blend(tuple(models[name] for name in names), powers)


def trial(members: Members, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Trial:
    """Every kind on answers that it was not fitted to; of few answers, each is held out once."""
    return (_crossed if limits.effort.labels(len(X)) < CROSSED else _held_out)(members, X, y, n_c, limits, seed)


def weighed(opinions: list[np.ndarray], y: Labels) -> tuple[list[int], np.ndarray]:
    """Which opinions of held-out answers are worth keeping, and their powers."""
    powers = fit_pool_weights(opinions, y)
    worth = np.flatnonzero(powers >= LEAST * powers.sum()).tolist()
    return worth, fit_pool_weights([opinions[k] for k in worth], y)


def _crossed(members: Members, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Trial:
    """What each kind says of every answer, when it is fitted to the others only."""
    same = duplicate_groups(X)
    fold = (stream(seed, Stream.FOLDS).permutation(same.max() + 1) % FOLDS)[same]
    opinions = []
    for member in members.values():
        said = np.empty((len(X), n_c))
        for k in np.unique(fold):  # fewer than four answers have fewer folds
            out = fold == k
            said[out] = fit(member, X[~out], y[~out], n_c, limits, seed).probabilities(X[out])
        opinions.append(said)
    return opinions, np.ones(len(X), bool), {}


def _held_out(members: Members, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Trial:
    """What each kind says of some answers, when it is fitted to the others."""
    same = duplicate_groups(X)
    held = (np.argsort(stream(seed, Stream.FOLDS).permutation(same.max() + 1)) < held_out(same.max() + 1))[same]
    models = {name: fit(member, X[~held], y[~held], n_c, limits, seed) for name, member in members.items()}
    return [models[name].probabilities(X[held]) for name in members], held, models


def duplicate_groups(X: np.ndarray) -> np.ndarray:
    """A number for every row, the same for rows that are alike, which are held out together or not at all.

    >>> duplicate_groups(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    rows = np.ascontiguousarray(X).view(np.dtype((np.void, X.itemsize * X.shape[1]))).ravel()
    _, first, same = np.unique(rows, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[same]


def held_out(answers: int) -> int:
    """How many answers weigh the members.

    >>> held_out(1000), held_out(3000), held_out(100_000)
    (200, 300, 2000)
    """
    return round(min(max(HELD_OUT * answers, NEEDED), FIFTH * answers, MOST_HELD_OUT))


BLEND = "blend"
FAMILIES = {**FITTED, BLEND: Family(fit_blend, 0, soft=True)}
