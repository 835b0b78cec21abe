"""The objects in which people send plain rows: one row, values by column, or rows under a name that servers have.

A name that is a column's too is the column's where the object has all columns of the space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ectype.serve._http_types import Refusal, quote_value
from ectype.types import Json

# The names under which a list of rows is sent: by KServe and TensorFlow Serving, MLflow, and others.
LISTS = ("instances", "inputs", "rows", "data", "dataframe_records")
# MLflow's name for what `DataFrame.to_dict("split")` gives.
SPLIT = "dataframe_split"
# What may lie beside the rows, and means nothing here.
BESIDE = frozenset(("parameters", "params", "signature_name", "id"))
FORMS = (
    "a list of rows, an object with every column, or one with rows under "
    f"{', '.join(map(repr, LISTS))} or {SPLIT!r}, or under 'columns' and 'data'"
)


class RowWiseRows(NamedTuple):
    """Rows, each a list or an object, and what they were under."""

    where: str
    rows: list[Any]


class ColumnarRows(NamedTuple):
    """The values of columns, and what they were under."""

    where: str
    columns: dict[str, list[Any]]


def parse_object(content: Json, names: Sequence[str]) -> RowWiseRows | ColumnarRows:
    """The rows in a JSON object, for a space with these columns.

    >>> parse_object({"x": 1, "data": 2}, ["x", "data"]).rows, parse_object({"data": [[1, 2]]}, ["x", "data"]).rows
    ([{'x': 1, 'data': 2}], [[1, 2]])
    >>> parse_object({"columns": ["y", "x"], "data": [[1, 2], [3, 4]]}, ["x"]).columns
    {'y': [1, 3], 'x': [2, 4]}
    """
    has = [name in content for name in names]
    if all(has):
        columns = {name: content[name] for name in names}
        if not any(map(_is_nested, columns.values())):
            return RowWiseRows("rows", [content])
        if all(map(_is_plain, columns.values())):
            return ColumnarRows("rows", columns)
    keys = content.keys() - BESIDE
    if keys == {SPLIT}:
        return _split(content[SPLIT], SPLIT)
    if {"columns", "data"} <= keys <= {"columns", "data", "index"}:
        return _split(content, "data")
    if len(keys) == 1 and (key := next(iter(keys))) in LISTS:
        return _under(content[key], key)
    if any(has):  # one row that lacks something, which is said when it is read
        return RowWiseRows("rows", [content])
    raise Refusal("body", FORMS, f"an object with {', '.join(map(quote_value, list(content)[:8])) or 'nothing'}")


def _under(rows: object, key: str) -> RowWiseRows | ColumnarRows:
    """Rows under a name of their own; MLflow's inputs may be columns."""
    if isinstance(rows, list):
        if rows and all(isinstance(row, dict) and {"datatype", "shape"} <= row.keys() for row in rows):
            raise Refusal(key, "rows", "tensors of V2", "send them to /v2/models/NAME/infer")
        return RowWiseRows(key, rows)
    if isinstance(rows, dict) and key == "inputs" and rows and all(map(_is_plain, rows.values())):
        return ColumnarRows(key, rows)
    raise Refusal(key, "a list of rows", quote_value(rows))


def _split(content: object, where: str) -> ColumnarRows:
    """Rows as lists, with the names of their columns beside them."""
    names, rows = (content.get("columns"), content.get("data")) if isinstance(content, dict) else (None, None)
    if not isinstance(names, list) or not isinstance(rows, list) or not all(isinstance(name, str) for name in names):
        raise Refusal(where, "'columns', a list of names, and 'data', a list of rows", quote_value(content))
    if len(set(names)) < len(names):
        raise Refusal("columns", "every name once", "one of them twice")
    for place, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(names):
            raise Refusal(f"data[{place}]", f"a list of {len(names)} values, one for each of columns", quote_value(row))
    return ColumnarRows(where, {name: [row[j] for row in rows] for j, name in enumerate(names)})


def _is_nested(value: object) -> bool:
    return isinstance(value, (list, dict))


def _is_plain(value: object) -> bool:
    return isinstance(value, list) and not any(map(_is_nested, value))
