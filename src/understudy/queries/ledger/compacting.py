"""A ledger written anew: every answer as it is, in fewer bytes."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from understudy.checksums import Anchor
from understudy.errors import DirectoryError
from understudy.queries.ledger import chain
from understudy.queries.ledger.file import UNCHAINED, begin, format_of, reading
from understudy.queries.ledger.opening import connect
from understudy.reading import parse_json


def compacted(path: Path, to: Path) -> int:
    """Write a ledger to a new file once it was checked; gives how many rounds of training were left out.

    Rows stay in the order that they were written in, under a chain of their own. Of rounds of training, the parameters
    of all but the last are left out: a run that goes on makes them again. What was counted is kept as sums.
    """
    with reading(path) as connection, closing(connect(to)) as other:
        if format_of(connection, path) == UNCHAINED:
            hint = "remake the run, or run its command once more, which writes checksums"
            raise DirectoryError(str(path), "a ledger with checksums", "one of version 0.1", hint)
        last = connection.execute("SELECT max(t) FROM rounds").fetchone()[0]
        begin(other, {})
        now, waiting = chain.last(other), list[chain.Row]()
        for row in (*_rows(connection, last), *_sums(connection)):
            waiting.append(row)
            if len(waiting) == chain.BATCH:
                now, waiting = _written(other, waiting, now), []
        _written(other, waiting, now)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return connection.execute("SELECT count(*) FROM rounds WHERE t < ?", (last or 0,)).fetchone()[0]


def _written(connection: sqlite3.Connection, rows: list[chain.Row], last: Anchor) -> Anchor:
    if not rows:
        return last
    connection.execute("BEGIN IMMEDIATE")
    now = chain.write(connection, rows, last)
    connection.execute("COMMIT")
    return now


def _rows(connection: sqlite3.Connection, last: int | None) -> Iterator[chain.Row]:
    """Every row but sums and earlier rounds, in the order of the chain."""
    done = defaultdict[str, set[chain.Value]](set)
    for (entries,) in connection.execute("SELECT entries FROM chain ORDER BY batch"):
        for table, key, _ in parse_json(entries):
            dropped = table == "tallies" or (table == "rounds" and key != last)
            if not dropped and key not in done[table]:
                done[table].add(key)
                sql = f"SELECT * FROM {table} WHERE {chain.TABLES[table]} = ?"
                yield table, connection.execute(sql, (key,)).fetchone()


def _sums(connection: sqlite3.Connection) -> Iterator[chain.Row]:
    for name, n in connection.execute("SELECT name, sum(n) FROM tallies GROUP BY name ORDER BY name"):
        yield "tallies", (None, name, n)
