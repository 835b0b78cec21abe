"""Making a blend: members of several kinds, weighed by answers that they did not see, then fitted to all of them.

Which kinds there are depends on how many answers there are. Trees find thresholds, networks and radial functions find
smooth boundaries, and few answers bear small models only; a kind that does not help gets no weight, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from understudy.models import radial
from understudy.models.base import Model
from understudy.models.blend import Blend, powers_of
from understudy.models.families import (
    FITTED,
    Family,
    Labels,
    Limits,
    boosted,
    boosting,
    forest,
    linear_network,
    network,
    plain_network,
)
from understudy.streams import Stream, stream

Make = Callable[[np.ndarray, Labels, int, Limits, int], Model]

# Up to so many answers, each is held out once (cross-fitting); beyond, a part of them is, at most so many.
CROSSED, FOLDS = 2000, 4
HELD_OUT, MOST_HELD_OUT = 0.1, 2000
# Members are fitted again to all answers if this share was held out.
WORTH_IT = 0.1
# Up to so many answers there are forests, and radial functions.
FOR_FORESTS, FOR_RADIAL = 2000, 20_000
# Up to so many, a second network of the same kind costs little: two err less often than one.
FOR_ANOTHER = 6000
# A member whose power is below this share of all is left out.
LEAST = 0.03


def members_of(answers: int) -> dict[str, Make]:
    """The kinds of members that so many answers may be blended from."""
    made: dict[str, Make] = {
        "boosting": boosting,
        "network": network,
        "plain network": plain_network,
        "linear": linear_network,
    }
    if answers < CROSSED:
        made |= {"another network": _another}
    if CROSSED <= answers < FOR_ANOTHER:
        made |= {"another plain network": _another_plain}
    if 600 <= answers < CROSSED:
        made |= {"small trees": _stumps}
    if answers < FOR_FORESTS:
        made |= {"forest": forest}
    if answers <= FOR_RADIAL:
        made |= {"radial": _radial}
    return made


def _another(X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Model:
    return network(X, y, n_c, limits, seed + 1)


def _another_plain(X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Model:
    return plain_network(X, y, n_c, limits, seed + 1)


def _stumps(X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Model:
    return boosted(X, y, n_c, limits, seed, limits.effort.stumps(len(X)))


def _radial(X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Model:
    return radial.fitted(X, y, n_c, stream(seed, Stream.CENTRES))


def blended(X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Model:
    """The blend, in which only the members are that held-out answers give weight to."""
    n, unlimited = len(X), Limits(effort=limits.effort)
    makers = members_of(n)
    crossed = n < CROSSED
    opinions, held, models = (_crossed if crossed else _held_out)(makers, X, y, n_c, unlimited, seed)
    powers = powers_of(opinions, y[held])
    worth = powers >= LEAST * powers.sum()
    names = [name for name, counts in zip(makers, worth, strict=True) if counts]
    powers = powers_of([said for said, counts in zip(opinions, worth, strict=True) if counts], y[held])
    if crossed or held.mean() >= WORTH_IT:
        models = {name: makers[name](X, y, n_c, unlimited, seed) for name in names}
    if len(names) == 1 and powers[0] == 1:
        return models[names[0]]
    return Blend(tuple(models[name] for name in names), powers)


Trial = tuple[list[np.ndarray], np.ndarray, dict[str, Model]]


def _crossed(makers: dict[str, Make], X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Trial:
    """What each kind says of every answer, when it is fitted to the others only."""
    fold = stream(seed, Stream.FOLDS).permutation(len(X)) % FOLDS
    opinions = []
    for make in makers.values():
        said = np.empty((len(X), n_c))
        for k in range(FOLDS):
            out = fold == k
            said[out] = make(X[~out], y[~out], n_c, limits, seed).probabilities(X[out])
        opinions.append(said)
    return opinions, np.ones(len(X), bool), {}


def _held_out(makers: dict[str, Make], X: np.ndarray, y: Labels, n_c: int, limits: Limits, seed: int) -> Trial:
    """What each kind says of some answers, when it is fitted to the others."""
    n = len(X)
    held = np.zeros(n, bool)
    held[stream(seed, Stream.FOLDS).permutation(n)[: min(round(HELD_OUT * n), MOST_HELD_OUT)]] = True
    models = {name: make(X[~held], y[~held], n_c, limits, seed) for name, make in makers.items()}
    return [models[name].probabilities(X[held]) for name in makers], held, models


BLEND = "blend"
FAMILIES = {**FITTED, BLEND: Family(blended, 0, soft=True)}
