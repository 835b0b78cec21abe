"""The inputs and outputs that an ONNX model declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx

# Types of elements by the numbers that the ONNX standard gives them (TensorProto.DataType).
_NUMBERS = {
    10: "float16",
    1: "float32",
    11: "float64",
    3: "int8",
    5: "int16",
    6: "int32",
    7: "int64",
    2: "uint8",
    4: "uint16",
    12: "uint32",
    13: "uint64",
    9: "bool",
}
_TYPES = {**_NUMBERS, 8: "string"}


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
