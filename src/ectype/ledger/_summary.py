"""Ledgers in numbers: how many rows were sent and answered, when, and whether all of them are as they were written."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ectype._common.bounded_io import parse_json
from ectype._legacy.ledger import FORMAT_1
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._purpose import Purpose
from ectype.ledger._schema import (
    SAVED,
    anchors,
    answered_requests,
    format_of,
    labels_of,
    open_and_check,
    sent_by_purpose,
    sent_sql,
    unanswered_requests,
    without_session,
)
from ectype.types import Label

_COUNTED = """SELECT count(*), coalesce(sum(CASE WHEN request IS NULL THEN 0 ELSE n END), 0)
  FROM {} LEFT JOIN answers ON request = id WHERE sent > 0"""
# How long a bin is, in seconds, and up to which span such bins are used: what a screen has room for.
BINS = {"minute": (60, 7200), "hour": (3600, 3 * 86400), "day": (86400, float("inf"))}


@dataclass
class RowCounts:
    """Rows as they were sent.

    `lost` were under way when an earlier process was killed. Whether they arrived nobody knows.

    >>> RowCounts(sent=12, different=10, answered=9).again
    2
    """

    sent: int = 0
    different: int = 0
    """How many of them were sent for the first time."""
    answered: int = 0
    lost: int = 0

    @property
    def again(self) -> int:
        """Rows that were sent beyond their first time; below zero while those that were lost are yet to be."""
        return self.sent - self.different - self.lost


# --- how many rows ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """The contents of a ledger in numbers: rows, unless a field says otherwise."""

    requests: int
    asked: int
    """Rows that were sent, counted once for each attempt, answered or not."""
    answered: int
    maybe_paid: int
    """Rows of attempts without an answer. Some may have been answered, and paid for, all the same."""
    lost: int
    """Of these, rows of requests that were under way when a process was killed, or was interrupted."""
    saved: int
    """Rows that were queried again and taken from the ledger."""
    repeated: int
    """Rows that were asked again on purpose."""
    by_purpose: dict[str, int]
    labels: dict[Label, int]
    failures: dict[str, int]
    """Attempts that failed, by cause."""
    checked: bool = True
    """Whether it has checksums; ledgers of version 0.1 have none."""
    given: int = 0
    """Rows of prior answers, which were not asked."""


def summarise_ledger(path: Path) -> Summary:
    """Count the contents of a ledger."""
    with open_and_check(path) as connection:
        checked = format_of(connection, path) != FORMAT_1
        labels, counts, given = labels_of(connection), Counter[int](), 0
        for _, purpose, _, codes in answered_requests(connection):
            counts.update(codes.tolist() if without_session(purpose) not in (Purpose.REPEAT, Purpose.GIVEN) else ())
            given += len(codes) if purpose == Purpose.GIVEN else 0
        requests, answered = connection.execute(_COUNTED.format(sent_sql(connection))).fetchone()
        by_purpose = Counter[str]()
        for purpose, n in sent_by_purpose(connection).items():
            by_purpose[without_session(purpose)] += n
        tallies = dict(connection.execute("SELECT name, sum(n) FROM tallies GROUP BY name").fetchall())
        return Summary(
            requests=requests,
            asked=sum(by_purpose.values()),
            answered=answered,
            maybe_paid=sum(by_purpose.values()) - answered,
            lost=sum(len(rows) for _, rows, failed in unanswered_requests(connection) if not failed),
            saved=tallies.pop(SAVED, 0),
            repeated=by_purpose.get(Purpose.REPEAT, 0),
            by_purpose=dict(by_purpose),
            labels={labels[code]: n for code, n in sorted(counts.items())},
            failures=tallies,
            checked=checked,
            given=given,
        )


# --- when -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bin:
    """Rows that were sent within a minute, an hour or a day."""

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


def read_timeline(path: Path) -> Timeline:
    """Read when the rows of a ledger were sent, by round and over time."""
    with open_and_check(path) as connection:
        sql = f"""SELECT announced, sent, CASE WHEN request IS NULL THEN 0 ELSE n END FROM {sent_sql(connection)}
          LEFT JOIN answers ON request = id WHERE sent > 0 ORDER BY announced"""
        found = connection.execute(sql).fetchall()
        rounds = [] if format_of(connection, path) == FORMAT_1 else [*_rounds(connection)]
        name = _bin_of(found[-1][0] - found[0][0] if found else 0.0)
        return Timeline(rounds, name, [*_count_by_bin(found, BINS[name][0])])


def _bin_of(span: float) -> str:
    """How long a bin should be.

    >>> _bin_of(600), _bin_of(86400), _bin_of(1e9)
    ('minute', 'hour', 'day')
    """
    return next(name for name, (_, longest) in BINS.items() if span <= longest)


def _count_by_bin(found: list[tuple[float, int, int]], width: int) -> Iterator[Bin]:
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
    """Rows by round. In the chain, the requests that a round learned from come before its parameters."""
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


# --- whether it is whole ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verification:
    """The outcome of a check of every row against the chain, and of the chain against the files that know its end."""

    checked: bool
    """Whether there are checksums; ledgers of version 0.1 have none."""
    batches: int
    rows: int
    """Rows with an answer."""
    anchors: list[str]
    """The files that say how far the chain had come."""


def verify_ledger(path: Path) -> Verification:
    """Check a ledger. Damage is an error that names the place, and what can be recovered."""
    known = [name for name, _ in anchors(path)] if path.is_file() else []
    with open_and_check(path) as connection:  # which checks all of it
        chained = format_of(connection, path) != FORMAT_1
        rows = sum(len(codes) for _, _, _, codes in answered_requests(connection))
        return Verification(chained, hash_chain.last(connection).batch if chained else 0, rows, known)
