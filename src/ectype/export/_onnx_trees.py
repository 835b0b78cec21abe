"""Trees for ONNX's operator TreeEnsemble, where a leaf adds one number to one class.

A tree whose leaves score several classes becomes several trees: the first has every leaf's largest value, the next the
second largest, and so on; branches that add nothing are pruned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import numpy_helper

from ectype._kernel import LEAF
from ectype.models.trees import Trees

SUM = 1


def ensembles(trees: Trees) -> dict[str, Any]:
    """The attributes of a TreeEnsemble node that sums the trees, in double."""
    parts, nodes, leaves = [], 0, 0
    for targets, weights in _layers(trees):
        part = _nodes(trees, targets, weights)
        for side in ("true", "false"):
            at_leaf = part[f"nodes_{side}leafs"] == 1
            part[f"nodes_{side}nodeids"] += np.where(at_leaf, leaves, nodes)
        part["tree_roots"] += nodes
        nodes, leaves = nodes + len(part["nodes_splits"]), leaves + len(part["leaf_weights"])
        parts.append(part)
    whole = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    tensors = {key: numpy_helper.from_array(whole.pop(key)) for key in ("nodes_splits", "leaf_weights", "nodes_modes")}
    lists = {key: numbers.tolist() for key, numbers in whole.items()}
    return {"aggregate_function": SUM, "post_transform": 0, "n_targets": trees.n_c, **tensors, **lists}


def _layers(trees: Trees) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The class and the value of each leaf, layer by layer: its largest value first, then the next."""
    first = np.repeat(trees.outputs, np.diff(np.append(trees.roots, len(trees.feature))))
    order = np.argsort(-np.abs(trees.values), axis=1, kind="stable")
    for rank in range(trees.values.shape[1]):
        weights = np.take_along_axis(trees.values, order[:, [rank]], axis=1)[:, 0]
        if rank and not weights.any():
            return
        yield first + order[:, rank], weights


def _nodes(trees: Trees, targets: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Nodes and leaves of one layer, counted from zero."""
    speaks = _speaks(trees, weights)
    inner = (trees.feature != LEAF) & speaks
    at = np.flatnonzero(inner)
    # Single-leaf trees: a node with that leaf on both sides. If all trees are pruned, one stays.
    lone = trees.roots[speaks[trees.roots] & ~inner[trees.roots]] if speaks.any() else trees.roots[:1]
    used = np.zeros(len(inner), bool)
    used[np.concatenate([trees.left[at], trees.right[at], lone])] = True
    leaf = used & ~inner
    place = np.where(inner, np.cumsum(inner) - 1, np.cumsum(leaf) - 1)
    alone = np.arange(len(lone)) + len(at)
    roots = np.concatenate([place[trees.roots[inner[trees.roots]]], alone])
    sides = {"true": np.append(trees.left[at], lone), "false": np.append(trees.right[at], lone)}
    zeros = np.zeros(len(lone))
    return {
        "tree_roots": roots,
        "nodes_featureids": np.append(trees.feature[at], zeros).astype(np.int64),
        "nodes_splits": np.append(trees.threshold[at], zeros).astype(np.float64),
        "nodes_modes": np.zeros(len(at) + len(lone), np.uint8),
        **{f"nodes_{side}nodeids": place[child] for side, child in sides.items()},
        **{f"nodes_{side}leafs": leaf[child].astype(np.int64) for side, child in sides.items()},
        "leaf_targetids": np.where(trees.feature == LEAF, targets, 0)[leaf].astype(np.int64),
        "leaf_weights": np.where(trees.feature == LEAF, weights, 0.0)[leaf],
    }


def _speaks(trees: Trees, weights: np.ndarray) -> np.ndarray:
    """Which nodes are, or have below them, a leaf whose value is not 0."""
    inner = np.flatnonzero(trees.feature != LEAF)
    found = (trees.feature == LEAF) & (weights != 0)
    while True:
        more = found[trees.left[inner]] | found[trees.right[inner]]
        if (more == found[inner]).all():
            return found
        found[inner] = more
