"""The tables of a ledger, and nothing else in its file: no view, trigger or index, whose reading SQL would follow."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ectype._legacy.ledger import TABLES as FORMER_TABLES
from ectype.errors import IntegrityError

# Rows are only ever added, each with its key first: the chain covers them.
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE labels (code INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, purpose TEXT NOT NULL, n INTEGER NOT NULL, announced REAL NOT NULL, rows BLOB NOT NULL
);
CREATE TABLE answers (request INTEGER PRIMARY KEY, at REAL NOT NULL, codes BLOB NOT NULL);
CREATE TABLE scores (request INTEGER PRIMARY KEY, p BLOB NOT NULL);
CREATE TABLE attempts (id INTEGER PRIMARY KEY, request INTEGER NOT NULL, at REAL NOT NULL, n INTEGER NOT NULL);
CREATE TABLE failures (id INTEGER PRIMARY KEY, request INTEGER NOT NULL, at REAL NOT NULL, found TEXT NOT NULL);
CREATE TABLE tallies (id INTEGER PRIMARY KEY, name TEXT NOT NULL, n INTEGER NOT NULL);
CREATE TABLE rounds (
  t INTEGER PRIMARY KEY, theta BLOB NOT NULL, about TEXT NOT NULL
);
CREATE TABLE chain (batch INTEGER PRIMARY KEY, entries TEXT NOT NULL, digest TEXT NOT NULL);
"""
TYPES = {"TEXT": str, "INTEGER": int, "REAL": float, "BLOB": bytes}
# Beyond this, sums of whole numbers would overflow.
MOST_COUNT = 2**53
_OBJECTS = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"


def tables_of(connection: sqlite3.Connection) -> dict[str, str]:
    """The tables that are as we make them, with their definitions."""
    found = connection.execute(_OBJECTS).fetchall()
    return {name: sql for kind, name, sql in found if kind == "table" and sql in _definitions().get(name, ())}


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that holds anything else, before any query of ours is made of it."""
    ours = tables_of(connection)
    for kind, name, _ in connection.execute(_OBJECTS).fetchall():
        if kind != "table" or name not in ours:
            what = f"the {kind} {str(name)[:40]!r}"
            found = f"{what}, which has another definition" if kind == "table" and name in _definitions() else what
            raise IntegrityError(str(path), "the tables of a ledger and nothing else", found)


def check_values(definition: str, row: Sequence[object], where: str) -> None:
    """Refuse a row whose values are of other types than its columns, as SQLite allows, or beyond all numbers."""
    kinds = _kinds(definition)
    for value, kind in zip(row, kinds, strict=True):
        large = isinstance(value, (int, float)) and not (math.isfinite(value) and abs(value) <= MOST_COUNT)
        if type(value) is not kind or large:
            found = f"the number {value}" if large else f"a value of type {type(value).__name__}"
            raise IntegrityError(where, f"a row of types {', '.join(kind.__name__ for kind in kinds)}", found)


@cache
def _definitions() -> dict[str, tuple[str, ...]]:
    """The definitions that a table may have, by its name."""
    found: dict[str, tuple[str, ...]] = {}
    for statement in filter(None, map(str.strip, f"{SCHEMA}{FORMER_TABLES}".split(";"))):
        name = statement.split()[2]
        found[name] = (*found.get(name, ()), statement)
    return found


@cache
def _kinds(definition: str) -> tuple[type, ...]:
    """The types of a table's columns.

    >>> _kinds("CREATE TABLE labels (code INTEGER PRIMARY KEY, value TEXT NOT NULL)")
    (<class 'int'>, <class 'str'>)
    """
    return tuple(TYPES[word] for word in re.findall(r"\b(?:TEXT|INTEGER|REAL|BLOB)\b", definition))
