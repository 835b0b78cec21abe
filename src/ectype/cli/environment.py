"""What a system can lack while a command runs: memory, processes, open files, a directory to work in."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from ectype._common.atomic_io import is_full
from ectype._common.portable import address_space_mb
from ectype.cli.terminal import FINISHED
from ectype.errors import DirectoryError, EctypeError, OriginalError, WriteError

# The least address space to begin with, in MB. With less, libraries of linear algebra wait for more without an end, or
# end the process, and that with the exit code of a target that was missed: after the answers are paid for.
LEAST_MB = 512

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


def check_surroundings() -> None:
    """Refuse to work in a directory that is gone, or with too little memory, before anything is asked."""
    most = address_space_mb()
    if most is not None and most < LEAST_MB:
        hint = "allow it more (ulimit -v), and run the same command again"
        raise WriteError("the system", f"at least {LEAST_MB} MB of address space", f"{most:.0f} MB", hint)
    try:
        os.getcwd()
    except OSError as error:
        hint = "change to another directory, and run the same command again"
        raise DirectoryError("the working directory", "one that is there", error.strerror, hint) from error


def shortage(error: BaseException) -> EctypeError | None:
    """What the system lacked, if that is why the command ended; None for anything else."""
    for one in _causes(error):
        lacking = _lacking(one)
        if lacking is not None:
            return _short_of(lacking, one)
        if isinstance(one, OSError) and (is_full(one) or one.errno in _REFUSES):
            hint = f"make room, or see who may write there; {FINISHED}"
            return WriteError(str(one.filename or "the system"), "a file that can be used", one.strerror, hint)
    return None


def rather_shortage(error: EctypeError) -> EctypeError:
    """What is to be said of an error: that the system lacks something, rather than what that kept from working."""
    if not isinstance(error, OriginalError):  # what an original lacks may be elsewhere
        for one in _causes(error.__cause__):
            if isinstance(one, OSError) and one.errno in _LACKS and one.errno != errno.EAGAIN:  # a lock that is held
                return _short_of(_LACKS[one.errno], one)
    return error


def _short_of(lacking: str, error: BaseException) -> EctypeError:
    found = f"{type(error).__name__}: {error}"[:200]
    return WriteError("the system", lacking, found, f"{_RAISE[lacking]}; {FINISHED}")


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
