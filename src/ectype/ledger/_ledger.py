"""A run's ledger, open for writing: it looks up earlier answers, and stores requests and new ones."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, closing
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np

from ectype._common.bounded_io import parse_json
from ectype.ledger._batch import Codes, LedgerBatch
from ectype.ledger._blobs import codes_of, matrix_of, parameters_of
from ectype.ledger._connections import beside, connect, refuse_links
from ectype.ledger._group_commit import GroupCommit
from ectype.ledger._hash_chain import head_of
from ectype.ledger._import_rows import given_rows
from ectype.ledger._label_codes import LabelCodes
from ectype.ledger._purpose import Purpose
from ectype.ledger._recovery import errors_of
from ectype.ledger._schema import (
    FURTHER_COLUMNS,
    LEDGER_FORMAT,
    answered_requests,
    labels_of,
    later_settings,
    meta_of,
    prepare,
    scores_for,
    sent_by_purpose,
    unanswered_requests,
)
from ectype.ledger._summary import RowCounts
from ectype.original import LabelledRows
from ectype.space import RowIndex, Space, row_hashes
from ectype.types import Json


class Ledger:
    """A run's ledger, open for writing. `settings` are those of the run it belongs to."""

    anchored = True
    """Whether run.json says how far the chain is, once the ledger is closed. If not, its -head file stays."""

    def __init__(self, path: Path, settings: Json, space: Space, given: LabelledRows | None = None):
        """Open a ledger, or begin one, with the prior answers of the run if there are some."""
        self.path, self._abandoned = path, False
        with errors_of(path), ExitStack() as undone:
            refuse_links(path)
            self._reader = undone.enter_context(closing(connect(path)))
            about = {"format": LEDGER_FORMAT, "settings": settings, "space": space.to_json()}
            more = () if given is None else given_rows(given, LabelCodes([]))
            self.writer = undone.enter_context(closing(GroupCommit(path, prepare(self._reader, path, about, more))))
            self._next = 1 + (self._reader.execute("SELECT max(id) FROM requests").fetchone()[0] or 0)
            self._known = lru_cache(maxsize=64)(self._read)
            self.vocabulary = LabelCodes(labels_of(self._reader))
            self.prefix = self._begin(settings)
            # Purposes whose rows are another question: those asked again, and those sent with more columns.
            self._apart = {Purpose.REPEAT, Purpose.USER_ROWS} if settings.get(FURTHER_COLUMNS) else {Purpose.REPEAT}
            self._indexes = defaultdict[str, RowIndex](RowIndex)
            self._given = 0  # requests that were never sent
            known = 0
            for number, purpose, rows, _ in answered_requests(self._reader, self.prefix):
                self._given += purpose == Purpose.GIVEN
                if purpose != Purpose.GIVEN:
                    known += len(rows)
                    self.index(purpose).add(row_hashes(rows), number)
            self._tried = defaultdict[str, set[int]](set)  # keys of rows sent and not answered
            self.counts = self._count_rows(known)
            undone.pop_all()

    def _begin(self, settings: Json) -> str:
        """Write the settings of a run that is extended; gives the prefix of all purposes, which sessions have."""
        if settings.get("stages") and meta_of(self._reader, self.path)["settings"].get("stages") != settings["stages"]:
            table, entry = later_settings(self._reader, settings)
            self.writer.put(table, *entry)
        return ""

    def _index_key(self, purpose: str) -> str:
        """The index of a purpose. Purposes that share one share their answers: a row is asked for one of them only."""
        return purpose if purpose in self._apart else ""

    def _count_rows(self, known: int) -> RowCounts:
        """Count the rows that were sent so far, and those under way when an earlier process was killed."""
        lost = 0
        for purpose, rows, failed in unanswered_requests(self._reader, self.prefix):
            keys = row_hashes(rows)
            later, _ = self.index(purpose).find(keys)
            self.tried(purpose).update(np.delete(keys, later).tolist())
            lost += 0 if failed else len(rows)
        different = known + sum(map(len, self._tried.values()))
        return RowCounts(sum(sent_by_purpose(self._reader, self.prefix).values()), different, known, lost)

    def close(self) -> None:
        """Write what is still waiting, and close the file."""
        with errors_of(self.path):
            self.writer.close()
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
        """Whether nothing was sent, or the ledger was abandoned."""
        return self._abandoned or self._next == 1 + self._given

    def abandon(self) -> None:
        """Mark the ledger as not worth resuming: its answers are known from elsewhere."""
        self._abandoned = True

    def batch(self, rows: np.ndarray, purpose: Purpose, scores: int = 0) -> LedgerBatch:
        """Rows that are queried together, each with so many scores."""
        return LedgerBatch(self, rows, purpose, scores)

    def record(self, rows: np.ndarray, labels: np.ndarray, purpose: Purpose, scores: np.ndarray | None = None) -> int:
        """Write rows that were asked and answered elsewhere, all or none, and wait until they are on disk.

        Gives how many of them were there already: they are written once more.
        """
        rows, now = np.ascontiguousarray(rows), time.time()
        keys, index = row_hashes(rows), self.index(purpose)
        codes, new = self.vocabulary.codes(labels)
        known = [("labels", (code, json.dumps(value))) for code, value in new]
        request = ("requests", (self._next, self.prefix + purpose, len(rows), now, rows.data))
        with errors_of(self.path):
            answer = ("answers", (self._next, now, codes.tobytes()))
            beside = [] if scores is None else [("scores", (self._next, scores.tobytes()))]
            self.writer.wait(self.writer.together(*known, request, *beside, answer))
        different = np.unique(keys)
        first = len(different) - len(index.find(different)[0])
        index.add(keys, self._next)
        self._next += 1
        self.counts.sent += len(rows)
        self.counts.different += first
        self.counts.answered += len(rows)
        return len(rows) - first

    def unknown(self, rows: np.ndarray, purpose: str) -> np.ndarray:
        """The places of rows that have no answer here."""
        rows = np.ascontiguousarray(rows)
        found = Codes.none(len(rows), 0)
        self.look_up(rows, row_hashes(rows), purpose, found)
        return np.flatnonzero(found.labels < 0)

    def mend(self) -> None:
        """Go on writing after `record` failed, as on a full disk: none of its rows are in the file."""
        with errors_of(self.path):
            self.writer.mend()
            self.vocabulary = LabelCodes(labels_of(self._reader))
            self._next = 1 + (self._reader.execute("SELECT max(id) FROM requests").fetchone()[0] or 0)

    @property
    def begun(self) -> float | None:
        """When the first request was made, in seconds since 1970; None if there is none yet."""
        with errors_of(self.path):
            found = self._reader.execute("SELECT announced FROM requests ORDER BY id LIMIT 1").fetchall()
        return found[0][0] if found else None

    def tally(self, counts: Counter[str]) -> None:
        """Add to the counts that are kept beside the queries."""
        for name, n in counts.items():
            self.writer.put("tallies", None, name, n)

    def look_up(self, rows: np.ndarray, keys: np.ndarray, purpose: str, found: Codes) -> None:
        """Fill in the answers that are known. Rows are compared in full, since hashes may collide."""
        where, numbers = self.index(purpose).find(keys)
        for number in np.unique(numbers):
            places, known = self._known(int(number))
            pairs = [(at, places[key]) for at in where[numbers == number] if (key := rows[at].tobytes()) in places]
            if pairs:
                at, place = np.array(pairs).T
                found.fill(at, known, place)

    def index(self, purpose: str) -> RowIndex:
        """The requests of rows that were answered, for this purpose and those that share its answers."""
        return self._indexes[self._index_key(purpose)]

    def tried(self, purpose: str) -> set[int]:
        """Hashes of rows that were sent and not answered, for this purpose and those that share its answers."""
        return self._tried[self._index_key(purpose)]

    def next_number(self) -> int:
        """Take the number of the next request."""
        self._next += 1
        return self._next - 1

    def _read(self, number: int) -> tuple[dict[bytes, int], Codes]:
        """The places of a request's rows, by their bytes, and its answers."""
        self.settle()
        sql = "SELECT n, rows, codes FROM requests JOIN answers ON request = id WHERE id = ?"
        n, rows, codes = self._reader.execute(sql, (number,)).fetchone()
        scores = scores_for(self._reader, number, n)
        places = {row.tobytes(): place for place, row in enumerate(matrix_of(rows, n))}
        return places, Codes(codes_of(codes, n, len(self.vocabulary.values)), scores)

    # --- rounds of training -----------------------------------------------------------------------------------------

    def round(self, t: int) -> tuple[np.ndarray, Json] | None:
        """The parameters after round t and its record, if it was trained before."""
        with errors_of(self.path):
            found = self._reader.execute("SELECT theta, about FROM rounds WHERE t = ?", (t,)).fetchone()
            return None if found is None else (parameters_of(found[0]), parse_json(found[1]))

    def keep_round(self, t: int, theta: np.ndarray, about: Json) -> None:
        """Write a round of training."""
        self.writer.put("rounds", t, theta.tobytes(), json.dumps(about))

    def settle(self) -> None:
        """Wait until everything has reached the disk."""
        with errors_of(self.path):
            self.writer.settle()
