"""Open, check and prepare the file of a ledger, and the queries that all of its readers share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ectype._common.atomic_io import current
from ectype._common.bounded_io import parse_json
from ectype._common.manifest import RUN, Anchor, anchor_of, read_run
from ectype._legacy.ledger import FORMAT_1, has_table, take_rows
from ectype.errors import DirectoryError
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._blobs import codes_of, matrix_of, scores_of
from ectype.ledger._connections import LEDGER, limit_steps, open_for_reading
from ectype.ledger._hash_chain import begin
from ectype.ledger._purpose import Purpose
from ectype.ledger._recovery import errors_of
from ectype.ledger._tables import check_values, tables_of
from ectype.original.labels import classes_array
from ectype.space import Space, has_required_values, is_representable
from ectype.types import Json, Label

LEDGER_FORMAT = 2
# What settings call the columns that the user's own rows have, and no others.
FURTHER_COLUMNS = "further"
# What the ledger belongs to, in its table of facts.
SETTINGS = "settings"
# How many rows were wanted again and taken from the ledger, among what is counted beside the queries.
SAVED = "saved"
# Attempts beyond the first of a request; below zero, those that never arrived.
_SENT = """(SELECT requests.*, n + coalesce(more, 0) AS sent FROM requests LEFT JOIN
  (SELECT request AS number, sum(n) AS more FROM attempts GROUP BY request) ON number = id)"""
# Requests whose purpose begins with a prefix, for SQL, and what follows it: several may write to one ledger in turn.
_BEGINS, _REST = "substr(purpose, 1, length(:prefix)) = :prefix", "substr(purpose, length(:prefix) + 1) AS purpose"


@contextmanager
def open_and_check(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger that must exist, and check all of it. The connection reads one snapshot."""
    if not path.is_file():
        raise DirectoryError(str(path), "a ledger", "nothing", "name the directory of a run that was given --out")
    with errors_of(path):
        known = anchors(path)  # before anything is read: a run that is at work only ever comes further
        with open_for_reading(path) as connection:
            connection.execute("BEGIN")
            check(connection, path, known)
            yield connection


# --- what is in it ----------------------------------------------------------------------------------------------------


def is_begun(connection: sqlite3.Connection) -> bool:
    """Whether there are any tables."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def prepare(connection: sqlite3.Connection, path: Path, about: Json, more: Iterable[hash_chain.Row] = ()) -> Anchor:
    """Check a ledger and make it ready for further rows; gives how far its chain is.

    A new one begins with what it belongs to, and with `more`.
    """
    with limit_steps(connection, path):
        found = check(connection, path, anchors(path))
    if found is not None:
        return found
    if is_begun(connection):
        _convert_format_1(connection)
    else:
        begin(connection, about, more)
    return hash_chain.last(connection)


def _convert_format_1(connection: sqlite3.Connection) -> None:
    """Write a ledger of version 0.1 anew, in today's format. The chain vouches for its rows from now on only."""
    connection.execute("BEGIN IMMEDIATE")
    hash_chain.create(connection, take_rows(connection, hash_chain.TABLES, LEDGER_FORMAT))
    connection.execute("COMMIT")


def anchors(path: Path) -> list[tuple[str, Anchor]]:
    """How far a ledger's chain had come at least, with the name of each file that says so."""
    head = hash_chain.read_head(path)
    finished = path.name == LEDGER and current(path.parent / RUN).is_file()
    run = anchor_of(read_run(path.parent)) if finished else None
    return [(name, found) for name, found in ((f"{path.name}-head", head), (RUN, run)) if found is not None]


def check(connection: sqlite3.Connection, path: Path, known: list[tuple[str, Anchor]]) -> Anchor | None:
    """Check a ledger; gives how far its chain is, None if it has none: not begun, or of version 0.1."""
    if not is_begun(connection):
        for name, anchor in known:
            raise hash_chain.damage_error(path, f"{anchor.batch} batches of rows, as {name} says", "none")
        return None
    hash_chain.check_structure(connection, path)
    if format_of(connection, path) != FORMAT_1:
        return hash_chain.check(connection, path, known)
    for table, definition in tables_of(connection).items():
        for row in connection.execute(f"SELECT * FROM {table}"):
            check_values(definition, row, f"{path}: table {table}")
    return None


def format_of(connection: sqlite3.Connection, path: Path) -> int:
    """The format of a ledger; an unknown one is refused."""
    found = dict(connection.execute("SELECT key, value FROM meta WHERE key = 'format'")).get("format")
    if found not in (str(LEDGER_FORMAT), str(FORMAT_1)):
        hint = "use the ectype that wrote it, or a newer one; or it is damaged"
        raise DirectoryError(str(path), f"a ledger of format {LEDGER_FORMAT} or {FORMAT_1}", found, hint)
    return int(found)


def meta_of(connection: sqlite3.Connection, path: Path) -> Json:
    """The facts in a ledger: its format, its space and the latest settings of its run."""
    format_of(connection, path)
    found = {key: parse_json(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    found[SETTINGS] = found.get(_settings_key(_times_set(connection)))
    if not isinstance(found[SETTINGS], dict):
        raise DirectoryError(str(path), "the settings of a run", repr(found[SETTINGS])[:80])
    return found


def later_settings(connection: sqlite3.Connection, settings: Json) -> hash_chain.Row:
    """A row with settings that replace the earlier ones, of a run that is extended or remade."""
    return "meta", (_settings_key(_times_set(connection) + 1), json.dumps(settings))


def _times_set(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM meta WHERE key LIKE ?", (f"{SETTINGS}%",)).fetchone()[0]


def _settings_key(time: int) -> str:
    return SETTINGS if time <= 1 else f"{SETTINGS} {time}"


def sent_sql(connection: sqlite3.Connection) -> str:
    """Requests, for SQL, with the rows that were sent in all attempts: none, if a request was taken back in time.

    Ledgers of earlier versions have one attempt each.
    """
    return _SENT if has_table(connection, "attempts") else "(SELECT *, n AS sent FROM requests)"


def without_session(purpose: str) -> str:
    """A purpose without the number of its session, if it has one."""
    return purpose.rpartition(" ")[2]


def sent_by_purpose(connection: sqlite3.Connection, prefix: str = "") -> dict[str, int]:
    """Rows that were sent, in all attempts, by purpose, for purposes with this prefix."""
    sql = f"SELECT {_REST}, sum(sent) FROM {sent_sql(connection)} WHERE {_BEGINS} GROUP BY purpose"
    return {purpose: n for purpose, n in connection.execute(sql, {"prefix": prefix}) if n}


def unanswered_requests(connection: sqlite3.Connection, prefix: str = "") -> Iterator[tuple[str, np.ndarray, bool]]:
    """Purpose and rows of every request that was sent and has no answer, and whether it is known to have failed."""
    sql = f"""SELECT {_REST}, n, rows, asked.id IN (SELECT request FROM failures) FROM {sent_sql(connection)} AS asked
      WHERE sent > 0 AND asked.id NOT IN (SELECT request FROM answers) AND {_BEGINS} ORDER BY asked.id"""
    for purpose, n, rows, failed in connection.execute(sql, {"prefix": prefix}):
        yield purpose, matrix_of(rows, n), bool(failed)


def labels_of(connection: sqlite3.Connection) -> list[Label]:
    """All labels that were answered, by code."""
    found = connection.execute("SELECT code, value FROM labels ORDER BY code").fetchall()
    labels = [parse_json(value) for _, value in found]
    known = classes_array(labels).tolist() if labels else []
    if [code for code, _ in found] != [*range(len(known))] or len(set(known)) < len(known):
        raise ValueError("labels that are not each there once, with codes from 0 on")
    return labels


def answered_requests(
    connection: sqlite3.Connection, prefix: str = ""
) -> Iterator[tuple[int, str, np.ndarray, np.ndarray]]:
    """Number, purpose, rows and codes of every request that was answered, for purposes with this prefix."""
    labels = connection.execute("SELECT count(*) FROM labels").fetchone()[0]
    sql = f"SELECT id, {_REST}, n, rows, codes FROM requests JOIN answers ON request = id WHERE {_BEGINS} ORDER BY id"
    for number, purpose, n, rows, answers in connection.execute(sql, {"prefix": prefix}):
        yield number, purpose, matrix_of(rows, n), codes_of(answers, n, labels)


def scores_for(connection: sqlite3.Connection, number: int, n: int) -> np.ndarray | None:
    """The scores that came with the answers to a request, if any did; ledgers of earlier versions have none."""
    if not has_table(connection, "scores"):
        return None
    found = connection.execute("SELECT p FROM scores WHERE request = ?", (number,)).fetchone()
    return None if found is None else scores_of(found[0], n)


def check_rows(space: Space, rows: np.ndarray, purpose: str) -> None:
    """Raise ValueError for rows that the space cannot have. Rows that no run asked about may lack values."""
    if rows.shape[1] != space.d or not is_representable(space, rows).all():
        raise ValueError(f"rows of {rows.shape[1]} columns, or with values that no row of the space has")
    if purpose not in (Purpose.GIVEN, Purpose.TRAFFIC) and not has_required_values(space, rows).all():
        raise ValueError("rows with gaps in columns that have none")
