"""The quota: a count of the rows that may have reached an original, and its limit.

Every attempt counts with all of its rows before it is sent, whatever comes of it; only one that found no connection
does not. A row's first time is planned for, every further one is taken from a share for retries.
"""

from __future__ import annotations

import threading
from math import ceil
from typing import NamedTuple

from ectype.errors import QuotaError
from ectype.ledger import RowCounts

# Rows for retries, as a share of the planned ones: a tenth of all requests may fail, and again be followed by failures.
SHARE = 0.25
# How many requests that fail there is room for at least, however few rows are planned.
REQUESTS = 3
# The rows of a request to an original in this process that has little room for retries.
NEAR = 100


class Allowance(NamedTuple):
    """The limit of rows that may reach an original: planned rows, and retries."""

    planned: int
    retries: int

    @classmethod
    def of(cls, planned: int, share: float | None, request_rows: int, most_at_once: int) -> Allowance:
        """An allowance with a share for retries. If it is None, there is room for a few requests at least.

        A single request is never larger than what is asked at once, and finding the row that it fails for takes as many
        rows as it has.

        >>> Allowance.of(5100, None, 100, 2000), Allowance.of(40, None, 100, 40), Allowance.of(40, 0.1, 100, 40)
        (Allowance(planned=5100, retries=1275), Allowance(planned=40, retries=40), Allowance(planned=40, retries=4))
        """
        if share is not None:
            return cls(planned, ceil(share * planned))
        return cls(planned, max(ceil(SHARE * planned), min(REQUESTS * request_rows, most_at_once)))

    @property
    def total(self) -> int:
        """Planned rows and retries."""
        return self.planned + self.retries


class Quota:
    """Counts rows as they are sent, and refuses to send those beyond an allowance; without one, it only counts.

    Rows that were lost, under way when an earlier process was killed, are asked again on top of the allowance, which is
    said.

    >>> quota = Quota()
    >>> quota.allow(Allowance(10, 5))
    >>> quota.take(10, first=10)
    >>> quota.take(5, first=0)
    >>> quota.answer(10)
    >>> quota.take(1, first=0, cause="status 500")
    Traceback (most recent call last):
        ...
    ectype.errors.QuotaError: retries: expected at most 5 rows sent again, found 5 sent and 1 more to send after \
status 500; 10 of 15 rows sent were answered: if that passes by itself, it takes 0.6 to go on, and about 0.6 at this \
rate: --retries 0.6 (retries=0.6)
    """

    def __init__(self, counts: RowCounts | None = None):
        self.counts = RowCounts() if counts is None else counts
        self._allowed: Allowance | None = None
        self._lock = threading.Lock()

    def allow(self, allowance: Allowance) -> None:
        """Set the limit."""
        self._allowed = allowance

    def near(self, request_rows: int) -> int:
        """The size of a request to an original in this process, at most the size that it takes.

        One that fails can be halved until a row is to blame, which takes as many rows again. Smaller requests to an
        original that is near cost little; room for a large one would be most of the sum that is announced.

        >>> quota = Quota()
        >>> quota.allow(Allowance.of(2400, None, NEAR, 2000))
        >>> quota.near(8192)
        600
        """
        retries = 0 if self._allowed is None else self._allowed.retries
        return min(request_rows, max(retries, NEAR)) if retries else request_rows

    def take(self, n: int, first: int, cause: str = "") -> None:
        """Count n rows that are about to be sent, so many of them for the first time, or refuse that."""
        with self._lock:
            if self._allowed is not None:
                self._refuse_beyond(self._allowed, n, n - first, cause)
            self.counts.sent += n
            self.counts.different += first

    def give_back(self, n: int, first: int = 0) -> None:
        """Uncount rows that were not sent."""
        with self._lock:
            self.counts.sent -= n
            self.counts.different -= first

    def answer(self, n: int) -> None:
        """Count answers."""
        with self._lock:
            self.counts.answered += n

    def _refuse_beyond(self, most: Allowance, n: int, again: int, cause: str) -> None:
        if self.counts.again + again <= most.retries and self.counts.sent + n <= most.total + self.counts.lost:
            return
        after = f" after {cause}" if cause else ", which were sent before and not answered" if again else ""
        found = f"{max(self.counts.again, 0)} sent and {n} more to send{after}"
        raise QuotaError("retries", f"at most {most.retries} rows sent again", found, self._advice(most, n))

    def _advice(self, most: Allowance, n: int) -> str:
        """The retries that it takes to resume, and to finish at the rate of failures so far."""
        now = self.counts
        least = max(now.again, 0) + max(n, now.different - now.answered)
        rate = (now.sent - now.lost - now.answered) / now.answered if now.answered else 0.0
        share, whole = (
            ceil(20 * rows / max(most.planned, 1)) / 20 for rows in (least, max(least, rate * most.planned))
        )
        known = f"{now.answered} of {now.sent} rows sent were answered: " if now.answered else ""
        takes = f"if that passes by itself, it takes {share:g} to go on, and about {whole:g} at this rate"
        return f"{known}{takes}: --retries {whole:g} (retries={whole:g})"
