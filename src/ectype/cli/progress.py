"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import FrameType

from ectype.cli.terminal import Terminated
from ectype.progress import ITERATIONS, show_progress
from ectype.runs.api import finish, progress_callback
from ectype.runs.result import Record, Result


def follow(title: str, run: Generator[Record, None, Result], iterations: int, progress: bool = True) -> Result:
    """Consume a run, showing how far it is."""
    with heard() as check, show_progress(title, iterations, wanted=progress, log=True, step=ITERATIONS) as tell:
        show = progress_callback(tell)

        def checked(record: Record) -> None:
            check()
            show(record)

        return finish(run, checked)


@contextmanager
def heard() -> Iterator[Callable[[], None]]:
    """Within, Ctrl-C interrupts as ever, and SIGTERM likewise; where that was lost, the function given does once more.

    Python drops what is raised inside a destructor or a callback of its garbage collector, and a library that
    answers for an original may have either; JAX has.
    """
    pressed: type[KeyboardInterrupt] | None = None

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = Terminated if number == signal.SIGTERM else KeyboardInterrupt
        raise pressed

    def check() -> None:
        if pressed is not None:
            raise pressed

    usual: dict[int, Callable[[int, FrameType | None], object] | signal.Handlers] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
    }
    ours = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
    if threading.current_thread() is not threading.main_thread():
        ours = []  # somebody else's to handle
    for number in ours:
        signal.signal(number, hear)
    try:
        yield check
    finally:
        for number in ours:
            signal.signal(number, usual[number])
