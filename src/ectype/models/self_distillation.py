"""Self-distillation: a blend learns batch by batch in bounded memory, and rehearses what it knew.

In every round its members learn from the paid points at hand, and from unlabelled rows with the probabilities that the
blend gave them before. This is pseudorehearsal (Robins, Catastrophic forgetting, rehearsal and pseudorehearsal, 1995).
Networks are trained on from where they were, in shorter and shorter steps; the other members are fitted anew. So only
the blend keeps what it learned from points that are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ectype.algorithm.mlp import Network
from ectype.algorithm.sample_set import SampleSet
from ectype.models.base import Model
from ectype.models.blend import Blend, fit_pool_weights
from ectype.models.capacity import Capacity, NetworkConfig
from ectype.models.families import Family, Make, fit, fit_boosting, train_network
from ectype.rng import Stream, stream

# Of the steps and trees that as many answers would have at once, those of a round; all of them in the last, after which
# nothing can be mended. From so many answers on networks take fewer steps for each (`effort`), and here a larger share.
STEPS, MORE_STEPS, MANY, TREES = 0.2, 0.4, 20_000, 0.25
# How short the steps of the last round are in comparison with the first.
SHORTEST = 0.2
# The share of a fresh batch that weighs the members before it is learned, and its least size; and of how many rounds.
# Not of all: the first points were random, and easier than those that are asked about later. Weighed by them the blend
# is too sure of itself, and surer from round to round.
HELD_OUT, LEAST, TRIALS = 0.1, 40, 3

Unseen = tuple[dict[str, np.ndarray], np.ndarray]
"""Each member's predictions for points that it had not seen, and the codes or scores of these."""


@dataclass(frozen=True)
class Curriculum:
    """The rounds in which a blend learns: answers and rounds in all, and classes."""

    answers: int
    rounds: int
    n_c: int
    effort: Capacity
    seed: int


@dataclass(frozen=True)
class BlendState:
    """A blend after a round; empty before the first."""

    members: dict[str, Model] = field(default_factory=dict)
    trials: tuple[Unseen, ...] = ()
    blend: Model | None = None
    places: np.ndarray | None = None
    """Where the classes of the blend are among those known now, if there are new ones."""

    def widened(self, places: np.ndarray) -> BlendState:
        """The same once there are new classes: members are fitted anew, and rehearse with the blend so far."""
        return BlendState(blend=self.blend, places=places) if self.blend is not None else self

    def says(self, X: np.ndarray, n_c: int) -> np.ndarray:
        """The probabilities of rows, as the blend has them so far; none for classes that it does not know."""
        assert self.blend is not None
        found = self.blend.probabilities(X).astype(np.float32)
        if self.places is None:
            return found
        wider = np.zeros((len(X), n_c), np.float32)
        wider[:, self.places] = found
        return wider


def rehearse(
    before: BlendState, course: Curriculum, t: int, kept: SampleSet, fresh: SampleSet, rows: np.ndarray
) -> BlendState:
    """The blend after round t, of points kept, fresh ones, and unlabelled rows to rehearse."""
    held = _held_out(len(fresh), stream(course.seed, Stream.FOLDS, t))
    points = kept | fresh.where(~held)
    X, y = points.X, points.targets
    if len(rows):
        X = np.concatenate([X, rows])
        y = np.concatenate([points.soft(course.n_c), before.says(rows, course.n_c)])
    members = {
        name: fit(Family(make, 0, soft=True), X, y, course.n_c, seed=course.seed + t)
        for name, make in _member_fits(before, course, t, X.shape[1]).items()
    }
    unseen = fresh.where(held)
    trial = {name: member.probabilities(unseen.X) for name, member in members.items()}, unseen.targets
    trials = (*before.trials, trial)[-TRIALS:]
    return BlendState(members, trials, _fit_blend(members, trials))


def _held_out(n: int, rng: np.random.Generator) -> np.ndarray:
    """Which of n fresh points are held out."""
    held = np.zeros(n, bool)
    held[rng.permutation(n)[: min(max(round(HELD_OUT * n), LEAST), n // 2)]] = True
    return held


def _fit_blend(members: dict[str, Model], trials: tuple[Unseen, ...]) -> Model:
    """The members, weighed on points that they had not seen; those without weight are left out."""
    opinions = [np.concatenate([said[name] for said, _ in trials]) for name in members]
    powers = fit_pool_weights(opinions, np.concatenate([codes for _, codes in trials]))
    worth = powers > 0 if powers.any() else np.ones(len(powers), bool)
    return Blend(tuple(member for member, counts in zip(members.values(), worth, strict=True) if counts), powers[worth])


def _member_fits(before: BlendState, course: Curriculum, t: int, inputs: int) -> dict[str, Make]:
    """The fit of every member in round t."""
    effort, n, last = course.effort, course.answers, t == course.rounds - 1
    steps, rounds = (1.0, 1.0) if last else (STEPS if n < MANY else MORE_STEPS, TREES)
    trees = effort.boosting(n, inputs, course.n_c)
    trees = replace(trees, rounds=max(2, round(rounds * trees.rounds)))
    shorter = 1 - (1 - SHORTEST) * t / max(course.rounds - 1, 1)
    made: dict[str, Make] = {"boosting": partial(fit_boosting, how=trees)}
    for name, usual in (("network", effort.network(n, inputs)), ("plain network", effort.plain(n, inputs))):
        how = replace(usual, steps=max(2, round(steps * usual.steps)), rate=shorter * usual.rate)
        made[name] = _continue_network(before.members.get(name), how)
    return made


def _continue_network(member: Model | None, how: NetworkConfig) -> Make:
    """Train a network on from where it was, or a new one."""
    start = member if isinstance(member, Network) else None
    return lambda X, y, n_c, limits, seed: train_network(X, y, n_c, how, seed, start)
