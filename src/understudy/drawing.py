"""Which rows of a space to ask about next, where that is to depend on the copy so far."""

from __future__ import annotations

import numpy as np

from understudy.hypothesis.mlp import MLP

DRAWS = ("random", "balanced")
# Candidates drawn for every row that is asked about.
POOL = 20


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
