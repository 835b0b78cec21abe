"""Answered requests as values: read from one ledger, and written to a new one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._blobs import codes_of, matrix_of
from ectype.ledger._connections import connect
from ectype.ledger._label_codes import Vocabulary
from ectype.ledger._recovery import errors_of
from ectype.ledger._schema import begin, check_rows, labels_of, meta_of, reading, scores_for
from ectype.original import Answers, label_array
from ectype.space import Space
from ectype.types import Json


class LedgerEntry(NamedTuple):
    """A request that was answered: what it was for, its rows, what was said to them, and when."""

    purpose: str
    rows: np.ndarray
    said: Answers
    announced: float
    at: float


def answered(path: Path) -> tuple[Space, list[LedgerEntry]]:
    """The space of a ledger, and its requests that were answered."""
    sql = "SELECT id, purpose, n, rows, codes, announced, at FROM requests JOIN answers ON request = id ORDER BY id"
    with reading(path) as connection:
        space, labels = Space.from_json(meta_of(connection, path)["space"]), labels_of(connection)
        table, found = label_array(labels) if labels else np.empty(0), list[LedgerEntry]()
        for number, purpose, n, rows, codes, announced, at in connection.execute(sql):
            asked = matrix_of(rows, n)
            check_rows(space, asked, purpose)
            said = Answers(table[codes_of(codes, n, len(labels))], scores_for(connection, number, n))
            found.append(LedgerEntry(purpose, asked, said, announced, at))
        return space, found


def write_new(path: Path, about: Json, entries: Iterable[LedgerEntry]) -> None:
    """A new ledger of these requests, written in one transaction."""
    with errors_of(path), closing(connect(path)) as connection:
        begin(connection, about, _rows(entries))


def _rows(entries: Iterable[LedgerEntry]) -> Iterator[hash_chain.Row]:
    vocabulary = Vocabulary([])
    for number, entry in enumerate(entries, 1):
        codes, new = vocabulary.codes(entry.said.labels)
        yield from (("labels", (code, json.dumps(value))) for code, value in new)
        rows = np.ascontiguousarray(entry.rows).tobytes()
        yield "requests", (number, entry.purpose, len(codes), entry.announced, rows)
        if entry.said.scores is not None:
            yield "scores", (number, entry.said.scores.tobytes())
        yield "answers", (number, entry.at, codes.tobytes())
