"""A builder of ONNX graphs: nodes, constants, unique names; and the operator TreeEnsemble."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ectype._kernel import LEAF
from ectype._version import __version__
from ectype.models.trees import Trees

ML = "ai.onnx.ml"
# The oldest versions with every operator that is used, so that as many runtimes as possible read the file.
PLAIN = {"opset": 17, "ml": 3, "ir": 8}
WITH_TREES = {"opset": 17, "ml": 5, "ir": 10}

# How TreeEnsemble puts its trees together.
SUM = 1

Value = str | np.ndarray


class OnnxGraph:
    """Nodes in the order they compute; call it with an operator's name, and results of others or arrays."""

    def __init__(self, inputs: dict[str, tuple[int, int]]):
        """Inputs: by name, the type of the elements and the number of columns."""
        self.inputs = inputs
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._taken = set(inputs)

    def __call__(self, operator: str, *values: Value, domain: str = "", **attributes: Any) -> str:
        """Add a node; gives the name of its output."""
        names = [value if isinstance(value, str) else self.constant(value) for value in values]
        result = self.name(f"{operator.lower()}_{len(self.nodes)}")
        self.nodes.append(helper.make_node(operator, names, [result], domain=domain, **attributes))
        return result

    def constant(self, array: np.ndarray) -> str:
        """Add an initializer: an array that is stored in the file."""
        name = self.name(f"constant_{len(self.constants)}")
        if array.dtype.kind in "OU":
            words = [str(word).encode() for word in array.ravel()]
            self.constants.append(helper.make_tensor(name, TensorProto.STRING, array.shape, words))
        else:
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def name(self, wish: str) -> str:
        """A unique name, close to the one wished for."""
        while wish in self._taken:
            wish += "_"
        self._taken.add(wish)
        return wish

    def model(self, outputs: Iterable[tuple[str, str, int, list[int | str]]], about: dict[str, str]) -> onnx.ModelProto:
        """The finished model; outputs are a wish for the name, a result that no node reads, its type and its shape."""
        given = [helper.make_tensor_value_info(n, kind, ["rows", width]) for n, (kind, width) in self.inputs.items()]
        said = []
        for wish, result, kind, shape in outputs:
            name = self.name(wish)
            next(node for node in self.nodes if node.output[0] == result).output[0] = name
            said.append(helper.make_tensor_value_info(name, kind, shape))
        pins = WITH_TREES if any(node.op_type == "TreeEnsemble" for node in self.nodes) else PLAIN
        model = helper.make_model(
            helper.make_graph(self.nodes, "copy", given, said, self.constants),
            opset_imports=[helper.make_opsetid("", pins["opset"]), helper.make_opsetid(ML, pins["ml"])],
            ir_version=pins["ir"],
            producer_name="ectype",
            producer_version=__version__,
        )
        helper.set_model_props(model, about)
        onnx.checker.check_model(model)
        return model


def ensembles(trees: Trees) -> dict[str, Any]:
    """The attributes of a TreeEnsemble node that sums the trees, in double; in it, a leaf adds one number to one class.

    A tree whose leaves score several classes becomes several trees: the first has every leaf's largest value, the next
    the second largest, and so on; branches that add nothing are pruned.
    """
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
