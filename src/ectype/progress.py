"""A progress bar on a terminal or in a notebook; plain lines, or nothing, elsewhere.

Long work runs inside `show_progress`. Code further down reports what it does through `report_activity` and
`report_answered`, as a library writes to a log: it need not know whether a bar is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from html import escape
from importlib import import_module
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any

from ectype._common.formatting import printable

# Seconds between plain lines in a log: of steps that were done, and of what is being done meanwhile.
EVERY, MEANWHILE = 2.0, 10.0
# Seconds between two pictures in a notebook.
NOTEBOOK = 0.2
# The width of a bar.
BAR = 16
# What steps are.
ITERATIONS, ROWS, COPIES = "iteration", "rows", "copy"


class ProgressTracker:
    """So many steps done of a total, what came of the last, and what is being done now."""

    def __init__(self, title: str, total: int, draw: Callable[[ProgressTracker], None], step: str = ""):
        self.title, self.total, self.step, self._draw = title, total, step, draw
        self.done, self.note, self.now, self.clock = 0, "", "", perf_counter()
        self._before = 0

    def __call__(self, done: int, note: str = "") -> None:
        """Show that so many steps are done."""
        self.done, self.note, self.now, self._before = done, note, "", done
        self._draw(self)

    def doing(self, what: str) -> None:
        """Show what is being done."""
        self.now = what
        self._draw(self)

    def answered(self, n: int, of: int) -> None:
        """Show that so many rows of those asked together are answered."""
        if self.step == ROWS:
            self.done = self._before + n
            self._draw(self)
        else:
            self.doing(f"{n} of {of} rows answered" if n < of else "")

    @property
    def words(self) -> str:
        """What came of the last step, and what is being done."""
        return printable("; ".join(filter(None, (self.note, self.now))))

    @property
    def seconds(self) -> float:
        """Since it began."""
        return perf_counter() - self.clock


_watched: ContextVar[ProgressTracker | None] = ContextVar("watched", default=None)


def report_activity(what: str) -> None:
    """Say what is being done, to whoever watches."""
    if (watch := _watched.get()) is not None:
        watch.doing(what)


def report_answered(n: int, of: int) -> None:
    """Say how many rows of those asked together are answered, to whoever watches."""
    if (watch := _watched.get()) is not None:
        watch.answered(n, of)


@contextmanager
def show_progress(
    title: str, total: int, *, wanted: bool = True, log: bool = False, step: str = ""
) -> Iterator[ProgressTracker]:
    """Show how far the work inside is, of so many steps in all.

    On a terminal and in a notebook it is a bar; elsewhere nothing, or with `log` a plain line now and then. Inside work
    that is shown already, nothing more is. If the steps are `ROWS`, they are those that the original answers.

    >>> with show_progress("copy", 3) as tell:  # doctests are no terminal
    ...     tell(1, "100 queries")
    """
    if not wanted or _watched.get() is not None:
        yield ProgressTracker(title, total, lambda watch: None, step)
        return
    with _screen(title, total, log, step) as draw:
        watch = ProgressTracker(title, total, draw, step)
        token = _watched.set(watch)
        try:
            yield watch
        finally:
            _watched.reset(token)


@contextmanager
def _screen(title: str, total: int, log: bool, step: str) -> Iterator[Callable[[ProgressTracker], None]]:
    """Where it is drawn."""
    if _in_notebook():
        yield _notebook()
    elif sys.stderr.isatty():
        with _terminal(title, total, step) as draw:
            yield draw
    else:
        with _log() if log else nullcontext(lambda watch: None) as draw:
            yield draw


@contextmanager
def _terminal(title: str, total: int, step: str) -> Iterator[Callable[[ProgressTracker], None]]:
    from rich.console import Console
    from rich.errors import LiveError
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    alike = step in (ROWS, COPIES)  # so that what is left can be told from what is done
    columns = (
        SpinnerColumn(),  # the only thing that moves while a single long step is done
        TextColumn("{task.description}"),
        BarColumn(bar_width=BAR, table_column=Column(min_width=BAR)),
        MofNCompleteColumn(table_column=Column(min_width=1 + 2 * len(str(total)))),
        TimeElapsedColumn(table_column=Column(min_width=len("0:00:00"))),
        *((TextColumn("left"), TimeRemainingColumn()) if alike else ()),
        TextColumn("{task.fields[words]}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
    )
    bar = Progress(*columns, console=Console(stderr=True), expand=True)
    try:
        bar.start()
    except LiveError:  # the user has a bar of their own
        yield lambda watch: None
        return
    try:
        task = bar.add_task(printable(title), total=total, words="")
        yield lambda watch: bar.update(task, completed=watch.done, words=watch.words)
    finally:
        bar.stop()


@contextmanager
def _log() -> Iterator[Callable[[ProgressTracker], None]]:
    """Plain lines: as steps are done, and what is being done where one takes long."""
    last, said, latest = perf_counter(), "", list[ProgressTracker]()
    turn, ended = Lock(), Event()

    def draw(watch: ProgressTracker) -> None:
        nonlocal last, said
        with turn:
            latest[:] = [watch]
            since = perf_counter() - last
            line = ", ".join(filter(None, (f"{watch.title}: {watch.step} {watch.done}/{watch.total}", watch.words)))
            due = since >= (MEANWHILE if watch.now else EVERY) or (watch.done == watch.total and not watch.now)
            if due and line != said:
                last, said = perf_counter(), line
                print(line, file=sys.stderr, flush=True)

    def remind() -> None:
        while not ended.wait(MEANWHILE):
            for watch in [one for one in latest if one.now]:
                draw(watch)

    with suppress(RuntimeError):  # no further thread is allowed: then long steps are silent
        Thread(target=remind, name="ectype-progress", daemon=True).start()
    try:
        yield draw
    finally:
        ended.set()


def _in_notebook() -> bool:
    """Whether this is a kernel of Jupyter's, not only its shell on a terminal."""
    found = sys.modules.get("IPython")
    return found is not None and hasattr(found.get_ipython(), "kernel")


def _notebook() -> Callable[[ProgressTracker], None]:
    display: Any = import_module("IPython.display").display  # of the notebook that this runs in
    handle: Any = None
    last = 0.0

    def draw(watch: ProgressTracker) -> None:
        nonlocal handle, last
        if perf_counter() - last < NOTEBOOK and watch.done < watch.total:
            return
        last = perf_counter()
        said = f"{watch.title} {watch.done}/{watch.total}, {watch.seconds:.0f} s  {watch.words}"
        picture = f'<progress value="{watch.done}" max="{watch.total}"></progress> {escape(said)}'
        bundle = {"text/plain": said, "text/html": picture}
        if handle is None:
            handle = display(bundle, raw=True, display_id=True)
        else:
            handle.update(bundle, raw=True)

    return draw
