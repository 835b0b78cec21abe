"""Standard streams that a command can rely on: no output that is closed, full or unread ends its work.

A stream that is closed leads nowhere, as daemons have it. What cannot be written is given up, and the work goes on; at
the end it is known why. Otherwise a copy that was paid for would end as an error of its last line.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

STDOUT, STDERR = 1, 2


class GuardedOutput(io.RawIOBase):
    """A descriptor to write to; after the first failure, which is kept, what is written goes nowhere."""

    def __init__(self, descriptor: int):
        self._descriptor = descriptor
        self.failure: OSError | None = None

    @property
    def lost(self) -> OSError | None:
        """Why something is lost that somebody wanted to read: a reader who has closed the pipe had enough."""
        read_enough = self.failure is not None and self.failure.errno == errno.EPIPE
        return None if read_enough else self.failure

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether a terminal shows it."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """That it is for writing."""
        return True

    def write(self, content: Any, /) -> int:
        """Write bytes, or give them up."""
        if self.failure is None:
            try:
                return self._written(content)
            except OSError as error:
                self.failure = error
        return memoryview(content).nbytes

    def _written(self, content: Any) -> int:
        while True:
            try:
                return os.write(self._descriptor, content)
            except BlockingIOError:  # it is shared with somebody who does not wait
                select.select([], [self._descriptor], [])


@contextmanager
def standard_streams() -> Iterator[GuardedOutput | None]:
    """Within, nothing that is printed fails; gives what is behind standard output, if that is this process's own.

    Descriptors that are closed are opened on nothing first: a file of ours would be given their number, and be written
    to by whatever prints.
    """
    closed = _open_closed()
    before = sys.stdout, sys.stderr
    outputs = {STDOUT: _own(sys.stdout, sys.__stdout__, STDOUT), STDERR: _own(sys.stderr, sys.__stderr__, STDERR)}
    with ExitStack() as streams:
        for number, output in outputs.items():
            if output is not None:
                stream = streams.enter_context(_text(output, before[number - 1]))
                setattr(sys, "stdout" if number == STDOUT else "stderr", stream)
        if STDOUT in closed:
            print("ectype: warning: standard output is closed: what it would show is lost", file=sys.stderr)
        try:
            yield outputs[STDOUT]
        finally:
            sys.stdout, sys.stderr = before


def _open_closed() -> list[int]:
    """Open what is closed of standard input, output and errors; gives which these were."""
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            closed.append(number)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free
    return closed


def _own(stream: TextIO | None, first: TextIO | None, descriptor: int) -> GuardedOutput | None:
    """A stream of this process itself, rather than a test's or a notebook's; a console of Windows takes no bytes."""
    buffer = getattr(stream, "buffer", None)
    if stream is first and (stream is None or isinstance(getattr(buffer, "raw", buffer), io.FileIO)):
        return GuardedOutput(descriptor)
    return None


@contextmanager
def _text(output: GuardedOutput, before: TextIO | None) -> Iterator[TextIO]:
    """Text as the stream before had it; a character that its encoding lacks is spelled out."""
    if before is not None:
        before.flush()
    encoding = "utf-8" if before is None else before.encoding
    stream = io.TextIOWrapper(io.BufferedWriter(output), encoding, "backslashreplace", line_buffering=True)
    try:
        yield stream
    finally:
        stream.flush()
