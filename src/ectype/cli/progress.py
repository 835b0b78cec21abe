"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING

from ectype.cli.terminal import Terminated
from ectype.progress import EVERY, ITERATIONS, show_progress
from ectype.runs.api import finish, progress_callback
from ectype.runs.result import Record, Result

if TYPE_CHECKING:
    from ectype.paper.sweep import UnitOutcome

    # Shows that so many units are done, the last of them, the seconds gone and those left.
    Tell = Callable[[int, UnitOutcome, float, float], None]


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


def watch(outcomes: Iterable[UnitOutcome], total: int, weight: float) -> Iterator[UnitOutcome]:
    """Pass on the outcomes of a sweep, showing how far it is; `weight` is that of all `total` units."""
    show = _tally_bar(total) if sys.stderr.isatty() else _tally_lines(total)
    done, clock = 0.0, perf_counter()
    with show as tell:
        for count, outcome in enumerate(outcomes, 1):
            done += outcome.weight
            spent = perf_counter() - clock
            tell(count, outcome, spent, spent * (weight - done) / done)
            yield outcome


@contextmanager
def _tally_lines(total: int) -> Iterator[Tell]:
    last = 0.0

    def tell(count: int, outcome: UnitOutcome, spent: float, left: float) -> None:
        nonlocal last
        if outcome.error or spent - last >= EVERY or count == total:
            last = spent
            line = f"{count}/{total} units, {_clock(spent)} gone, {_clock(left)} left: {_told(outcome)}"
            print(line, file=sys.stderr, flush=True)

    yield tell


@contextmanager
def _tally_bar(total: int) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left {task.fields[left]}  {task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("units", total=total, left="?", note="")

        def tell(count: int, outcome: UnitOutcome, spent: float, left: float) -> None:
            if outcome.error:
                progress.console.print(_told(outcome), markup=False)
            progress.update(task, completed=count, left=_clock(left), note=str(outcome.unit))

        yield tell


def _told(outcome: UnitOutcome) -> str:
    note = f"failed: {outcome.error}" if outcome.record is None else _measured(outcome.record)
    return f"{outcome.unit}, {note}"


def _measured(record: dict[str, object]) -> str:
    return f"accuracy {record['accuracy']:.4f}, fidelity {record['fidelity']:.4f}, {record['seconds']:.1f} s"


def _clock(seconds: float) -> str:
    """A time as people read it.

    >>> _clock(59.6), _clock(3725)
    ('1:00', '1:02:05')
    """
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
