"""Send rows to an original in requests of the size it takes, several in flight where it can.

Each request is counted and written to a journal before it is sent, and so is every retry. A request that fails is
bisected until the row that makes it fail is found; answers that came meanwhile are kept.
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
from ectype.queries._bisection import RowSlice, failing_rows, request_slices
from ectype.queries._quota import Quota
from ectype.types import Table

# How many requests may be announced before they are sent, so that only the first has to wait for it.
AHEAD = 32
# Longer than a commit, in seconds: such an original has no use for that, and what is announced may have been sent.
SLOW = 0.02
# The rows of a small request, and of one that is not large.
FIRST, LARGE = 20, 100

Ticket = TypeVar("Ticket")


class Journal(Protocol[Ticket]):
    """A write-ahead log of requests and answers. The default methods write nothing."""

    def asked_before(self, part: RowSlice) -> int:
        """How many of these rows were sent before, and not answered."""
        return 0

    def announce(self, part: RowSlice) -> Ticket:
        """Write that these rows will be sent; gives a ticket."""

    def ready(self, ticket: Ticket) -> None:
        """Wait until the announcement is on disk."""
        return

    def withdraw(self, ticket: Ticket) -> None:
        """Take an announcement back: the request was not sent."""
        return

    def again(self, ticket: Ticket, n: int) -> None:
        """Write that n rows are sent once more, and wait until that is on disk; or, if n < 0, that -n never arrived."""
        return

    def answered(self, ticket: Ticket, answers: Answers) -> None:
        """Write the answers."""

    def failed(self, ticket: Ticket, error: OriginalError) -> None:
        """Write that there was no answer."""
        return


def send(
    original: Original,
    rows_of: Callable[[RowSlice], Table],
    n: int,
    journal: Journal[Ticket],
    quota: Quota,
    gently: bool = False,
) -> None:
    """Send n rows, until all are answered in the journal. `rows_of` gives them as the original takes them.

    `gently`: start with a small request, until the original has answered once. If it cannot answer, few rows have to
    be sent again once it can.
    """
    sending = _Sending(original, rows_of, n, journal, quota)
    size = original.request_rows if original.remote else quota.near(original.request_rows)
    first = min(FIRST, n) if gently and original.request_rows > LARGE else 0
    requests = [*request_slices(first, size), *request_slices(n, size, first)]
    if original.concurrency == 1 and not original.remote:
        sending.one_by_one(requests)
    else:
        sending.several_at_once(requests)


class _RequestMeter(Generic[Ticket]):
    """Counts the attempts of one request: the first with its announcement, each further one before it is sent."""

    def __init__(self, quota: Quota, journal: Journal[Ticket], ticket: Ticket, n: int):
        self._quota, self._journal, self._ticket, self._n = quota, journal, ticket, n
        self._paid, self._cause = True, ""

    def sending(self) -> None:
        """Count an attempt, or refuse it."""
        if not self._paid:
            self._quota.take(self._n, first=0, cause=self._cause)
            self._journal.again(self._ticket, self._n)
        self._paid = False

    def failed(self, found: str, reached: bool) -> None:
        """Keep the cause; rows that never arrived do not count."""
        self._cause = found
        if not reached:
            self._quota.give_back(self._n)
            self._journal.again(self._ticket, -self._n)


class _Sending(Generic[Ticket]):
    """The requests of one batch: those that wait, those under way, and what came of them."""

    def __init__(
        self, original: Original, rows_of: Callable[[RowSlice], Table], n: int, journal: Journal[Ticket], quota: Quota
    ):
        self.original, self.rows_of, self.n, self.journal, self.quota = original, rows_of, n, journal, quota
        self.answered = 0

    def one_by_one(self, requests: list[RowSlice]) -> None:
        waiting, failed = deque(requests), list[tuple[RowSlice, OriginalError]]()
        announced, ahead = deque(self.announce_next(waiting, 1, failed)), 1  # the first alone, as it is waited for
        try:
            while announced:
                part, ticket = announced.popleft()
                self.journal.ready(ticket)
                # Written down while this one is asked: more and more, or, while it is slow, one.
                announced.extend(self.announce_next(waiting, ahead - len(announced), failed))
                clock = perf_counter()
                error = self.send_one(part, ticket)
                ahead = min(ahead + 1, AHEAD) if perf_counter() - clock < SLOW else 1
                if error:
                    self.bisect(part, error)
        finally:
            for part, ticket in announced:
                self.withdraw(part, ticket)
        for _, error in failed:
            raise error

    def several_at_once(self, requests: list[RowSlice]) -> None:
        """Keep up to `concurrency` requests in flight. Once one fails, wait for the others, and keep their answers."""
        under_way: dict[Future[Answers], tuple[RowSlice, Ticket]] = {}
        waiting, failed = deque(requests), list[tuple[RowSlice, OriginalError]]()
        with ThreadPoolExecutor(self.original.concurrency, thread_name_prefix="ectype-ask") as pool:
            try:
                while under_way or (waiting and not failed):
                    for part, ticket in self.announce_next(waiting, self.original.concurrency - len(under_way), failed):
                        self.journal.ready(ticket)
                        under_way[pool.submit(self.query, part, ticket)] = part, ticket
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
            self.bisect(part, error)
        if waiting:
            self.several_at_once(list(waiting))

    def announce_next(
        self, waiting: deque[RowSlice], most: int, failed: list[tuple[RowSlice, OriginalError]]
    ) -> list[tuple[RowSlice, Ticket]]:
        """Announce the next requests, unless one has failed. One that exceeds the quota counts as failed."""
        found: list[tuple[RowSlice, Ticket]] = []
        try:
            while waiting and len(found) < most and not failed:
                found.append((waiting[0], self.announce(waiting[0])))
                waiting.popleft()
        except QuotaError as error:
            failed.append((waiting[0], error))
        return found

    def announce(self, part: RowSlice, after: OriginalError | None = None) -> Ticket:
        """Count and announce a request before it is sent; `after` is the failure that it follows."""
        n = part.stop - part.start
        first = 0 if after else n - self.journal.asked_before(part)
        self.quota.take(n, first, str(after.found) if after else "")
        return self.journal.announce(part)

    def withdraw(self, part: RowSlice, ticket: Ticket) -> None:
        """Take back a request that was not sent."""
        n = part.stop - part.start
        self.quota.give_back(n, n - self.journal.asked_before(part))
        self.journal.withdraw(ticket)

    def send_one(self, part: RowSlice, ticket: Ticket) -> OriginalError | None:
        """Send a request and write its outcome; gives the error, if it failed."""
        return self.settle(ticket, lambda: self.query(part, ticket))

    def query(self, part: RowSlice, ticket: Ticket) -> Answers:
        meter = _RequestMeter(self.quota, self.journal, ticket, part.stop - part.start)
        return self.original.query(self.rows_of(part), meter)

    def settle(self, ticket: Ticket, answer: Callable[[], Answers]) -> OriginalError | None:
        try:
            answers = answer()
        except OriginalError as error:
            self.journal.failed(ticket, error)
            return error
        self.journal.answered(ticket, answers)
        self.quota.answer(len(answers))
        self.answered += len(answers)
        progress.report_answered(self.answered, self.n)
        return None

    def bisect(self, part: RowSlice, first: OriginalError) -> None:
        """Bisect a request that failed until the row to blame is found; then its error is raised.

        A row alone comes first: if it fails, and so do two others, no row is to blame, and the first error stands. If
        everything is answered, the failure was passing. Where too few answers came, that is what stands if no more rows
        may be sent to find out for which of them none did: it does not pass, so that more retries would be no help.
        """
        if isinstance(first, OutageError) or part.stop - part.start == 1:
            raise first
        try:
            self._bisect(part, first)
        except QuotaError as spent:
            if isinstance(first, AnswerCountError):
                raise first from spent
            raise

    def _bisect(self, part: RowSlice, first: OriginalError) -> None:
        head, rest = slice(part.start, part.start + 1), slice(part.start + 1, part.stop)
        if error := self.ask_after(first, head):
            others = {(part.start + part.stop) // 2, part.stop - 1}
            answered = any(self.ask_after(first, slice(at, at + 1)) is None for at in sorted(others))
            raise self.blame(head, error) if answered else first
        left = self.ask_after(first, rest) if rest.stop - rest.start == 1 else first
        if left is not None:
            for row, error in failing_rows(rest, left, partial(self.ask_after, first)):
                raise self.blame(row, error)

    def ask_after(self, first: OriginalError, part: RowSlice) -> OriginalError | None:
        """Send a part of a request that failed; an outage is raised."""
        ticket = self.announce(part, first)
        self.journal.ready(ticket)
        error = self.send_one(part, ticket)
        if isinstance(error, OutageError):
            raise error
        return error

    def blame(self, part: RowSlice, error: OriginalError) -> OriginalError:
        rows = self.rows_of(part)
        row = rows[0].tolist() if isinstance(rows, np.ndarray) else rows.iloc[0].to_dict()
        hint = "keep such rows out of the space by a bound, a level or a rule, or have the original mended"
        found = f"{error.found}, for the row {row!r} alone"
        return OriginalError(error.where, error.expected, found, hint)
