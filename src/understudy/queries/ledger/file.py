"""The file of a ledger: its tables, how it is opened, and what every reader of it needs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from understudy.errors import DirectoryError
from understudy.types import Json, Label

FORMAT = 1
NAME = "ledger.sqlite"
# Rows that were asked again on purpose, to see whether the original answers alike.
REPEAT = "repeat"
# The purpose of rows that are asked again to see whether an original changed.
CHECK = "check"
# How many rows were wanted again and taken from the ledger, among what is counted beside the queries.
SAVED = "saved"
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE labels (code INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, n INTEGER NOT NULL, announced REAL NOT NULL, rows BLOB NOT NULL
);
CREATE TABLE answers (request INTEGER PRIMARY KEY, at REAL NOT NULL, codes BLOB NOT NULL);
CREATE TABLE scores (request INTEGER PRIMARY KEY, p BLOB NOT NULL);
CREATE TABLE attempts (request INTEGER NOT NULL, at REAL NOT NULL, n INTEGER NOT NULL);
CREATE TABLE failures (request INTEGER NOT NULL, at REAL NOT NULL, found TEXT NOT NULL);
CREATE TABLE tallies (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds (
  t INTEGER PRIMARY KEY, theta BLOB NOT NULL, about TEXT NOT NULL
);
"""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a ledger that must be there."""
    if not path.is_file():
        raise DirectoryError(str(path), "a ledger", "nothing", "name the directory of a run that was given --out")
    with errors_of(path):
        connection = connect(path)
        try:
            yield connection
        finally:
            connection.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose transactions are on disk when they are committed."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA page_size = 16384")  # rows are large blobs: fewer pages, less to check and copy
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4096")
        connection.execute("PRAGMA cache_size = -4096")  # in KiB: little memory used again is faster than much new
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def is_begun(connection: sqlite3.Connection) -> bool:
    """Whether there are any tables."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def create(connection: sqlite3.Connection, about: Json) -> None:
    """All tables and what the ledger belongs to, in one transaction: a ledger with tables is whole."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", [(key, json.dumps(value)) for key, value in about.items()])
    connection.execute("COMMIT")


def meta_of(connection: sqlite3.Connection, path: Path) -> Json:
    """What the ledger belongs to."""
    found = {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    if found.get("format") != FORMAT or not isinstance(found.get("settings"), dict):
        hint = "use the understudy that wrote it, or a newer one"
        raise DirectoryError(str(path), f"a ledger of format {FORMAT}", found.get("format"), hint)
    return found


def add_missing(connection: sqlite3.Connection) -> None:
    """Give a ledger that an earlier version began the tables that it lacks."""
    for statement in _SCHEMA.split(";"):
        connection.execute(statement.replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "))


def sent_again(connection: sqlite3.Connection) -> dict[str, int]:
    """By purpose, the rows of attempts beyond the first of a request; ledgers of earlier versions have none."""
    there = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'attempts'").fetchone()[0]
    sql = "SELECT purpose, sum(attempts.n) FROM attempts JOIN requests ON request = id GROUP BY purpose"
    return dict(connection.execute(sql).fetchall()) if there else {}


def unanswered(connection: sqlite3.Connection) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Purpose and rows of every request without an answer, and whether it is known to have failed."""
    sql = """SELECT purpose, n, rows, EXISTS (SELECT 1 FROM failures WHERE request = id) FROM requests
      WHERE id NOT IN (SELECT request FROM answers) ORDER BY id"""
    for purpose, n, rows, failed in connection.execute(sql):
        yield purpose, matrix(rows, n), bool(failed)


def labels_of(connection: sqlite3.Connection) -> list[Label]:
    """Every label that was ever answered, by code."""
    return [json.loads(value) for (value,) in connection.execute("SELECT value FROM labels ORDER BY code")]


def answered_requests(connection: sqlite3.Connection) -> Iterator[tuple[int, str, np.ndarray, np.ndarray]]:
    """Number, purpose, rows and codes of every request that was answered."""
    sql = "SELECT id, purpose, n, rows, codes FROM requests JOIN answers ON request = id ORDER BY id"
    for number, purpose, n, rows, answers in connection.execute(sql):
        yield number, purpose, matrix(rows, n), np.frombuffer(answers, np.int32)


def scores_of(connection: sqlite3.Connection, number: int, n: int) -> np.ndarray | None:
    """The scores that came with the answers to a request, if any did; ledgers of earlier versions have none."""
    there = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'scores'").fetchone()[0]
    found = connection.execute("SELECT p FROM scores WHERE request = ?", (number,)).fetchone() if there else None
    return None if found is None else np.frombuffer(found[0], np.float32).reshape(n, -1)


def matrix(blob: bytes, n: int) -> np.ndarray:
    """The n rows of a blob."""
    return np.frombuffer(blob, np.float64).reshape(n, -1)


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn what SQLite says into an error of ours."""
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError, ValueError, TypeError, OSError) as error:
        hint = "restore it from a backup, or start again in another directory"
        raise DirectoryError(str(path), "a ledger that can be read and written", str(error), hint) from error
