"""Fidelity by number of queries, for every way of choosing what to ask.

Each policy gets a run of its own for each budget, which decides how many points are kept and how long a round trains.
`one-shot` is a network trained once on as many random rows. Fidelity is measured on 5000 fresh rows of the space that
nothing has seen; toys live in N(0, 1), the paper's UCI problems in the space learned from their unlabelled rows.

    python benchmarks/queries.py [--half odd] [--problems iris spirals] [--every 2] [--json]
        [--figure research/queries.svg]
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from charts import by_answers
from subjects import subject
from workers import chosen_problems, each, problem_options

BUDGETS = (100, 200, 500, 1000, 2000, 3000, 5000, 10_000)
FRESH = 5000
# What the project asks for: the fidelity of so many random queries, from at most half as many.
SINGLE, ENOUGH = 3000, 1500

Row = dict[str, Any]


def run(name: str, options: argparse.Namespace) -> Row:
    """One problem: its fidelity by policy and budget."""
    import numpy as np

    import ectype as ec
    from ectype.errors import EctypeWarning

    warnings.simplefilter("ignore", EctypeWarning)  # some originals say the same to all; the table shows it
    original, space, *_ = subject(name, options.folder)
    fresh = space.sample(FRESH, np.random.default_rng([options.seed, 99]))
    answers = original.predict(fresh)

    def fidelity(budget: int, **settings: Any) -> float:
        copied = ec.copy_classifier(
            original, space, budget=budget, certificate_n=0, repeat=0, seed=options.seed, **settings
        )
        return float((copied.copy.predict(fresh) == answers).mean())

    found = {"one-shot": {n: fidelity(n, method="one-shot") for n in sorted({*options.budgets, SINGLE})}}
    for draw in options.draws:
        found[draw] = {n: fidelity(n, draw=draw, **options.options) for n in options.budgets}
    bar = found["one-shot"][SINGLE]
    return {"problem": name, "fidelity": found, "needed": {draw: needed(found[draw], bar) for draw in options.draws}}


def needed(curve: dict[int, float], bar: float) -> float | None:
    """The queries at which a curve first reaches the bar, on the line between two budgets; nothing if it never does."""
    before: tuple[int, float] | None = None
    for n, value in curve.items():
        if value >= bar:
            if before is None:
                return float(n)
            share = (bar - before[1]) / (value - before[1])
            return round(before[0] + share * (n - before[0]), 1)
        before = n, value
    return None


def summary(rows: list[Row]) -> dict[str, Any]:
    """Means and medians over the problems, and the queries needed."""
    curves = rows[0]["fidelity"]
    means = {
        kind: {n: round(fmean(row["fidelity"][kind][n] for row in rows), 4) for n in curve}
        for kind, curve in curves.items()
    }
    medians = {
        kind: {n: round(median(row["fidelity"][kind][n] for row in rows), 4) for n in curve}
        for kind, curve in curves.items()
    }
    wanted = {
        draw: median(float("inf") if row["needed"][draw] is None else row["needed"][draw] for row in rows)
        for draw in rows[0]["needed"]
    }
    bar = means["one-shot"][SINGLE]
    return {
        "problems": len(rows),
        "mean": means,
        "median": medians,
        "needed_median": {draw: value if value < float("inf") else None for draw, value in wanted.items()},
        "never": {draw: sum(row["needed"][draw] is None for row in rows) for draw in wanted},
        "needed_by_mean": {draw: needed(means[draw], bar) for draw in wanted},
        "bar": bar,
    }


def table(found: dict[str, Any]) -> str:
    """Mean fidelity by policy and budget, and how many queries stand for 3000 random ones."""
    budgets = sorted({n for curve in found["mean"].values() for n in curve})
    lines = [f"{'mean of ' + str(found['problems']):<12}" + "".join(f"{n:>8}" for n in budgets) + "  needed   by mean"]
    for kind, curve in found["mean"].items():
        numbers = "".join(f"{curve[n]:>8.4f}" if n in curve else f"{'':>8}" for n in budgets)
        line = f"{kind:<12}{numbers}"
        if kind in found["needed_median"]:
            line += f"{_count(found['needed_median'][kind]):>8}{_count(found['needed_by_mean'][kind]):>10}"
        lines.append(line)
    lines.append(f"needed: queries that reach what {SINGLE} random ones in a single pass do, the median of problems")
    best = {draw: value for draw, value in found["needed_median"].items() if value is not None}
    for draw, value in best.items():
        verdict = "at most" if value <= ENOUGH else "MORE than"
        lines.append(f"  {draw}: {verdict} {ENOUGH}; never within {max(found['mean'][draw])} on {found['never'][draw]}")
    return "\n".join(lines)


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def draw_figure(found: dict[str, Any], path: Path) -> None:
    """Mean fidelity against queries, a line for each policy."""
    by_answers(found["mean"], path, "queries", [kind for kind in found["mean"] if kind != "one-shot"], bar=found["bar"])


def parse() -> argparse.Namespace:
    from ectype.methods.acquisition import DRAWS

    parser = argparse.ArgumentParser(description="Fidelity by number of queries, for every way of choosing them.")
    problem_options(parser)
    parser.add_argument(
        "--problems", nargs="+", dest="only", metavar="NAME", help="the same as --only; toys have names"
    )
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every k-th of the problems chosen")
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS), metavar="N")
    parser.add_argument("--draws", nargs="+", choices=DRAWS, default=list(DRAWS))
    parser.add_argument("--options", type=json.loads, default={}, metavar="JSON", help="further settings of the copies")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the means there")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    return parser.parse_args()


def main() -> None:
    from ectype.errors import EctypeError

    options = parse()
    options.budgets = sorted(set(options.budgets))
    rows: list[Row] = []
    try:
        problems = chosen_problems(options)[:: options.every]
        for found in each(partial(run, options=options), problems, options.workers):
            rows.append(found)
            print(f"{len(rows)}/{len(problems)}", json.dumps(found), file=sys.stderr, flush=True)
    except EctypeError as error:
        sys.exit(f"queries.py: {error}")
    rows.sort(key=lambda row: row["problem"])
    totals = summary(rows)
    if options.figure:
        draw_figure(totals, options.figure)
    print(json.dumps({"rows": rows, **totals}) if options.json else table(totals))


if __name__ == "__main__":
    main()
