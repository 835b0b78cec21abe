"""From rows to the inputs of an ONNX model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ectype.errors import OriginalError, SettingError
from ectype.original.onnx_signature import Value, describe_values
from ectype.types import Series, Table

if TYPE_CHECKING:
    import onnx

Feed: TypeAlias = Callable[[Table], dict[str, np.ndarray]]
"""From rows to the inputs of a model, by name."""


def inputs_of(graph: onnx.GraphProto, name: str) -> list[Value]:
    """The inputs that rows go into. Before IR 4, weights are listed among the inputs."""
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [Value.of(value) for value in graph.input if value.name not in weights]
    if len({value.batch for value in inputs}) > 1:
        hint = "export it with the number of rows left open"
        raise SettingError(name, "inputs of as many rows each", f"the inputs {describe_values(inputs)}", hint)
    return inputs


def feed_of(inputs: list[Value], name: str, gap: str | None) -> tuple[Feed, int | None, list[str] | None]:
    """How rows become inputs; how many columns they have, and their names, where the model tells."""
    only = inputs[0] if len(inputs) == 1 else None
    if only and only.numeric and len(only.shape) == 2:
        return lambda rows: {only.name: _matrix(rows, np.dtype(only.type), name)}, only.shape[1], None
    if inputs and all(value.column for value in inputs):
        return lambda rows: _columns(rows, inputs, name, gap), len(inputs), [value.name for value in inputs]
    expected = "one input of numbers [?, d], or one input [?, 1] for each column"
    raise SettingError(name, expected, f"the inputs {describe_values(inputs)}")


def _matrix(rows: Table, dtype: np.dtype, name: str) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return _cast(rows, dtype, name)
    return np.column_stack([number_column(column, dtype, f"{name}: column {at}") for at, column in rows.items()])


def _columns(rows: Table, inputs: Sequence[Value], name: str, gap: str | None) -> dict[str, np.ndarray]:
    names = [value.name for value in inputs]
    found = [] if isinstance(rows, np.ndarray) else list(rows.columns)
    if isinstance(rows, np.ndarray) or set(found) != set(names):
        hint = "describe the space from a table with these columns"
        shown = f"the columns {found}" if found else "rows without column names"
        raise OriginalError(name, f"a data frame with the columns {names}", shown, hint)
    feeds = {}
    for value in inputs:
        column, where = rows[value.name], f"{name}: column {value.name}"
        if value.numeric:
            array = number_column(column, np.dtype(value.type), where)
        else:
            array = _strings(column if gap is None else column.astype(object).where(column.notna(), gap), where)
        feeds[value.name] = array.reshape((-1, 1)[: len(value.shape)])
    return feeds


def number_column(column: Series, dtype: np.dtype, where: str) -> np.ndarray:
    """A column of a data frame in the type a model takes, NaN where a value is missing."""
    if column.dtype == object or column.dtype == "category":
        column = column.astype(object).infer_objects()
    if column.dtype == object:
        with contextlib.suppress(TypeError, ValueError):  # true, false and gaps have no type of their own in NumPy
            column = column.astype("boolean")
    gaps = column.dtype.kind in "biuf" and column.isna().any()
    return _cast(column.to_numpy(dtype=float, na_value=np.nan) if gaps else column.to_numpy(), dtype, where)


def _strings(column: Series, where: str) -> np.ndarray:
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
