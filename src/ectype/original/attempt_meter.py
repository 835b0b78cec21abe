"""Who pays for a request: whoever asks an original may want to know of every attempt before it is sent.

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
        """The request is about to be sent, again perhaps; what this raises keeps it from that."""

    def failed(self, found: str, reached: bool) -> None:
        """An attempt came to nothing; `reached` is whether its rows may have arrived."""


class NullMeter:
    """A toll that nobody pays."""

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
    """A toll behind a gate: an attempt that was counted waits there before it is sent."""

    def __init__(self, toll: AttemptMeter, gate: AttemptGate, n: int):
        self._toll, self._gate, self._n, self._inside = toll, gate, n, False

    def sending(self) -> None:
        """Count an attempt and wait for its turn; one that is turned away was not sent."""
        self._toll.sending()
        try:
            self._gate.enter(self._n)
        except OriginalError as error:
            self._toll.failed(str(error.found), reached=False)
            raise
        self._inside = True

    def failed(self, found: str, reached: bool) -> None:
        """An attempt came to nothing."""
        self.leave()
        self._toll.failed(found, reached)

    def leave(self) -> None:
        """The attempt is over, if there was one."""
        if self._inside:
            self._inside = False
            self._gate.leave(self._n)


# `predict` takes rows and nothing else, whoever wrote it: the toll comes to those that ask for it.
_CURRENT: ContextVar[AttemptMeter] = ContextVar("ectype_toll", default=FREE)


@contextmanager
def metered_by(toll: AttemptMeter) -> Iterator[None]:
    """Within, in this thread, attempts are counted by this toll."""
    token = _CURRENT.set(toll)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> AttemptMeter:
    """The toll of the request that this thread is about to send."""
    return _CURRENT.get()
