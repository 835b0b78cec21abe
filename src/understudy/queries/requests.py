"""Asking an original about many rows: in requests of the size it takes, several at once where it can, each journalled.

A request that fails is halved until the row that makes it fail is found. What was answered meanwhile is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, Protocol

import numpy as np

from understudy.errors import OriginalError, OutageError
from understudy.original import Original

# How many requests may be announced before they are sent, so that only the first has to wait for it.
AHEAD = 32

Part = slice
"""Which rows go into one request."""


class Journal(Protocol):
    """Where requests are announced before they are sent, and answers written down."""

    def announce(self, part: Part) -> Any:
        """Write down that these rows will be asked; gives a ticket."""

    def ready(self, ticket: Any) -> None:
        """Wait until the announcement is safe."""

    def answered(self, ticket: Any, labels: np.ndarray) -> None:
        """Write down what was answered."""

    def failed(self, ticket: Any, error: OriginalError) -> None:
        """Write down that there was no answer."""


def ask(original: Original, rows_of: Callable[[Part], Any], n: int, journal: Journal) -> None:
    """Ask about n rows, until all are answered in the journal. `rows_of` gives them as the original takes them."""
    size = original.request_rows
    parts = [slice(at, min(at + size, n)) for at in range(0, n, size)]
    asked = _Asked(original, rows_of, journal)
    if original.concurrency == 1:
        asked.one_by_one(parts)
    else:
        asked.several_at_once(parts)


class _Asked:
    def __init__(self, original: Original, rows_of: Callable[[Part], Any], journal: Journal):
        self.original, self.rows_of, self.journal = original, rows_of, journal

    def one_by_one(self, parts: list[Part]) -> None:
        following = ((part, self.journal.announce(part)) for part in parts)
        announced, ahead = deque(islice(following, 1)), 1  # the first alone, as it is waited for, then more and more
        while announced:
            part, ticket = announced.popleft()
            self.journal.ready(ticket)
            ahead = min(ahead + 1, AHEAD)
            announced.extend(islice(following, ahead - len(announced)))  # written down while this one is asked
            if error := self.put(part, ticket):
                self.halve(part, error)

    def several_at_once(self, parts: list[Part]) -> None:
        """Up to `concurrency` requests under way; once one fails, those are waited for, and their answers kept."""
        under_way: dict[Future[np.ndarray], tuple[Part, Any]] = {}
        waiting, failed = deque(parts), list[tuple[Part, OriginalError]]()
        with ThreadPoolExecutor(self.original.concurrency, thread_name_prefix="understudy-ask") as pool:
            try:
                while under_way or (waiting and not failed):
                    free = 0 if failed else min(self.original.concurrency - len(under_way), len(waiting))
                    following = [(part := waiting.popleft(), self.journal.announce(part)) for _ in range(free)]
                    for part, ticket in following:
                        self.journal.ready(ticket)
                        under_way[pool.submit(self.original.answer, self.rows_of(part))] = part, ticket
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

    def send(self, part: Part, ticket: Any) -> OriginalError | None:
        """Send a request once its announcement is safe; gives the error, if it failed."""
        self.journal.ready(ticket)
        return self.put(part, ticket)

    def put(self, part: Part, ticket: Any) -> OriginalError | None:
        """Ask, and write down what came of it; gives the error, if it failed."""
        return self.settle(ticket, lambda: self.original.answer(self.rows_of(part)))

    def settle(self, ticket: Any, answer: Callable[[], np.ndarray]) -> OriginalError | None:
        try:
            labels = answer()
        except OriginalError as error:
            self.journal.failed(ticket, error)
            return error
        self.journal.answered(ticket, labels)
        return None

    def halve(self, part: Part, first: OriginalError) -> None:
        """Halve a request that failed until the row to blame is found; then that is the error.

        If nothing at all is answered on the way, no row is to blame, and the first error stands. If every half is
        answered, the failure was passing.
        """
        answered, suspects = False, [(part, first)]
        while suspects:
            suspect, error = suspects.pop()
            if isinstance(error, OutageError):
                raise error
            if suspect.stop - suspect.start == 1:
                raise self.blame(suspect, error) if answered else first
            middle = (suspect.start + suspect.stop) // 2
            for half in (slice(middle, suspect.stop), slice(suspect.start, middle)):
                again = self.send(half, self.journal.announce(half))
                if again:
                    suspects.append((half, again))
                else:
                    answered = True

    def blame(self, part: Part, error: OriginalError) -> OriginalError:
        rows = self.rows_of(part)
        row = rows.iloc[0].to_dict() if hasattr(rows, "iloc") else rows[0].tolist()
        hint = "keep such rows out of the space by a bound, a level or a rule, or have the original mended"
        found = f"{error.found}, for the row {row!r} alone"
        return OriginalError(error.where, error.expected, found, hint)
