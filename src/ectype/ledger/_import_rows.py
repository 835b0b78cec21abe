"""Answers from elsewhere as rows of a ledger: prior answers of a run, merged ledgers, the ledger of another run."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._connections import connect
from ectype.ledger._hash_chain import Row
from ectype.ledger._label_codes import LabelCodes
from ectype.ledger._purpose import Purpose
from ectype.ledger._reader import LedgerEntry
from ectype.ledger._recovery import errors_of
from ectype.ledger._schema import labels_of, later_settings, open_and_check, prepare
from ectype.original import CHUNK, LabelledRows
from ectype.types import Json


def given_rows(labelled: LabelledRows, vocabulary: LabelCodes, number: int = 1) -> Iterator[Row]:
    """Answers as rows of a ledger that knows these labels, in requests from this number on.

    As many attempts are taken back as each request has rows, so that none of them counts as asked.

    >>> from ectype.original import Answers
    >>> labelled = np.zeros((2, 1)), Answers(np.array(["no", "yes"]))
    >>> [table for table, _ in given_rows(labelled, LabelCodes(["no"]))]
    ['labels', 'requests', 'attempts', 'answers']
    """
    rows, answers = np.ascontiguousarray(labelled[0]), labelled[1]
    codes, new = vocabulary.codes(answers.labels)
    yield from (("labels", (code, json.dumps(value))) for code, value in new)
    now = time.time()
    for at, start in enumerate(range(0, len(rows), CHUNK), number):
        part = slice(start, min(start + CHUNK, len(rows)))
        n = part.stop - part.start
        yield "requests", (at, Purpose.GIVEN, n, now, rows[part].tobytes())
        yield "attempts", (None, at, now, -n)
        if answers.scores is not None:
            yield "scores", (at, answers.scores[part].tobytes())
        yield "answers", (at, now, codes[part].tobytes())


def write_ledger(path: Path, about: Json, entries: Iterable[LedgerEntry]) -> None:
    """Write a new ledger of these requests, in one transaction."""
    with errors_of(path), closing(connect(path)) as connection:
        hash_chain.begin(connection, about, _rows_of(entries))


def _rows_of(entries: Iterable[LedgerEntry]) -> Iterator[Row]:
    vocabulary = LabelCodes([])
    for number, entry in enumerate(entries, 1):
        codes, new = vocabulary.codes(entry.answers.labels)
        yield from (("labels", (code, json.dumps(value))) for code, value in new)
        rows = np.ascontiguousarray(entry.rows).tobytes()
        yield "requests", (number, entry.purpose, len(codes), entry.announced, rows)
        if entry.answers.scores is not None:
            yield "scores", (number, entry.answers.scores.tobytes())
        yield "answers", (number, entry.at, codes.tobytes())


def copy_ledger(path: Path, to: Path, settings: Json, given: LabelledRows | None = None) -> None:
    """Check a ledger and copy it to another file, for a run with these settings.

    Further answers that the run is given are added to it.
    """
    with open_and_check(path) as connection, closing(sqlite3.connect(to, isolation_level=None)) as other:
        connection.backup(other)
        last = prepare(other, to, {})
        other.execute("BEGIN IMMEDIATE")
        hash_chain.write(other, [later_settings(other, settings), *_more(other, given)], last)
        other.execute("COMMIT")


def _more(connection: sqlite3.Connection, given: LabelledRows | None) -> Iterator[Row]:
    if given is not None:
        last = connection.execute("SELECT coalesce(max(id), 0) FROM requests").fetchone()[0]
        yield from given_rows(given, LabelCodes(labels_of(connection)), last + 1)
