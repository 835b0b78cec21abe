"""A decision tree, a forest, or gradient-boosted trees, all in the same arrays.

A row goes left at a node where its input is at most the threshold. Inputs are float32, and so are thresholds, rounded
down: no float32 number lies between a threshold and its rounded value, so every row takes the same path as before.
Leaf values are fixed-point: multiples of one power of two, so small that their sums are exact. Added in any order, they
give the same scores to the last bit.
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
# Rows times trees evaluated at a time: so many stay in a processor's cache.
CHUNK = 2**13


@dataclass(frozen=True)
class Trees:
    """The nodes of all trees, concatenated. A leaf adds its values to the scores of its classes."""

    feature: np.ndarray
    """The input that a node tests; `LEAF` at a leaf."""
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    """Leaf values: a number for every class, or one number for the class of its tree."""
    roots: np.ndarray
    """The first node of every tree."""
    outputs: np.ndarray
    """The class that a tree scores; 0 for a tree that scores all of them."""
    base: np.ndarray
    """The scores of the classes before any tree is added."""
    link: str
    """`shares`: scores are probabilities; `softmax`: scores are logits."""
    kind = "trees"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return len(self.base)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        scores = self.scores(X)
        return softmax(scores) if self.link == "softmax" else scores / scores.sum(axis=1, keepdims=True)

    def scores(self, X: np.ndarray) -> np.ndarray:
        """The sum over all trees, for every class."""
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
        """The leaf that every row reaches, in every tree with one of these roots."""
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
        """The input that each node tests, and its two children, interleaved; a leaf is its own child."""
        leaf, own = self.feature == LEAF, np.arange(len(self.feature))
        children = np.where(leaf[:, None], own[:, None], np.stack([self.left, self.right], axis=1))
        return np.where(leaf, 0, self.feature), children.ravel()

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""
        names = ("feature", "threshold", "left", "right", "values", "roots", "outputs", "base")
        return {"link": self.link}, {name: getattr(self, name) for name in names}

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes; dangling nodes and cycles are refused."""
        trees = cls(**arrays, link=about["link"])
        n, width = trees.values.shape
        whole = {trees.feature.shape, trees.threshold.shape, trees.left.shape, trees.right.shape} == {(n,)}
        if not whole or trees.base.shape != (n_c,) or trees.outputs.shape != trees.roots.shape or not len(trees.roots):
            raise ValueError("trees whose arrays do not fit together")
        inner = np.flatnonzero(trees.feature != LEAF)
        below = np.concatenate([trees.left[inner], trees.right[inner]])
        within = (below > np.tile(inner, 2)).all() and (below < n).all()  # children after parents: no cycles
        inputs_known = ((trees.feature >= LEAF) & (trees.feature < inputs)).all()
        roots_known = ((trees.roots >= 0) & (trees.roots < n)).all()
        outputs_known = ((trees.outputs >= 0) & (trees.outputs + width <= n_c)).all()
        if not (within and inputs_known and roots_known and outputs_known) or trees.link not in ("shares", "softmax"):
            raise ValueError("trees with nodes that lead nowhere")
        return trees


@dataclass(frozen=True)
class Tree:
    """One tree as a library gives it: float64 thresholds, and one or more values for every node."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    output: int = 0


def together(trees: Sequence[Tree], base: np.ndarray, link: str) -> Trees:
    """Several trees as one model."""
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
    """The fixed-point step: the finest power of two of which float64 holds every multiple up to twice the largest sum.

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
    """Convert a scikit-learn decision tree, or a forest."""
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
    """Convert scikit-learn's histogram gradient boosting; with two classes it scores the second only."""
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
