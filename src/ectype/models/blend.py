"""A blend: a logarithmic opinion pool (Genest and Zidek, 1986), also known as a product of experts (Hinton, 1999).

The probabilities of several members are multiplied, each raised to a power, and normalised. Heskes (Selecting weighting
factors in logarithmic opinion pools, 1998) has powers that sum to one. Here they need not: large powers make the blend
sure of itself, small ones doubtful. Fitted to the likelihood of held-out answers, they weigh the members and calibrate
the probabilities at once. Weights from predictions out of sample are stacking (Wolpert, 1992).

Members are of several kinds, weighed by answers that they did not see, then fitted to all of them. Which kinds there
are depends on how many answers there are. Trees find thresholds, networks and radial functions find smooth boundaries,
and few answers bear small models only; a kind that does not help gets no weight, and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ectype.algorithm.uncertainty import softmax
from ectype.models import rbf
from ectype.models.base import Model
from ectype.models.capacity import FEW
from ectype.models.families import (
    SINGLE_FAMILIES,
    Family,
    FamilyLimits,
    Labels,
    Make,
    boosting,
    fit,
    fit_boosting,
    forest,
    linear_network,
    network,
    plain_network,
)
from ectype.rng import Stream, stream

# No member may rule a class out: an opinion counts for at least this.
FLOOR = 1e-4
# How strongly powers are drawn to equal ones, as by so many answers.
PULL = 10.0
# Together, equal powers are somewhat sharper than any one member.
TOGETHER = 1.2
ITERATIONS = 50
# Below so many answers, each is held out once (cross-fitting), and there are forests and a second network in pieces.
CROSSED, FOLDS = 2000, 4
# Below so many, members are fitted again to all, and there are radial functions.
REFITTED = 20_000
# A tenth is held out, but not fewer than are needed to weigh the members, if that is no more than a fifth; and not more
# than the most.
HELD_OUT, NEEDED, FIFTH, MOST_HELD_OUT = 0.1, 300, 0.2, 2000
# A member whose power is below this share of all is left out.
LEAST = 0.03


@dataclass(frozen=True)
class Blend:
    """Members, and the powers of their probabilities.

    >>> from ectype.models.linear import Linear
    >>> says = [Linear(np.zeros((1, 2)), np.log(p)) for p in ([0.5, 0.5], [0.2, 0.8])]
    >>> Blend(tuple(says), np.array([1.0, 1.0])).probabilities(np.zeros((1, 1))).round(2)
    array([[0.2, 0.8]])
    """

    members: tuple[Model, ...]
    powers: np.ndarray
    kind = "blend"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return self.members[0].n_c

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        return log_pool([member.probabilities(X) for member in self.members], self.powers)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays: those of its members, each with its number."""
        about, arrays = [], {"powers": self.powers}
        for k, member in enumerate(self.members):
            said, parts = member.state()
            about.append({"kind": member.kind, **said})
            arrays |= {f"{k}.{name}": array for name, array in parts.items()}
        return {"members": about}, arrays

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes."""
        from ectype.models.base import model_of

        members, powers = list[Model](), arrays["powers"]
        for k, said in enumerate(about["members"]):
            parts = {name.partition(".")[2]: part for name, part in arrays.items() if name.startswith(f"{k}.")}
            if said["kind"] in (cls.kind, "estimator"):
                raise ValueError(f"a member of kind {said['kind']!r}")
            members.append(model_of(said, parts, inputs, n_c))
        if not members or powers.shape != (len(members),) or not (np.isfinite(powers) & (powers >= 0)).all():
            raise ValueError(f"powers of shape {powers.shape} for {len(members)} members")
        return cls(tuple(members), powers)


def log_pool(opinions: Sequence[np.ndarray], powers: np.ndarray) -> np.ndarray:
    """The logarithmic opinion pool: the product of all probabilities, each to its power, normalised."""
    return softmax(sum(power * np.log(np.maximum(p, FLOOR)) for p, power in zip(opinions, powers, strict=True)))


def fit_pool_weights(opinions: Sequence[np.ndarray], y: np.ndarray) -> np.ndarray:
    """The powers under which held-out answers are likeliest, with a ridge around equal ones, and none below 0.

    By a projected Newton method (Bertsekas, 1982).

    >>> sure, wrong = np.array([[0.9, 0.1], [0.1, 0.9]] * 20), np.array([[0.1, 0.9], [0.9, 0.1]] * 20)
    >>> fit_pool_weights([sure, wrong], np.array([0, 1] * 20)).round(1).tolist()[1]
    0.0
    """
    logs = np.stack([np.log(np.maximum(p.astype(np.float64), FLOOR)) for p in opinions])
    k, n_c = len(logs), logs.shape[2]
    wanted = np.eye(n_c)[y] if y.ndim == 1 else y
    equal = np.full(k, TOGETHER / k)
    powers = equal
    for _ in range(ITERATIONS):
        p = softmax(np.tensordot(powers, logs, 1))
        means = np.einsum("knc,nc->kn", logs, p)
        slope = np.einsum("knc,nc->k", logs, p - wanted) + PULL * (powers - equal)
        curve = np.einsum("knc,lnc,nc->kl", logs, logs, p, optimize=True) - means @ means.T + PULL * np.eye(k)
        free = (powers > 0) | (slope < 0)
        step = np.zeros(k)
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        after = np.maximum(powers - step, 0.0)
        if np.abs(after - powers).max() < 1e-5:
            return after
        powers = after
    return powers


# --- members, and how they are fitted ---------------------------------------------------------------------------------

Members = dict[str, Family]
OutOfSample = tuple[list[np.ndarray], np.ndarray, dict[str, Model]]
"""Predictions by member for held-out answers, which answers these are, and the members, unless they are of folds."""


def member_families(answers: int, scored: bool = False) -> Members:
    """The families of a blend's members, for so many answers."""
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
    return fit_boosting(X, y, n_c, limits, seed, limits.effort.small(X.shape[1], n_c))


def _stumps(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return fit_boosting(X, y, n_c, limits, seed, limits.effort.stumps(X.shape[1], n_c))


def _radial(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    return rbf.fit_radial(X, y, n_c, stream(seed, Stream.CENTRES))


def fit_blend(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    """Fit a blend, and drop the members that get hardly any weight."""
    effort = limits.effort
    unlimited, members = FamilyLimits(effort=effort), member_families(effort.labels(len(X)), effort.scored)
    opinions, held, models = fit_out_of_sample(members, X, y, n_c, unlimited, seed)
    worth, powers = select_members(opinions, y[held])
    names = [list(members)[k] for k in worth]
    if effort.labels(len(X)) < REFITTED:
        models = {name: fit(members[name], X, y, n_c, unlimited, seed) for name in names}
    return Blend(tuple(models[name] for name in names), powers)


def fit_out_of_sample(
    members: Members, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int
) -> OutOfSample:
    """Predictions of every family for answers that it was not fitted to: by cross-fitting if there are few answers."""
    return (_cross_fit if limits.effort.labels(len(X)) < CROSSED else _fit_held_out)(members, X, y, n_c, limits, seed)


def select_members(opinions: list[np.ndarray], y: Labels) -> tuple[list[int], np.ndarray]:
    """The members whose power is not negligible, and the powers of these alone."""
    powers = fit_pool_weights(opinions, y)
    worth = np.flatnonzero(powers >= LEAST * powers.sum()).tolist()
    return worth, fit_pool_weights([opinions[k] for k in worth], y)


def _cross_fit(members: Members, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> OutOfSample:
    """Predictions for every answer, by models that were fitted to the other folds."""
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


def _fit_held_out(members: Members, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> OutOfSample:
    """Predictions for some answers, by models that were fitted to all others."""
    same = duplicate_groups(X)
    held = (np.argsort(stream(seed, Stream.FOLDS).permutation(same.max() + 1)) < held_out_size(same.max() + 1))[same]
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


def held_out_size(answers: int) -> int:
    """How many answers are held out to weigh the members.

    >>> held_out_size(1000), held_out_size(3000), held_out_size(100_000)
    (200, 300, 2000)
    """
    return round(min(max(HELD_OUT * answers, NEEDED), FIFTH * answers, MOST_HELD_OUT))


BLEND = "blend"
FAMILIES = {**SINGLE_FAMILIES, BLEND: Family(fit_blend, 0, soft=True)}
