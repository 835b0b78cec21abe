"""The schema of a template, and the rules that a usable one keeps."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from ectype.errors import SettingError
from ectype.original.protocols.polling import Polling


class Strict(BaseModel):
    """A model that refuses unknown keys and other types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Listed(Strict):
    """Scores as a list of entries: the path of the list, and those of label and score inside each entry."""

    list: str = ""
    label: str
    score: str


class Paired(Strict):
    """Scores and their labels as two lists, each at its path."""

    labels: str
    scores: str


class Polled(Strict):
    """How an answer is waited for; see `Polling`."""

    url: str | None = None
    status: str | None = None
    running: list[str] = []
    failed: list[str] = []
    result: str | None = None

    @property
    def polling(self) -> Polling:
        """The same as a value."""
        return Polling(self.url, self.status, tuple(self.running), tuple(self.failed), self.result)


class Template(Strict):
    """A protocol of one's own, in JSON: the request, and where its answer holds what.

    In `request`, the string "$rows" stands for all rows, "$row" for one, so that every request is about a single row.
    `rows` says how they are written: "lists", "objects" or "columns" (an object of lists); without it, arrays go as
    lists and data frames as objects. "$ids" and "$id" stand for their ids, "$columns" for the names of the columns,
    "$index" for 0, 1, ... `body` is "json", "lines" (a request for each row, a line each), "form" or "query" (GET).

    `answer` is the path to the outputs: a list, or with "$row" the output itself; `reply` is "json", "lines", or
    "columns" (an object of lists). `label` and `id` are paths inside each output, `scores` says where its scores are. A
    path joins keys and positions by dots; the empty path is the thing itself. With ids, outputs may come in any order.
    """

    request: Any
    rows: Literal["lists", "objects", "columns"] | None = None
    body: Literal["json", "lines", "form", "query"] = "json"
    answer: str = ""
    reply: Literal["json", "lines", "columns"] | None = None
    label: str | None = None
    scores: Listed | Paired | None = None
    id: str | None = None
    poll: Polled | None = None

    @property
    def replied(self) -> str:
        """The form of an answer; requests in lines are answered in lines unless the template says otherwise."""
        return self.reply or ("lines" if self.body == "lines" else "json")

    def at(self, answer: str | None) -> Self:
        """The same with the outputs elsewhere."""
        return self if answer is None else self.model_copy(update={"answer": answer})


def template_of(given: object, where: str) -> Template:
    """A template that can be used, or an error that says why not."""
    if isinstance(given, Template):
        return given
    try:
        found = Template.model_validate(given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, p['loc'])) or 'it'}: {p['msg']}" for p in error.errors())
        expected = "request, and perhaps rows, body, answer, reply, label, scores, id and poll"
        raise SettingError(where, expected, problems) from error
    try:
        text = json.dumps(found.request, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingError(where, "a request that is JSON", str(error)) from error
    for expected, fits in _rules(found):
        if not fits:
            raise SettingError(where, expected, text)
    return found


def _rules(found: Template) -> list[tuple[str, bool]]:
    """The rules for a template, in words, and whether each holds."""
    single, several = holds(found.request, "$row"), holds(found.request, "$rows")
    flat, lines = found.body in ("form", "query"), found.body == "lines"
    named = holds(found.request, "$id" if single else "$ids")
    return [
        ('the string "$rows" in its request, or "$row" for one row at a time', single != several),
        ('the string "$row" in its request, since body is "lines"', single or not lines),
        ('rows as "objects" or "columns", since they are sent as fields', not flat or found.rows in FIELDS[single]),
        ('rows as "lists" or "objects", since they go one by one', not single or found.rows != "columns"),
        ('the string "$ids" in its request, since id is given', named or found.id is None),
        ("label or scores, not both", found.label is None or found.scores is None),
        ("poll.status beside its running", found.poll is None or bool(found.poll.status) == bool(found.poll.running)),
    ]


# How rows can be written where a request is fields alone: of one row, and of several.
FIELDS: dict[bool, tuple[str | None, ...]] = {True: ("objects", None), False: ("columns",)}


def holds(value: object, word: str) -> bool:
    """Whether a word stands somewhere in a request."""
    if isinstance(value, (list, dict)):
        return any(holds(part, word) for part in (value.values() if isinstance(value, dict) else value))
    return bool(value == word)
