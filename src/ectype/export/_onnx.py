"""A copy as one ONNX file: raw columns in, labels and probabilities out; the encoding of columns is part of the graph.

A space without a data frame has one input "X", a matrix of doubles. One with a data frame has an input [rows, 1] for
every column, under its name: double for floats, int64 for integers, bool for booleans, string for levels, int64 if all
of them are integers. A gap is NaN, or the empty string, or what NaN and None become as strings; integers and booleans
that may have gaps are doubles.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto

from ectype._kernel import PiecewiseLinear
from ectype.algorithm.mlp import Network
from ectype.errors import SettingError
from ectype.export._category_text import words_of
from ectype.export._onnx_graph import ML, OnnxGraph, ensembles
from ectype.models.base import Model
from ectype.models.blend import FLOOR, Blend
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.linear import Linear
from ectype.models.rbf import RadialModel
from ectype.models.trees import Trees
from ectype.original.onnx import GAP
from ectype.space import (
    BOOL_TYPE,
    CLIP_DEVIATIONS,
    FLOAT64_TYPE,
    INT64_TYPE,
    STRING_TYPE,
    UNKNOWN_LEVEL,
    Category,
    Column,
    Date,
    Encoding,
    Space,
    WireType,
    wire_type_of_column,
    wire_type_of_labels,
)
from ectype.types import Series, Table

MATRIX = "X"
# What stands for a gap in a column of words: the empty one, and what runtimes make of NaN, None and pandas' NA, since a
# tensor of strings has nothing but strings.
GAP_WORDS = ("", "nan", "None", "<NA>")
# Doubles hold all integers up to here.
EXACT = 2**53


def onnx_model(copy: CopyClassifier) -> onnx.ModelProto:
    """The copy as an ONNX model of standard operators only."""
    types, labels = _types(copy.space), wire_type_of_labels(copy.classes)
    width = copy.space.d if not copy.space.frame else 1
    graph = OnnxGraph({name: (_code(kind), width) for name, kind in types.items()})
    scores, probabilities = _decide(graph, copy.model, _encode(graph, copy.encoding, _read(graph, copy.space, types)))
    code = graph("ArgMax", scores, axis=1, keepdims=0)
    label = graph("Gather", copy.classes.astype(labels.dtype), code, axis=0)
    floats = TensorProto.FLOAT if copy.model.kind in ("mlp", "radial") else TensorProto.DOUBLE
    outputs: list[tuple[str, str, int, list[int | str]]] = [
        ("label", label, _code(labels), ["rows"]),
        ("probabilities", probabilities, floats, ["rows", len(copy.classes)]),
    ]
    return graph.model(outputs, {**_about(copy), GAP: ""})


def _about(copy: CopyClassifier) -> dict[str, str]:
    """What the file says of itself: the classes, whether it has an input for every column, and which may have gaps."""
    gaps = [column.name for column in copy.space.columns if column.missing]
    about = {"classes": copy.classes.tolist(), "frame": copy.space.frame, "gaps": gaps}
    return {name: json.dumps(value) for name, value in about.items()}


def input_types(space: Space) -> dict[str, str]:
    """The ONNX type of every input, by its name."""
    return {name: kind.onnx for name, kind in _types(space).items()}


def feeds(space: Space, rows: Table) -> dict[str, np.ndarray]:
    """Rows as in production as the inputs of the file."""
    if not space.frame:
        return {MATRIX: np.asarray(rows, np.float64)}
    assert not isinstance(rows, np.ndarray)
    return {name: _fed(rows[name], kind).reshape(-1, 1) for name, kind in _types(space).items()}


def _fed(values: Series, kind: WireType) -> np.ndarray:
    if kind in (INT64_TYPE, BOOL_TYPE):
        return values.to_numpy(dtype=kind.dtype)
    objects, absent = values.to_numpy(dtype=object), values.isna().to_numpy()
    if kind == FLOAT64_TYPE:
        return np.where(absent, np.nan, objects).astype(np.float64)
    return np.array(["" if gap else str(word) for word, gap in zip(objects, absent, strict=True)], dtype=object)


def _types(space: Space) -> dict[str, WireType]:
    return {column.name: _type(column) for column in space.columns} if space.frame else {MATRIX: FLOAT64_TYPE}


def _code(kind: WireType) -> int:
    return TensorProto.DataType.Value(kind.onnx)


def _type(column: Column) -> WireType:
    """Integers and booleans that may have gaps are doubles; integer levels that doubles cannot hold are strings."""
    kind = wire_type_of_column(column)
    if kind in (BOOL_TYPE, INT64_TYPE) and column.missing:
        kind = FLOAT64_TYPE if not isinstance(column, Category) or _are_exact(column.levels) else STRING_TYPE
    if isinstance(column, Category) and kind == STRING_TYPE:
        words_of(column, GAP_WORDS)
    return kind


def _are_exact(levels: Iterable[int | str]) -> bool:
    return all(isinstance(level, int) and abs(level) < EXACT for level in levels)


# --- raw columns to the matrix that a space makes of them -------------------------------------------------------------


def _read(graph: OnnxGraph, space: Space, types: dict[str, WireType]) -> str:
    """Numbers as they are, booleans as 0 and 1, levels as their positions, gaps as NaN."""
    if not space.frame:
        return MATRIX
    columns = [_column(graph, column, types[column.name]) for column in space.columns]
    return graph("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]


def _column(graph: OnnxGraph, column: Column, kind: WireType) -> str:
    if isinstance(column, Category):
        return _positions(graph, column, kind)
    number = column.name if kind == FLOAT64_TYPE else _double(graph, column.name)
    return _dated(graph, column, number) if isinstance(column, Date) else number


def _dated(graph: OnnxGraph, column: Date, number: str) -> str:
    """Days or seconds. Others, such as a data frame's nanoseconds, the runtime refuses: no tensor has that element."""
    first, last = (np.array([limit]) for limit in column.limits)
    beyond = graph("Or", graph("Less", number, first), graph("Greater", number, last))
    return graph("Add", number, graph("Gather", np.zeros(1), graph("Cast", beyond, to=TensorProto.INT64), axis=0))


def _positions(graph: OnnxGraph, column: Category, kind: WireType) -> str:
    if kind == STRING_TYPE:
        words, codes = words_of(column, GAP_WORDS), [float(code) for code in range(len(column.levels))]
        if column.missing:
            words, codes = [*words, *GAP_WORDS], [*codes, *[np.nan] * len(GAP_WORDS)]
        table = {"keys_strings": words, "values_floats": codes, "default_float": float(UNKNOWN_LEVEL)}
        return _double(graph, graph("LabelEncoder", column.name, domain=ML, **table))
    levels: np.ndarray = np.array([column.levels], kind.dtype)
    positions = np.arange(len(column.levels), dtype=np.float64) - UNKNOWN_LEVEL
    found = graph("Where", graph("Equal", column.name, levels), positions, np.zeros(1))
    codes_or_unknown = graph(
        "Add", graph("ReduceSum", found, np.array([1]), keepdims=1), np.array([float(UNKNOWN_LEVEL)])
    )
    if not column.missing:
        return codes_or_unknown
    return graph("Where", graph("IsNaN", column.name), np.array([np.nan]), codes_or_unknown)


def _double(graph: OnnxGraph, value: str) -> str:
    return graph("Cast", value, to=TensorProto.DOUBLE)


# --- the matrix to a copy's inputs, as `Encoding` does it -------------------------------------------------------------


def _encode(graph: OnnxGraph, encoding: Encoding, rows: str) -> str:
    parts = [_numbers(graph, encoding, rows)] if encoding.numbers else []
    if encoding.levels:
        at = np.repeat(*np.array(encoding.levels).T)
        codes = np.concatenate([np.arange(k, dtype=np.float64) for _, k in encoding.levels])
        parts.append(_float(graph, graph("Equal", _columns(graph, rows, at), codes)))
    for j, values in encoding.values:
        number = _columns(graph, rows, np.array([j]))
        nearest = graph("ArgMin", graph("Abs", graph("Sub", number, values)), axis=1, keepdims=1)
        found = graph("Equal", nearest, np.arange(len(values)))
        if j in encoding.gaps:
            found = graph("And", found, graph("Not", graph("IsNaN", number)))
        parts.append(_float(graph, found))
    if encoding.gaps:
        parts.append(_float(graph, graph("IsNaN", _columns(graph, rows, np.array(encoding.gaps)))))
    return graph("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def _numbers(graph: OnnxGraph, encoding: Encoding, rows: str) -> str:
    """Standardised, clipped, and 0 at a gap, or at a level that the space does not know."""
    numbers = rows
    if encoding.numbers != list(range(encoding.d)):
        numbers = _columns(graph, rows, np.array(encoding.numbers))
    scaled = numbers
    if encoding.center.any():
        scaled = graph("Sub", scaled, encoding.center)
    if (encoding.scale != 1).any():
        scaled = graph("Div", scaled, encoding.scale)
    scaled = graph("Clip", scaled, np.array(-CLIP_DEVIATIONS), np.array(CLIP_DEVIATIONS))
    absent = [graph("IsNaN", numbers)] if encoding.gaps else []
    if encoding.ordered:
        ordered = np.isin(np.arange(len(encoding.numbers)), encoding.ordered)
        absent.append(graph("And", graph("Less", numbers, np.zeros(1)), ordered))
    if absent:
        scaled = graph("Where", graph("Or", *absent) if len(absent) > 1 else absent[0], np.zeros(1), scaled)
    return _float(graph, scaled)


def _columns(graph: OnnxGraph, rows: str, at: np.ndarray) -> str:
    return graph("Gather", rows, at, axis=1)


def _float(graph: OnnxGraph, value: str) -> str:
    return graph("Cast", value, to=TensorProto.FLOAT)


# --- inputs to scores and probabilities -------------------------------------------------------------------------------


def _decide(graph: OnnxGraph, model: Model, inputs: str) -> tuple[str, str]:
    """Scores of the classes, and their probabilities."""
    if isinstance(model, Blend):
        scores = _pooled(graph, model, inputs)
        return scores, graph("Softmax", scores, axis=1)
    if isinstance(model, RadialModel):
        scores = _nearness(graph, model, inputs)
        return scores, graph("Softmax", scores, axis=1)
    if isinstance(model, Network):
        *hidden, (weights, biases) = model.mlp.layers(model.theta)
        if model.pieces is not None:
            inputs = _with_pieces(graph, model.pieces, inputs)
        for w, b in hidden:
            inputs = _activated(graph, model.activation, graph("Gemm", inputs, w, b))
        scores = graph("Gemm", inputs, weights, biases)
        return scores, graph("Softmax", scores, axis=1)
    if isinstance(model, Linear):
        scores = graph("Add", graph("MatMul", _double(graph, inputs), model.weights), model.biases)
        return scores, graph("Softmax", scores, axis=1)
    if not isinstance(model, Trees):
        raise SettingError("copy", "a network, a linear model, trees, or a blend", type(model).__name__)
    scores = graph("TreeEnsemble", _double(graph, inputs), domain=ML, **ensembles(model))
    if model.base.any():
        scores = graph("Add", scores, model.base)
    if model.link == "softmax":
        return scores, graph("Softmax", scores, axis=1)
    return scores, graph("Div", scores, graph("ReduceSum", scores, np.array([1]), keepdims=1))


def _activated(graph: OnnxGraph, activation: str, value: str) -> str:
    if activation == "relu":
        return graph("Relu", value)
    return graph("Mul", value, graph("Tanh", graph("Softplus", value)))


def _with_pieces(graph: OnnxGraph, pieces: PiecewiseLinear, inputs: str) -> str:
    """The inputs, then their pieces."""
    scaled = graph("Mul", _columns(graph, inputs, pieces.column.astype(np.int64)), pieces.slope)
    cut = graph("Clip", graph("Add", scaled, pieces.shift), np.array(0, np.float32), np.array(1, np.float32))
    return graph("Concat", inputs, cut, axis=1)


def _nearness(graph: OnnxGraph, model: RadialModel, inputs: str) -> str:
    """How near rows are to the centres, weighted; squares of distances by products, which take less room."""
    centres, ones = model.centres.astype(np.float64), np.array([1])
    rows = _double(graph, inputs)
    squares = graph("Add", graph("ReduceSum", graph("Mul", rows, rows), ones, keepdims=1), (centres**2).sum(axis=1))
    far = graph("Sub", squares, graph("MatMul", rows, 2 * centres.T))
    near = graph("Exp", graph("Mul", graph("Max", far, np.zeros(1)), np.array([-model.gamma])))
    sums = graph("MatMul", _float(graph, near), model.weights)
    return graph("Mul", graph("Add", sums, model.offset), np.array([model.sharpness], np.float32))


def _pooled(graph: OnnxGraph, blend: Blend, inputs: str) -> str:
    """The sum of all members' opinions, as logarithms, each times its power."""
    parts = []
    for member, power in zip(blend.members, blend.powers.tolist(), strict=True):
        _, said = _decide(graph, member, inputs)
        least = graph("Max", _double(graph, said), np.array([FLOOR]))
        parts.append(graph("Mul", graph("Log", least), np.array([power])))
    return graph("Sum", *parts)
