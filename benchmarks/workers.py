"""What benchmarks over many problems share: worker processes, each pinned to a core, and where the problems are."""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

# One core per worker: parts of the work handed to another thread take longer than doing them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

FOLDER = Path(__file__).parents[2] / "shared" / "uci"


def each(call: Callable[..., Any], items: Sequence[Any], workers: int) -> Iterator[Any]:
    """What the call gives for every item, in some worker process, as they finish; with no worker, in this one."""
    if not workers:
        yield from map(call, items)
        return
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    cores: Any = context.Queue()
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    for worker in range(workers):
        cores.put(available[worker % len(available)])
    with ProcessPoolExecutor(workers, context, pin, (cores,)) as pool:
        try:
            for done in as_completed([pool.submit(call, item) for item in items]):
                yield done.result()
        finally:  # after an error, do not wait for what has not begun
            pool.shutdown(cancel_futures=True)


def pin(cores: Any) -> None:
    core = cores.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def problem_options(parser: argparse.ArgumentParser) -> None:
    """Which problems to take, and how many at a time."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="<name>.csv.gz files and their index.csv")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some problems; all of the folder by default")
    parser.add_argument("--half", choices=("even", "odd"), help="every second problem: from the first or the second on")
    parser.add_argument("--workers", type=int, default=2, help="processes, each pinned to a core; 0: this one")


def chosen_problems(options: argparse.Namespace) -> list[str]:
    """The problems that these options name."""
    from ectype_paper import FAMILY_OF, names

    problems = options.only or [name for name in names(options.folder) if name in FAMILY_OF]
    return problems[options.half == "odd" :: 2 if options.half else 1]
