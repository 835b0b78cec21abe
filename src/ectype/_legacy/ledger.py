"""Ledgers of format 1, of version 0.1: without checksums, and without the tables `scores`, `attempts` and `chain`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

FORMAT_1 = 1
# The tables that had other columns.
TABLES = """
CREATE TABLE failures (request INTEGER NOT NULL, at REAL NOT NULL, found TEXT NOT NULL);
CREATE TABLE tallies (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
"""
# Their columns in today's order; NULL is a key that SQLite chooses.
_COLUMNS = {"failures": "NULL, request, at, found", "tallies": "NULL, name, n"}


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether a ledger has a table that format 1 lacks."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0])


def take_rows(
    connection: sqlite3.Connection, tables: Iterable[str], number: int
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Read every row, with its table, in today's columns and as of format `number`, and drop the tables."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = {
        table: connection.execute(f"SELECT {_COLUMNS.get(table, '*')} FROM {table}").fetchall()
        for table in tables
        if table in there
    }
    found["meta"] = [(key, str(number) if key == "format" else value) for key, value in found["meta"]]
    for table in there:
        connection.execute(f'DROP TABLE "{table}"')
    return ((table, row) for table, rows in found.items() for row in rows)
