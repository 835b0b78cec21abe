"""Damaged ledgers: errors that say what can be recovered, and the recovery."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ectype._common.atomic_io import as_path, atomic_folder, current, is_full
from ectype._common.bounded_io import UNREADABLE, parse_json
from ectype._common.manifest import RUN
from ectype.errors import DirectoryError, EctypeError, IntegrityError, WriteError
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._blobs import codes_of
from ectype.ledger._connections import LEDGER, connect, open_copy
from ectype.ledger._tables import check_values, tables_of

# Errors of values that are not as they were written.
_UNREADABLE = (sqlite3.Error, *UNREADABLE)
# SQLite's codes for a file that somebody else holds, that cannot be written to, or not opened: there is no damage.
_WHOLE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_ROUNDS = "rounds"


@dataclass(frozen=True)
class RecoverableRows:
    """The rows of a damaged ledger whose checksums agree, by table and key. Answers come with their rows and labels."""

    rows: dict[str, dict[hash_chain.Value, tuple[hash_chain.Value, ...]]]

    @classmethod
    def of(cls, path: Path) -> RecoverableRows:
        """Check the rows in a copy of the file, one by one."""
        rows = defaultdict[str, dict[hash_chain.Value, tuple[hash_chain.Value, ...]]](dict)
        with suppress(*_UNREADABLE, EctypeError), open_copy(path) as connection:
            there = tables_of(connection)
            for table, key, digest in _entries(connection) if "chain" in there else ():
                if table not in there:
                    continue
                with suppress(*_UNREADABLE, EctypeError):
                    row = connection.execute(
                        f"SELECT * FROM {table} WHERE {hash_chain.TABLES[table]} = ?", (key,)
                    ).fetchone()
                    check_values(there[table], row, table)
                    if hash_chain.digest_of(row) == digest:
                        rows[table][key] = row
        return cls(_consistent(rows))

    @property
    def answered(self) -> int:
        """How many rows have an answer."""
        return sum(int(str(self.rows["requests"][key][2])) for key in self.rows["answers"])

    @property
    def usable(self) -> bool:
        """Whether a run can go on from here."""
        return self.answered > 0 and {"format", "settings", "space"} <= set(self.rows["meta"])


def _entries(connection: sqlite3.Connection) -> Iterator[tuple[str, hash_chain.Value, str]]:
    """Table, key and checksum of every row, of all batches that can be read."""
    last = connection.execute("SELECT max(batch) FROM chain").fetchone()[0] or 0
    for batch in range(1, last + 1):
        with suppress(*_UNREADABLE):
            found = connection.execute("SELECT entries FROM chain WHERE batch = ?", (batch,)).fetchone()
            yield from (
                (table, key, digest) for table, key, digest in parse_json(found[0]) if table in hash_chain.TABLES
            )


def _consistent(
    rows: dict[str, dict[hash_chain.Value, tuple[hash_chain.Value, ...]]],
) -> dict[str, dict[hash_chain.Value, tuple[hash_chain.Value, ...]]]:
    """Leave out answers whose rows or labels are lost, and rounds of training, which are made again."""
    found = {table: dict(rows.get(table, {})) for table in hash_chain.TABLES if table != _ROUNDS}
    labels = next(code for code in range(len(found["labels"]) + 1) if code not in found["labels"])
    found["labels"] = {code: row for code, row in found["labels"].items() if code in range(labels)}
    for key, (_, _, codes) in list(found["answers"].items()):
        with suppress(*_UNREADABLE):
            n = found["requests"][key][2]
            assert isinstance(codes, bytes)
            assert isinstance(n, int)
            codes_of(codes, n, labels)
            continue
        del found["answers"][key]
    found["scores"] = {key: row for key, row in found["scores"].items() if key in found["answers"]}
    return found


def salvage_ledger(directory: str | Path, out: str | Path) -> int:
    """Write the answers of a damaged ledger that are whole to the ledger of a new directory; gives how many rows.

    The command of the run goes on there, and asks only what was lost.
    """
    path, new = as_path(directory) / LEDGER, as_path(out)
    left = RecoverableRows.of(path)
    if not left.usable:
        raise IntegrityError(str(path), "answers that can be used", "none", "restore it from a backup")
    if new.exists() and (not new.is_dir() or any(new.iterdir())):
        raise DirectoryError(str(new), "a new or empty directory", "something else", "choose another name")
    with (
        errors_of(new / LEDGER),
        atomic_folder(new) as folder,
        closing(connect(folder / LEDGER)) as connection,
    ):
        hash_chain.begin(connection, {str(key): parse_json(str(row[1])) for key, row in left.rows["meta"].items()})
        connection.execute("BEGIN IMMEDIATE")
        rows = [(table, row) for table, kept in left.rows.items() if table != "meta" for row in kept.values()]
        hash_chain.write(connection, rows, hash_chain.last(connection))
        connection.execute("COMMIT")
    return left.answered


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into ours, which say what can be recovered, and how."""
    try:
        yield
    except IntegrityError as error:
        if error.hint:
            raise
        raise IntegrityError(error.where, error.expected, error.found, _how_to_go_on(path)) from error
    except EctypeError:
        raise
    except _UNREADABLE as error:
        raise _error(path, error) from error


def _error(path: Path, error: Exception) -> DirectoryError:
    code = getattr(error, "sqlite_errorcode", None)
    if is_full(error):
        hint = "make room, and run the same command again: what was answered is kept"
        return WriteError(str(path), "room for what is answered", str(error), hint)
    if code is not None and code & 0xFF == sqlite3.SQLITE_IOERR:
        hint = "make room or see to the disk, and run the same command again: what was answered is kept"
        return WriteError(str(path), "a disk that can be read and written", str(error), hint)
    if isinstance(error, OSError) or (code is not None and code & 0xFF in _WHOLE):
        hint = "see who else uses it, and who may read and write it"
        return DirectoryError(str(path), "a ledger that can be opened", str(error), hint)
    return IntegrityError(str(path), "a ledger that can be read and written", str(error), _how_to_go_on(path))


def _how_to_go_on(path: Path) -> str:
    """What can be recovered of a damaged ledger, and the command that does it."""
    backup = "restore it from a backup"
    if path.name != LEDGER:
        return f"{backup}, or move it and its -head away: the same command then asks anew what was paid for"
    beside = "; the copy beside it can be used without it" if current(path.parent / RUN).is_file() else ""
    try:
        left = RecoverableRows.of(path)
    except _UNREADABLE:
        left = RecoverableRows({"requests": {}, "answers": {}, "meta": {}})
    if not left.usable:
        return f"nothing of it can be used: {backup}, or start again in another directory{beside}"
    return (
        f"answers to {left.answered} rows are as they were written: {backup}, or go on from these with `ectype "
        f"ledger {path.parent} --salvage NEW` and the same command with --out NEW{beside}"
    )
