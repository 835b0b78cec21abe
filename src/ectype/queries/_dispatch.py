"""Asking an original about many rows: in requests of the size it takes, several at once where it can.

Each is counted and written down before it is sent, and so is every attempt to send it once more.

A request that fails is halved until the row that makes it fail is found. What was answered meanwhile is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from time import perf_counter
from typing import Generic, Protocol, TypeVar

import numpy as np

from ectype import progress
from ectype.errors import AnswerCountError, OriginalError, OutageError, QuotaError
from ectype.original import Answers, Original
from ectype.queries._bisection import Part, failing_rows, parts
from ectype.queries._quota import Meter
from ectype.types import Table

# How many requests may be announced before they are sent, so that only the first has to wait for it.
AHEAD = 32
# Longer than a commit, in seconds: such an original has no use for that, and what is announced may have been sent.
SLOW = 0.02
# The rows of a small request, and of one that is not large.
FIRST, LARGE = 20, 100

Ticket = TypeVar("Ticket")


class Journal(Protocol[Ticket]):
    """Where requests are announced before they are sent, and answers written down."""

    def asked_before(self, part: Part) -> int:
        """How many of these rows were sent before, and not answered."""

    def announce(self, part: Part) -> Ticket:
        """Write down that these rows will be asked; gives a ticket."""

    def ready(self, ticket: Ticket) -> None:
        """Wait until the announcement is safe."""

    def withdraw(self, ticket: Ticket) -> None:
        """Take an announcement back: the request was not sent."""

    def again(self, ticket: Ticket, n: int) -> None:
        """Write down that n rows of a request are sent once more, safely, or, below zero, that they never arrived."""

    def answered(self, ticket: Ticket, said: Answers) -> None:
        """Write down what was answered."""

    def failed(self, ticket: Ticket, error: OriginalError) -> None:
        """Write down that there was no answer."""


def ask(
    original: Original,
    rows_of: Callable[[Part], Table],
    n: int,
    journal: Journal[Ticket],
    meter: Meter,
    gently: bool = False,
) -> None:
    """Ask about n rows, until all are answered in the journal. `rows_of` gives them as the original takes them.

    `gently`: of an original that never answered yet, the first request is a small one. If it cannot answer, few rows
    are to be sent again once it can.
    """
    asked = _Asked(original, rows_of, journal, meter)
    asked.n = n
    size = original.request_rows if original.remote else meter.near(original.request_rows)
    first = min(FIRST, n) if gently and original.request_rows > LARGE else 0
    requests = [*parts(first, size), *parts(n, size, first)]
    if original.concurrency == 1 and not original.remote:
        asked.one_by_one(requests)
    else:
        asked.several_at_once(requests)


class _Toll(Generic[Ticket]):
    """The attempts of one request: the first is counted with its announcement, each further one before it is sent."""

    def __init__(self, meter: Meter, journal: Journal[Ticket], ticket: Ticket, n: int):
        self._meter, self._journal, self._ticket, self._n = meter, journal, ticket, n
        self._paid, self._cause = True, ""

    def sending(self) -> None:
        """Count an attempt, or refuse it."""
        if not self._paid:
            self._meter.take(self._n, first=0, cause=self._cause)
            self._journal.again(self._ticket, self._n)
        self._paid = False

    def failed(self, found: str, reached: bool) -> None:
        """Keep the cause; rows that never arrived do not count."""
        self._cause = found
        if not reached:
            self._meter.give_back(self._n)
            self._journal.again(self._ticket, -self._n)


class _Asked(Generic[Ticket]):
    def __init__(self, original: Original, rows_of: Callable[[Part], Table], journal: Journal[Ticket], meter: Meter):
        self.original, self.rows_of, self.journal, self.meter = original, rows_of, journal, meter
        self.n = self.answered = 0

    def one_by_one(self, requests: list[Part]) -> None:
        waiting, failed = deque(requests), list[tuple[Part, OriginalError]]()
        announced, ahead = deque(self.following(waiting, 1, failed)), 1  # the first alone, as it is waited for
        try:
            while announced:
                part, ticket = announced.popleft()
                self.journal.ready(ticket)
                # Written down while this one is asked: more and more, or, while it is slow, one.
                announced.extend(self.following(waiting, ahead - len(announced), failed))
                clock = perf_counter()
                error = self.put(part, ticket)
                ahead = min(ahead + 1, AHEAD) if perf_counter() - clock < SLOW else 1
                if error:
                    self.halve(part, error)
        finally:
            for part, ticket in announced:
                self.withdraw(part, ticket)
        for _, error in failed:
            raise error

    def several_at_once(self, requests: list[Part]) -> None:
        """Up to `concurrency` requests under way; once one fails, those are waited for, and their answers kept."""
        under_way: dict[Future[Answers], tuple[Part, Ticket]] = {}
        waiting, failed = deque(requests), list[tuple[Part, OriginalError]]()
        with ThreadPoolExecutor(self.original.concurrency, thread_name_prefix="ectype-ask") as pool:
            try:
                while under_way or (waiting and not failed):
                    for part, ticket in self.following(waiting, self.original.concurrency - len(under_way), failed):
                        self.journal.ready(ticket)
                        under_way[pool.submit(self.said, part, ticket)] = part, ticket
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

    def following(
        self, waiting: deque[Part], most: int, failed: list[tuple[Part, OriginalError]]
    ) -> list[tuple[Part, Ticket]]:
        """The next requests, announced, unless one has failed; one that may not be sent has."""
        found: list[tuple[Part, Ticket]] = []
        try:
            while waiting and len(found) < most and not failed:
                found.append((waiting[0], self.announce(waiting[0])))
                waiting.popleft()
        except QuotaError as error:
            failed.append((waiting[0], error))
        return found

    def announce(self, part: Part, after: OriginalError | None = None) -> Ticket:
        """Count a request and write it down before it is sent; `after` is the failure that it follows."""
        n = part.stop - part.start
        first = 0 if after else n - self.journal.asked_before(part)
        self.meter.take(n, first, str(after.found) if after else "")
        return self.journal.announce(part)

    def withdraw(self, part: Part, ticket: Ticket) -> None:
        """Take back a request that was not sent."""
        n = part.stop - part.start
        self.meter.give_back(n, n - self.journal.asked_before(part))
        self.journal.withdraw(ticket)

    def put(self, part: Part, ticket: Ticket) -> OriginalError | None:
        """Ask, and write down what came of it; gives the error, if it failed."""
        return self.settle(ticket, lambda: self.said(part, ticket))

    def said(self, part: Part, ticket: Ticket) -> Answers:
        toll = _Toll(self.meter, self.journal, ticket, part.stop - part.start)
        return self.original.said(self.rows_of(part), toll)

    def settle(self, ticket: Ticket, answer: Callable[[], Answers]) -> OriginalError | None:
        try:
            said = answer()
        except OriginalError as error:
            self.journal.failed(ticket, error)
            return error
        self.journal.answered(ticket, said)
        self.meter.answer(len(said))
        self.answered += len(said)
        progress.report_answered(self.answered, self.n)
        return None

    def halve(self, part: Part, first: OriginalError) -> None:
        """Halve a request that failed until the row to blame is found; then that is the error.

        A row alone comes first: if it fails, and so do two others, no row is to blame, and the first error stands. If
        everything is answered, the failure was passing. Where too few answers came, that is what stands if no more rows
        may be sent to find out for which of them none did: it does not pass, so that more retries would be no help.
        """
        if isinstance(first, OutageError) or part.stop - part.start == 1:
            raise first
        try:
            self._halve(part, first)
        except QuotaError as spent:
            if isinstance(first, AnswerCountError):
                raise first from spent
            raise

    def _halve(self, part: Part, first: OriginalError) -> None:
        head, rest = slice(part.start, part.start + 1), slice(part.start + 1, part.stop)
        if error := self.ask_after(first, head):
            others = {(part.start + part.stop) // 2, part.stop - 1}
            answered = any(self.ask_after(first, slice(at, at + 1)) is None for at in sorted(others))
            raise self.blame(head, error) if answered else first
        left = self.ask_after(first, rest) if rest.stop - rest.start == 1 else first
        if left is not None:
            for row, error in failing_rows(rest, left, partial(self.ask_after, first)):
                raise self.blame(row, error)

    def ask_after(self, first: OriginalError, part: Part) -> OriginalError | None:
        """Ask about a part of a request that failed; an outage is raised."""
        ticket = self.announce(part, first)
        self.journal.ready(ticket)
        error = self.put(part, ticket)
        if isinstance(error, OutageError):
            raise error
        return error

    def blame(self, part: Part, error: OriginalError) -> OriginalError:
        rows = self.rows_of(part)
        row = rows[0].tolist() if isinstance(rows, np.ndarray) else rows.iloc[0].to_dict()
        hint = "keep such rows out of the space by a bound, a level or a rule, or have the original mended"
        found = f"{error.found}, for the row {row!r} alone"
        return OriginalError(error.where, error.expected, found, hint)
