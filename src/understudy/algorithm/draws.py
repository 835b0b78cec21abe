"""Which rows of a space to ask about next, where that is to depend on the copy so far.

A policy is given candidates, which cost nothing, and the latest answers; it gives the rows to ask about. They are rows
that the space may give, and keep its rules: candidates, or such as lie between two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.algorithm.network import Network
from understudy.algorithm.samples import Samples
from understudy.algorithm.uncertainty import margins
from understudy.space import Space
from understudy.space.columns import Number
from understudy.space.rowkeys import Seen

# After so many random queries, this share of every batch is chosen: where the copy is least sure, or its like.
FIRST, SHARE = 300, 0.8
# The answers that policies look back on: a bound, so that a batch costs the same late in a run as early.
LATEST = 2000
# Trees of a committee beside the copy.
TREES = 25
# Halvings of the way between two rows, and how many ways are tried for every row that is asked about.
HALVINGS, WAYS = 12, 12


@dataclass(frozen=True)
class Scene:
    """What a policy sees of a run: the copy so far, candidates nobody asked about yet, and the latest answers."""

    network: Network
    space: Space
    encode: Callable[[np.ndarray], np.ndarray]
    rows: np.ndarray
    X: np.ndarray
    """The candidates, as the copy sees them."""
    paid: Callable[[], Samples]
    """The latest answers, with their rows as the copy sees them."""
    seen: Seen
    rng: np.random.Generator

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """What the copy says of encoded rows."""
        return self.network.probabilities(X)


Policy = Callable[[Scene, int], np.ndarray]


def random(scene: Scene, n: int) -> np.ndarray:
    """Rows as the space gives them."""
    return scene.rows[:n]


def margin(scene: Scene, n: int, share: float = SHARE) -> np.ndarray:
    """A few rows as the space gives them; for the others the copy wavers between two classes."""
    return scene.rows[_mostly(-margins(scene.probabilities(scene.X)), n, share)]


def committee(scene: Scene, n: int) -> np.ndarray:
    """A few rows as the space gives them; on the others the copy and trees fitted to the latest answers are split.

    The copy has half of the votes: the classes that lead lie close together where it and the trees contradict each
    other, or where neither is sure.
    """
    votes = (scene.probabilities(scene.X) + _trees(scene)) / 2
    return scene.rows[_mostly(-margins(votes), n)]


def boundary(scene: Scene, n: int) -> np.ndarray:
    """A few rows as the space gives them; the others lie on the copy's boundary, next to candidates.

    The way from a candidate to the nearest that the copy takes for another class is halved until hardly anything lies
    between a row of one class and a row of the other. Of the rows found, those nearest to their candidates are taken.
    """
    wanted = round(SHARE * n)
    found, far = _between(scene, WAYS * wanted)
    found = found[np.argsort(far, kind="stable")]
    found = found[scene.seen.new(found, at_least=0)[:wanted]]
    others = random if len(found) == wanted else margin
    return np.concatenate([found, others(scene, n)])[:n]


def balanced(scene: Scene, n: int) -> np.ndarray:
    """Rows that the copy takes for its classes in equal parts.

    A class that the copy takes no candidate for, such as one it has never been shown, gets those that it finds least
    unlike it. What a class has too few candidates for, the others share.
    """
    p, n_c = scene.probabilities(scene.X), scene.network.n_c
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
    """Positions of n candidates: a few as they come, then those that are worth most."""
    at_random = n - round(share * n)
    best = np.argsort(-worth[at_random:], kind="stable") + at_random
    return np.concatenate([np.arange(at_random), best[: n - at_random]])


def _trees(scene: Scene) -> np.ndarray:
    """What shares of trees take every candidate for each class."""
    from sklearn.ensemble import ExtraTreesClassifier

    paid, seed = scene.paid(), int(scene.rng.integers(2**31))
    trees = ExtraTreesClassifier(TREES, random_state=seed).fit(paid.X, paid.y)
    shares = np.zeros((len(scene.X), scene.network.n_c))
    shares[:, trees.classes_] = trees.predict_proba(scene.X)
    return shares


def _between(scene: Scene, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the copy's boundary that n candidates are nearest to, and how far they are from them."""
    decided = scene.probabilities(scene.X).argmax(axis=1)
    start = np.arange(min(n, len(scene.X)))
    end = _nearest_other(scene.X, decided, start)
    start, end = start[end >= 0], end[end >= 0]
    a, b = scene.rows[start], scene.rows[end]
    smooth = np.array([isinstance(c, Number) and c.kind == "float" and c.values is None for c in scene.space.columns])
    # What cannot lie between two values changes at once, each column at its own place on the way.
    turns = scene.rng.uniform(size=a.shape)

    def on_the_way(s: np.ndarray) -> np.ndarray:
        mixed = np.clip(a + s[:, None] * (b - a), np.minimum(a, b), np.maximum(a, b))  # rounding may lead outside
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
    """For some candidates the nearest that the copy takes for another class, or -1."""
    squares = (X * X).sum(axis=1)
    distances = squares - 2 * (X[start] @ X.T)
    distances[decided[start][:, None] == decided] = np.inf
    nearest = distances.argmin(axis=1)
    return np.where(np.isfinite(distances[np.arange(len(start)), nearest]), nearest, -1)


POLICIES: dict[str, Policy] = {
    "random": random,
    "margin": margin,
    "balanced": balanced,
    "committee": committee,
    "boundary": boundary,
}
DRAWS = tuple(POLICIES)
# These look for rows that the copy gets wrong: what it says has to mean something first.
LATER = ("margin", "committee", "boundary")
