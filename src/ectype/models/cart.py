"""A small decision tree of two classes, grown in NumPy: to explain, not to copy.

Splits are those of CART (Breiman, Friedman, Olshen and Stone, 1984): the threshold that lowers the Gini impurity most.
The tree is grown best-first to a number of leaves (Shi, 2007), and not pruned.

scikit-learn grows such a tree too, but importing it takes longer than a whole copy does.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from ectype._kernel import LEAF
from ectype.models.trees import Tree, Trees, concatenate_trees


@dataclass(frozen=True)
class _Node:
    """Rows that came to a node, by input from the lowest value to the highest, and the best way to part them."""

    order: np.ndarray
    """For every input, the rows in the order of its values."""
    depth: int
    shares: np.ndarray
    """Of both classes, by weight."""
    gain: float
    feature: int
    threshold: float
    left: np.ndarray
    """Which rows go left, of all there are."""


def fit_cart(X: np.ndarray, y: np.ndarray, weights: np.ndarray, *, depth: int, leaves: int) -> Trees:
    """Fit a tree to rows of two classes with weights.

    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    >>> tree = fit_cart(X, np.array([False, False, True, True]), np.ones(4), depth=3, leaves=8)
    >>> tree.probabilities(X)[:, 1].tolist(), tree.threshold[0].item()
    ([0.0, 0.0, 1.0, 1.0], 1.5)
    """
    grower = _Grower(X, y, weights)
    nodes = [grower.node(np.argsort(X, axis=0, kind="stable").T, 0)]
    children: dict[int, tuple[int, int]] = {}
    waiting = [(-nodes[0].gain, 0)]
    while waiting and len(children) + 1 < leaves:
        _, k = heappop(waiting)
        parent = nodes[k]
        if parent.gain <= 0 or parent.depth >= depth:
            continue
        children[k] = len(nodes), len(nodes) + 1
        for side in (parent.left, ~parent.left):
            order = parent.order[side[parent.order]].reshape(len(parent.order), -1)
            nodes.append(grower.node(order, parent.depth + 1))
            heappush(waiting, (-nodes[-1].gain, len(nodes) - 1))
    inner = np.array([k in children for k in range(len(nodes))])
    left, right = (np.array([children.get(k, (0, 0))[side] for k in range(len(nodes))]) for side in (0, 1))
    feature = np.where(inner, [node.feature for node in nodes], LEAF)
    threshold = np.where(inner, [node.threshold for node in nodes], 0.0)
    return concatenate_trees(
        [Tree(feature, threshold, left, right, np.array([node.shares for node in nodes]))], np.zeros(2), "shares"
    )


class _Grower:
    """Finds the best split of any of the rows."""

    def __init__(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray):
        self.X, self.columns = X, np.ascontiguousarray(X.T)
        self.weights = np.stack([weights * ~y, weights * y])

    def node(self, order: np.ndarray, depth: int) -> _Node:
        """A node of rows that are given by input, in the order of its values."""
        both = self.weights[:, order]  # class, input, place
        below = np.cumsum(both, axis=2)
        total = below[:, :1, -1:]
        shares = total[:, 0, 0] / total.sum()
        values = np.take_along_axis(self.columns, order, axis=1)
        apart = values[:, :-1] < values[:, 1:]
        if not apart.any():
            return _Node(order, depth, shares, 0.0, LEAF, 0.0, np.zeros(len(self.X), bool))
        purity = _purity(below[..., :-1]) + _purity(total - below[..., :-1])
        at = int(np.argmax(np.where(apart, purity, -np.inf)))
        feature, place = divmod(at, apart.shape[1])
        low, high = float(values[feature, place]), float(values[feature, place + 1])
        threshold = (low + high) / 2
        left = np.zeros(len(self.X), bool)
        left[order[feature, : place + 1]] = True
        gain = float(purity[feature, place] - _purity(total)[0, 0])
        return _Node(order, depth, shares, max(gain, 0.0), feature, threshold if threshold < high else low, left)


def _purity(weights: np.ndarray) -> np.ndarray:
    """The sum of squares of both classes' weights over their sum: the higher, the less mixed."""
    total = weights.sum(axis=0)
    return (weights**2).sum(axis=0) / np.where(total > 0, total, 1.0)
