"""A builder of ONNX graphs: nodes, constants, and unique names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ectype._version import __version__

ML = "ai.onnx.ml"
# The oldest versions with every operator that is used, so that as many runtimes as possible read the file.
PLAIN = {"opset": 17, "ml": 3, "ir": 8}
WITH_TREES = {"opset": 17, "ml": 5, "ir": 10}

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
