"""Answers as points to learn from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from understudy.algorithm.samples import Samples
from understudy.original import Labels, Told, told_together

# How often each of the user's own rows counts at the most.
EMPHASIS = 3


def points(told: Iterable[Told], labels: Labels, declared: Labels | None) -> Samples:
    """Encoded rows and what was said to them, in terms of these labels; scores are of the declared ones.

    A copy may know labels that the original no longer gives: they have a probability of zero.

    >>> from understudy.original import Said
    >>> said = Said(np.array(["no"]), np.array([[0.75, 0.25]], np.float32))
    >>> points([(np.zeros((1, 2)), said)], Labels(["maybe", "no", "yes"]), Labels(["no", "yes"])).p.tolist()
    [[0.0, 0.75, 0.25]]
    """
    X, said = told_together(told)
    return Samples(X, labels.encode(said.labels), _placed(said.scores, labels, declared))


def emphasised(paid: Samples, own: Samples) -> Samples:
    """Points, with those of the user's own rows so often that they count as much as all others do."""
    for _ in range(emphasis(len(paid) - len(own), len(own)) - 1):
        paid = paid | own
    return paid


def emphasis(others: int, own: int) -> int:
    """How often every one of the user's own rows counts, beside so many others.

    >>> emphasis(2250, 750), emphasis(500, 500), emphasis(2900, 100)
    (3, 1, 3)
    """
    return max(1, min(EMPHASIS, round(others / own)))


def _placed(scores: np.ndarray | None, labels: Labels, declared: Labels | None) -> np.ndarray | None:
    if scores is None or declared is None or len(declared) == len(labels):
        return scores
    placed = np.zeros((len(scores), len(labels)), scores.dtype)
    placed[:, labels.encode(declared.classes)] = scores
    return placed
