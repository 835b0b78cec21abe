"""Run a subprocess with limits on time and output."""

from __future__ import annotations

import contextlib
import math
import os
import select
import selectors
import signal
import subprocess
from time import monotonic
from typing import IO, cast

from ectype._common import validation

# Scores of a thousand classes for a thousand rows are a third of it; a program that goes on printing is stopped there.
MOST_BYTES = 2**26
# What is kept of what a program says about itself.
LAST_WORDS = 4096
# Eleven days: more than anyone waits, and less than what timers of the operating system can count.
MOST_SECONDS = 1e6


def patience(timeout: object) -> float:
    """The seconds until a request is given up, if they are that.

    >>> patience(60)
    60.0
    """
    expected = f"a number of seconds above 0 and below {MOST_SECONDS:g}"
    return validation.number("timeout", timeout, expected, math.nextafter(0, 1), MOST_SECONDS)


def ending(code: int | None) -> str:
    """How a process ended, in words.

    >>> ending(3), ending(-9)
    ('exit code 3', 'SIGKILL')
    """
    if code is None or code >= 0:
        return f"exit code {code}"
    return {sign.value: sign.name for sign in signal.Signals}.get(-code, f"signal {-code}")


def brief(text: str, most: int = 400) -> str:
    """A message in one line, without its middle if it is long.

    >>> brief("one line\\n and  another")
    'one line and another'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most // 2]} ... {line[-most // 2 :]}"


class EndlessError(Exception):
    """A program printed more than `MOST_BYTES`."""


def run(arguments: list[str], given: bytes, seconds: float) -> tuple[bytes, bytes, int]:
    """A program's standard output, standard error and exit code. TimeoutError if it takes too long."""
    pipe = subprocess.PIPE
    # A session of its own, so that whatever it starts can be ended with it.
    with subprocess.Popen(
        arguments, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
    ) as process:
        deadline = monotonic() + seconds
        try:
            out, said = _exchange(process, given, deadline)
            code = process.wait(max(0.0, deadline - monotonic()))
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError from error
            raise
    return out, said, code


def _exchange(process: subprocess.Popen[bytes], given: bytes, deadline: float) -> tuple[bytes, bytes]:
    """Write and read as the program is ready for it: no deadlock where both pipes are full."""
    out, said, left = bytearray(), bytearray(), memoryview(given)
    with selectors.DefaultSelector() as ready:
        ready.register(cast(IO[bytes], process.stdin), selectors.EVENT_WRITE)
        ready.register(cast(IO[bytes], process.stdout), selectors.EVENT_READ, out)
        ready.register(cast(IO[bytes], process.stderr), selectors.EVENT_READ, said)
        while ready.get_map():
            if (remaining := deadline - monotonic()) <= 0:
                raise TimeoutError
            for key, _ in ready.select(remaining):
                if key.data is None:
                    left = _write(key.fd, left)
                    done = not left
                else:
                    done = _read(key.fd, key.data)
                if done:
                    ready.unregister(key.fileobj)
                    cast(IO[bytes], key.fileobj).close()
            if len(out) > MOST_BYTES:
                raise EndlessError
            del said[:-LAST_WORDS]
    return bytes(out), bytes(said)


def _write(pipe: int, left: memoryview) -> memoryview:
    """Write as much as a ready pipe takes; gives the rest."""
    try:
        return left[os.write(pipe, left[: select.PIPE_BUF]) :]
    except BrokenPipeError:  # it ended, or needs no more
        return left[:0]


def _read(pipe: int, into: bytearray) -> bool:
    """Read what there is; whether that was the end."""
    chunk = os.read(pipe, 65536)
    into += chunk
    return not chunk
