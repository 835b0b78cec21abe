"""Progress on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Generator
from time import perf_counter

from understudy.copying import finish
from understudy.result import Record, Result

# Seconds between plain lines where there is no terminal.
EVERY = 2.0


def follow(title: str, run: Generator[Record, None, Result], iterations: int) -> Result:
    """Consume a run, showing how far it is."""
    return (_bar if sys.stderr.isatty() else _lines)(title, run, iterations)


def _bar(title: str, run: Generator[Record, None, Result], iterations: int) -> Result:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),  # the only thing that moves while a single long round trains
        TextColumn("{task.description:<11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=iterations, note="")
        return finish(run, lambda record: progress.update(task, completed=record.iteration + 1, note=_note(record)))


def _lines(title: str, run: Generator[Record, None, Result], iterations: int) -> Result:
    last = perf_counter()

    def show(record: Record) -> None:
        nonlocal last
        if perf_counter() - last >= EVERY or record.iteration + 1 == iterations:
            last = perf_counter()
            at = f"iteration {record.iteration + 1}/{iterations}"
            print(f"{title}: {at}, {_note(record)}", file=sys.stderr, flush=True)

    return finish(run, show)


def _note(record: Record) -> str:
    known = "" if record.fidelity is None else f", fidelity {record.fidelity:.4f}"
    return f"{record.queries} queries, {record.kept} kept{known}"
