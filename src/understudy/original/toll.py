"""Who pays for a request: whoever asks an original may want to know of every attempt before it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Toll(Protocol):
    """Counts the attempts of one request."""

    def sending(self) -> None:
        """The request is about to be sent, again perhaps; what this raises keeps it from that."""

    def failed(self, found: str, reached: bool) -> None:
        """An attempt came to nothing; `reached` is whether its rows may have arrived."""


class Free:
    """A toll that nobody pays."""

    def sending(self) -> None:
        """Nothing is counted."""

    def failed(self, found: str, reached: bool) -> None:
        """Nothing is counted."""


FREE = Free()
# `predict` takes rows and nothing else, whoever wrote it: the toll comes to those that ask for it.
_CURRENT: ContextVar[Toll] = ContextVar("understudy_toll", default=FREE)


@contextmanager
def charged_to(toll: Toll) -> Iterator[None]:
    """Within, in this thread, attempts are counted by this toll."""
    token = _CURRENT.set(toll)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Toll:
    """The toll of the request that this thread is about to send."""
    return _CURRENT.get()
