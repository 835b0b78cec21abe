"""When a ledger's answers came: by round of training, and over time."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ectype._common.bounded_io import parse_json
from ectype.ledger._purpose import Purpose
from ectype.ledger._schema import UNCHAINED, format_of, reading, sent

# How long a bin is, in seconds, and up to which span such bins are used: what a screen has room for.
BINS = {"minute": (60, 7200), "hour": (3600, 3 * 86400), "day": (86400, float("inf"))}


@dataclass(frozen=True)
class Bin:
    """What was sent from a moment on, until the next bin."""

    start: str
    """In UTC, as ISO 8601."""
    requests: int
    rows: int
    answered: int


@dataclass(frozen=True)
class Timeline:
    """The rows that each round learned from, and what was sent when."""

    rounds: list[dict[str, int]]
    """By round: its requests and rows. Those after the last round were not yet learned from."""
    bin: str
    """How long a bin is: a minute, an hour or a day."""
    bins: list[Bin]


def timeline(path: Path) -> Timeline:
    """When the answers of a ledger came."""
    with reading(path) as connection:
        sql = f"""SELECT announced, sent, CASE WHEN request IS NULL THEN 0 ELSE n END FROM {sent(connection)}
          LEFT JOIN answers ON request = id WHERE sent > 0 ORDER BY announced"""
        found = connection.execute(sql).fetchall()
        rounds = [] if format_of(connection, path) == UNCHAINED else [*_rounds(connection)]
        name = _bin_of(found[-1][0] - found[0][0] if found else 0.0)
        return Timeline(rounds, name, [*_binned(found, BINS[name][0])])


def _bin_of(span: float) -> str:
    """How long a bin should be.

    >>> _bin_of(600), _bin_of(86400), _bin_of(1e9)
    ('minute', 'hour', 'day')
    """
    return next(name for name, (_, longest) in BINS.items() if span <= longest)


def _binned(found: list[tuple[float, int, int]], width: int) -> Iterator[Bin]:
    requests, rows, answered = Counter[int](), Counter[int](), Counter[int]()
    for at, n, known in found:
        place = int(at // width)
        requests[place] += 1
        rows[place] += n
        answered[place] += known
    for place in sorted(requests):
        start = datetime.fromtimestamp(place * width, UTC).isoformat(timespec="seconds")
        yield Bin(start, requests[place], rows[place], answered[place])


def _rounds(connection: sqlite3.Connection) -> Iterator[dict[str, int]]:
    """The order in which rows were written says what a round knew: its requests come before its parameters."""
    sizes = dict(connection.execute("SELECT id, n FROM requests WHERE purpose = ?", (Purpose.TRAINING,)).fetchall())
    waiting, done = list[int](), set[int]()
    for (entries,) in connection.execute("SELECT entries FROM chain ORDER BY batch"):
        for table, key, _ in parse_json(entries):
            if table == "requests" and key in sizes:
                waiting.append(sizes[key])
            elif table == "rounds" and key not in done:
                done.add(key)
                yield {"round": key, "requests": len(waiting), "rows": sum(waiting)}
                waiting = []
    if waiting:
        yield {"round": len(done), "requests": len(waiting), "rows": sum(waiting)}
