"""Compact a ledger: the same answers in fewer bytes."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ectype._common.bounded_io import parse_json
from ectype._common.manifest import Anchor
from ectype._legacy.ledger import FORMAT_1
from ectype.errors import DirectoryError
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._connections import connect
from ectype.ledger._hash_chain import begin
from ectype.ledger._schema import format_of, open_and_check


def compact_ledger(path: Path, to: Path) -> int:
    """Check a ledger and write it to a new file; gives how many rounds of training were left out.

    Rows stay in the order that they were written in, under a chain of their own. Of rounds of training, the parameters
    of all but the last are left out: a run that goes on makes them again. What was counted is kept as sums.
    """
    with open_and_check(path) as connection, closing(connect(to)) as other:
        if format_of(connection, path) == FORMAT_1:
            hint = "remake the run, or run its command once more, which writes checksums"
            raise DirectoryError(str(path), "a ledger with checksums", "one of version 0.1", hint)
        last = connection.execute("SELECT max(t) FROM rounds").fetchone()[0]
        begin(other, {})
        now, waiting = hash_chain.last(other), list[hash_chain.Row]()
        for row in (*_rows(connection, last), *_sums(connection)):
            waiting.append(row)
            if len(waiting) == hash_chain.BATCH:
                now, waiting = _write_batch(other, waiting, now), []
        _write_batch(other, waiting, now)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return connection.execute("SELECT count(*) FROM rounds WHERE t < ?", (last or 0,)).fetchone()[0]


def _write_batch(connection: sqlite3.Connection, rows: list[hash_chain.Row], last: Anchor) -> Anchor:
    if not rows:
        return last
    connection.execute("BEGIN IMMEDIATE")
    now = hash_chain.write(connection, rows, last)
    connection.execute("COMMIT")
    return now


def _rows(connection: sqlite3.Connection, last: int | None) -> Iterator[hash_chain.Row]:
    """Every row but sums and earlier rounds, in the order of the chain."""
    done = defaultdict[str, set[hash_chain.Value]](set)
    for (entries,) in connection.execute("SELECT entries FROM chain ORDER BY batch"):
        for table, key, _ in parse_json(entries):
            dropped = table == "tallies" or (table == "rounds" and key != last)
            if not dropped and key not in done[table]:
                done[table].add(key)
                sql = f"SELECT * FROM {table} WHERE {hash_chain.TABLES[table]} = ?"
                yield table, connection.execute(sql, (key,)).fetchone()


def _sums(connection: sqlite3.Connection) -> Iterator[hash_chain.Row]:
    for name, n in connection.execute("SELECT name, sum(n) FROM tallies GROUP BY name ORDER BY name"):
        yield "tallies", (None, name, n)
