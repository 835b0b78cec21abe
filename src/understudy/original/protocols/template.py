"""Protocols of one's own, described by a template in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from understudy.errors import SettingError
from understudy.original.protocols.answers import MalformedAnswer, at, counted, quoted
from understudy.original.protocols.base import Wire
from understudy.original.protocols.rows import lists, objects
from understudy.types import Table


class Template(BaseModel):
    """A protocol of one's own, in JSON: the request, and where its answer holds what.

    In `request`, the string "$rows" stands for the rows, as lists or objects, and "$ids" for a list of their ids.
    `answer` is the path to the list of outputs; `label` and `id` are paths inside each of its elements. A path joins
    keys and positions by dots; the empty path is the thing itself. With ids, the outputs may come in any order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    request: Any
    rows: Literal["lists", "objects"]
    answer: str
    label: str | None = None
    id: str | None = None


class Templated(Wire):
    """A protocol that a template describes.

    >>> template = {"request": {"data": "$rows", "version": 2}, "rows": "lists", "answer": "results", "label": "class"}
    >>> wire = Templated(template)
    >>> import numpy as np
    >>> wire.question(np.array([[0.5, 1.0]]), "")
    {'data': [[0.5, 1.0]], 'version': 2}
    >>> wire.decode(b'{"results": [{"class": "good"}]}', 1, "")
    ['good']
    """

    def __init__(self, template: object):
        where = f"template {template}" if isinstance(template, (str, Path)) else "template"
        self.template = _checked(_read(template, where), where)

    def question(self, rows: Table, ticket: str) -> object:
        """The template's request, filled in."""
        table = lists(rows) if self.template.rows == "lists" else objects(rows)
        return _filled(self.template.request, {"$rows": table, "$ids": _ids(ticket, len(rows))})

    def outputs(self, answer: object, n: int, ticket: str) -> list[object]:
        """The elements' labels, in the order of the ids where there are some."""
        found = counted(at(answer, self.template.answer), n)
        labels = [at(element, self.template.label or "") for element in found]
        if self.template.id is None:
            return labels
        ids = [at(element, self.template.id) for element in found]
        places = {identity: place for place, identity in enumerate(map(quoted, ids))}
        expected = [quoted(identity) for identity in _ids(ticket, n)]
        if set(places) != set(expected):  # as many as rows, so this also finds an id that comes twice
            strange = next((identity for identity in places if identity not in set(expected)), "one id twice")
            raise MalformedAnswer("wrong id", f"not the ids of the request, but {strange}")
        return [labels[places[identity]] for identity in expected]


def _read(given: object, where: str) -> object:
    """What a template says, which may be the name of the JSON file that says it."""
    if not isinstance(given, (str, Path)):
        return given
    try:
        return json.loads(Path(given).read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(where, "a file of JSON", f"{type(error).__name__}: {error}") from error


def _checked(given: object, where: str) -> Template:
    try:
        found = Template.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'it'}: {p['msg']}" for p in error.errors())
        raise SettingError(where, "request, rows, answer, and perhaps label and id", problems) from error
    try:
        text = json.dumps(found.request, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingError(where, "a request that is JSON", str(error)) from error
    if not _holds(found.request, "$rows"):
        raise SettingError(where, 'the string "$rows" in its request', text)
    if found.id is not None and not _holds(found.request, "$ids"):
        raise SettingError(where, 'the string "$ids" in its request, since id is given', "none")
    return found


def _holds(value: object, word: str) -> bool:
    if isinstance(value, (list, dict)):
        return any(_holds(part, word) for part in (value.values() if isinstance(value, dict) else value))
    return bool(value == word)


def _filled(value: object, words: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _filled(part, words) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, words) for part in value]
    return words.get(value, value) if isinstance(value, str) else value


def _ids(ticket: str, n: int) -> list[str]:
    return [f"{ticket}-{row}" for row in range(n)]
