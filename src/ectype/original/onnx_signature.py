"""The inputs and outputs that an ONNX model declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import onnx
from onnx import TensorProto

_NUMBERS = {
    TensorProto.FLOAT16: "float16",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.INT8: "int8",
    TensorProto.INT16: "int16",
    TensorProto.INT32: "int32",
    TensorProto.INT64: "int64",
    TensorProto.UINT8: "uint8",
    TensorProto.UINT16: "uint16",
    TensorProto.UINT32: "uint32",
    TensorProto.UINT64: "uint64",
    TensorProto.BOOL: "bool",
}
_TYPES = {**_NUMBERS, TensorProto.STRING: "string"}


class Value(NamedTuple):
    """An input or output: its name, its type, and a tensor's shape, with None for what is left open."""

    name: str
    type: str
    shape: tuple[int | None, ...] = ()

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> Value:
        """The input or output that a model declares."""
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            return cls(value.name, f"a {kind.removesuffix('_type')}" if kind else "of no type")
        tensor = value.type.tensor_type
        dtype = _TYPES.get(tensor.elem_type, f"ONNX type {tensor.elem_type}")
        return cls(value.name, dtype, tuple(dim.dim_value if dim.dim_value > 0 else None for dim in tensor.shape.dim))

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.name} ({self.type} [{sizes}])" if self.shape else f"{self.name} ({self.type})"

    @property
    def readable(self) -> bool:
        """Whether it is a tensor of a type we know."""
        return self.type in _TYPES.values()

    @property
    def numeric(self) -> bool:
        """Whether it is a tensor of numbers or booleans."""
        return self.type in _NUMBERS.values()

    @property
    def scores(self) -> bool:
        """Whether it holds scores if it is an output. Labels are whole numbers, booleans or strings."""
        return self.type.startswith("float")

    @property
    def column(self) -> bool:
        """Whether it holds one value per row."""
        return self.readable and len(self.shape) > 0 and self.shape[1:] in ((), (1,))

    @property
    def batch(self) -> int | None:
        """How many rows it takes at a time, as in a model that was exported from an example; None for any number."""
        return self.shape[0] if self.shape else None


def describe_values(values: Iterable[Value]) -> str:
    """Several of them, in words."""
    return ", ".join(map(str, values)) or "none"
