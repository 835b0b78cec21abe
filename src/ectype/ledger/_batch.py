"""Rows that are queried together: the answers that a ledger has, and the journal of requests about the others."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ectype.errors import OriginalError
from ectype.ledger._group_commit import Statement
from ectype.ledger._recovery import errors_of
from ectype.ledger._schema import SAVED
from ectype.original import Answers
from ectype.space import first_occurrences, row_hashes

if TYPE_CHECKING:
    from ectype.ledger._ledger import Ledger


@dataclass(frozen=True)
class Codes:
    """Codes of labels, -1 where there is none yet, and the scores beside them, if the original is asked for these."""

    labels: np.ndarray
    scores: np.ndarray | None

    @classmethod
    def none(cls, n: int, columns: int) -> Codes:
        """Room for n answers with so many scores each."""
        return cls(np.full(n, -1, np.int32), np.zeros((n, columns), np.float32) if columns else None)

    def fill(self, at: np.ndarray, known: Codes, places: np.ndarray) -> None:
        """Fill in known answers at some places."""
        self.labels[at] = known.labels[places]
        if self.scores is not None and known.scores is not None:
            self.scores[at] = known.scores[places]


Ticket = tuple[int, slice, Statement]
"""A request's number, which rows are in it, and its announcement."""


class LedgerBatch:
    """Rows that are queried together, and the journal of the requests about those in `fresh`.

    A row is not fresh if the ledger has its answer, or if it equals an earlier row of the batch.
    """

    def __init__(self, ledger: Ledger, rows: np.ndarray, purpose: str, scores: int):
        rows = np.ascontiguousarray(rows)  # parts of it go into the file as they lie in memory
        keys, self._found = row_hashes(rows), Codes.none(len(rows), scores)
        self._first = first_occurrences(rows, keys)
        self._ledger, self._purpose = ledger, purpose
        ledger.look_up(rows, keys, purpose, self._found)
        self.fresh = np.flatnonzero((self._found.labels < 0) & (self._first == np.arange(len(rows))))
        if len(self.fresh) < len(rows):  # else they need not be copied
            rows, keys = rows[self.fresh], keys[self.fresh]
        self._rows, self._keys = rows, keys

    def end(self, failures: Counter[str]) -> None:
        """Wait until everything is on disk; `failures` are counted by their kind."""
        if len(self.fresh):
            self._ledger.tally(failures)
            self._ledger.settle()

    @property
    def answers(self) -> Answers:
        """The answers to all rows, once those to the fresh ones are in the journal."""
        if saved := len(self._first) - len(self.fresh):
            self._ledger.tally(Counter({SAVED: saved}))
        scores = self._found.scores
        labels = self._ledger.vocabulary.table[self._found.labels[self._first]]
        return Answers(labels, None if scores is None else scores[self._first])

    # --- the journal of its requests ---------------------------------------------------------------------------------

    def asked_before(self, part: slice) -> int:
        """How many of these rows were sent before, and not answered."""
        tried = self._ledger.tried(self._purpose)
        return sum(key in tried for key in self._keys[part].tolist()) if tried else 0

    def announce(self, part: slice) -> Ticket:
        """Write down that these rows will be asked."""
        number = self._ledger.next_number()
        purpose = self._ledger.prefix + self._purpose
        entry = (number, purpose, part.stop - part.start, time.time(), self._rows[part].data)
        return number, part, self._ledger.writer.put("requests", *entry)

    def ready(self, ticket: Ticket) -> None:
        """Wait until the announcement has reached the disk."""
        with errors_of(self._ledger.path):
            self._ledger.writer.wait(ticket[2])

    def withdraw(self, ticket: Ticket) -> None:
        """Take back a request that was not sent."""
        self.again(ticket, ticket[1].start - ticket[1].stop)

    def again(self, ticket: Ticket, n: int) -> None:
        """Write down that rows are sent once more, and wait until that has reached the disk; or that none arrived."""
        written = self._ledger.writer.put("attempts", None, ticket[0], time.time(), n)
        if n > 0:
            with errors_of(self._ledger.path):
                self._ledger.writer.wait(written)

    def answered(self, ticket: Ticket, answers: Answers) -> None:
        """Write down what was answered."""
        number, part, _ = ticket
        codes, new = self._ledger.vocabulary.codes(answers.labels)
        for code, value in new:
            self._ledger.writer.put("labels", code, json.dumps(value))
        if answers.scores is not None:  # first: an answer that is there has its scores
            self._ledger.writer.put("scores", number, answers.scores.tobytes())
        # A table of its own: SQLite writes a whole row anew to change it, and requests are large.
        self._ledger.writer.put("answers", number, time.time(), codes.tobytes())
        self._found.fill(self.fresh[part], Codes(codes, answers.scores), np.arange(len(codes)))
        self._ledger.index(self._purpose).add(self._keys[part], number)

    def failed(self, ticket: Ticket, error: OriginalError) -> None:
        """Write down that there was no answer, and why."""
        self._ledger.writer.put("failures", None, ticket[0], time.time(), str(error.found)[:500])
        self._ledger.tried(self._purpose).update(self._keys[ticket[1]].tolist())
