"""A decision tree, a forest, or gradient-boosted trees, all in the same arrays.

A row goes left at a node where its input is at most the threshold. Inputs are float32, and so are thresholds, rounded
down: no float32 number lies between a threshold and its rounded value, so every row takes the same path as before.
Leaf values are fixed-point: multiples of one power of two, so small that their sums are exact. Added in any order, they
give the same scores to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ectype._kernel import LEAF, TreeArrays, TreeEnsemble
from ectype.algorithm.uncertainty import softmax
from ectype.types import Estimator

# The arrays of trees that are numbers of nodes, inputs and classes.
PLACES = ("feature", "left", "right", "roots", "outputs")
# The most that a score of a class may be.
LARGEST = 1e300


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
        scores = np.tile(self.base.astype(np.float64), (len(X), 1))
        return self._sums(X.shape[1])(X, scores)

    def _sums(self, inputs: int) -> TreeEnsemble:
        """The trees as the engine has them, laid out once for rows of so many inputs."""
        if inputs not in self._laid_out:
            leaf, own = self.feature == LEAF, np.arange(len(self.feature))
            children = np.where(leaf[:, None], own[:, None], np.stack([self.left, self.right], axis=1))
            feature = np.where(leaf, 0, self.feature)
            self._laid_out[inputs] = TreeEnsemble(
                feature, self.threshold, children.ravel(), self.values, self.roots, self.outputs, self.n_c, inputs
            )
        return self._laid_out[inputs]

    @cached_property
    def _laid_out(self) -> dict[int, TreeEnsemble]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_laid_out"}

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""
        names = ("feature", "threshold", "left", "right", "values", "roots", "outputs", "base")
        return {"link": self.link}, {name: getattr(self, name) for name in names}

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes; nodes that do not make up trees are refused."""
        trees = cls(**arrays, link=about["link"])
        if trees.values.ndim != 2 or any(arrays[name].dtype.kind != "i" for name in PLACES):
            raise ValueError("trees whose arrays do not fit together")
        n, width = trees.values.shape
        whole = {trees.feature.shape, trees.threshold.shape, trees.left.shape, trees.right.shape} == {(n,)}
        if not whole or trees.base.shape != (n_c,) or trees.outputs.shape != trees.roots.shape or not len(trees.roots):
            raise ValueError("trees whose arrays do not fit together")
        inputs_known = ((trees.feature >= LEAF) & (trees.feature < inputs)).all()
        outputs_known = ((trees.outputs >= 0) & (trees.outputs + width <= n_c)).all()
        if not (inputs_known and outputs_known and trees._is_forest()) or trees.link not in ("shares", "softmax"):
            raise ValueError("trees with nodes that lead nowhere")
        if not trees._sums_are_finite():
            raise ValueError("trees whose values add up to no probabilities")
        return trees

    def _is_forest(self) -> bool:
        """Whether children come after their parents, and every node but the roots is the child of one.

        So no row comes by more nodes than there are, through all trees together.
        """
        inner = np.flatnonzero(self.feature != LEAF)
        return is_forest(inner, self.left[inner], self.right[inner], self.roots, len(self.feature))

    def _sums_are_finite(self) -> bool:
        """Whether whatever leaves a row comes to, its scores are numbers; shares, that they have a sum above zero."""
        leaves, base = self.values[self.feature == LEAF], self.base[np.isfinite(self.base)]
        if self.link == "softmax":
            return float(np.abs(leaves).max()) < LARGEST / len(self.roots) and float(np.abs(base).max()) < LARGEST
        whole = leaves.shape[1] == self.n_c and len(base) == self.n_c
        return whole and bool((leaves >= 0).all() and (leaves.sum(axis=1) > 0).all() and (base >= 0).all())


def is_forest(inner: np.ndarray, left: np.ndarray, right: np.ndarray, roots: np.ndarray, n: int) -> bool:
    """Whether these inner nodes, with their children, make trees with these roots of n nodes, none left over.

    >>> is_forest(np.array([0]), np.array([1]), np.array([2]), np.array([0]), 3)
    True
    >>> is_forest(np.array([0, 1]), np.array([1, 2]), np.array([2, 3]), np.array([0]), 4)
    False
    """
    below = np.concatenate([left, right, roots])
    if ((below < 0) | (below >= n)).any() or (left <= inner).any() or (right <= inner).any():
        return False
    return bool((np.bincount(below, minlength=n) == 1).all())


@dataclass(frozen=True)
class Tree:
    """One tree as a library gives it: float64 thresholds, and one or more values for every node."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    output: int = 0


def concatenate_trees(trees: Sequence[Tree], base: np.ndarray, link: str) -> Trees:
    """One model of several trees."""
    sizes = np.array([len(tree.feature) for tree in trees])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    leaf = np.concatenate([tree.feature for tree in trees]) == LEAF
    shift = np.repeat(starts, sizes)
    threshold = np.concatenate([tree.threshold for tree in trees])
    values = np.where(leaf[:, None], np.concatenate([tree.values for tree in trees]), 0.0)
    return fixed_point(
        Trees(
            feature=np.concatenate([tree.feature for tree in trees]).astype(np.int32),
            threshold=np.where(leaf, np.float32(0), round_down(threshold)),
            left=np.where(leaf, 0, np.concatenate([tree.left for tree in trees]) + shift).astype(np.int32),
            right=np.where(leaf, 0, np.concatenate([tree.right for tree in trees]) + shift).astype(np.int32),
            values=values,
            roots=starts.astype(np.int32),
            outputs=np.array([tree.output for tree in trees], np.int32),
            base=base,
            link=link,
        )
    )


def fixed_point(trees: Trees) -> Trees:
    """The same trees with leaf values whose sums are exact."""
    largest = np.maximum.reduceat(np.abs(trees.values).max(axis=1), trees.roots).sum()
    step = _step(largest + np.abs(trees.base[np.isfinite(trees.base)]).max())
    return replace(trees, values=np.rint(trees.values / step) * step, base=np.rint(trees.base / step) * step)


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


def of_grown(grown: TreeArrays, outputs: np.ndarray, base: np.ndarray, link: str) -> Trees:
    """Trees that the engine has grown."""
    starts = np.cumsum(grown.sizes) - grown.sizes
    shift, leaf = np.repeat(starts, grown.sizes), grown.feature == LEAF
    values = np.where(leaf[:, None], grown.values.astype(float), 0.0)
    return fixed_point(
        Trees(
            feature=grown.feature,
            threshold=np.where(leaf, np.float32(0), grown.threshold),
            left=np.where(leaf, 0, grown.left + shift).astype(np.int32),
            right=np.where(leaf, 0, grown.right + shift).astype(np.int32),
            values=values,
            roots=starts.astype(np.int32),
            outputs=np.asarray(outputs, np.int32),
            base=base,
            link=link,
        )
    )


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
    return concatenate_trees(trees, np.zeros(n_c), "shares")


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
    return concatenate_trees(trees, base, "softmax")
