"""Originals that are ONNX models: checked here, then run by a process of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import onnx
from onnx import TensorProto

from understudy.errors import OriginalError, SettingError
from understudy.original.base import Original
from understudy.original.decode import Reading, decoded, decoding
from understudy.original.files import read_file
from understudy.original.onnx_process import ModelProcess
from understudy.original.processes import brief, patience
from understudy.types import Classes

DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
"""The operators of the ONNX standard. What others do is up to whoever wrote them."""

GAP = "understudy.gap"
"""The key under which a file may say which word stands for a gap; those that understudy exports do."""

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

Feed = Callable[[Any], dict[str, np.ndarray]]
"""From rows to the inputs of a model, by name."""


def open_onnx(
    spec: str, classes: Classes = None, *, output: str | None = None, timeout: float = 60.0, **reading: Unpack[Reading]
) -> Original:
    """The classifier in an ONNX file, of one matrix of numbers or of one input for each column of a data frame.

    Refused are files that refer to others, operators outside the standard, and functions of the model's own. What is
    left is still a stranger's program for onnxruntime, so it runs in a process of its own: one that crashes, or takes
    longer than `timeout` seconds for a request, is an error, and the next request gets a fresh process.
    """
    seconds = patience(timeout)
    kind = decoding(reading.get("decode"))
    file = read_file(spec)
    model = _checked(file.content, file.name)
    graph = model.graph
    inputs = _inputs(graph, file.name)
    feed, d, names = _feed(inputs, file.name, next((p.value for p in model.metadata_props if p.key == GAP), None))
    chosen = _choose([_Value.of(value) for value in graph.output], output, kind)
    process = ModelProcess(file.name, file.content, chosen.name, inputs[0].singly, seconds)
    original = Original(lambda rows: process.ask(feed(rows)), d=d, names=names, name=file.name, fingerprint=file.sha256)
    original.failures = process.failures
    return decoded(original, classes, **reading)


# --- what is in the file ----------------------------------------------------------------------------------------------


def _checked(content: bytes, name: str) -> onnx.ModelProto:
    """The model in a file, if it is one, with all of it in there and known."""
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise SettingError(name, "an ONNX model", f"something else: {brief(str(error))}") from error
    _refuse_foreign(model, name)
    try:
        onnx.checker.check_model(content)
    except Exception as error:
        hint = "see how it was exported, and that its opset is not newer than the installed onnx"
        raise SettingError(name, "a valid ONNX model", brief(str(error)), hint) from error
    return model


def _refuse_foreign(model: onnx.ModelProto, name: str) -> None:
    if model.functions:
        found = "functions of its own: " + ", ".join(function.name for function in model.functions)
        raise SettingError(name, "operators of the ONNX standard", brief(found), "export it with functions inlined")
    for part in _messages(model):
        if isinstance(part, TensorProto) and (part.external_data or part.data_location == TensorProto.EXTERNAL):
            found, hint = f"tensor {part.name!r} kept in another", "export it with all weights in one file"
            raise SettingError(name, "a model in a single file", found, hint)
        if isinstance(part, (onnx.NodeProto, onnx.OperatorSetIdProto)) and part.domain not in DOMAINS:
            known = " and ".join(filter(None, DOMAINS))
            raise SettingError(name, f"operators of the domains {known}", f"the domain {part.domain!r}")


def _messages(root: Any) -> Iterator[Any]:
    """A protobuf message and all below it: a reference to a file may hide in any attribute or subgraph."""
    waiting = [root]
    while waiting:
        message = waiting.pop()
        yield message
        for field, value in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                waiting.extend([value] if hasattr(value, "ListFields") else value)


class _Value(NamedTuple):
    """An input or output: its name, its type, and a tensor's shape, with None for what is left open."""

    name: str
    type: str
    shape: tuple[int | None, ...] = ()

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> _Value:
        """What a model declares."""
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
    def singly(self) -> bool:
        """Whether it takes one row at a time, as in a model that was exported from one example."""
        return self.shape[:1] == (1,)


def _listed(values: Iterable[_Value]) -> str:
    return ", ".join(map(str, values)) or "none"


# --- inputs -----------------------------------------------------------------------------------------------------------


def _inputs(graph: onnx.GraphProto, name: str) -> list[_Value]:
    """The inputs that rows go into. Before IR 4, weights are listed among the inputs."""
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [_Value.of(value) for value in graph.input if value.name not in weights]
    fixed = [value for value in inputs if value.shape and value.shape[0] not in (None, 1)]
    if fixed or len({value.singly for value in inputs}) > 1:
        hint = "export it with the number of rows left open"
        raise SettingError(name, "inputs of any number of rows", f"the inputs {_listed(inputs)}", hint)
    return inputs


def _feed(inputs: list[_Value], name: str, gap: str | None) -> tuple[Feed, int | None, list[str] | None]:
    """How rows become inputs; how many columns they have, and their names, where the model tells."""
    only = inputs[0] if len(inputs) == 1 else None
    if only and only.numeric and len(only.shape) == 2:
        return lambda rows: {only.name: _matrix(rows, np.dtype(only.type), name)}, only.shape[1], None
    if inputs and all(value.column for value in inputs):
        return lambda rows: _columns(rows, inputs, name, gap), len(inputs), [value.name for value in inputs]
    expected = "one input of numbers [?, d], or one input [?, 1] for each column"
    raise SettingError(name, expected, f"the inputs {_listed(inputs)}")


def _matrix(rows: Any, dtype: np.dtype, name: str) -> np.ndarray:
    if not hasattr(rows, "columns"):
        return _cast(rows, dtype, name)
    return np.column_stack([_number_column(column, dtype, f"{name}: column {at}") for at, column in rows.items()])


def _columns(rows: Any, inputs: Sequence[_Value], name: str, gap: str | None) -> dict[str, np.ndarray]:
    names = [value.name for value in inputs]
    found = list(getattr(rows, "columns", ()))
    if set(found) != set(names):
        hint = "describe the space from a table with these columns"
        shown = f"the columns {found}" if found else "rows without column names"
        raise OriginalError(name, f"a data frame with the columns {names}", shown, hint)
    feeds = {}
    for value in inputs:
        column, where = rows[value.name], f"{name}: column {value.name}"
        if value.numeric:
            array = _number_column(column, np.dtype(value.type), where)
        else:
            array = _strings(column if gap is None else column.astype(object).where(column.notna(), gap), where)
        feeds[value.name] = array.reshape((-1, 1)[: len(value.shape)])
    return feeds


def _number_column(column: Any, dtype: np.dtype, where: str) -> np.ndarray:
    """A column of a data frame in the type a model takes, NaN where a value is missing."""
    if column.dtype == object or column.dtype == "category":
        column = column.astype(object).infer_objects()
    if column.dtype == object:
        with contextlib.suppress(TypeError, ValueError):  # true, false and gaps have no type of their own in NumPy
            column = column.astype("boolean")
    gaps = column.dtype.kind in "biuf" and column.isna().any()
    return _cast(column.to_numpy(dtype=float, na_value=np.nan) if gaps else column.to_numpy(), dtype, where)


def _strings(column: Any, where: str) -> np.ndarray:
    values = column.to_numpy(dtype=object)
    for row, value in enumerate(values):
        if not isinstance(value, str):
            hint = "a model that takes strings has no way to take anything else"
            raise OriginalError(where, "a string in every row", f"{value!r} in row {row}", hint)
    return values


def _cast(values: np.ndarray, dtype: np.dtype, where: str) -> np.ndarray:
    """Numbers in the type a model takes. Floats are rounded to it, as it asks; whole numbers stay what they are."""
    if values.dtype.kind not in "biuf":
        raise OriginalError(where, "numbers", f"values of type {values.dtype}")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
        lost = np.isinf(cast) & np.isfinite(values) if dtype.kind == "f" else cast != values
    if lost.any():
        at = tuple(np.argwhere(lost)[0])
        raise OriginalError(where, f"numbers that {dtype} can hold", f"{values[at]} in row {at[0]}")
    return cast


# --- outputs ----------------------------------------------------------------------------------------------------------


def _choose(outputs: list[_Value], output: str | None, decode: str) -> _Value:
    """The output to read: the one that was named, or the only one that can be read in this way."""
    chosen = _only(outputs, decode) if output is None else next((v for v in outputs if v.name == output), None)
    if chosen is None:
        raise SettingError("output", f"one of {_listed(outputs)}", repr(output))
    if not chosen.readable:
        others = _listed(value for value in outputs if value is not chosen)
        raise SettingError("output", "a tensor", str(chosen), f"name another with --output: {others}")
    if decode == "label" and chosen.scores:
        raise SettingError("decode", "argmax or threshold for scores", f"{decode!r} for the output {chosen}")
    if decode != "label" and not chosen.numeric:
        raise SettingError("decode", "'label' for strings", f"{decode!r} for the output {chosen}")
    return chosen


def _only(outputs: list[_Value], decode: str) -> _Value:
    fitting = [value for value in outputs if value.readable and value.scores == (decode != "label")]
    candidates = fitting if len(fitting) == 1 else outputs
    if len(candidates) != 1:
        what = "labels" if decode == "label" else "scores"
        hint = "name one with --output, and say --decode argmax or threshold if it gives scores"
        raise SettingError("output", f"one output of {what}", f"the outputs {_listed(outputs)}", hint)
    return candidates[0]
