"""Tensors of the Open Inference Protocol V2, in JSON or in bytes behind it: checked, and their values row by row."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ectype.serve._binary_tensors import Tail, unpack_values
from ectype.serve._http_types import Refusal, quote_value
from ectype.types import Label

REAL = (int, float)
_WHOLE = {f"{sign}INT{bits}": (int,) for sign in ("", "U") for bits in (8, 16, 32, 64)}
# What the values of a datatype are in JSON; any of them may be null, a gap.
DATATYPES: dict[str, tuple[type, ...]] = {
    "BOOL": (bool,),
    **_WHOLE,
    "FP16": REAL,
    "FP32": REAL,
    "FP64": REAL,
    "BYTES": (str,),
}
# How MLServer's clients mark what a tensor holds: one of the first changes nothing; under the last, each value of BYTES
# is a JSON document of its own, which is how they send a column that holds words and others.
PLAIN_MARKS, DOCUMENTS = ("np", "pd", "str"), "pd_json"
SCALARS = (bool, int, float, str)

Cell: TypeAlias = Label | None
"""A value that was read, None where it is missing."""


class Tensor(NamedTuple):
    """An input: its name, its shape of one or two dimensions, and its values row by row, None where one is missing.

    What came as bytes is an array of numbers.
    """

    name: str
    shape: tuple[int, ...]
    values: list[Cell] | np.ndarray

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.shape[0]

    @property
    def width(self) -> int:
        """How many values a row has."""
        return self.shape[1] if len(self.shape) == 2 else 1


def read_tensor(content: object, where: str, tail: Tail | None = None) -> Tensor:
    """The tensor that this JSON describes, and whose values it holds unless they are next in the tail.

    >>> read_tensor({"name": "x", "shape": [2, 1], "datatype": "FP64", "data": [1, None]}, "inputs[0]").values
    [1.0, None]
    """
    if not isinstance(content, dict):
        raise Refusal(where, "an object with name, shape, datatype and data", quote_value(content))
    name, datatype = content.get("name"), content.get("datatype")
    if not isinstance(name, str):
        raise Refusal(f"{where}: name", "a string", quote_value(name))
    where = f"input {quote_value(name)}"
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise Refusal(f"{where}: datatype", f"one of {', '.join(DATATYPES)}", quote_value(datatype))
    parameters = content.get("parameters")
    mark, size = (None, None) if parameters is None else (_mark(parameters, where), _size(parameters, where))
    shape = _shape(content.get("shape"), where)
    if size is not None and tail is not None:
        return Tensor(
            name, shape, _marked(unpack_values(tail.take(size, where), datatype, _n(shape), where), mark, where)
        )
    if "data" not in content:
        hint = "send them as JSON, or as binary data with Inference-Header-Content-Length"
        raise Refusal(f"{where}: data", "a list", "none", hint)
    values = _typed(_flat(content["data"], shape, where), DATATYPES[datatype], datatype, where)
    return Tensor(name, shape, _marked(values, mark if datatype == "BYTES" else None, where))


def _marked(values: Any, mark: str | None, where: str) -> Any:
    """Values, once those that are JSON documents of their own are read."""
    if mark != DOCUMENTS or isinstance(values, np.ndarray):
        return values
    return scalars(_loaded(values, where), where)


def scalars(values: list[Any], where: str) -> list[Cell]:
    """Values of JSON, once each is one value and none is too large."""
    return _typed(values, SCALARS, "one value in JSON", where)


def _size(parameters: dict[str, object], where: str) -> int | None:
    """How many bytes of the tail are the tensor's."""
    if "shared_memory_region" in parameters:
        raise Refusal(f"{where}: parameters", "values in the request", "shared memory")
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise Refusal(f"{where}: binary_data_size", "a number of bytes", quote_value(size))
    return size


def _n(shape: tuple[int, ...]) -> int:
    return shape[0] if len(shape) == 1 else shape[0] * shape[1]


def _mark(parameters: object, where: str) -> str | None:
    if not isinstance(parameters, dict):
        raise Refusal(f"{where}: parameters", "an object", quote_value(parameters))
    mark = parameters.get("content_type")
    if mark is not None and mark not in (*PLAIN_MARKS, DOCUMENTS):
        raise Refusal(f"{where}: content_type", f"{', '.join(PLAIN_MARKS)}, {DOCUMENTS} or none", quote_value(mark))
    return mark


def _shape(shape: object, where: str) -> tuple[int, ...]:
    expected = "[rows] or [rows, columns]"
    if not isinstance(shape, list) or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise Refusal(f"{where}: shape", expected, quote_value(shape))
    if len(shape) not in (1, 2):
        raise Refusal(f"{where}: shape", expected, shape[:8])
    return tuple(shape)


def _flat(data: object, shape: tuple[int, ...], where: str) -> list[Any]:
    """Values that may be nested by rows, as one list."""
    if not isinstance(data, list):
        raise Refusal(f"{where}: data", "a list", quote_value(data))
    if len(shape) == 2 and data and all(type(row) is list for row in data):
        if len(data) != shape[0] or any(len(row) != shape[1] for row in data):
            raise Refusal(f"{where}: data", f"{shape[0]} lists of {shape[1]}, as its shape says", "others")
        data = list(chain.from_iterable(data))
    expected = _n(shape)
    if len(data) != expected:
        raise Refusal(f"{where}: data", f"{expected} values, as its shape {list(shape)} says", len(data))
    return data


def _loaded(values: list[Any], where: str) -> list[Any]:
    try:
        return [None if value is None else json.loads(value) for value in values]
    except (ValueError, RecursionError):
        raise Refusal(f"{where}: data", "JSON in every value", "other text") from None


def _typed(values: list[Any], allowed: tuple[type, ...], words: str, where: str) -> list[Cell]:
    """The values, once all of them are of these types; whole numbers where floats are allowed become such."""
    kinds = set(map(type, values))
    if kinds == {float} and float in allowed:
        return values
    kinds -= {type(None)}
    if not kinds <= set(allowed):
        place, wrong = next((i, value) for i, value in enumerate(values) if type(value) in kinds - set(allowed))
        raise Refusal(f"{where}: data", f"values of {words}, or null", f"{quote_value(wrong)} at {place}")
    if str in kinds:
        try:
            "".join(value for value in values if type(value) is str).encode()
        except UnicodeEncodeError:
            raise Refusal(f"{where}: data", "text", "half of a surrogate pair") from None
    if int in kinds:
        try:
            return (
                [float(value) if type(value) is int else value for value in values] if allowed == REAL else _fit(values)
            )
        except OverflowError:
            raise Refusal(f"{where}: data", f"values of {words}", "a number that is too large") from None
    return values


def _fit(values: list[Any]) -> list[Any]:
    if any(type(value) is int and not -(2**63) <= value < 2**64 for value in values):
        raise OverflowError
    return values
