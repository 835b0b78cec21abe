"""The same sweep on one Dask worker and on two, of this machine, each with a core of its own.

The units are copies of iris' original by Algorithm 5 at one threshold, one for each repetition. The time is that of the
units, from the first that is submitted to the last that is on disk, with the imports of each worker;
the cluster's start is shown beside it. Rounds alternate, and the ratio is that of the fastest of each. `busy` is the
share of the workers' time that went into copies. Whatever else the machine does at the time spoils the ratio: both
cores must be free.

    python benchmarks/sweep.py [--units 16] [--epochs 300] [--rounds 2] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from time import perf_counter

from ectype.errors import EctypeError
from ectype.workers._dask import DaskCluster
from ectype_paper.store import open_store
from ectype_paper.sweep import PlannedUnit, outcomes, plan, units
from ectype_paper.units import paper_settings, run

# What the project asks for.
BAR = 1.7


def measure(workers: int, options: argparse.Namespace) -> dict[str, float]:
    """The seconds to start a cluster, and to run all units on it."""
    settings = paper_settings(options.iterations, options.epochs)
    wanted = units(["iris"], ["sequential"], [1e-6], options.units, "normal")
    clock = perf_counter()
    with tempfile.TemporaryDirectory() as folder, open_store(folder, settings) as store:
        planned: list[PlannedUnit] = plan(wanted, store, settings, None)
        with DaskCluster(workers) as engine:
            started = perf_counter()
            for outcome in outcomes(planned, engine, run):
                if outcome.record is None:
                    sys.exit(f"sweep.py: {outcome.unit}: {outcome.error}")
                store.add(outcome.record)
            seconds = perf_counter() - started
            busy = sum(record["seconds"] for record in store.records.values()) / (workers * seconds)
            return {"workers": workers, "start": started - clock, "seconds": seconds, "busy": busy}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Two Dask workers against one.")
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=300, help="per iteration")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = parse()
    try:
        rows = [measure(workers, options) for _ in range(options.rounds) for workers in (1, 2)]
    except EctypeError as error:
        sys.exit(f"sweep.py: {error}")
    one, two = (min(row["seconds"] for row in rows if row["workers"] == workers) for workers in (1, 2))
    if options.json:
        print(json.dumps({"rows": rows, "ratio": one / two}))
        return
    print(f"{'workers':>7}{'start':>8}{'seconds':>9}{'busy':>7}")
    for row in rows:
        print(f"{row['workers']:>7}{row['start']:>8.1f}{row['seconds']:>9.1f}{row['busy']:>7.0%}")
    print(f"\ntwo workers are {one / two:.2f} times as fast ({'reaches' if one / two >= BAR else 'MISSES'} {BAR})")


if __name__ == "__main__":
    main()
