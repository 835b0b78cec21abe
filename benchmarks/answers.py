"""What an answer is worth: with the original's scores beside its label, and where part of the rows are real.

Originals of eight kinds (benchmarks/originals.py), each in the space learned from its unlabelled training rows; copies
by `copy_classifier` with its defaults and no certificate. Fidelity on 20,000 fresh rows of the space, and on the real
test rows, which neither original, space nor copy has seen; every seed is another split into training and test rows.

`scores`: with how many scored queries a copy is as faithful on fresh rows as with so many labels, by interpolation
between budgets. Originals without `predict_proba` are left out.
`rows`: what a quarter of queries about training rows, which are real, changes on fresh rows and on test rows.

    python benchmarks/answers.py [--half chosen|reported|all] [--only NAME] [--queries 3000] [--seeds 0 1]
                                 [--what scores rows] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from functools import partial
from statistics import fmean, median, stdev
from typing import Any

from originals import ORIGINALS, chosen_originals, original_options, subject
from workers import each

FRESH = 20_000
# Scored queries, as shares of the labels they are compared with.
SHARES = (0.15, 0.25, 0.35, 0.5, 0.7, 1.0)
SHARE = 0.25

Row = dict[str, Any]


def copies(task: tuple[str, int], options: argparse.Namespace) -> Row:
    """All copies of one original with one seed."""
    import numpy as np

    import ectype as ec
    from ectype.errors import EctypeWarning

    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", EctypeWarning)
    name, seed = task
    model, space, X_test, _ = subject(name, options.folder, seed)
    fresh = space.present(space.sample(FRESH, np.random.default_rng([seed, 99])))
    said = model.predict(fresh), model.predict(X_test)

    def agrees(budget: int, **settings: Any) -> list[float]:
        copy = ec.copy_classifier(model, space, budget=budget, certificate_n=0, repeat=0, seed=seed, **settings).copy
        pairs = zip((fresh, X_test), said, strict=True)
        return [round(float((copy.predict(rows) == answers).mean()), 5) for rows, answers in pairs]

    n = options.queries
    found: Row = {"original": name, "seed": seed, "labels": agrees(n)}
    if "scores" in options.what and hasattr(model, "predict_proba"):
        found["scores"] = {round(share * n): agrees(round(share * n), scores=True) for share in SHARES}
        found["needed"] = needed(found["labels"][0], {n: both[0] for n, both in found["scores"].items()})
    if "rows" in options.what:
        found["rows"] = agrees(n, rows=ORIGINALS[name].data(options.folder, seed).X_train, rows_share=SHARE)
    return found


def needed(wanted: float, curve: dict[int, float]) -> int:
    """Where a curve reaches a fidelity, between budgets by the logarithm of their number; its end if it does not.

    >>> needed(0.9, {100: 0.8, 400: 1.0})
    200
    """
    before: tuple[int, float] | None = None
    for n, fidelity in sorted(curve.items()):
        if fidelity >= wanted:
            if before is None:
                return n
            part = (wanted - before[1]) / (fidelity - before[1])
            return round(math.exp(math.log(before[0]) + part * math.log(n / before[0])))
        before = n, fidelity
    return max(curve)


def table(rows: list[Row], queries: int) -> str:
    """A line for each original, the mean of its seeds, then all of them."""
    lines = [f"{'original':<20}{'labels':>9}{'on test':>9}{'needed':>9}{'rows':>9}{'on test':>9}"]
    for name in dict.fromkeys(row["original"] for row in rows):
        own = [row for row in rows if row["original"] == name]
        lines.append(f"{name:<20}" + "".join(f"{cell:>9}" for cell in cells(own)))
    scored = [row["needed"] for row in rows if "needed" in row]
    if scored:
        lines.append(f"scored queries as faithful as {queries} labels: median {median(scored):.0f}, most {max(scored)}")
    real = [row for row in rows if "rows" in row]
    if real:
        space, test = ([100 * (row["rows"][k] - row["labels"][k]) for row in real] for k in (0, 1))
        error = stdev(test) / len(test) ** 0.5 if len(test) > 1 else math.nan
        found = f"{fmean(test):+.2f} points on test rows (standard error {error:.2f}), {fmean(space):+.2f} in the space"
        lines.append(f"a quarter of real rows: {found}")
    return "\n".join(lines)


def cells(rows: list[Row]) -> list[str]:
    """The numbers of one original."""
    labels = [f"{fmean(row['labels'][k] for row in rows):.4f}" for k in (0, 1)]
    scored = f"{fmean(row['needed'] for row in rows):.0f}" if "needed" in rows[0] else "-"
    gains = [
        f"{fmean(row['rows'][k] - row['labels'][k] for row in rows):+.4f}" if "rows" in rows[0] else "-" for k in (0, 1)
    ]
    return [*labels, scored, *gains]


def main() -> None:
    from ectype.errors import EctypeError

    parser = argparse.ArgumentParser(description="What scores and real rows are worth.")
    original_options(parser)
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--what", nargs="+", choices=("scores", "rows"), default=("scores", "rows"))
    parser.add_argument("--workers", type=int, default=2, help="processes, each pinned to a core; 0: this one")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    tasks = [(name, seed) for name in chosen_originals(options) for seed in options.seeds]
    rows: list[Row] = []
    try:
        for found in each(partial(copies, options=options), tasks, options.workers):
            rows.append(found)
            print(f"{len(rows)}/{len(tasks)}", json.dumps(found), file=sys.stderr, flush=True)
    except (ModuleNotFoundError, EctypeError) as error:
        sys.exit(f"answers.py: {error}")
    rows.sort(key=lambda row: tasks.index((row["original"], row["seed"])))
    print(json.dumps(rows) if options.json else table(rows, options.queries))


if __name__ == "__main__":
    main()
