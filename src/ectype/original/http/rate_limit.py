"""When an endpoint is asked: the waits between attempts, the rate limit, and the circuit breaker."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from ectype.errors import OutageError


class RetryWaits(NamedTuple):
    """How long to go on asking an endpoint that fails; times are in seconds."""

    first: float = 0.5
    """The wait before the second attempt; it doubles with every further one."""
    most: float = 30.0
    """The longest of these waits."""
    jitter: float = 0.5
    """The most that chance adds to a wait, so that threads which failed together do not come back together."""
    longest: float = 60.0
    """The longest Retry-After that is waited for."""
    failures: int = 10
    """The fewest failures in a row, across all threads, that open the circuit breaker."""


class CircuitBreaker:
    """A circuit breaker for all threads, which also counts failures by cause. Once open, it stays open."""

    def __init__(self, name: str, limit: int):
        self.name, self.limit = name, limit
        self.failures: Counter[str] = Counter()
        self.opened = threading.Event()
        self._in_a_row, self._why, self._lock = 0, "", threading.Lock()

    def wait(self, seconds: float) -> None:
        """Wait; `OutageError` as soon as the breaker is open."""
        if self.opened.wait(seconds):
            raise OutageError(self.name, "an answer", self._why)

    def succeeded(self) -> None:
        """Count an attempt that came to an answer."""
        with self._lock:
            self._in_a_row = 0

    def failed(self, cause: str, found: str) -> None:
        """Count an attempt that did not."""
        with self._lock:
            self.failures[cause] += 1
            self._in_a_row += 1
            row = self._in_a_row
        if row >= self.limit:
            self.open(f"{row} failures in a row, the last of them {found}")

    def open(self, why: str) -> None:
        """Refuse all further requests and end every wait; the first reason stays."""
        with self._lock:
            self._why = self._why or why
            self.opened.set()


class RateLimit:
    """The rate limit: a clock that all threads take their turns from."""

    def __init__(self, interval: float):
        self.interval, self._free, self._lock = interval, 0.0, threading.Lock()

    def slot(self) -> float:
        """Take the next free turn; the seconds until then."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._free)
            self._free = turn + self.interval
        return turn - now

    def hold(self, seconds: float) -> None:
        """Let nobody go for so long: an endpoint that asks one thread to come back later means all of them."""
        with self._lock:
            self._free = max(self._free, time.monotonic() + seconds)


def retry_after(value: str | None) -> float | None:
    """The seconds that a Retry-After header asks for, given as such or as a date; None if it cannot be read.

    >>> retry_after("120"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after("soon")
    (120.0, 0.0, None)
    """
    if value is None:
        return None
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value.strip()):
        return float(value)
    try:
        when = parsedate_to_datetime(value)
        return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
