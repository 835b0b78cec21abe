"""Protocols of one's own, described by a template in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ectype.errors import SettingError
from ectype.original.protocols.base import HttpProtocol, json_bytes
from ectype.original.protocols.form_encoding import form
from ectype.original.protocols.json_outputs import (
    MalformedAnswer,
    at,
    check_count,
    pair_scores,
    parse_document,
    quote_json,
)
from ectype.original.protocols.json_rows import columns, lists, names, objects
from ectype.original.protocols.template_schema import Listed, holds, template_of
from ectype.types import Table

CONTENT_TYPES = {
    "json": "application/json",
    "lines": "application/jsonlines",
    "form": "application/x-www-form-urlencoded",
    "query": "application/json",
}


class Templated(HttpProtocol):
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
        self.template = template_of(_read(template, where), where)
        self.content_type = CONTENT_TYPES[self.template.body]
        self.method = "GET" if self.template.body == "query" else "POST"
        self.single = holds(self.template.request, "$row")
        self.most_rows = 1 if self.single and self.template.body != "lines" else None
        self.by_class = self.template.scores is not None
        if self.template.poll is not None:
            self.polling = self.template.poll.polling

    def encode(self, rows: Table, ticket: str) -> bytes:
        """The template's request as JSON, as JSON Lines, or as fields of a form or a URL."""
        if self.template.body == "lines":
            return b"".join(json_bytes(line) + b"\n" for line in self._lines(rows, ticket))
        question = self.question(rows, ticket)
        return json_bytes(question) if self.template.body == "json" else form(question)

    def question(self, rows: Table, ticket: str) -> object:
        """The template's request, filled in."""
        if self.single:
            return next(self._lines(rows, ticket))
        table: object = columns(rows) if self.template.rows == "columns" else self._listed(rows)
        words = {"$rows": table, "$ids": _ids(ticket, len(rows)), "$index": list(range(len(rows)))}
        return _filled(self.template.request, {**words, "$columns": names(rows)})

    def _lines(self, rows: Table, ticket: str) -> Iterator[object]:
        """The template's request for each row."""
        for row, identity in zip(self._listed(rows), _ids(ticket, len(rows)), strict=True):
            yield _filled(self.template.request, {"$row": row, "$id": identity, "$columns": names(rows)})

    def _listed(self, rows: Table) -> Sequence[object]:
        flat, form_of = self.template.body in ("form", "query"), self.template.rows
        named = form_of == "objects" or (form_of is None and (flat or not isinstance(rows, np.ndarray)))
        return objects(rows) if named else lists(rows)

    def parsed(self, body: bytes) -> object:
        """The answer's JSON; of JSON Lines, the list of what is in the lines."""
        if self.template.replied != "lines":
            return parse_document(body)
        return [parse_document(line) for line in body.splitlines() if line.strip()]

    def outputs(self, answer: object, n: int, ticket: str) -> list[object]:
        """The elements' labels or scores, in the order of the ids where there are some."""
        found = self._elements(answer, n)
        outputs = [self._output(element) for element in found]
        if self.template.id is None:
            return outputs
        ids = [at(element, self.template.id) for element in found]
        places = {identity: place for place, identity in enumerate(map(quote_json, ids))}
        expected = [quote_json(identity) for identity in _ids(ticket, n)]
        if set(places) != set(expected):  # as many as rows, so this also finds an id that comes twice
            strange = next((identity for identity in places if identity not in set(expected)), "one id twice")
            raise MalformedAnswer("wrong id", f"not the ids of the request, but {strange}")
        return [outputs[places[identity]] for identity in expected]

    def _elements(self, answer: object, n: int) -> list[object]:
        """The elements of an answer, one for each row."""
        if self.template.replied == "lines":
            return [at(line, self.template.answer) for line in check_count(answer, n)]
        found = at(answer, self.template.answer)
        if self.template.replied == "columns":
            return _transposed(found, n)
        return [found] if self.most_rows == 1 else check_count(found, n)

    def _output(self, element: object) -> object:
        scores = self.template.scores
        if scores is None:
            return at(element, self.template.label or "")
        if isinstance(scores, Listed):
            found = at(element, scores.list)
            entries = found if isinstance(found, list) else []
            labels, values = ([at(entry, path) for entry in entries] for path in (scores.label, scores.score))
            return pair_scores(labels, values)
        return pair_scores(at(element, scores.labels), at(element, scores.scores))


def _transposed(found: object, n: int) -> list[object]:
    """Columns of an answer as an object for each row."""
    if not isinstance(found, dict) or not found:
        raise MalformedAnswer("not an answer", f"not an object of columns but {quote_json(found)}", again=False)
    listed = {name: check_count(values, n) for name, values in found.items()}
    return [{name: values[row] for name, values in listed.items()} for row in range(n)]


def _read(given: object, where: str) -> object:
    """The content of a template, which may be given as the name of a JSON file."""
    if not isinstance(given, (str, Path)):
        return given
    try:
        return json.loads(Path(given).read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(where, "a file of JSON", f"{type(error).__name__}: {error}") from error


def _filled(value: object, words: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _filled(part, words) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, words) for part in value]
    return words.get(value, value) if isinstance(value, str) else value


def _ids(ticket: str, n: int) -> list[str]:
    return [f"{ticket}-{row}" for row in range(n)]
