"""What operating systems do in different ways, or not at all: locks of folders, files of one's own, peak memory.

Modules that only some of them have are imported here, when they are needed; Windows has none of them.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ectype.errors import SettingError

# The prefix of temporary files and folders, until they are complete.
UNFINISHED = ".unfinished-"
# The file that is locked where folders cannot be.
LOCK = f"{UNFINISHED}lock"


# What a system says of a lock that somebody else holds; anything else is that there are no locks.
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@contextmanager
def lock_folder(folder: Path) -> Iterator[bool | None]:
    """Hold the lock of a folder, if nobody else does; the system releases it when a process ends, however it does.

    Gives None where there are no locks, as on some network file systems.

    >>> with lock_folder(Path(".")) as ours, lock_folder(Path(".")) as again:
    ...     print(ours, again)
    True False
    """
    fcntl, msvcrt = _module("fcntl"), _module("msvcrt")
    if fcntl is not None:
        with _open(folder, os.O_RDONLY) as descriptor:
            yield _locks(lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB))
    elif msvcrt is not None:
        ours: bool | None = False
        try:
            with _open(folder / LOCK, os.O_RDWR | os.O_CREAT) as descriptor:
                ours = _locks(lambda: msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1))
                yield ours
        finally:
            if ours is not False:
                with suppress(OSError):  # somebody else has it meanwhile
                    (folder / LOCK).unlink()
    else:
        yield None


@contextmanager
def _open(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locks(lock: Callable[[], None]) -> bool | None:
    try:
        lock()
    except OSError as error:
        return False if error.errno in _HELD else None
    return True


def is_folder(path: Path) -> bool:
    """Whether this is a folder itself, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def is_ours(path: Path) -> bool:
    """Whether a file is this user's, where the system can tell."""
    return not hasattr(os, "geteuid") or os.lstat(path).st_uid == os.geteuid()


def open_without_links(path: Path, flags: int) -> int:
    """Open a file that is made if need be; a link of that name is not followed, where the system can tell."""
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o666)


def write_at_start(descriptor: int, content: bytes) -> None:
    """Write at the beginning of a file, at once where the system can."""
    if hasattr(os, "pwrite"):
        os.pwrite(descriptor, content, 0)
    else:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, content)


def sync_directory(folder: Path) -> None:
    """Have the names in a folder reach the disk, where it can be opened for that.

    Windows does so by itself, and opens no folders; some network file systems take no such request.
    """
    if _module("fcntl") is None:
        return
    with suppress(PermissionError), _open(folder, os.O_RDONLY) as descriptor:
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise


def peak_mb() -> float | None:
    """The most memory this process has held so far, in MB; None where the system does not say."""
    resource = _module("resource")
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak / (2**20 if sys.platform == "darwin" else 2**10))


def address_space_mb() -> float | None:
    """The address space that this process may have, in MB; None where there is no limit."""
    resource = _module("resource")
    most = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if resource is None or most == resource.RLIM_INFINITY else float(most / 2**20)


def require_module(name: str, what: str, instead: str) -> None:
    """Refuse what takes a module that this system lacks."""
    if _module(name) is None:
        system = {"win32": "Windows"}.get(sys.platform, sys.platform)
        raise SettingError(what, "Linux or macOS, where it works", system, instead)


def _module(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError:
        return None
