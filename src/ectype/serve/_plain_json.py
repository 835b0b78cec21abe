"""Plain rows: JSON lists or objects, those that other servers take too, or CSV; labels in return."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ectype.cascades import ANSWERED_BY
from ectype.serve._http_types import JSON_HEADERS, HttpResponse, Refusal, quote_value, too_many
from ectype.serve._row_envelopes import FORMS, ColumnarRows, parse_object
from ectype.serve._tensors import Cell, Tensor, scalars
from ectype.serve._v2 import WHO, load_json
from ectype.space import Category, Column, Space

CSV_HEADERS = {"content-type": "text/csv; charset=utf-8"}


@dataclass(frozen=True)
class AnswerStyle:
    """The style of an answer: with scores beside the labels, or as CSV."""

    scores: bool = False
    table: bool = False


class PlainRows:
    """Reads plain rows of a space as tensors; a table that has too many is not read to its end."""

    def __init__(self, space: Space, most_rows: int):
        self._names, self._framed, self._most = list(space.names), space.frame, most_rows
        self._cells = [_cell(column) for column in space.columns]

    def instances(self, body: bytes) -> list[Tensor]:
        """The rows of KServe's first protocol."""
        content = load_json(body)
        rows = content.get("instances", content.get("inputs")) if isinstance(content, dict) else None
        if not isinstance(rows, list):
            raise Refusal("body", 'an object with "instances", a list of rows', quote_value(content))
        return self._of_json(rows, "instances")

    def document(self, body: bytes) -> list[Tensor]:
        """Rows as a JSON document: a list of lists or of objects, or an object that has rows in a known form."""
        content = load_json(body)
        if isinstance(content, list):
            return self._of_json(content, "rows")
        if not isinstance(content, dict):
            raise Refusal("body", FORMS, quote_value(content))
        found = parse_object(content, self._names)
        return self._of_columns(*found) if isinstance(found, ColumnarRows) else self._of_json(found.rows, found.where)

    def table(self, body: bytes) -> list[Tensor]:
        """Rows of a CSV file. One of a data frame starts with the names of its columns; an empty cell is a gap."""
        lines = self._lines(body)
        if not lines:
            raise Refusal("body", "at least one row", "none")
        header = lines[0]
        if not set(self._names) <= set(header):
            if self._framed:
                there = set(header)
                absent = [name for name in self._names if name not in there]
                raise Refusal(
                    "line 1", "the name of every column", f"none of {', '.join(map(quote_value, absent[:8]))}"
                )
            header, lines = self._names, [[], *lines]
        return self._of_lines(header, lines[1:])

    def _lines(self, body: bytes) -> list[list[str]]:
        """The lines of a table, of which no more than there may be are kept; of one column, an empty one is a gap."""
        lines: list[list[str]] = []
        gap = [""] if len(self._names) == 1 else None
        try:
            for found in csv.reader(io.StringIO(body.decode("utf-8-sig")), strict=True):
                if line := found or gap:
                    lines.append(line)
                if len(lines) > self._most + 1:
                    raise too_many(self._most, "more")
        except (UnicodeDecodeError, csv.Error) as error:
            raise Refusal("body", "CSV in UTF-8", str(error)[:100]) from None
        return lines

    def _of_lines(self, header: list[str], lines: list[list[str]]) -> list[Tensor]:
        wrong = next((place for place, line in enumerate(lines) if len(line) != len(header)), None)
        if wrong is not None:
            raise Refusal(f"row {wrong}", f"{len(header)} cells", len(lines[wrong]))
        if len(set(header)) < len(header):
            raise Refusal("line 1", "every name once", "one of them twice")
        places = {name: j for j, name in enumerate(header)}
        named = zip(self._names, self._cells, strict=True)
        columns = [[read(line[places[name]]) for line in lines] for name, read in named]
        return self._tensors(columns)

    def _of_json(self, rows: list[Any], where: str) -> list[Tensor]:
        if not rows:
            raise Refusal(where, "at least one row", "none")
        kinds = set(map(type, rows))
        if kinds == {dict}:
            return self._of_objects(rows, where)
        d = len(self._names)
        if kinds == {list}:
            wrong = next((place for place, row in enumerate(rows) if len(row) != d), None)
            if wrong is not None:
                raise Refusal(f"{where}[{wrong}]", f"{d} values", len(rows[wrong]))
            rows = [value for row in rows for value in row]
        elif d != 1 or kinds & {dict, list}:
            raise Refusal(where, "lists or objects, all of one kind", f"others, such as {quote_value(rows[0])}")
        return [Tensor(where, (len(rows) // d, d), scalars(rows, where))]

    def _of_columns(self, where: str, columns: dict[str, list[Any]]) -> list[Tensor]:
        absent = [name for name in self._names if name not in columns]
        if absent:
            raise Refusal(where, "every column", f"none for {', '.join(map(quote_value, absent[:8]))}")
        n = len(columns[self._names[0]])
        if not n:
            raise Refusal(where, "at least one row", "none")
        for name in self._names:
            if len(columns[name]) != n:
                raise Refusal(
                    f"{where}: {quote_value(name)}", f"{n} values, as for the first column", len(columns[name])
                )
        return self._tensors([scalars(columns[name], where) for name in self._names])

    def _of_objects(self, rows: list[dict[str, Any]], where: str) -> list[Tensor]:
        try:
            return self._tensors([scalars([row[name] for row in rows], where) for name in self._names])
        except KeyError as error:
            wrong = next(place for place, row in enumerate(rows) if error.args[0] not in row)
            raise Refusal(f"{where}[{wrong}]", f"a value or null for {quote_value(error.args[0])}", "none") from None

    def _tensors(self, columns: list[list[Cell]]) -> list[Tensor]:
        named = zip(self._names, columns, strict=True)
        return [Tensor(name, (len(values),), values) for name, values in named]


def _cell(column: Column) -> Callable[[str], Cell]:
    """A reader of a column's cells in CSV; a level that is a number may be written as a whole number or a float."""
    levels = column.levels if isinstance(column, Category) else ()
    floats = {str(float(level)): level for level in levels if isinstance(level, int)}
    by_text: dict[str, Cell] = {"": None, **floats, **{str(level): level for level in levels}}
    return lambda text: by_text.get(text, text)


def write_answer(
    style: AnswerStyle, classes: np.ndarray, codes: np.ndarray, probabilities: np.ndarray, by: np.ndarray | None
) -> HttpResponse:
    """Labels, scores where they are wanted, and who answered in a cascade, as JSON or CSV."""
    labels, who = classes[codes].tolist(), None if by is None else ANSWERED_BY[by].tolist()
    if style.table:
        return HttpResponse(200, _table(style, classes.tolist(), labels, probabilities, who), CSV_HEADERS)
    content: dict[str, object] = {"predictions": labels} | ({} if who is None else {WHO: who})
    if style.scores:
        content |= {"classes": classes.tolist(), "scores": probabilities.astype(np.float64).tolist()}
    return HttpResponse(200, json.dumps(content, separators=(",", ":")).encode(), JSON_HEADERS)


def _table(
    style: AnswerStyle, classes: list[Any], labels: list[Any], probabilities: np.ndarray, who: list[str] | None
) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    beside = probabilities.astype(np.float64).tolist() if style.scores else [[]] * len(labels)
    marks = [[]] * len(labels) if who is None else [[word] for word in who]
    named = [] if who is None else [WHO]
    writer.writerow(["prediction", *(f"score {name}" for name in classes if style.scores), *named])
    writer.writerows([label, *scores, *mark] for label, scores, mark in zip(labels, beside, marks, strict=True))
    return out.getvalue().encode(errors="backslashreplace")
