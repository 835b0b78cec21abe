"""The interface of engines: slots that calls are made in, behind the futures of `concurrent.futures`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Answer = TypeVar("Answer")

# Read by libraries when they are first used: threads of several workers would wait for each other.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# A call whose worker died this often is given up.
MOST_DEATHS = 3
# Where nobody else can reach us.
LOOPBACK = "127.0.0.1"


class Engine(Protocol):
    """Slots that calls are made in; a context, so that nothing is left running."""

    def __enter__(self) -> Self:
        """Start what is needed."""

    def __exit__(self, *error: object) -> None:
        """End at once, without waiting for calls."""

    @property
    def slots(self) -> int:
        """How many calls may be under way now."""

    @property
    def address(self) -> str:
        """The address at which workers reach this process."""

    def submit(self, slot: int, call: Callable[..., Answer], *arguments: object) -> Future[Answer]:
        """Have a call made in a slot. The future of one whose worker died raises `BrokenExecutor`."""

    def renew(self, slot: int) -> None:
        """Replace a worker that died."""


def cores() -> list[int | None]:
    """The cores this process may use; where the system does not say, as many without a number."""
    if hasattr(os, "sched_getaffinity"):
        return [*sorted(os.sched_getaffinity(0))]
    return [None] * (os.cpu_count() or 1)


def pin(core: int | None) -> None:
    """Keep this thread, and those that it starts, to one core, where the system can."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, {core})


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep libraries to one thread: others have the remaining cores."""
    for name, value in ONE_THREAD.items():  # read when a library is first used, which may be now
        os.environ.setdefault(name, value)
    with _libraries(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(1)
def _libraries(modules: int) -> ThreadpoolController:
    """The libraries with threads in this process.

    The search takes as long as half of a check of a model. They come with modules: while there are as many of these,
    what was found stands.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
