"""What the ledger costs: an original asked directly and through a ledger, alternating, in one process.

The original takes a millisecond per request: asleep (as one on another machine), or at work (as one in this process).

    python benchmarks/ledger.py
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import numpy as np

from ectype.ledger import Ledger, Purpose
from ectype.original import Original
from ectype.queries import Queries
from ectype.space import Space

SECONDS = 1e-3


def asleep(rows: np.ndarray) -> np.ndarray:
    clock = perf_counter()
    labels = rows[:, 0] > 0
    sleep(max(0.0, SECONDS - (perf_counter() - clock)))
    return labels


def at_work(rows: np.ndarray) -> np.ndarray:
    clock = perf_counter()
    while perf_counter() - clock < SECONDS:
        labels = rows @ rows[0] > 0
    return labels


def directly(original: Original, space: Space, rows: np.ndarray) -> float:
    queries = Queries(original, space, {Purpose.TRAINING: len(rows)})
    clock = perf_counter()
    queries.query_labels(Purpose.TRAINING, rows)
    return perf_counter() - clock


def through_a_ledger(original: Original, space: Space, rows: np.ndarray) -> float:
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite", {}, space) as ledger:
        queries = Queries(original, space, {Purpose.TRAINING: len(rows)}, ledger)
        clock = perf_counter()
        queries.query_labels(Purpose.TRAINING, rows)
        return perf_counter() - clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--request-rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    space = Space.normal(options.columns)
    rows = space.sample(options.rows, np.random.default_rng(0))
    print(f"{'original':<10} {'direct ms':>10} {'ledger ms':>10} {'ratio':>7} {'best/best':>10}")
    originals: list[Callable[[np.ndarray], np.ndarray]] = [asleep, at_work]
    for predict in originals:
        original = Original(predict, request_rows=options.request_rows)
        pairs = [
            (directly(original, space, rows), through_a_ledger(original, space, rows)) for _ in range(options.rounds)
        ]
        direct, ledger = zip(*pairs, strict=True)
        ratio = median(b / a for a, b in pairs)
        print(
            f"{predict.__name__:<10} {1e3 * median(direct):>10.1f} {1e3 * median(ledger):>10.1f} {ratio:>7.3f} "
            f"{min(ledger) / min(direct):>10.3f}"
        )


if __name__ == "__main__":
    main()
