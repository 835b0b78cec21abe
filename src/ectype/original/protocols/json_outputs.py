"""Outputs out of JSON: found by a path, counted, and each of them checked."""

from __future__ import annotations

import json
import math
import re
from typing import TypeAlias

from ectype.types import Label

# The cause of a failure where there are more or fewer outputs than rows.
WRONG_COUNT = "wrong count"
Output: TypeAlias = Label | list[Label] | dict[str, float]
"""An output of an endpoint for a row: a label or a score, a list of scores, or a score for each class by its name."""


class MalformedAnswer(Exception):
    """An answer that cannot be read: the cause in a word or two, what was found, and whether to ask the same again."""

    def __init__(self, cause: str, found: str, again: bool = True):
        super().__init__(f"{cause}: {found}")
        self.cause, self.found, self.again = cause, found, again


def parse_document(body: bytes) -> object:
    """The JSON of an answer."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:  # ValueError: also a text that is not Unicode, or a too long number
        raise MalformedAnswer("not JSON", f"{error}, in {quote_json(body.decode(errors='replace'))}") from None


def at(value: object, path: str) -> object:
    """The value at a path of keys and positions joined by dots.

    >>> at({"results": [{"class": "good"}]}, "results.0.class")
    'good'
    """
    found = value
    for part in path.split(".") if path else ():
        try:
            found = _inside(found, part)
        except (KeyError, IndexError, TypeError, ValueError):
            raise MalformedAnswer("not an answer", f"no {path!r} in {quote_json(value)}", again=False) from None
    return found


def _inside(value: object, key: str) -> object:
    if isinstance(value, list):
        return value[int(key)]
    if isinstance(value, dict):
        return value[key]
    raise TypeError


def quote_json(value: object) -> str:
    """A value as JSON."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "something nested too deeply"


def check_count(values: object, n: int) -> list[object]:
    """The values, if they are a list of n."""
    if not isinstance(values, list):
        raise MalformedAnswer("not an answer", f"not a list of outputs but {quote_json(values)}", again=False)
    if len(values) != n:
        raise MalformedAnswer(WRONG_COUNT, f"{len(values)} outputs for {n} rows")
    return values


def check_outputs(values: object, n: int, scored: bool = False) -> list[Output]:
    """n outputs: labels or scores, or lists of as many scores each, or, if `scored`, scores by class in every row."""
    found = [by_class(value) if scored else value for value in check_count(values, n)]
    kinds = {type(value) if isinstance(value, (list, dict)) else None for value in found}
    if scored and len(kinds) > 1 and dict in kinds:
        raise MalformedAnswer("not an answer", "scores by class in some rows alone", again=False)
    if len({len(value) if isinstance(value, list) else None for value in found}) > 1:
        raise MalformedAnswer(WRONG_COUNT, "rows of different lengths")
    return [_output(value, row, scored) for row, value in enumerate(found)]


def by_class(value: object) -> object:
    """Scores by class as one object, where they come in one of the usual ways; else the value as it is.

    >>> by_class([{"label": "cat", "score": 0.7}, {"label": "dog", "score": 0.3}])
    {'cat': 0.7, 'dog': 0.3}
    >>> by_class({"classes": ["cat", "dog"], "scores": [0.7, 0.3]})
    {'cat': 0.7, 'dog': 0.3}
    """
    if isinstance(value, list) and value and all(_keys(part) == {"label", "score"} for part in value):
        return pair_scores([part["label"] for part in value], [part["score"] for part in value])
    for names in ("classes", "labels"):
        if isinstance(value, dict) and {names, "scores"} <= _keys(value):
            return pair_scores(value[names], value["scores"])
    return value


def pair_scores(labels: object, scores: object) -> dict[str, object]:
    """Scores by the names of their classes."""
    if not isinstance(labels, list) or not isinstance(scores, list) or len(labels) != len(scores):
        found = f"not as many scores as classes: {quote_json(labels)} and {quote_json(scores)}"
        raise MalformedAnswer("not an answer", found, again=False)
    named = {_name(label): score for label, score in zip(labels, scores, strict=True)}
    if len(named) != len(labels):
        raise MalformedAnswer("not an answer", f"a class twice in {quote_json(labels)}", again=False)
    return named


def _keys(value: object) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def _name(label: object) -> str:
    return label if isinstance(label, str) else quote_json(label)


def _output(value: object, row: int, scored: bool) -> Output:
    if scored and isinstance(value, dict) and value:
        return {name: _score(score, row) for name, score in value.items()}
    return [_label(single, row) for single in value] if isinstance(value, list) else _label(value, row)


def _score(value: object, row: int) -> float:
    score = _label(value, row)
    if isinstance(score, (str, bool)):
        raise MalformedAnswer("not a score", f"in row {row}, {quote_json(value)}", again=False)
    return float(score)


def _label(value: object, row: int) -> Label:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise MalformedAnswer("NaN", f"in row {row}, {quote_json(value)}")
    if isinstance(value, str):
        # Neither survives on the way to a file: a lone surrogate is no text, and NumPy drops a NUL at the end.
        fine = "\0" not in value and not re.search("[\ud800-\udfff]", value)
    else:
        fine = isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63)
    if fine and isinstance(value, (str, int, float)):
        return value
    hint = " (the protocol template can say where in it the label is; scores by class need decode)"
    hint = hint if isinstance(value, (dict, list)) else ""
    raise MalformedAnswer("not a label", f"in row {row}{hint}, {quote_json(value)}", again=False)


def unflatten(data: object, shape: object, n: int) -> list[object]:
    """A tensor of one or two dimensions as labels or rows of scores; its data may be flat or nested."""
    if not isinstance(data, list) or not isinstance(shape, list) or len(shape) not in (1, 2):
        found = f"not data and their shape, of one or two dimensions, but {quote_json(shape)} and {quote_json(data)}"
        raise MalformedAnswer("not an answer", found, again=False)
    flat = data
    if len(shape) == 2 and data and all(isinstance(row, list) for row in data):
        flat = [value for row in data for value in row]
    width = shape[1] if len(shape) == 2 else 1
    if not all(type(size) is int and size >= 0 for size in shape) or shape[0] * width != len(flat):
        raise MalformedAnswer(WRONG_COUNT, f"{len(flat)} outputs in a tensor of shape {quote_json(shape)}")
    if shape[0] != n:
        raise MalformedAnswer(WRONG_COUNT, f"a tensor of shape {shape} for {n} rows")
    return flat if len(shape) == 1 else [flat[row * width : (row + 1) * width] for row in range(n)]
