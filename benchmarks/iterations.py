"""What an iteration costs late in a long run beside an early one, and what choosing rows costs beside training.

One run of 1000 iterations of 100 queries each, with and without a ledger; the original is a ball
that answers at once. Milliseconds of work, medians of tenths of the run: `asking` is drawing
candidates, choosing among them and asking, `training` is training, `other` is selecting points and all else. Selecting
looks at every point that is kept: by default up to 5000, with --max-kept no more than that.

    python benchmarks/iterations.py [--json] [--iterations 1000] [--inputs 2] [--draw margin] [--max-kept 600]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core: work that is handed around is not work
PARTS = ("asking", "training", "other", "all")
TENTHS = 10
# The most points kept, if --max-kept does not say so.
MOST = 5000


def measure(options: argparse.Namespace, durable: bool) -> list[dict[str, float]]:
    """Seconds of work for every iteration, by part."""
    import ectype as ec
    from ectype.algorithm.training import Trainer
    from ectype.methods.asker import RoundAsker
    from ectype.plan.resolve import resolve
    from ectype.plan.settings import Settings
    from ectype.runs.api import build_job
    from ectype.runs.directory import open_run
    from ectype.runs.pipeline import run_rounds

    d = options.inputs
    spent = {"asking": 0.0, "training": 0.0}

    def timed(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            clock = process_time()
            found = call(*arguments)
            spent[part] = process_time() - clock
            return found

        return measured

    original = ec.Original(lambda rows: (rows**2).sum(axis=1) < d * 0.7, classes=[False, True])
    asked = Settings(iterations=options.iterations, certificate_n=0, repeat=0, draw=options.draw, delta=1e-300)
    job = build_job(original, ec.Space.normal(d), resolve(replace(asked, max_kept=options.max_kept or MOST)))
    rows = []
    with TemporaryDirectory() as folder, ExitStack() as stack:
        ledger = stack.enter_context(open_run(Path(folder) / "run", job.about, job.space)) if durable else None
        stack.enter_context(patch.object(RoundAsker, "ask", timed("asking", RoundAsker.ask)))
        stack.enter_context(patch.object(Trainer, "__call__", timed("training", Trainer.__call__)))
        clock = process_time()
        for _ in run_rounds(job, ledger):
            whole = process_time() - clock
            rows.append({**spent, "other": whole - sum(spent.values()), "all": whole})
            clock = process_time()
    return rows


def tenths(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """Medians of tenths of a run, in milliseconds."""
    size = max(1, len(rows) // TENTHS)
    parts = [rows[at : at + size] for at in range(0, size * TENTHS, size)]
    return {name: [round(1e3 * median(row[name] for row in part), 2) for part in parts if part] for name in PARTS}


def main() -> None:
    from ectype.plan.settings import DRAWS

    parser = argparse.ArgumentParser(description="What an iteration costs, early and late in a run.")
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--inputs", type=int, default=2, help="columns of the space")
    parser.add_argument("--draw", choices=DRAWS)
    parser.add_argument("--max-kept", type=int, metavar="N", help="the most points kept; 5000 if not given")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    if options.iterations < 2 * TENTHS:
        parser.error(f"--iterations must be at least {2 * TENTHS}")
    result: dict[str, Any] = {}
    for kind in ("memory", "ledger"):
        print(f"{options.iterations} iterations, answers kept in {kind}", file=sys.stderr, flush=True)
        found = tenths(measure(options, kind == "ledger"))
        result[kind] = {
            **found,
            "last_to_first_tenth": round(found["all"][-1] / found["all"][0], 3),
            "asking_to_training": round(median(found["asking"]) / median(found["training"]), 3),
        }
    print(json.dumps(result) if options.json else table(result))


def table(result: dict[str, Any]) -> str:
    """A line for each part of an iteration."""
    lines = ["ms of work, by tenth of the run"]
    for kind, found in result.items():
        for name in PARTS:
            lines.append(f"{kind:<8}{name:<10}" + "".join(f"{value:>8.1f}" for value in found[name]))
        lines.append(
            f"{kind}: the last tenth takes {found['last_to_first_tenth']:.2f} times the first; "
            f"asking takes {found['asking_to_training']:.2f} times what training does"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
