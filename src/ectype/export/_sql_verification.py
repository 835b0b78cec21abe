"""SQL files read back: their answers in SQLite, which comes with Python, or in DuckDB where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from math import inf
from time import perf_counter
from typing import TypeAlias

import numpy as np

from ectype import progress
from ectype.errors import ExportError
from ectype.export._category_text import are_words
from ectype.export._sql import TABLE, is_query
from ectype.export._sql_dialects import DIALECTS, Dialect
from ectype.models.copy_classifier import CopyClassifier
from ectype.space import FLOAT64_TYPE, INT64_TYPE, Boolean, Category, Column, is_frame, wire_type_of_column
from ectype.types import Label, Table

# Rows of the first part, and the seconds that a later one takes, about.
FIRST, PART = 100, 2.0

Record: TypeAlias = Sequence[object]
"""A row as a database takes it."""

SqlAnswers: TypeAlias = Callable[[Sequence[Record]], list[Label]]
"""From rows to a statement's answers."""


def engine_of(dialect: Dialect) -> str | None:
    """The database at hand that reads a dialect: its own dialect's name."""
    if dialect.name == "duckdb":
        return "duckdb" if find_spec("duckdb") else None
    return "sqlite" if dialect.name == "sqlite" else None


def version_of(engine: str) -> str:
    """A database and its version, in words."""
    if engine == "sqlite":
        import sqlite3

        return f"SQLite {sqlite3.sqlite_version}"
    import duckdb

    return f"DuckDB {duckdb.__version__}"


def sql_answers(
    copy: CopyClassifier,
    text: str,
    rows: Table,
    engine: str = "sqlite",
    table: str = TABLE,
    keep: Sequence[str] = (),
    seconds: float = inf,
) -> list[Label]:
    """The answers of an SQL file to rows as in production; to the first of them, if all would take longer than that."""
    dialect = DIALECTS[engine]
    others = [name for name in keep if name not in copy.space.names]
    created = f"CREATE TABLE {dialect.table_name(table)} ({', '.join(column_declarations(copy, dialect, others))})"
    asked = text if is_query(text) else f"SELECT ({text}) FROM {dialect.table_name(table)}"
    filled = [(*record, *[None] * len(others)) for record in records(copy, rows)]
    database = _in_sqlite if engine == "sqlite" else _in_duckdb
    with database(created, dialect.table_name(table), asked) as answers:
        return _within(seconds, answers, filled)


def _within(seconds: float, answers: SqlAnswers, filled: Sequence[Record]) -> list[Label]:
    """Answers to as many rows as there is time for, part by part; the first part shows how long they take."""
    found: list[Label] = []
    size, clock, took = FIRST, perf_counter(), 0.0
    while len(found) < len(filled) and (not found or perf_counter() - clock + took <= seconds):
        started = perf_counter()
        found += answers(filled[len(found) : len(found) + size])
        took = perf_counter() - started
        size = max(FIRST, int(size * PART / max(took, 1e-6)))
        progress.report_answered(len(found), len(filled))
    return found


def column_declarations(copy: CopyClassifier, dialect: Dialect, others: Sequence[str] = ()) -> list[str]:
    """The columns of a table that a file reads, with their types; and others, which it only hands on."""
    names = [f"{dialect.identifier(column.name)} {_type(column, dialect)}" for column in copy.space.columns]
    return names + [f"{dialect.identifier(name)} {dialect.word}" for name in others]


def records(copy: CopyClassifier, rows: Table) -> list[Record]:
    """Rows as values that a database takes, None for a gap."""
    if not is_frame(rows):
        return [[None if value != value else value for value in row] for row in np.asarray(rows).tolist()]
    columns = []
    for column in copy.space.columns:
        values = rows[column.name].astype(object)
        filled = values.where(values.notna(), None).tolist()
        if isinstance(column, Category):  # pandas makes floats of whole numbers beside gaps
            kind = str if are_words(column) else int
            filled = [None if value is None else kind(value) for value in filled]
        elif wire_type_of_column(column) == FLOAT64_TYPE:  # pandas has whole numbers that databases have not
            filled = [None if value is None else float(value) for value in filled]
        columns.append(filled)
    return list(zip(*columns, strict=True))


def _type(column: Column, dialect: Dialect) -> str:
    if isinstance(column, Boolean):
        return dialect.flag
    if isinstance(column, Category):
        return dialect.word if are_words(column) else dialect.whole
    return dialect.whole if wire_type_of_column(column) == INT64_TYPE else dialect.real


@contextmanager
def _in_sqlite(created: str, table: str, asked: str) -> Iterator[SqlAnswers]:
    import sqlite3

    def answers(filled: Sequence[Record]) -> list[Label]:
        marks = ", ".join("?" * len(filled[0]))
        database.execute(f"DELETE FROM {table}")
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", filled)
        return [row[-1] for row in database.execute(asked)]  # read once: Python keeps what SQLite made of the text

    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute(created)
            yield answers
    except sqlite3.Error as error:
        raise ExportError("sql", "a statement that SQLite computes", str(error), "nothing was written") from error


@contextmanager
def _in_duckdb(created: str, table: str, asked: str) -> Iterator[SqlAnswers]:
    import duckdb
    import pandas as pd

    def answers(filled: Sequence[Record]) -> list[Label]:
        database.execute(f"DELETE FROM {table}")
        database.register("filled", pd.DataFrame(filled, dtype=object))
        database.execute(f"INSERT INTO {table} SELECT * FROM filled")
        return [row[-1] for row in database.execute(asked).fetchall()]

    try:
        with duckdb.connect() as database:
            database.execute(created)
            yield answers
    except duckdb.Error as error:
        raise ExportError("sql", "a statement that DuckDB computes", str(error), "nothing was written") from error
