"""The files of a ledger, and connections to them: to write, to read, and to read where nothing can be written.

What is read may be somebody else's. So its files are regular ones, as long as they say, and hold our tables alone; SQL
that is in them is not run; and reading ends after as many steps as a ledger of that size can take.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from ectype._common.atomic_io import BESIDE_DATABASE, current
from ectype._common.bounded_io import open_regular, refuse_irregular
from ectype.errors import DirectoryError, IntegrityError
from ectype.ledger._tables import check_tables

LEDGER = "ledger.sqlite"
# The ledger of what is asked about a finished run, beside the run's own, which nothing is added to.
SESSIONS = "asked.sqlite"
# What lies beside it while it is open, and after a run was killed.
BESIDE_LEDGER = BESIDE_DATABASE
# What SQLite would read beside it, if it were there.
JOURNAL = "-journal"
# The most steps of SQLite's machine while a ledger is read: so many, and for each of its bytes. All readings together
# take a few for each byte.
STEPS, STEPS_PER_BYTE = 10**8, 500
# The most of them while SQLite reads the definitions in the file, which it does before anything can be checked.
DEFINITIONS = 10**6
# After so many steps SQLite asks whether to go on.
ASKED_AFTER = 10**6
# The most bytes that a file may say to have, beyond so many, for each that it takes on its disk: the rest is holes.
HOLES, HOLES_BYTES = 1000, 2**30


@contextmanager
def open_for_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger for reading, also in a folder that cannot be written to, and through symbolic links."""
    place, path = path, current(path)
    path = path.resolve() if (linked := path.is_symlink()) else path
    if path == place and not linked and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        opened = closing(connect(path))
    elif beside(path, "-wal").is_file() and beside(path, "-wal").stat().st_size:
        with open_copy(path) as connection:
            check_tables(connection, path)
            yield connection
        return
    else:
        _check_files(path)
        opened = closing(_harden(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)))
    with opened as connection:
        _check_tables(connection, path)
        with limit_steps(connection, path):
            yield connection


@contextmanager
def open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a temporary copy of a ledger. SQLite writes to it when it recovers a write-ahead log."""
    _check_files(path)
    with tempfile.TemporaryDirectory(prefix="ectype-") as folder:
        for file in (path, beside(path, "-wal")):
            if file.is_file():
                with open_regular(file) as source, open(Path(folder) / file.name, "wb") as copy:
                    shutil.copyfileobj(source, copy)
        own = Path(folder) / path.name
        with closing(_open(own)) as connection, limit_steps(connection, own):
            yield connection


def beside(path: Path, suffix: str) -> Path:
    """A file that belongs to a ledger."""
    return path.with_name(f"{path.name}{suffix}")


def connect(path: Path) -> sqlite3.Connection:
    """Open a new file, or one that has our tables alone. Committed transactions are on disk."""
    _check_files(path)
    connection = _open(path)
    try:
        _check_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def limit_steps(connection: sqlite3.Connection, path: Path, most: int | None = None) -> Iterator[None]:
    """Interrupt SQLite after so many steps; by default, more than any ledger of this size can take."""
    files = (path, beside(path, "-wal"))
    most = most or STEPS + STEPS_PER_BYTE * sum(_bytes_on_disk(file.stat()) for file in files if file.is_file())
    asked = count(ASKED_AFTER, ASKED_AFTER)
    connection.set_progress_handler(lambda: next(asked) > most, ASKED_AFTER)
    try:
        yield
    finally:
        with suppress(sqlite3.ProgrammingError):  # it may be closed by now
            connection.set_progress_handler(None, ASKED_AFTER)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        with limit_steps(connection, path, DEFINITIONS):
            _prepare(_harden(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    """Set how a ledger is written. For some of these settings SQLite reads the definitions in the file."""
    connection.execute("PRAGMA page_size = 16384")  # rows are large blobs: fewer pages, less to check and copy
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 4096")
    connection.execute("PRAGMA cache_size = -4096")  # in KiB: little memory used again is faster than much new
    connection.execute("PRAGMA synchronous = FULL")


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    with limit_steps(connection, path, DEFINITIONS):
        check_tables(connection, path)


def _harden(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Make SQLite trust neither the SQL nor the numbers in the file."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    return connection


def _check_files(path: Path) -> None:
    """Refuse files that are not regular, that are longer than their header says, or that are mostly holes."""
    there = dict[Path, os.stat_result]()
    for suffix in ("", *BESIDE_LEDGER, JOURNAL):
        file = beside(path, suffix)
        try:
            there[file] = file.stat()
            refuse_irregular(there[file].st_mode)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DirectoryError(str(file), "a file that can be read", str(error)) from error
    if path in there:
        _check_length(path)
    for file, found in there.items():
        if found.st_size > HOLES_BYTES + HOLES * _bytes_on_disk(found):
            holes = f"{found.st_size} bytes, of which {_bytes_on_disk(found)} are on its disk"
            raise IntegrityError(str(file), "a file that is no hole", holes)


def _bytes_on_disk(found: os.stat_result) -> int:
    """The bytes that a file takes on disk, without holes; its size, where the system does not tell."""
    return min(found.st_size, 512 * getattr(found, "st_blocks", 0) or found.st_size)


def _check_length(path: Path) -> None:
    """Refuse a database with more behind it than a write-ahead log may have added before it was cut off."""
    with open_regular(path) as file:
        head, size = file.read(100), os.fstat(file.fileno()).st_size
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        return  # what it is instead, SQLite says
    page = {1: 65536}.get(found := int.from_bytes(head[16:18], "big"), found)
    log = beside(path, "-wal")
    said = page * int.from_bytes(head[28:32], "big") + (log.stat().st_size if log.exists() else 0)
    if size > said:
        raise IntegrityError(str(path), f"a file of at most {said} bytes, as it says", size)


def refuse_links(path: Path) -> None:
    """Refuse to write where a symbolic link leads elsewhere."""
    for file in (path, *(beside(path, suffix) for suffix in BESIDE_LEDGER)):
        if file.is_symlink():
            hint = "nothing is written through links: move the file here, or choose another directory"
            raise DirectoryError(str(file), "a file", f"a symbolic link to {os.readlink(file)}", hint)
