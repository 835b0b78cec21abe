"""Hooks called around each attempt of a request, so that callers can count and cap them.

A gate is further out: many runs, in many processes, may have to share what an original's host allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from ectype.errors import OriginalError


class AttemptMeter(Protocol):
    """Counts the attempts of one request."""

    def sending(self) -> None:
        """Called before each attempt; an exception keeps it from being sent."""

    def failed(self, found: str, reached: bool) -> None:
        """Called after a failed attempt; `reached` is whether its rows may have arrived."""


class NullMeter:
    """A meter that counts nothing."""

    def sending(self) -> None:
        """Nothing is counted."""

    def failed(self, found: str, reached: bool) -> None:
        """Nothing is counted."""


FREE = NullMeter()


class AttemptGate(Protocol):
    """Lets requests pass, each at a time when it may be sent."""

    def enter(self, n: int) -> None:
        """Wait until a request of n rows may be sent; an error if it never may."""

    def leave(self, n: int) -> None:
        """Say that a request of n rows was answered, or came to nothing."""


class GatedMeter:
    """A meter behind a gate: an attempt that was counted waits there before it is sent."""

    def __init__(self, meter: AttemptMeter, gate: AttemptGate, n: int):
        self._meter, self._gate, self._n, self._inside = meter, gate, n, False

    def sending(self) -> None:
        """Count an attempt and wait for its turn; one that is turned away was not sent."""
        self._meter.sending()
        try:
            self._gate.enter(self._n)
        except OriginalError as error:
            self._meter.failed(str(error.found), reached=False)
            raise
        self._inside = True

    def failed(self, found: str, reached: bool) -> None:
        """An attempt came to nothing."""
        self.leave()
        self._meter.failed(found, reached)

    def leave(self) -> None:
        """The attempt is over, if there was one."""
        if self._inside:
            self._inside = False
            self._gate.leave(self._n)


# `predict` takes rows and nothing else, whoever wrote it: the meter comes to those that ask for it.
_CURRENT: ContextVar[AttemptMeter] = ContextVar("ectype_attempt_meter", default=FREE)


@contextmanager
def metered_by(meter: AttemptMeter) -> Iterator[None]:
    """Within, in this thread, attempts are counted by this meter."""
    token = _CURRENT.set(meter)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> AttemptMeter:
    """The meter of the request that this thread is about to send."""
    return _CURRENT.get()
