"""Files that appear whole: written beside their place, synced to disk, then renamed. There is no other way of writing.

What the file system refuses becomes an error of ours.

A file, or a new folder, is written into a temporary folder beside it and renamed (`atomic_file`, `atomic_folder`).
Files that belong together are committed together (`replace_together`): the folder they are written to is renamed to
`.committed`, which is the moment that they are the new ones, and then each is moved to its place. Readers find a file
that is not moved yet through `current`; whoever writes next moves what a process left that was killed (`roll_forward`).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ectype._common.portable import LOCK, UNFINISHED, is_folder, is_ours, lock_folder, sync_directory
from ectype.errors import DirectoryError, EctypeError, WriteError, warn

# Where files are that were committed together, until each is in its place.
COMMITTED = ".committed"
# What a ledger keeps beside its database while it is open, and after a run was killed.
BESIDE_DATABASE = ("-wal", "-shm", "-head")
# The names that `tempfile` makes of the prefix.
_TEMPORARY = re.compile(re.escape(UNFINISHED) + "[a-z0-9_]{8}")
# How often a folder is made anew that somebody took for one that a killed process left, before it was locked.
_ATTEMPTS = 5
# SQLite's code for a full disk; its module need not be imported for it.
_SQLITE_FULL = 13


def as_path(path: object) -> Path:
    """A path, or an error that says what it is instead."""
    if not isinstance(path, (str, os.PathLike)):
        raise DirectoryError("directory", "a path", repr(path))
    return Path(path)


@contextmanager
def directory_errors(path: Path, expected: str = "a directory that can be written") -> Iterator[None]:
    """Turn errors of the file system into a DirectoryError."""
    try:
        yield
    except EctypeError:  # some are ValueErrors, and all say what is wrong already
        raise
    except (OSError, ValueError) as error:
        if is_full(error):
            hint = "make room, and run the same command again: what was answered is kept"
            raise WriteError(str(path), "room to write", str(error), hint) from error
        hint = "choose another directory, or see who may write to this one"
        raise DirectoryError(str(path), expected, str(error), hint) from error


# --- one file, or one new folder --------------------------------------------------------------------------------------


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """The name of a temporary file to write, which replaces `path` at the end: nobody ever sees half of it.

    If `path` is a symbolic link, it is the link that is replaced: nothing is written where it leads. If something goes
    wrong, or the process is killed or loses its power at any moment, what was there before is there still.

    >>> with tempfile.TemporaryDirectory() as folder, atomic_file(Path(folder) / "a.txt") as part:
    ...     _ = part.write_text("all of it")
    """
    with directory_errors(path, "a file that can be written"):
        if path.exists() and not path.is_file():  # as root, a device would be replaced
            found = "a directory" if path.is_dir() else "something that is no file"
            raise FileExistsError(f"{found} of that name is there")
        with unfinished_folder(path.parent) as work:
            part = work / path.name
            yield part
            _sync(part)
            os.replace(part, path)
            sync_directory(path.parent)


def write_text(path: Path, text: str) -> Path:
    """Write a text file, whole or not at all."""
    return write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file, whole or not at all."""
    with atomic_file(path) as part:
        part.write_bytes(content)
    return path


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name at the end, whole.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     with atomic_folder(Path(name) / "deep" / "new") as folder:
    ...         _ = (folder / "a.txt").write_text("all of it")
    ...     [str(file.relative_to(name)) for file in Path(name).rglob("*.txt")]
    ['deep/new/a.txt']
    """
    missing = missing_folders(path.parent)
    with directory_errors(path):
        try:
            make_folder(path.parent)
            with unfinished_folder(path.parent) as work:
                folder = work / path.name
                folder.mkdir()
                yield folder
                _sync_all(folder)
                os.replace(folder, path)
                sync_directory(path.parent)
        finally:
            remove_empty(missing)


# --- files that belong together ---------------------------------------------------------------------------------------


@contextmanager
def replace_together(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill with files that replace those of their names in `folder`: all of them, or none.

    That holds however the process ends, and when the power does. Whoever calls it holds the lock of `folder`.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     with replace_together(Path(name)) as part:
    ...         _ = (part / "a.txt").write_text("one"), (part / "b.txt").write_text("two")
    ...     sorted(os.listdir(name))
    ['a.txt', 'b.txt']
    """
    with directory_errors(folder):
        roll_forward(folder)
        with unfinished_folder(folder) as work:
            part = work / COMMITTED
            part.mkdir()
            yield part
            _sync_all(part)
            os.replace(part, folder / COMMITTED)
            sync_directory(folder)
        roll_forward(folder)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Within, nobody else writes to this folder, and what was committed there is in its place."""
    with ExitStack() as opened:
        with directory_errors(folder):
            ours = opened.enter_context(lock_folder(folder))
        if ours is None:
            warn(f"there are no locks of files here: let no other process write to {folder}")
        if ours is False:
            found, hint = "another process that writes to it", "wait until it has finished"
            raise DirectoryError(str(folder), "a run that nobody else is at work on", found, hint)
        with directory_errors(folder):
            roll_forward(folder)
        yield


def current(path: Path) -> Path:
    """Where a file is: in its place, unless it was committed with others and not moved there yet."""
    committed = path.parent / COMMITTED
    there = committed / path.name
    return there if is_folder(committed) and there.is_file() else path


def roll_forward(folder: Path) -> None:
    """Move committed files to their places. Whoever calls it holds the lock of `folder`.

    What SQLite keeps beside a database belongs to the one that is replaced, and goes before it.
    """
    committed = folder / COMMITTED
    if not is_folder(committed):
        return
    for file in sorted(committed.iterdir()):
        if file.suffix == ".sqlite":
            for suffix in BESIDE_DATABASE:
                (folder / f"{file.name}{suffix}").unlink(missing_ok=True)
        os.replace(file, folder / file.name)
    sync_directory(folder)
    committed.rmdir()


# --- temporary folders ------------------------------------------------------------------------------------------------


@contextmanager
def unfinished_folder(beside: Path) -> Iterator[Path]:
    """A temporary folder in `beside`, removed at the end; move out what should stay.

    It is locked, so that nobody takes it for one of those that killed processes left, which are removed here.
    """
    remove_unfinished(beside)
    with ExitStack() as held:
        work = _locked_folder(beside, held)
        try:
            yield work
        finally:
            held.close()  # first: on Windows the lock is a file in it
            shutil.rmtree(work, ignore_errors=True)


def _locked_folder(beside: Path, held: ExitStack) -> Path:
    """A new folder, whose lock is held; where there are no locks, without, and then nobody removes what is left."""
    for _ in range(_ATTEMPTS):
        work = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=beside))
        with ExitStack() as opened, suppress(FileNotFoundError):  # it was taken for one that was left
            ours = opened.enter_context(lock_folder(work))
            if work.is_dir() and ours is not False:
                held.push(opened.pop_all())
                return work
    raise OSError(errno.EAGAIN, "temporary folders are removed as soon as they are made")


def remove_unfinished(folder: Path) -> None:
    """Remove the temporary folders of processes that were killed; where one is at work, or might be, they stay."""
    with suppress(OSError):  # such as a folder that only others may write to
        for left in [entry for entry in folder.iterdir() if _TEMPORARY.fullmatch(entry.name)]:
            if is_folder(left) and is_ours(left):
                _remove_unlocked(left)


def _remove_unlocked(folder: Path) -> None:
    with suppress(OSError):  # it is being removed already
        with lock_folder(folder) as ours:
            if ours:
                for entry in [entry for entry in folder.iterdir() if entry.name != LOCK]:
                    shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        if ours:
            folder.rmdir()


def is_full(error: BaseException) -> bool:
    """Whether an error of the system or of SQLite says that there is no room left, or none allowed.

    >>> is_full(OSError(errno.ENOSPC, "No space left on device"))
    True
    """
    full = errno.ENOSPC, errno.EDQUOT, errno.EFBIG
    return getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL or getattr(error, "errno", None) in full


def make_folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it that are missing; their names reach the disk before anything is put there."""
    missing = missing_folders(path)
    path.mkdir(mode=mode, parents=True, exist_ok=True)
    for folder in missing:
        sync_directory(folder.parent)


def missing_folders(path: Path) -> list[Path]:
    """The folders of a path that do not exist yet, innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def remove_empty(folders: list[Path]) -> None:
    """Remove folders that are empty, innermost first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)  # which Windows wants for it
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_all(folder: Path) -> None:
    """Have the files of a folder reach the disk, and their names."""
    for path in folder.rglob("*"):
        sync_directory(path) if path.is_dir() else _sync(path)
    sync_directory(folder)
