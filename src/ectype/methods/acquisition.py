"""Active learning: which rows of a space to ask about next, given the copy so far.

A policy takes a pool of unlabelled candidates, which cost no query; it gives the rows to ask about. These are
candidates, or rows between two of them that keep the rules of the space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ectype.algorithm.uncertainty import margins
from ectype.space import Number, SeenRows, Space

# This share of every batch is chosen by the policy; the rest stays random.
SHARE = 0.8
# Steps of the bisection between two rows, and how many pairs are tried for every row that is asked about.
HALVINGS, WAYS = 12, 12


class VoteModel(Protocol):
    """Anything that gives class probabilities."""

    @property
    def n_c(self) -> int:
        """The number of classes."""

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """Those of encoded rows."""


@dataclass(frozen=True)
class Candidates:
    """What a policy sees of a run: the copy so far, and candidates that were not asked yet."""

    copy: VoteModel
    """The copy so far; in a committee, the network and trees together."""
    space: Space
    encode: Callable[[np.ndarray], np.ndarray]
    rows: np.ndarray
    X: np.ndarray
    """The candidates, encoded."""
    seen: SeenRows
    rng: np.random.Generator

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The copy's class probabilities for encoded rows."""
        return self.copy.probabilities(X)


Policy = Callable[[Candidates, int], np.ndarray]


def random(scene: Candidates, n: int) -> np.ndarray:
    """Random rows of the space."""
    return scene.rows[:n]


def margin(scene: Candidates, n: int, share: float = SHARE) -> np.ndarray:
    """Margin sampling, a kind of uncertainty sampling: a few random rows, then those with the smallest margins."""
    return scene.rows[_mostly(-margins(scene.probabilities(scene.X)), n, share)]


def boundary(scene: Candidates, n: int) -> np.ndarray:
    """A few random rows; the others lie on the copy's boundary, found by bisection.

    Each bisection runs from a candidate to the nearest one of another predicted class. Of the rows found, those nearest
    to their candidates are taken.
    """
    wanted = round(SHARE * n)
    found, far = _between(scene, WAYS * wanted)
    found = found[np.argsort(far, kind="stable")]
    found = found[scene.seen.new(found, at_least=0)[:wanted]]
    others = random if len(found) == wanted else margin
    return np.concatenate([found, others(scene, n)])[:n]


def balanced(scene: Candidates, n: int) -> np.ndarray:
    """Rows of all predicted classes in equal parts (stratified sampling).

    A class that is predicted for no candidate, such as one never answered yet, gets the candidates to which the copy
    gives it the highest probability. Places that a class cannot fill go to any other candidates.
    """
    p, n_c = scene.probabilities(scene.X), scene.copy.n_c
    taken_for, free = p.argmax(axis=1), np.ones(len(p), bool)
    chosen: list[int] = []
    shares = [len(part) for part in np.array_split(np.arange(n), n_c)]
    counts = np.bincount(taken_for, minlength=n_c)
    for c in np.argsort(counts, kind="stable"):
        of_class = np.flatnonzero((taken_for == c) & free)
        if not counts[c]:
            of_class = np.argsort(-p[:, c], kind="stable")
            of_class = of_class[free[of_class]]
        picked = of_class[: shares[c]]
        free[picked] = False
        chosen += picked.tolist()
    rest = np.flatnonzero(free)[: n - len(chosen)]
    return scene.rows[np.sort(np.concatenate([np.array(chosen, dtype=int), rest]))]


def _mostly(worth: np.ndarray, n: int, share: float = SHARE) -> np.ndarray:
    """Positions of n candidates: a few at random, then those that are worth most."""
    at_random = n - round(share * n)
    best = np.argsort(-worth[at_random:], kind="stable") + at_random
    return np.concatenate([np.arange(at_random), best[: n - at_random]])


def _between(scene: Candidates, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the copy's boundary, by bisection from n candidates, and their distances from these."""
    decided = scene.probabilities(scene.X).argmax(axis=1)
    start = np.arange(min(n, len(scene.X)))
    end = _nearest_other(scene.X, decided, start)
    start, end = start[end >= 0], end[end >= 0]
    a, b = scene.rows[start], scene.rows[end]
    smooth = np.array([isinstance(c, Number) and c.kind == "float" and c.values is None for c in scene.space.columns])
    # Columns that cannot be interpolated switch from a to b, each at a random place on the way.
    turns = scene.rng.uniform(size=a.shape)

    def on_the_way(s: np.ndarray) -> np.ndarray:
        mixed = np.clip(a + s[:, None] * (b - a), np.minimum(a, b), np.maximum(a, b))  # rounding may overshoot
        return np.where(smooth & ~np.isnan(mixed), mixed, np.where(s[:, None] < turns, a, b))

    low, high = np.zeros(len(a)), np.ones(len(a))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = scene.probabilities(scene.encode(on_the_way(middle))).argmax(axis=1) == decided[start]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found = on_the_way(high)
    possible = scene.space.keeps_rules(found)
    far = np.linalg.norm(scene.encode(found) - scene.X[start], axis=1)
    return found[possible], far[possible]


def _nearest_other(X: np.ndarray, decided: np.ndarray, start: np.ndarray) -> np.ndarray:
    """For some candidates the nearest one of another predicted class, or -1."""
    squares = (X * X).sum(axis=1)
    distances = squares - 2 * (X[start] @ X.T)
    distances[decided[start][:, None] == decided] = np.inf
    nearest = distances.argmin(axis=1)
    return np.where(np.isfinite(distances[np.arange(len(start)), nearest]), nearest, -1)


POLICIES: dict[str, Policy] = {
    "random": random,
    "margin": margin,
    "balanced": balanced,
    "committee": margin,  # of the votes of network and trees
    "boundary": boundary,
}
# These rely on the copy's probabilities, so they wait until it has learned something.
LATER = ("margin", "committee", "boundary")
