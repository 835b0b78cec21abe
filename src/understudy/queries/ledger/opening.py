"""The files of a ledger, and connections to them: to write, to read, and to read where nothing can be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from understudy.errors import DirectoryError
from understudy.files import errors_of
from understudy.portable import lock_folder

NAME = "ledger.sqlite"
# The ledger of what is asked about a finished run, beside the run's own, which nothing is added to.
SESSIONS = "asked.sqlite"
# What lies beside it while it is open, and after a run was killed.
BESIDE = ("-wal", "-shm", "-head")


@contextmanager
def readable(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to read by: also from an archive that cannot be written to, and past symbolic links."""
    path = path.resolve() if (linked := path.is_symlink()) else path
    if not linked and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        with closing(connect(path)) as connection:
            yield connection
    elif beside(path, "-wal").is_file() and beside(path, "-wal").stat().st_size:
        with copied(path) as connection:
            yield connection
    else:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as connection:
            yield connection


@contextmanager
def copied(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of a ledger: SQLite writes where it recovers a write-ahead log."""
    with tempfile.TemporaryDirectory(prefix="understudy-") as folder:
        for file in (path, beside(path, "-wal")):
            if file.is_file():
                shutil.copyfile(file, Path(folder) / file.name)
        with closing(connect(Path(folder) / path.name)) as connection:
            yield connection


def beside(path: Path, suffix: str) -> Path:
    """A file that belongs to a ledger."""
    return path.with_name(f"{path.name}{suffix}")


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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Within, nobody else writes to this folder."""
    with ExitStack() as opened:
        with errors_of(path):
            ours = opened.enter_context(lock_folder(path))
        if not ours:
            found, hint = "another process that writes to it", "wait until it has finished"
            raise DirectoryError(str(path), "a run that nobody else is at work on", found, hint)
        yield


def refuse_links(path: Path) -> None:
    """Refuse to write where a symbolic link leads elsewhere."""
    for file in (path, *(beside(path, suffix) for suffix in BESIDE)):
        if file.is_symlink():
            hint = "nothing is written through links: move the file here, or choose another directory"
            raise DirectoryError(str(file), "a file", f"a symbolic link to {os.readlink(file)}", hint)
