"""What a system can lack while a command runs: memory, processes, open files, a directory to work in."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from understudy.cli.terminal import FINISHED
from understudy.errors import DirectoryError, UnderstudyError, UnwrittenError
from understudy.files import is_full

MEMORY, FILES, PROCESSES = "more memory", "more open files", "another process or thread"
# What a system says when it gives no more of something.
_LACKS = {errno.ENOMEM: MEMORY, errno.EMFILE: FILES, errno.ENFILE: FILES, errno.EAGAIN: PROCESSES}
_RAISE = {
    MEMORY: "free some, or allow it more",
    FILES: "allow it more (ulimit -n)",
    PROCESSES: "end others, or allow it more (ulimit -u)",
}
# What libraries say instead, in errors of kinds that tell nothing.
_SAID = {
    "can't start new thread": PROCESSES,
    "cannot allocate memory": MEMORY,
    "failed to map segment": MEMORY,
    "unable to allocate": MEMORY,
    "out of memory": MEMORY,
    "bad_alloc": MEMORY,
    "too many open files": FILES,
    "resource temporarily unavailable": PROCESSES,
}
# A file system that refuses, whatever the file.
_REFUSES = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO)


def check_directory() -> None:
    """Refuse to work in a directory that is gone, before anything is asked."""
    try:
        os.getcwd()
    except OSError as error:
        hint = "change to another directory, and run the same command again"
        raise DirectoryError("the working directory", "one that is there", error.strerror, hint) from error


def shortage(error: BaseException) -> UnderstudyError | None:
    """What the system lacked, if that is why the command ended; None for anything else."""
    for one in _causes(error):
        lacking = _lacking(one)
        if lacking is not None:
            hint = f"{_RAISE[lacking]}; {FINISHED}"
            return UnwrittenError("the system", lacking, f"{type(one).__name__}: {one}"[:200], hint)
        if isinstance(one, OSError) and (is_full(one) or one.errno in _REFUSES):
            hint = f"make room, or see who may write there; {FINISHED}"
            return UnwrittenError(str(one.filename or "the system"), "a file that can be used", one.strerror, hint)
    return None


def _lacking(error: BaseException) -> str | None:
    if isinstance(error, MemoryError):
        return MEMORY
    if isinstance(error, OSError) and error.errno in _LACKS:
        return _LACKS[error.errno]
    return next((lacking for said, lacking in _SAID.items() if said in str(error).lower()), None)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from or after."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
