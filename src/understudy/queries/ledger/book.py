"""A run's ledger, open for writing: what it was asked before is taken from it, all else asked and written down."""

from __future__ import annotations

import json
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np

from understudy.errors import OriginalError
from understudy.original import Original
from understudy.queries.halving import Part
from understudy.queries.ledger.file import (
    FORMAT,
    REPEAT,
    SAVED,
    answered_requests,
    connect,
    create,
    errors_of,
    is_begun,
    labels_of,
    matrix,
)
from understudy.queries.ledger.vocabulary import Vocabulary
from understudy.queries.ledger.writer import Statement, Writer
from understudy.queries.requests import ask
from understudy.space import Space
from understudy.space.rowkeys import Index, first_of_each, keys_of
from understudy.types import Json


class Ledger:
    """A run's ledger, open for writing. `settings` are those of the run it belongs to."""

    def __init__(self, path: Path, settings: Json, space: Space):
        self.path = path
        with errors_of(path):
            self._reader = connect(path)
            if not is_begun(self._reader):
                create(self._reader, {"format": FORMAT, "settings": settings, "space": space.to_json()})
            self._writer = Writer(path)
            self._abandoned = False
            self._next = 1 + (self._reader.execute("SELECT max(id) FROM requests").fetchone()[0] or 0)
            self._known = lru_cache(maxsize=64)(self._read)
            self._vocabulary = Vocabulary(labels_of(self._reader))
            self._indexes = {False: Index(), True: Index()}  # of rows asked for the first time, and again
            for number, purpose, rows, _ in answered_requests(self._reader):
                self._indexes[purpose == REPEAT].add(keys_of(rows), number)

    def close(self) -> None:
        """Write what is still waiting, and close the file."""
        with errors_of(self.path):
            self._writer.close()
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- queries ----------------------------------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        """Whether there is nothing in it that is worth keeping."""
        return self._abandoned or self._next == 1

    def abandon(self) -> None:
        """Say that nobody will want to go on from here: what was answered is known from elsewhere."""
        self._abandoned = True

    def ask(self, original: Original, space: Space, rows: np.ndarray, purpose: str) -> np.ndarray:
        """The original's labels for these rows, from the ledger where they are in it, else asked and written down."""
        rows = np.ascontiguousarray(rows)  # parts of it go into the file as they lie in memory
        keys, codes = keys_of(rows), np.full(len(rows), -1, np.int32)
        first = first_of_each(rows, keys)
        self._look_up(rows, keys, codes, self._indexes[purpose == REPEAT])
        fresh = np.flatnonzero((codes < 0) & (first == np.arange(len(rows))))
        if len(fresh):
            known = len(fresh) < len(rows)  # else they need not be copied
            entries = _Entries(self, rows[fresh] if known else rows, keys[fresh] if known else keys, purpose)
            before = Counter(original.failures)
            try:
                ask(original, lambda part: space.present(entries.rows[part]), len(fresh), entries)
            finally:
                self.tally(original.failures - before)
                self._settle()
            codes[fresh] = entries.codes
        if len(fresh) < len(rows):
            self.tally(Counter({SAVED: len(rows) - len(fresh)}))
        return self._vocabulary.table[codes[first]]

    def tally(self, counts: Counter[str]) -> None:
        """Add to what is counted beside the queries."""
        for name, n in counts.items():
            self._writer.put(
                "INSERT INTO tallies VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = n + excluded.n", (name, n)
            )

    def _look_up(self, rows: np.ndarray, keys: np.ndarray, codes: np.ndarray, index: Index) -> None:
        """Fill in the codes of rows that were answered before; the rows are compared, as keys may coincide."""
        where, numbers = index.find(keys)
        for number in np.unique(numbers):
            known = self._known(int(number))
            for at in where[numbers == number]:
                codes[at] = known.get(rows[at].tobytes(), codes[at])

    def _read(self, number: int) -> dict[bytes, int]:
        """The rows of a request, as bytes, with the codes of their answers."""
        self._settle()
        sql = "SELECT n, rows, codes FROM requests JOIN answers ON request = id WHERE id = ?"
        found = self._reader.execute(sql, (number,)).fetchone()
        codes = np.frombuffer(found[2], np.int32).tolist()
        return {row.tobytes(): code for row, code in zip(matrix(found[1], found[0]), codes, strict=True)}

    # --- rounds of training -----------------------------------------------------------------------------------------

    def round(self, t: int) -> tuple[np.ndarray, Json] | None:
        """The parameters after round t and what is known about it, if it was trained before."""
        found = self._reader.execute("SELECT theta, about FROM rounds WHERE t = ?", (t,)).fetchone()
        return None if found is None else (np.frombuffer(found[0], np.float32).copy(), json.loads(found[1]))

    def keep_round(self, t: int, theta: np.ndarray, about: Json) -> None:
        """Write down a round of training."""
        self._writer.put("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", (t, theta.tobytes(), json.dumps(about)))

    def _settle(self) -> None:
        with errors_of(self.path):
            self._writer.settle()


_Ticket = tuple[int, Part, Statement]
"""A request's number, which rows are in it, and its announcement."""


class _Entries:
    """The journal of one call: its requests, announced and answered in the ledger."""

    def __init__(self, ledger: Ledger, rows: np.ndarray, keys: np.ndarray, purpose: str):
        self.ledger, self.rows, self.keys, self.purpose = ledger, rows, keys, purpose
        self.codes = np.full(len(rows), -1, np.int32)

    def announce(self, part: Part) -> _Ticket:
        """Write down that these rows will be asked."""
        number = self.ledger._next
        self.ledger._next += 1
        entry = (number, self.purpose, part.stop - part.start, self.rows[part].data, time.time())
        sql = "INSERT INTO requests (id, purpose, n, rows, announced) VALUES (?, ?, ?, ?, ?)"
        return number, part, self.ledger._writer.put(sql, entry)

    def ready(self, ticket: _Ticket) -> None:
        """Wait until the announcement has reached the disk."""
        with errors_of(self.ledger.path):
            self.ledger._writer.wait(ticket[2])

    def answered(self, ticket: _Ticket, labels: np.ndarray) -> None:
        """Write down what was answered."""
        number, part, _ = ticket
        codes, new = self.ledger._vocabulary.codes(labels)
        for code, value in new:
            self.ledger._writer.put("INSERT INTO labels VALUES (?, ?)", (code, json.dumps(value)))
        # A table of its own: SQLite writes a whole row anew to change it, and requests are large.
        self.ledger._writer.put("INSERT INTO answers VALUES (?, ?, ?)", (number, time.time(), codes.tobytes()))
        self.codes[part] = codes
        self.ledger._indexes[self.purpose == REPEAT].add(self.keys[part], number)

    def failed(self, ticket: _Ticket, error: OriginalError) -> None:
        """Write down that there was no answer, and why."""
        entry = (ticket[0], time.time(), str(error.found)[:500])
        self.ledger._writer.put("INSERT INTO failures VALUES (?, ?, ?)", entry)
