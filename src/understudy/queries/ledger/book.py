"""A run's ledger, open for writing: what it was asked before is taken from it, all else asked and written down."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from understudy.errors import OriginalError
from understudy.original import Original, Said, Told
from understudy.queries.halving import Part
from understudy.queries.ledger.blobs import codes_of, matrix_of, parameters_of
from understudy.queries.ledger.chain import head_of
from understudy.queries.ledger.file import (
    FORMAT,
    FURTHER,
    GIVEN,
    REPEAT,
    SAVED,
    USER_ROWS,
    answered_requests,
    labels_of,
    later_settings,
    meta_of,
    prepared,
    scores_for,
    sent_by_purpose,
    unanswered,
)
from understudy.queries.ledger.giving import given_rows
from understudy.queries.ledger.left import errors_of
from understudy.queries.ledger.opening import beside, connect, refuse_links
from understudy.queries.ledger.vocabulary import Vocabulary
from understudy.queries.ledger.writer import Statement, Writer
from understudy.queries.meter import Meter
from understudy.queries.requests import ask
from understudy.reading import parse_json
from understudy.space import Space
from understudy.space.rowkeys import Index, first_of_each, keys_of
from understudy.types import Json, Table

Present: TypeAlias = Callable[[np.ndarray], Table]
"""From the places of rows to these rows as an original takes them."""


class Ledger:
    """A run's ledger, open for writing. `settings` are those of the run it belongs to."""

    anchored = True
    """Whether run.json knows how far it is once it is closed; else the file beside it has to stay."""

    def __init__(self, path: Path, settings: Json, space: Space, given: Told | None = None):
        """Open it, or begin one: with answers that the run was given, if it was."""
        self.path, self._abandoned = path, False
        with errors_of(path), ExitStack() as undone:
            refuse_links(path)
            self._reader = undone.enter_context(closing(connect(path)))
            about = {"format": FORMAT, "settings": settings, "space": space.to_json()}
            more = () if given is None else given_rows(given, Vocabulary([]))
            self._writer = undone.enter_context(closing(Writer(path, prepared(self._reader, path, about, more))))
            self._next = 1 + (self._reader.execute("SELECT max(id) FROM requests").fetchone()[0] or 0)
            self._known = lru_cache(maxsize=64)(self._read)
            self._vocabulary = Vocabulary(labels_of(self._reader))
            self._prefix = self._begun(settings)
            # Purposes whose rows are another question: those asked again, and those sent with more columns.
            self._apart = {REPEAT, USER_ROWS} if settings.get(FURTHER) else {REPEAT}
            self._indexes = defaultdict[str, Index](Index)
            self._given = 0  # requests that were never sent
            known = 0
            for number, purpose, rows, _ in answered_requests(self._reader, self._prefix):
                self._given += purpose == GIVEN
                if purpose != GIVEN:
                    known += len(rows)
                    self._indexes[self._kind(purpose)].add(keys_of(rows), number)
            self._tried = defaultdict[str, set[int]](set)  # keys of rows sent and not answered
            self.meter = self._metered(known)
            undone.pop_all()

    def _begun(self, settings: Json) -> str:
        """Write down the settings of a run that goes on; gives how the purposes of what is asked begin."""
        if settings.get("stages") and meta_of(self._reader, self.path)["settings"].get("stages") != settings["stages"]:
            table, entry = later_settings(self._reader, settings)
            self._writer.put(table, *entry)
        return ""

    def _kind(self, purpose: str) -> str:
        """Purposes of the same kind share their answers: a row that was asked for one is not asked for another."""
        return purpose if purpose in self._apart else ""

    def _metered(self, known: int) -> Meter:
        """A meter of what was sent so far, and of what was under way when an earlier process ended without a word."""
        lost = 0
        for purpose, rows, failed in unanswered(self._reader, self._prefix):
            keys = keys_of(rows)
            later, _ = self._indexes[self._kind(purpose)].find(keys)
            self._tried[self._kind(purpose)].update(np.delete(keys, later).tolist())
            lost += 0 if failed else len(rows)
        different = known + sum(map(len, self._tried.values()))
        return Meter(sum(sent_by_purpose(self._reader, self._prefix).values()), different, known, lost)

    def close(self) -> None:
        """Write what is still waiting, and close the file."""
        with errors_of(self.path):
            self._writer.close()
            self._reader.close()
            if self.anchored and not beside(self.path, "-wal").exists():  # else somebody reads, or it is not emptied
                head_of(self.path).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- queries ----------------------------------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        """Whether there is nothing in it that is worth keeping."""
        return self._abandoned or self._next == 1 + self._given

    def abandon(self) -> None:
        """Say that nobody will want to go on from here: what was answered is known from elsewhere."""
        self._abandoned = True

    def ask(self, original: Original, space: Space, rows: np.ndarray, purpose: str) -> np.ndarray:
        """The original's labels for these rows, from the ledger where they are in it, else asked and written down."""
        return self.said(original, space, rows, purpose).labels

    def said(
        self, original: Original, space: Space, rows: np.ndarray, purpose: str, present: Present | None = None
    ) -> Said:
        """What the original says to these rows, from the ledger where it is in it, else asked and written down.

        `present` gives rows as the original takes them, where the space does not.
        """
        rows = np.ascontiguousarray(rows)  # parts of it go into the file as they lie in memory
        keys, found = keys_of(rows), _Found.none(len(rows), _columns(original))
        codes, first = found.codes, first_of_each(rows, keys)
        self._look_up(rows, keys, found, self._indexes[self._kind(purpose)])
        fresh = np.flatnonzero((codes < 0) & (first == np.arange(len(rows))))
        if len(fresh):
            known = len(fresh) < len(rows)  # else they need not be copied
            room = _Found.none(len(fresh), _columns(original))
            entries = _Entries(self, rows[fresh] if known else rows, keys[fresh] if known else keys, purpose, room)
            before = Counter(original.failures)
            try:
                shown, gently = present or (lambda places: space.present(rows[places])), not self.meter.answered
                ask(original, lambda part: shown(fresh[part]), len(fresh), entries, self.meter, gently)
            finally:
                self.tally(original.failures - before)
                self.settle()
            found.fill(fresh, entries.found, np.arange(len(fresh)))
        if len(fresh) < len(rows):
            self.tally(Counter({SAVED: len(rows) - len(fresh)}))
        return Said(self._vocabulary.table[codes[first]], None if found.scores is None else found.scores[first])

    def record(self, rows: np.ndarray, labels: np.ndarray, purpose: str, scores: np.ndarray | None = None) -> int:
        """Write down rows that were asked and answered elsewhere, all or none, and wait until they are on disk.

        Gives how many of them are not here for the first time: what was asked again is written down again.
        """
        rows, now = np.ascontiguousarray(rows), time.time()
        keys, index = keys_of(rows), self._indexes[self._kind(purpose)]
        codes, new = self._vocabulary.codes(labels)
        known = [("labels", (code, json.dumps(value))) for code, value in new]
        request = ("requests", (self._next, self._prefix + purpose, len(rows), now, rows.data))
        with errors_of(self.path):
            answer = ("answers", (self._next, now, codes.tobytes()))
            beside = [] if scores is None else [("scores", (self._next, scores.tobytes()))]
            self._writer.wait(self._writer.together(*known, request, *beside, answer))
        different = np.unique(keys)
        first = len(different) - len(index.find(different)[0])
        index.add(keys, self._next)
        self._next += 1
        self.meter.take(len(rows), first)
        self.meter.answer(len(rows))
        return len(rows) - first

    def unknown(self, rows: np.ndarray, purpose: str) -> np.ndarray:
        """The places of rows that have no answer here."""
        rows = np.ascontiguousarray(rows)
        found = _Found.none(len(rows), 0)
        self._look_up(rows, keys_of(rows), found, self._indexes[self._kind(purpose)])
        return np.flatnonzero(found.codes < 0)

    def mend(self) -> None:
        """Write on after `record` has failed, as on a disk that was full: nothing of it is in the file."""
        with errors_of(self.path):
            self._writer.mend()
            self._vocabulary = Vocabulary(labels_of(self._reader))
            self._next = 1 + (self._reader.execute("SELECT max(id) FROM requests").fetchone()[0] or 0)

    @property
    def begun(self) -> float | None:
        """When the first request was made, in seconds since 1970; None if there is none yet."""
        with errors_of(self.path):
            found = self._reader.execute("SELECT announced FROM requests ORDER BY id LIMIT 1").fetchall()
        return found[0][0] if found else None

    def tally(self, counts: Counter[str]) -> None:
        """Add to what is counted beside the queries."""
        for name, n in counts.items():
            self._writer.put("tallies", None, name, n)

    def _look_up(self, rows: np.ndarray, keys: np.ndarray, found: _Found, index: Index) -> None:
        """Fill in what was answered before; the rows are compared, as keys may coincide."""
        where, numbers = index.find(keys)
        for number in np.unique(numbers):
            places, known = self._known(int(number))
            pairs = [(at, places[key]) for at in where[numbers == number] if (key := rows[at].tobytes()) in places]
            if pairs:
                at, place = np.array(pairs).T
                found.fill(at, known, place)

    def _read(self, number: int) -> tuple[dict[bytes, int], _Found]:
        """The rows of a request, as bytes, with their places in it, and its answers."""
        self.settle()
        sql = "SELECT n, rows, codes FROM requests JOIN answers ON request = id WHERE id = ?"
        n, rows, codes = self._reader.execute(sql, (number,)).fetchone()
        scores = scores_for(self._reader, number, n)
        places = {row.tobytes(): place for place, row in enumerate(matrix_of(rows, n))}
        return places, _Found(codes_of(codes, n, len(self._vocabulary.values)), scores)

    # --- rounds of training -----------------------------------------------------------------------------------------

    def round(self, t: int) -> tuple[np.ndarray, Json] | None:
        """The parameters after round t and what is known about it, if it was trained before."""
        with errors_of(self.path):
            found = self._reader.execute("SELECT theta, about FROM rounds WHERE t = ?", (t,)).fetchone()
            return None if found is None else (parameters_of(found[0]), parse_json(found[1]))

    def keep_round(self, t: int, theta: np.ndarray, about: Json) -> None:
        """Write down a round of training."""
        self._writer.put("rounds", t, theta.tobytes(), json.dumps(about))

    def settle(self) -> None:
        """Wait until everything has reached the disk."""
        with errors_of(self.path):
            self._writer.settle()


@dataclass(frozen=True)
class _Found:
    """Codes of labels, -1 where there is none yet, and the scores beside them, if the original is asked for these."""

    codes: np.ndarray
    scores: np.ndarray | None

    @classmethod
    def none(cls, n: int, columns: int) -> _Found:
        """Room for n answers with so many scores each."""
        return cls(np.full(n, -1, np.int32), np.zeros((n, columns), np.float32) if columns else None)

    def fill(self, at: np.ndarray, known: _Found, places: np.ndarray) -> None:
        """Take over what is known at some places."""
        self.codes[at] = known.codes[places]
        if self.scores is not None and known.scores is not None:
            self.scores[at] = known.scores[places]


def _columns(original: Original) -> int:
    """How many scores an original gives to a row; 0 if it is not asked for them."""
    return len(original.declared) if original.scored and original.declared is not None else 0


_Ticket = tuple[int, Part, Statement]
"""A request's number, which rows are in it, and its announcement."""


class _Entries:
    """The journal of one call: its requests, announced and answered in the ledger."""

    def __init__(self, ledger: Ledger, rows: np.ndarray, keys: np.ndarray, purpose: str, found: _Found):
        self.ledger, self.rows, self.keys, self.purpose, self.found = ledger, rows, keys, purpose, found

    def asked_before(self, part: Part) -> int:
        """How many of these rows were sent before, and not answered."""
        tried = self.ledger._tried[self.ledger._kind(self.purpose)]
        return sum(key in tried for key in self.keys[part].tolist()) if tried else 0

    def announce(self, part: Part) -> _Ticket:
        """Write down that these rows will be asked."""
        number = self.ledger._next
        self.ledger._next += 1
        purpose = self.ledger._prefix + self.purpose
        entry = (number, purpose, part.stop - part.start, time.time(), self.rows[part].data)
        return number, part, self.ledger._writer.put("requests", *entry)

    def ready(self, ticket: _Ticket) -> None:
        """Wait until the announcement has reached the disk."""
        with errors_of(self.ledger.path):
            self.ledger._writer.wait(ticket[2])

    def withdraw(self, ticket: _Ticket) -> None:
        """Take back a request that was not sent."""
        self.again(ticket, ticket[1].start - ticket[1].stop)

    def again(self, ticket: _Ticket, n: int) -> None:
        """Write down that rows are sent once more, and wait until that has reached the disk; or that none arrived."""
        written = self.ledger._writer.put("attempts", None, ticket[0], time.time(), n)
        if n > 0:
            with errors_of(self.ledger.path):
                self.ledger._writer.wait(written)

    def answered(self, ticket: _Ticket, said: Said) -> None:
        """Write down what was answered."""
        number, part, _ = ticket
        codes, new = self.ledger._vocabulary.codes(said.labels)
        for code, value in new:
            self.ledger._writer.put("labels", code, json.dumps(value))
        if said.scores is not None:  # first: an answer that is there has its scores
            self.ledger._writer.put("scores", number, said.scores.tobytes())
        # A table of its own: SQLite writes a whole row anew to change it, and requests are large.
        self.ledger._writer.put("answers", number, time.time(), codes.tobytes())
        self.found.fill(np.arange(part.start, part.stop), _Found(codes, said.scores), np.arange(len(codes)))
        self.ledger._indexes[self.ledger._kind(self.purpose)].add(self.keys[part], number)

    def failed(self, ticket: _Ticket, error: OriginalError) -> None:
        """Write down that there was no answer, and why."""
        self.ledger._writer.put("failures", None, ticket[0], time.time(), str(error.found)[:500])
        self.ledger._tried[self.ledger._kind(self.purpose)].update(self.keys[ticket[1]].tolist())
