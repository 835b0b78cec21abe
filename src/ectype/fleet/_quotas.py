"""Quotas that all models of a fleet share: rows a second to each host, queries and cost in all."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple, Self

from ectype._common.atomic_io import write_text
from ectype._common.bounded_io import MOST_JSON_BYTES, UNREADABLE, check_type, parse_json, read_bytes
from ectype.errors import DirectoryError, SharedQuotaError

# The limits of hosts that are not named.
ANY = "*"
# The spans of `per`, each with the format that names the span of a time.
SPANS = {"ever": "", "month": "%Y-%m", "day": "%Y-%m-%d"}
# The file with the rows and cost of every day.
SPENT_FILE = "spent.json"


@dataclass(frozen=True)
class FleetLimits:
    """The quotas of a fleet."""

    hosts: Mapping[str, float] = field(default_factory=dict)
    """Rows a second, by host, or host and port; `*` stands for every other host."""
    queries: int | None = None
    """Rows in all."""
    cost: float | None = None
    """Cost in all, with the models' own cost of a row."""
    per: str = "ever"
    """The span that `queries` and `cost` are for: ever, a calendar month, or a day, in UTC."""

    def rate(self, host: str) -> float | None:
        """Rows a second to a host, if there is a limit.

        >>> limits = FleetLimits({"scoring.example": 5, "*": 50})
        >>> limits.rate("scoring.example:8080"), limits.rate("other"), limits.rate("")
        (5, 50, None)
        """
        if not host:  # it is asked in this process
            return None
        return next((self.hosts[name] for name in (host, host.rpartition(":")[0], ANY) if name in self.hosts), None)


class RateWindow:
    """A sliding-window rate limit of one host. Rows under way count, and rows answered within the last window.

    A row reaches its host between the moment it is let in and its answer; so however long either way took, no window
    at the host has more.

    >>> window = RateWindow(2.0)
    >>> window.most, window.wait(2, now=0.0)
    (2, 0.0)
    >>> window.enter(2)
    >>> window.wait(1, now=0.3) is None  # until something comes back
    True
    >>> window.leave(2, now=0.4)
    >>> round(window.wait(1, now=0.5), 3)
    0.9
    """

    def __init__(self, rate: float):
        self.seconds = max(1.0, 1 / rate)
        self.most = max(1, int(rate * self.seconds + 1e-9))
        self._inside = 0
        self._lately: deque[tuple[float, int]] = deque()

    def wait(self, n: int, now: float) -> float | None:
        """Seconds until n rows may enter; None if that is not known before some of those under way come back."""
        while self._lately and self._lately[0][0] <= now - self.seconds:
            self._lately.popleft()
        room = self.most - self._inside - sum(rows for _, rows in self._lately)
        if room >= n:
            return 0.0
        for at, rows in self._lately:
            room += rows
            if room >= n:
                return at + self.seconds - now
        return None

    def enter(self, n: int) -> None:
        """Let n rows in."""
        self._inside += n

    def leave(self, n: int, now: float) -> None:
        """Count n rows as come back."""
        self._inside -= n
        self._lately.append((now, n))


class Spent(NamedTuple):
    """Rows and cost of a span of time."""

    span: str = ""
    rows: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class SpendByDay:
    """What was spent on every day, in UTC, and the span that was last paid in.

    Days are kept because a clock may go back, and `per` may become another: whatever the span, its sum is of its days.

    >>> account = SpendByDay().paid("2026-11-17", "2026-11", 30, 0.5).paid("2026-11-18", "2026-11", 10, 0.0)
    >>> account.of("2026-11").rows, account.of("2026-11-17").rows, account.last
    (40, 30, Spent(span='2026-11', rows=40, cost=0.5))
    """

    days: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    span: str = ""

    def of(self, span: str) -> Spent:
        """The sum of a span: of a day, a month, or of all time."""
        found = [spent for day, spent in self.days.items() if day.startswith(span)]
        return Spent(span, sum(rows for rows, _ in found), sum((cost for _, cost in found), 0.0))

    @property
    def last(self) -> Spent:
        """The sum of the span that was last paid in."""
        return self.of(self.span)

    def paid(self, day: str, span: str, rows: int, cost: float) -> SpendByDay:
        """The account after a payment on a day, for a fleet whose limits are for such a span."""
        before = self.days.get(day, (0, 0.0))
        return SpendByDay({**self.days, day: (before[0] + rows, before[1] + cost)}, span)

    @classmethod
    def read(cls, folder: Path) -> SpendByDay:
        """That of the fleet in this directory; nothing was spent if there is no file, and only then."""
        path = folder / SPENT_FILE
        try:
            if not path.is_file():
                if os.path.lexists(path):  # a link that leads nowhere too: what it led to may have been a sum
                    raise ValueError("something that is no file")
                return cls()
            return cls._of_json(parse_json(read_bytes(path, MOST_JSON_BYTES)))
        except UNREADABLE as error:
            found = "an empty file" if path.is_file() and not path.stat().st_size else str(error)
            hint = (
                "restore it from a backup; or remove it, and the limits count from nothing: `ectype ledger` says "
                "for each copy what was asked"
            )
            raise DirectoryError(str(path), "rows and cost by day, as they were written", found, hint) from error

    def write(self, folder: Path) -> None:
        """Write it, whole or not at all; it is on disk then."""
        content = {"span": self.span, "days": self.days}
        text = json.dumps({**content, "sha256": _digest(content)}) + "\n"
        write_text(folder / SPENT_FILE, text)

    @classmethod
    def _of_json(cls, found: Any) -> SpendByDay:
        if isinstance(found, dict) and found.keys() == {*Spent._fields}:  # of version 0.1: one span, and no checksum
            found = {"span": found["span"], "days": {found["span"]: [found["rows"], found["cost"]]}}
            found["sha256"] = _digest(found)
        if not isinstance(found, dict) or found.keys() != {"span", "days", "sha256"}:
            raise ValueError("other content")
        if _digest({"span": found["span"], "days": found["days"]}) != found["sha256"]:
            raise ValueError("other content than its checksum is of")
        if not isinstance(found["days"], dict) or not all(map(_is_sum, found["days"].values())):
            raise ValueError("a day that is no number of rows with their cost")
        check_type([found["span"], *found["days"]], list[str], "days")
        account = cls({day: (rows, cost) for day, (rows, cost) in found["days"].items()}, found["span"])
        if not isfinite(account.of("").cost):
            raise ValueError("days whose costs add up to no number")
        return account


def read_spent(folder: Path) -> Spent:
    """What a fleet in this directory has spent, in the span that it was last at work in."""
    return SpendByDay.read(folder).last


def _digest(content: object) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_sum(value: object) -> bool:
    """Whether a value of JSON is a number of rows and their cost."""
    match value:
        case [int(rows), int(cost) | float(cost)] if not isinstance(rows, bool) and not isinstance(cost, bool):
            return rows >= 0 and cost >= 0
    return False


class SpendLog:
    """The spending of a fleet, on disk before a row is sent. Safe for threads: those that wait share a write."""

    def __init__(self, folder: Path, limits: FleetLimits, clock: Callable[[], datetime] = lambda: datetime.now(UTC)):
        self._folder, self._limits, self._clock = folder, limits, clock
        self._account = self._written = SpendByDay.read(folder)
        self._paying, self._writing = threading.Lock(), threading.Lock()

    @property
    def spent(self) -> Spent:
        """The sum of the span that was last paid in."""
        return self._account.last

    def pay(self, n: int, cost: float) -> None:
        """Pay for n rows, or refuse them, and wait until that has reached the disk."""
        self.charge(n, cost)
        self.settle()

    def charge(self, n: int, cost: float) -> None:
        """Count n rows as paid for, or refuse them."""
        time, per = self._clock().astimezone(UTC), self._limits.per
        span = time.strftime(SPANS[per]) if SPANS[per] else ""
        with self._paying:
            before = self._account.of(span)
            self._refuse_beyond(before, n, n * cost, f"a {per}" if span else "in all")
            self._account = self._account.paid(time.strftime(SPANS["day"]), span, n, n * cost)

    def settle(self) -> None:
        """Wait until all that was charged has reached the disk."""
        wanted = self._account
        with self._writing:
            if _rows(self._written) < _rows(wanted):  # else another thread's write had it
                latest = self._account
                latest.write(self._folder)
                self._written = latest

    def _refuse_beyond(self, before: Spent, n: int, cost: float, when: str) -> None:
        most, dear = self._limits.queries, self._limits.cost
        if most is not None and before.rows + n > most:
            found = f"{before.rows} made and {n} more to make"
            raise SharedQuotaError("[limits] queries", f"at most {most} {when}", found, "raise it to go on")
        if dear is not None and before.cost + cost > dear * (1 + 1e-12):
            found = f"{before.cost:g} spent and {cost:g} more to spend"
            raise SharedQuotaError("[limits] cost", f"at most {dear:g} {when}", found, "raise it to go on")


def _rows(account: SpendByDay) -> int:
    """All rows ever paid for, which only become more."""
    return account.of("").rows


class RequestScheduler:
    """Admits requests, first come, first served at every host. Safe for threads."""

    def __init__(self, limits: FleetLimits, spend_log: SpendLog):
        self._limits, self._spend_log = limits, spend_log
        self._windows: dict[str, RateWindow] = {}
        self._queues: dict[str, deque[object]] = {}
        self._changed = threading.Condition()
        self._over = False
        self.rows: Counter[str] = Counter()
        """Rows that were let in, by model."""

    def most(self, host: str) -> int | None:
        """The most rows of a request to a host."""
        with self._changed:
            window = self._window(host)
        return None if window is None else window.most

    def enter(self, model: str, host: str, n: int, cost: float) -> None:
        """Wait until n rows may be sent to a host, and pay for them."""
        me = object()
        with self._changed:
            window = self._window(host)
            if window is not None:
                if n > window.most:
                    hint = "ask it in smaller requests: request_rows"
                    raise SharedQuotaError(f"[limits.hosts] {host}", f"at most {window.most} rows at once", n, hint)
                self._wait(me, window, self._queues[host], n)
            self._spend_log.charge(n, cost)
            self.rows[model] += n
            if window is not None:
                window.enter(n)
        try:
            self._spend_log.settle()
        except BaseException:
            self.leave(host, n)  # nothing is sent that is not written down
            raise

    def leave(self, host: str, n: int) -> None:
        """Count n rows as come back."""
        with self._changed:
            window = self._window(host)
            if window is not None:
                window.leave(n, monotonic())
                self._changed.notify_all()

    def end(self) -> Self:
        """Admit no further request."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        return self

    def _window(self, host: str) -> RateWindow | None:
        rate = self._limits.rate(host)
        if rate is None:
            return None
        self._queues.setdefault(host, deque())
        return self._windows.setdefault(host, RateWindow(rate))

    def _wait(self, me: object, window: RateWindow, queue: deque[object], n: int) -> None:
        queue.append(me)
        try:
            while True:
                if self._over:
                    raise SharedQuotaError("fleet", "a driver that gives turns", "one that has ended")
                left = window.wait(n, monotonic()) if queue[0] is me else None
                if left is not None and left <= 0:
                    return
                self._changed.wait(left)
        finally:
            queue.remove(me)
            self._changed.notify_all()
