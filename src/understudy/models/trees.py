"""Trees: one, a forest of them, or a sum of small ones; all the same arrays.

A row goes left at a node where its input is at most the threshold. Inputs are float32, and so are thresholds, rounded
down: no float32 number lies between a threshold and what it is rounded to, so that every row goes where it went.
What leaves say is rounded to multiples of one power of two, so small that sums of them are exact: whoever adds them up,
in whatever order, gets the same scores to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from understudy.algorithm.uncertainty import softmax
from understudy.types import Estimator

LEAF = -1
# Rows times trees that are followed down at a time: so many stay in a processor's cache.
CHUNK = 2**13


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees one after the other. A leaf adds its values to the scores of the classes it speaks for."""

    feature: np.ndarray
    """The input that a node looks at; `LEAF` at a leaf."""
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    """What a leaf says: a number for every class, or one number for the class of its tree."""
    roots: np.ndarray
    """The first node of every tree."""
    outputs: np.ndarray
    """The class a tree speaks for, or the first of all of them."""
    base: np.ndarray
    """What the scores of the classes are before any tree speaks."""
    link: str
    """`shares`: scores are probabilities; `softmax`: they are turned into such."""
    kind = "trees"

    @property
    def n_c(self) -> int:
        """How many classes it tells apart."""
        return len(self.base)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        scores = self.scores(X)
        return softmax(scores) if self.link == "softmax" else scores / scores.sum(axis=1, keepdims=True)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """What all trees together say of every class."""
        X = np.ascontiguousarray(X, np.float32)
        scores = np.tile(self.base, (len(X), 1))
        width = self.values.shape[1]
        for start in range(0, len(X), CHUNK):
            rows = slice(start, start + CHUNK)
            many = max(1, CHUNK // len(X[rows]))  # trees at a time: with few rows, many
            for tree in range(0, len(self.roots), many):
                said = self.values.take(self.leaves(X[rows], self.roots[tree : tree + many]), axis=0)
                for k, output in enumerate(self.outputs[tree : tree + many]):
                    scores[rows, output : output + width] += said[k]
        return scores

    def leaves(self, X: np.ndarray, roots: np.ndarray) -> np.ndarray:
        """The leaf that every row ends at, in every tree with one of these roots."""
        looked, children = self._paths
        numbers, starts = X.ravel(), np.arange(len(X)) * X.shape[1]
        at = np.repeat(roots[:, None], len(X), axis=1)
        while True:
            right = numbers.take(starts + looked.take(at)) > self.threshold.take(at)
            below = children.take(2 * at + right)
            if (below == at).all():
                return at
            at = below

    @cached_property
    def _paths(self) -> tuple[np.ndarray, np.ndarray]:
        """The input that a node looks at, and its two children in turn; a leaf is its own."""
        leaf, own = self.feature == LEAF, np.arange(len(self.feature))
        children = np.where(leaf[:, None], own[:, None], np.stack([self.left, self.right], axis=1))
        return np.where(leaf, 0, self.feature), children.ravel()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it, as JSON values and arrays."""
        names = ("feature", "threshold", "left", "right", "values", "roots", "outputs", "base")
        return {"link": self.link}, {name: getattr(self, name) for name in names}

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """The model that `state` was taken of; nodes that lead nowhere, or in a circle, are refused."""
        trees = cls(**arrays, link=about["link"])
        n, width = trees.values.shape
        whole = {trees.feature.shape, trees.threshold.shape, trees.left.shape, trees.right.shape} == {(n,)}
        if not whole or trees.base.shape != (n_c,) or trees.outputs.shape != trees.roots.shape or not len(trees.roots):
            raise ValueError("trees whose arrays do not fit together")
        inner = np.flatnonzero(trees.feature != LEAF)
        below = np.concatenate([trees.left[inner], trees.right[inner]])
        within = (below > np.tile(inner, 2)).all() and (below < n).all()  # only downwards: no circles
        inputs_known = ((trees.feature >= LEAF) & (trees.feature < inputs)).all()
        roots_known = ((trees.roots >= 0) & (trees.roots < n)).all()
        outputs_known = ((trees.outputs >= 0) & (trees.outputs + width <= n_c)).all()
        if not (within and inputs_known and roots_known and outputs_known) or trees.link not in ("shares", "softmax"):
            raise ValueError("trees with nodes that lead nowhere")
        return trees


@dataclass(frozen=True)
class Tree:
    """One tree as some library has it: float64 thresholds, and a value or several for every node."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    output: int = 0


def together(trees: Sequence[Tree], base: np.ndarray, link: str) -> Trees:
    """Trees as one."""
    sizes = np.array([len(tree.feature) for tree in trees])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    leaf = np.concatenate([tree.feature for tree in trees]) == LEAF
    shift = np.repeat(starts, sizes)
    threshold = np.concatenate([tree.threshold for tree in trees])
    values = np.where(leaf[:, None], np.concatenate([tree.values for tree in trees]), 0.0)
    step = _step(np.maximum.reduceat(np.abs(values).max(axis=1), starts).sum() + np.abs(base[np.isfinite(base)]).max())
    return Trees(
        feature=np.concatenate([tree.feature for tree in trees]).astype(np.int32),
        threshold=np.where(leaf, np.float32(0), round_down(threshold)),
        left=np.where(leaf, 0, np.concatenate([tree.left for tree in trees]) + shift).astype(np.int32),
        right=np.where(leaf, 0, np.concatenate([tree.right for tree in trees]) + shift).astype(np.int32),
        values=np.rint(values / step) * step,
        roots=starts.astype(np.int32),
        outputs=np.array([tree.output for tree in trees], np.int32),
        base=np.rint(base / step) * step,
        link=link,
    )


def _step(largest: float) -> float:
    """The finest power of two of which float64 can hold every multiple up to twice the largest sum.

    >>> 100 * (0.01 // _step(1.0) * _step(1.0)) <= 1
    True
    """
    return float(2.0 ** (np.ceil(np.log2(max(largest, 1.0))) - 51))


def round_down(numbers: np.ndarray) -> np.ndarray:
    """The largest float32 that is not above each number.

    >>> round_down(np.array([0.1, 0.5])) <= np.array([0.1, 0.5])
    array([ True,  True])
    """
    near = numbers.astype(np.float32)
    return np.where(near.astype(float) > numbers, np.nextafter(near, np.float32(-np.inf)), near)


def of_forest(fitted: Estimator, n_c: int) -> Trees:
    """A decision tree of scikit-learn's, or a forest of them."""
    trees = []
    members = getattr(fitted, "estimators_", [fitted])
    for member in members:
        tree = member.tree_
        values = np.zeros((tree.node_count, n_c))
        shares = tree.value[:, 0, :]
        values[:, fitted.classes_.astype(int)] = shares / shares.sum(axis=1, keepdims=True) / len(members)
        leaf = tree.children_left < 0
        feature = np.where(leaf, LEAF, tree.feature)
        trees.append(Tree(feature, tree.threshold, tree.children_left, tree.children_right, values))
    return together(trees, np.zeros(n_c), "shares")


def of_boosting(fitted: Estimator, n_c: int) -> Trees:
    """A histogram gradient boosting classifier of scikit-learn's; of two classes it has scores for the second only."""
    known = fitted.classes_.astype(int)
    places = known[1:] if len(known) == 2 else known
    base = np.full(n_c, -np.inf)
    base[known] = 0.0
    base[places] = np.ravel(fitted._baseline_prediction)
    trees = []
    for iteration in fitted._predictors:
        for place, predictor in zip(places, iteration, strict=True):
            nodes = predictor.nodes
            feature = np.where(nodes["is_leaf"], LEAF, nodes["feature_idx"].astype(int))
            children = nodes["left"].astype(int), nodes["right"].astype(int)
            values = nodes["value"][:, None].astype(float)
            trees.append(Tree(feature, nodes["num_threshold"], *children, values, int(place)))
    return together(trees, base, "softmax")
