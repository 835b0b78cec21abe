"""Asking an original about many rows: in requests of the size it takes, several at once where it can, each journalled.

A request that fails is halved until the row that makes it fail is found. What was answered meanwhile is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Generic, Protocol, TypeVar

import numpy as np

from understudy.errors import OriginalError, OutageError
from understudy.original import Original, Said
from understudy.queries.halving import Part, failing_rows, parts
from understudy.types import Table

# How many requests may be announced before they are sent, so that only the first has to wait for it.
AHEAD = 32

Ticket = TypeVar("Ticket")


class Journal(Protocol[Ticket]):
    """Where requests are announced before they are sent, and answers written down."""

    def announce(self, part: Part) -> Ticket:
        """Write down that these rows will be asked; gives a ticket."""

    def ready(self, ticket: Ticket) -> None:
        """Wait until the announcement is safe."""

    def answered(self, ticket: Ticket, said: Said) -> None:
        """Write down what was answered."""

    def failed(self, ticket: Ticket, error: OriginalError) -> None:
        """Write down that there was no answer."""


def ask(original: Original, rows_of: Callable[[Part], Table], n: int, journal: Journal[Ticket]) -> None:
    """Ask about n rows, until all are answered in the journal. `rows_of` gives them as the original takes them."""
    asked, requests = _Asked(original, rows_of, journal), parts(n, original.request_rows)
    if original.concurrency == 1:
        asked.one_by_one(requests)
    else:
        asked.several_at_once(requests)


class _Asked(Generic[Ticket]):
    def __init__(self, original: Original, rows_of: Callable[[Part], Table], journal: Journal[Ticket]):
        self.original, self.rows_of, self.journal = original, rows_of, journal

    def one_by_one(self, requests: list[Part]) -> None:
        following = ((part, self.journal.announce(part)) for part in requests)
        announced, ahead = deque(islice(following, 1)), 1  # the first alone, as it is waited for, then more and more
        while announced:
            part, ticket = announced.popleft()
            self.journal.ready(ticket)
            ahead = min(ahead + 1, AHEAD)
            announced.extend(islice(following, ahead - len(announced)))  # written down while this one is asked
            if error := self.put(part, ticket):
                self.halve(part, error)

    def several_at_once(self, requests: list[Part]) -> None:
        """Up to `concurrency` requests under way; once one fails, those are waited for, and their answers kept."""
        under_way: dict[Future[Said], tuple[Part, Ticket]] = {}
        waiting, failed = deque(requests), list[tuple[Part, OriginalError]]()
        with ThreadPoolExecutor(self.original.concurrency, thread_name_prefix="understudy-ask") as pool:
            try:
                while under_way or (waiting and not failed):
                    free = 0 if failed else min(self.original.concurrency - len(under_way), len(waiting))
                    following = [(part := waiting.popleft(), self.journal.announce(part)) for _ in range(free)]
                    for part, ticket in following:
                        self.journal.ready(ticket)
                        under_way[pool.submit(self.original.said, self.rows_of(part))] = part, ticket
                    for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                        part, ticket = under_way.pop(done)
                        if error := self.settle(ticket, done.result):
                            failed.append((part, error))
            except KeyboardInterrupt:  # what is under way may be paid for: one more interrupt gives it up
                self.original.stop()
                for done, (_, ticket) in under_way.items():
                    self.settle(ticket, done.result)
                raise
        for part, error in sorted(failed, key=lambda failure: not isinstance(failure[1], OutageError)):
            self.halve(part, error)
        if waiting:
            self.several_at_once(list(waiting))

    def put(self, part: Part, ticket: Ticket) -> OriginalError | None:
        """Ask, and write down what came of it; gives the error, if it failed."""
        return self.settle(ticket, lambda: self.original.said(self.rows_of(part)))

    def settle(self, ticket: Ticket, answer: Callable[[], Said]) -> OriginalError | None:
        try:
            said = answer()
        except OriginalError as error:
            self.journal.failed(ticket, error)
            return error
        self.journal.answered(ticket, said)
        return None

    def halve(self, part: Part, first: OriginalError) -> None:
        """Halve a request that failed until the row to blame is found; then that is the error.

        If nothing at all is answered on the way, no row is to blame, and the first error stands. If every half is
        answered, the failure was passing.
        """
        answered: list[Part] = []

        def ask(half: Part) -> OriginalError | None:
            ticket = self.journal.announce(half)
            self.journal.ready(ticket)
            error = self.put(half, ticket)
            if error is None:
                answered.append(half)
            return error

        for row, error in failing_rows(part, first, ask):
            raise self.blame(row, error) if answered else first

    def blame(self, part: Part, error: OriginalError) -> OriginalError:
        rows = self.rows_of(part)
        row = rows[0].tolist() if isinstance(rows, np.ndarray) else rows.iloc[0].to_dict()
        hint = "keep such rows out of the space by a bound, a level or a rule, or have the original mended"
        found = f"{error.found}, for the row {row!r} alone"
        return OriginalError(error.where, error.expected, found, hint)
