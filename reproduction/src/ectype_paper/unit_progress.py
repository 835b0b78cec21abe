"""Progress of a sweep on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from ectype.progress import EVERY

if TYPE_CHECKING:
    from ectype_paper.sweep import UnitOutcome

    # Shows that so many units are done, the last of them, the seconds gone and those left.
    Tell = Callable[[int, UnitOutcome, float, float], None]


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
