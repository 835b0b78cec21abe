"""Limits that hold for all models together: rows a second to each host, queries and cost in all."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import NamedTuple, Self

from understudy.errors import DirectoryError, LimitError
from understudy.files import errors_of
from understudy.portable import open_without_links, write_at_start

# The limits of hosts that are not named.
ANY = "*"
# What `per` may be, and how a time becomes the span that it belongs to.
SPANS = {"ever": "", "month": "%Y-%m", "day": "%Y-%m-%d"}
# The file that keeps what was spent, and its size: it is written over in place, so that no kill leaves half of it.
NAME, SIZE = "spent.json", 128


@dataclass(frozen=True)
class Limits:
    """What a fleet may ask."""

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

        >>> limits = Limits({"scoring.example": 5, "*": 50})
        >>> limits.rate("scoring.example:8080"), limits.rate("other"), limits.rate("")
        (5, 50, None)
        """
        if not host:  # it is asked in this process
            return None
        return next((self.hosts[name] for name in (host, host.rpartition(":")[0], ANY) if name in self.hosts), None)


class Window:
    """Rows a second to one host, in every window: those under way count, and those whose answer came in the last one.

    A row reaches its host between the moment it is let in and its answer; so however long either way took, no window
    at the host has more.

    >>> window = Window(2.0)
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


class Purse:
    """What was spent so far, kept in a file that outlives a kill."""

    def __init__(self, folder: Path, limits: Limits):
        self._limits, self.path = limits, folder / NAME
        with errors_of(self.path):
            self._file = open_without_links(self.path, os.O_RDWR)
        self.spent = spent(folder)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def pay(self, n: int, cost: float) -> None:
        """Pay for n rows, or refuse them."""
        format = SPANS[self._limits.per]
        span = datetime.now(UTC).strftime(format) if format else ""
        before = self.spent if self.spent.span == span else Spent(span)
        after = Spent(span, before.rows + n, before.cost + n * cost)
        when = "in all" if not span else f"a {self._limits.per}"
        if self._limits.queries is not None and after.rows > self._limits.queries:
            found = f"{before.rows} made and {n} more to make"
            raise LimitError("[limits] queries", f"at most {self._limits.queries} {when}", found, "raise it to go on")
        if self._limits.cost is not None and after.cost > self._limits.cost * (1 + 1e-12):
            found = f"{before.cost:g} spent and {n * cost:g} more to spend"
            raise LimitError("[limits] cost", f"at most {self._limits.cost:g} {when}", found, "raise it to go on")
        with errors_of(self.path):
            write_at_start(self._file, json.dumps(after._asdict()).ljust(SIZE - 1).encode() + b"\n")
        self.spent = after


def spent(folder: Path) -> Spent:
    """What a fleet in this directory has spent, in the span that it was last at work in."""
    try:
        found = json.loads((folder / NAME).read_text() or "{}")
        return Spent(str(found.get("span", "")), int(found.get("rows", 0)), float(found.get("cost", 0.0)))
    except FileNotFoundError:
        return Spent()
    except (OSError, ValueError, AttributeError) as error:
        hint = "remove it to count from nothing: the ledgers have what was asked"
        raise DirectoryError(str(folder / NAME), "rows and cost", str(error), hint) from error


class Turns:
    """Who may send next: first come, first served at every host. For many threads."""

    def __init__(self, limits: Limits, purse: Purse):
        self._limits, self._purse = limits, purse
        self._windows: dict[str, Window] = {}
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
                    raise LimitError(f"[limits.hosts] {host}", f"at most {window.most} rows at once", n, hint)
                self._wait(me, window, self._queues[host], n)
            self._purse.pay(n, cost)
            self.rows[model] += n
            if window is not None:
                window.enter(n)

    def leave(self, host: str, n: int) -> None:
        """Say that n rows came back."""
        with self._changed:
            window = self._window(host)
            if window is not None:
                window.leave(n, monotonic())
                self._changed.notify_all()

    def end(self) -> Self:
        """Let nobody in any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        return self

    def _window(self, host: str) -> Window | None:
        rate = self._limits.rate(host)
        if rate is None:
            return None
        self._queues.setdefault(host, deque())
        return self._windows.setdefault(host, Window(rate))

    def _wait(self, me: object, window: Window, queue: deque[object], n: int) -> None:
        queue.append(me)
        try:
            while True:
                if self._over:
                    raise LimitError("fleet", "a driver that gives turns", "one that has ended")
                left = window.wait(n, monotonic()) if queue[0] is me else None
                if left is not None and left <= 0:
                    return
                self._changed.wait(left)
        finally:
            queue.remove(me)
            self._changed.notify_all()
