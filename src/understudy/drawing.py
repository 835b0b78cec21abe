"""Which rows of a space to ask about next, where that is to depend on the copy so far.

A policy is given candidates, which cost nothing, and says which of them to ask about.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import numpy as np

from understudy.hypothesis.mlp import MLP

Choose = Callable[[MLP, np.ndarray, np.ndarray, int], np.ndarray]
# After so many random queries, this share of every batch is where the copy is least sure.
FIRST, SHARE = 300, 0.8


class Seen:
    """The rows of a space that were asked about: asking again teaches nothing, where a space has few rows.

    >>> seen, rows = Seen(), np.array([[1.0], [2.0], [1.0], [3.0]])
    >>> seen.add(rows[1:2])
    >>> seen.new(rows, at_least=1).tolist(), seen.new(rows, at_least=3).tolist()
    ([0, 3], [0, 3, 1, 2])
    """

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def add(self, rows: np.ndarray) -> None:
        """Remember these."""
        self._digests.update(map(_digest, rows))

    def new(self, rows: np.ndarray, at_least: int) -> np.ndarray:
        """Positions of those not seen yet, each row once; if they are too few, the others follow."""
        digests = [_digest(row) for row in rows]
        firsts = {digest: at for at, digest in reversed(list(enumerate(digests))) if digest not in self._digests}
        new = np.sort(np.fromiter(firsts.values(), int, len(firsts)))
        return new if len(new) >= at_least else np.concatenate([new, np.delete(np.arange(len(rows)), new)])


def _digest(row: np.ndarray) -> bytes:
    return blake2b(row.tobytes(), digest_size=12).digest()


def pool(n: int) -> int:
    """How many candidates are drawn for a batch of n: many for a small batch, a few for each row of a large one."""
    return max(4 * n, min(40 * n, 8000))


def first(network: MLP, theta: np.ndarray, X: np.ndarray, n: int) -> np.ndarray:
    """Positions of the first n candidates: rows as the space gives them."""
    return np.arange(n)


def margin(network: MLP, theta: np.ndarray, X: np.ndarray, n: int, share: float = SHARE) -> np.ndarray:
    """Positions of n candidates: a few as the space gives them, for the others the copy wavers between two classes."""
    p = network.probabilities(theta, X)
    if network.n_c < 2:
        return np.arange(n)
    random = np.arange(n - round(share * n))
    runner_up, best = np.partition(p, (-2, -1), axis=1)[:, -2:].T
    unsure = np.argsort((best - runner_up)[len(random) :], kind="stable") + len(random)
    return np.concatenate([random, unsure[: n - len(random)]])


def balanced(network: MLP, theta: np.ndarray, X: np.ndarray, n: int) -> np.ndarray:
    """Positions of n candidates that the copy takes for its classes in equal parts.

    A class that the copy takes no candidate for, such as one it has never been shown, gets those that it finds least
    unlike it. What a class has too few candidates for, the others share.
    """
    p = network.probabilities(theta, X)
    taken_for, free = p.argmax(axis=1), np.ones(len(X), bool)
    chosen: list[int] = []
    shares = [len(part) for part in np.array_split(np.arange(n), network.n_c)]
    counts = np.bincount(taken_for, minlength=network.n_c)
    for c in np.argsort(counts, kind="stable"):
        of_class = np.flatnonzero((taken_for == c) & free)
        if not counts[c]:
            of_class = np.argsort(-p[:, c], kind="stable")
            of_class = of_class[free[of_class]]
        picked = of_class[: shares[c]]
        free[picked] = False
        chosen += picked.tolist()
    rest = np.flatnonzero(free)[: n - len(chosen)]
    return np.sort(np.concatenate([np.array(chosen, dtype=int), rest]))


POLICIES: dict[str, Choose] = {"random": first, "margin": margin, "balanced": balanced}
DRAWS = tuple(POLICIES)
