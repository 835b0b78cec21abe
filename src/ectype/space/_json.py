"""The JSON form of a space: its layout, and an error for the first thing that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ectype._common.formatting import shorten
from ectype.errors import SpaceError
from ectype.types import Json

# The most characters of a value that are shown.
SHOWN = 80


def json_text(content: Json) -> str:
    """A JSON document with one member a line, so that people can read and diff it."""
    parts = [f'"{key}": {_lines(value)}' for key, value in content.items()]
    return "{\n " + ",\n ".join(parts) + "\n}"


def space_error(error: ValidationError, content: Json) -> SpaceError:
    """An error for the first thing that is wrong with the content of a space."""
    first = error.errors(include_url=False)[0]
    where, message = _place(first["loc"], content), first["msg"].removeprefix("Value error, ")
    if message.startswith("rule ") and ": expected " in message:
        where, _, message = message.partition(": ")
    if first["type"] == "union_tag_invalid":
        return SpaceError(f"{where}: kind", f"one of {first['ctx']['expected_tags']}", repr(first["ctx"]["tag"]))
    if first["type"] == "missing":
        return SpaceError(where.rpartition(": ")[0] or "space", repr(str(first["loc"][-1])), "nothing")
    expected, sign, found = message.removeprefix("expected ").partition(", found ")
    return SpaceError(where, expected.removeprefix("Input should be "), found if sign else _shown(first["input"]))


def _place(loc: tuple[int | str, ...], content: Json) -> str:
    """The part of a space that an error is about: a column by its name, not by its number and kind."""
    parts = list(map(str, loc))
    if len(loc) > 1 and loc[0] == "columns" and isinstance(loc[1], int):
        column = content["columns"][loc[1]]
        name = column.get("name") if isinstance(column, Mapping) else getattr(column, "name", None)
        parts = [f"column {name or loc[1]}", *parts[3:]]
    return ": ".join(parts) or "space"


def _shown(value: Any) -> str:
    """A value as it stands in JSON."""
    try:
        return shorten(json.dumps(value), SHOWN)
    except (TypeError, ValueError):
        return shorten(repr(value), SHOWN)


def _lines(value: object) -> str:
    """A JSON value; of a list of lists or objects, one a line."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple, dict)):
        return "[\n  " + ",\n  ".join(json.dumps(part) for part in value) + "\n ]"
    return json.dumps(value)
