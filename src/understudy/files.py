"""Atomic file writes; what the file system refuses becomes an error of ours."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from understudy.errors import DirectoryError, UnderstudyError, UnwrittenError
from understudy.portable import UNFINISHED, lock_folder, sync_directory

# SQLite's code for a full disk; its module need not be imported for it.
_SQLITE_FULL = 13


def as_path(path: object) -> Path:
    """A path, or an error that says what it is instead."""
    if not isinstance(path, (str, os.PathLike)):
        raise DirectoryError("directory", "a path", repr(path))
    return Path(path)


@contextmanager
def errors_of(path: Path, expected: str = "a directory that can be written") -> Iterator[None]:
    """Turn errors of the file system into a DirectoryError."""
    try:
        yield
    except UnderstudyError:  # some are ValueErrors, and all say what is wrong already
        raise
    except (OSError, ValueError) as error:
        if is_full(error):
            hint = "make room, and run the same command again: what was answered is kept"
            raise UnwrittenError(str(path), "room to write", str(error), hint) from error
        hint = "choose another directory, or see who may write to this one"
        raise DirectoryError(str(path), expected, str(error), hint) from error


@contextmanager
def written(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """A temporary file that replaces `path` atomically at the end: nobody ever sees half of it.

    If `path` is a symbolic link, it is the link that is replaced: nothing is written where it leads.

    It is removed if something goes wrong. With `durable`, file and directory are synced to disk.

    >>> with tempfile.TemporaryDirectory() as folder, written(Path(folder) / "a.txt") as part:
    ...     _ = part.write_text("all of it")
    """
    with errors_of(path, "a file that can be written"):
        if path.is_dir():
            raise IsADirectoryError("a directory of that name is there")
        handle, name = tempfile.mkstemp(prefix=UNFINISHED, suffix=path.suffix, dir=path.parent)
        os.close(handle)
        part = Path(name)
        try:
            os.chmod(part, 0o666 & ~_umask())
            yield part
            if durable:
                _sync(part)
            os.replace(part, path)
            if durable:
                sync_directory(path.parent)
        finally:
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, durable: bool = False) -> Path:
    """Write a text file atomically."""
    return write_bytes(path, text.encode(), durable=durable)


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> Path:
    """Write a file atomically."""
    with written(path, durable=durable) as part:
        part.write_bytes(content)
    return path


@contextmanager
def unfinished_folder(beside: Path, prefix: str = UNFINISHED) -> Iterator[Path]:
    """A temporary folder in `beside`, removed at the end; move out what should stay."""
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=beside))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name at the end, whole; what a process left of it that was killed is removed.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     with whole_folder(Path(name) / "deep" / "new") as folder:
    ...         _ = (folder / "a.txt").write_text("all of it")
    ...     [str(file.relative_to(name)) for file in Path(name).rglob("*.txt")]
    ['deep/new/a.txt']
    """
    missing = missing_folders(path.parent)
    with errors_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            prefix = f"{UNFINISHED}{path.name}-"
            for left in (*path.parent.glob(f"{glob.escape(prefix)}*"), *path.glob(f"{UNFINISHED}*")):
                _remove_left(left)
            with unfinished_folder(path.parent, prefix) as work, lock_folder(work):
                folder = work / path.name
                folder.mkdir()
                yield folder
                os.replace(folder, path)
        finally:
            remove_empty(missing)


def _remove_left(folder: Path) -> None:
    """Remove what a process left that was killed; what one is at work in stays."""
    if not folder.is_dir():
        return
    with lock_folder(folder) as ours:
        left = list(folder.iterdir()) if ours else []
        for entry in left:
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
    remove_empty([folder])


def is_full(error: BaseException) -> bool:
    """Whether an error of the system or of SQLite says that there is no room left, or none allowed.

    >>> is_full(OSError(errno.ENOSPC, "No space left on device"))
    True
    """
    full = errno.ENOSPC, errno.EDQUOT, errno.EFBIG
    return getattr(error, "sqlite_errorcode", None) == _SQLITE_FULL or getattr(error, "errno", None) in full


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
