"""The chain of a ledger: every transaction's digest covers its rows and the digest before, so that damage is found.

A batch of rows is written in one transaction, with a line in the table `chain`: table, key and SHA-256 of each row, and
a digest of that and of the last batch's digest. Large values are in there by their CRC, which takes less than half the
time while the original is at work; run.json has a SHA-256 of them all. Rows are only ever added.

How far the chain has come is known outside the database too: in `ledger.sqlite-head` while a run is at work, in
run.json once it is finished. So a ledger that lost its last transactions, such as by a damaged write-ahead log, is told
from one that never had them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

from ectype._common.bounded_io import parse_json, read_bytes
from ectype._common.manifest import Anchor
from ectype._common.portable import open_without_links, write_at_start
from ectype.errors import DirectoryError, IntegrityError
from ectype.ledger._tables import SCHEMA, check_values, tables_of
from ectype.types import Json

Value: TypeAlias = int | float | str | bytes | memoryview | None
"""A value in SQLite. None is a key that SQLite chooses."""

Row: TypeAlias = tuple[str, tuple[Value, ...]]
"""A table and the values of a row, its key first."""

# Every table, and its key.
TABLES = {
    "meta": "key",
    "labels": "code",
    "requests": "id",
    "answers": "request",
    "scores": "request",
    "attempts": "id",
    "failures": "id",
    "tallies": "id",
    "rounds": "t",
}
BEGINNING = Anchor(0, "")
# The most rows of one batch: its line is read as one JSON document.
BATCH = 1000
# Values of more bytes are in a row's checksum by their CRC.
LARGE = 4096
# The columns that may hold such values, by table; what rounds of training hold can be made again.
_LARGE = {"requests": "rows", "answers": "codes", "scores": "p"}
# The most bytes of the file that says how far a chain has come.
HEAD_BYTES = 1000
_FLOAT = struct.Struct("<d")


def begin(connection: sqlite3.Connection, about: Json, more: Iterable[Row] = ()) -> None:
    """Make a new ledger, with what it belongs to and further rows, in one transaction: one with tables is whole."""
    connection.execute("BEGIN IMMEDIATE")
    rows: list[Row] = [("meta", (key, json.dumps(value))) for key, value in about.items()]
    create(connection, chain(rows, more))
    connection.execute("COMMIT")


def create(connection: sqlite3.Connection, rows: Iterable[Row]) -> Anchor:
    """Create all tables within a transaction, and write their first rows; gives how far the chain then is."""
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    return write(connection, rows, BEGINNING)


def write(connection: sqlite3.Connection, rows: Iterable[Row], last: Anchor) -> Anchor:
    """Write rows within a transaction, in batches; gives how far the chain then is."""
    entries_of_rows = (_write_row(connection, *row) for row in rows)
    batch = [*islice(entries_of_rows, BATCH)]
    while True:  # one batch at least
        entries = json.dumps(batch, separators=(",", ":"))
        last = Anchor(last.batch + 1, _link(last.sha256, entries))
        connection.execute("INSERT INTO chain VALUES (?, ?, ?)", (last.batch, entries, last.sha256))
        if not (batch := [*islice(entries_of_rows, BATCH)]):
            return last


def _write_row(connection: sqlite3.Connection, table: str, values: tuple[Value, ...]) -> tuple[str, Value, str]:
    cursor = connection.execute(_statement(table, len(values)), values)
    row = (cursor.lastrowid, *values[1:]) if values[0] is None else values
    return table, row[0], digest_of(row)


@cache
def _statement(table: str, columns: int) -> str:
    return f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * columns)})"


def digest_of(row: Sequence[Value]) -> str:
    """The SHA-256 of a row, by the types and values of its columns.

    >>> digest_of((1, "a")) == digest_of((1, b"a"))
    False
    """
    found = sha256()
    for value in row:
        if isinstance(value, (bytes, memoryview)):
            size = value.nbytes if isinstance(value, memoryview) else len(value)
            found.update(b"b%d:" % size)
            found.update(b"%d" % crc32(value) if size > LARGE else value)
        elif isinstance(value, str):
            text = value.encode(errors="surrogatepass")
            found.update(b"s%d:%s" % (len(text), text))
        else:
            found.update(b"f" + _FLOAT.pack(value) if isinstance(value, float) else f"i{value}:".encode())
    return found.hexdigest()


def last(connection: sqlite3.Connection) -> Anchor:
    """How far the chain is, unchecked."""
    found = connection.execute("SELECT batch, digest FROM chain ORDER BY batch DESC LIMIT 1").fetchone()
    return BEGINNING if found is None else Anchor(*found)


def final_anchor(connection: sqlite3.Connection) -> Anchor:
    """How far the chain is, unchecked, with a digest of the large values, of which the chain has only the CRC."""
    requests = connection.execute("SELECT max(id) FROM requests").fetchone()[0] or 0
    return replace(last(connection), requests=requests, content=_content(connection, requests))


def _content(connection: sqlite3.Connection, requests: int) -> str:
    found = sha256()
    for table, column in _LARGE.items():
        key = TABLES[table]
        for (value,) in connection.execute(
            f"SELECT {column} FROM {table} WHERE {key} <= ? ORDER BY {key}", (requests,)
        ):
            found.update(value)
    return found.hexdigest()


def check(connection: sqlite3.Connection, path: Path, known: Sequence[tuple[str, Anchor]]) -> Anchor:
    """Check everything in a ledger against its chain, and the chain against where it is known to have been.

    `known` places come with the name of the file that says so. Gives how far the chain is.
    """
    digests, expected = _read_chain(connection, path)
    for name, anchor in known:
        if anchor.batch >= len(digests):
            found = f"{len(digests) - 1}: the last are lost, as with a write-ahead log that is damaged or gone"
            raise damage_error(path, f"{anchor.batch} batches of rows, as {name} says", found)
        if digests[anchor.batch] != anchor.sha256:
            expected_here = f"sha256 {anchor.sha256}, as {name} says"
            raise damage_error(f"{path}: batch {anchor.batch}", expected_here, digests[anchor.batch])
    definitions = tables_of(connection)
    for table in TABLES:
        for row in connection.execute(f"SELECT * FROM {table}"):
            check_values(definitions[table], row, f"{path}: {_row_name(table, row[0])}")
            if expected.pop((table, row[0]), None) != digest_of(row):
                raise damage_error(f"{path}: {_row_name(table, row[0])}", "the row that was written", "another")
    for table, key in expected:
        raise damage_error(f"{path}: {_row_name(table, key)}", "the row that was written", "none")
    for name, anchor in known:
        if anchor.content and anchor.content != (content := _content(connection, anchor.requests)):
            raise damage_error(f"{path}: rows and answers", f"sha256 {anchor.content}, as {name} says", content)
    return Anchor(len(digests) - 1, digests[-1])


def check_structure(connection: sqlite3.Connection, path: Path) -> None:
    """Check the structure of the database: every page has one place in it, so that reading comes to an end."""
    structure = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if structure != "ok":
        raise damage_error(path, "the structure of a database", structure)


def _read_chain(connection: sqlite3.Connection, path: Path) -> tuple[list[str], dict[tuple[str, Value], str]]:
    """The digest of each batch, and that of each row as it was last written."""
    digests, rows = [BEGINNING.sha256], dict[tuple[str, Value], str]()
    for batch, entries, digest in connection.execute("SELECT batch, entries, digest FROM chain ORDER BY batch"):
        if batch != len(digests) or not isinstance(entries, str) or digest != _link(digests[-1], entries):
            raise damage_error(f"{path}: batch {len(digests)}", "a batch that follows from the last", "another")
        digests.append(digest)
        rows.update(((table, key), found) for table, key, found in parse_json(entries))
    return digests, rows


def damage_error(where: object, expected: str, found: object) -> IntegrityError:
    """The error of a ledger that is not as it was written."""
    return IntegrityError(str(where), expected, found)


def _link(before: str, entries: str) -> str:
    return sha256(f"{before}\n{entries}".encode(errors="surrogatepass")).hexdigest()


def _row_name(table: str, key: Value) -> str:
    return f"table {table}, {TABLES[table]} {str(key)[:40]}"


class Head:
    """How far a chain has come, beside the database: written after every transaction, and gone once it is closed.

    It is not synced: what it says was on disk before it was said.
    """

    def __init__(self, path: Path, now: Anchor):
        self.path = head_of(path)
        self._file = open_without_links(self.path, os.O_WRONLY)
        self.say(now)
        os.fsync(self._file)  # once: a file that is there has its line

    def say(self, now: Anchor) -> None:
        """Write down how far the chain is."""
        write_at_start(self._file, _line(now))

    def close(self) -> None:
        """Close the file; it stays until the database is closed."""
        os.close(self._file)


def head_of(path: Path) -> Path:
    """The file that says how far the chain of a ledger has come."""
    return path.with_name(f"{path.name}-head")


def read_head(path: Path) -> Anchor | None:
    """Read such a file; None if there is none."""
    found = head_of(path)
    for _ in range(3):  # a reader may meet a line that is being written
        try:
            content = read_bytes(found, HEAD_BYTES)
        except DirectoryError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise
        with suppress(ValueError, IndexError):
            batch, digest = content.split()[:2]
            anchor = Anchor(int(batch), digest.decode())
            if content == _line(anchor):
                return anchor
    hint = f"delete it to go on; whether {path.name} lost its last rows is then not known"
    raise IntegrityError(str(found), "how far the ledger had come", "something else", hint)


def _line(now: Anchor) -> bytes:
    """A line of fixed length, with a checksum of its own."""
    line = f"{now.batch:012} {now.sha256:>64}"
    return f"{line} {sha256(line.encode()).hexdigest()[:16]}\n".encode()
