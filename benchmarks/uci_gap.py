"""The paper's UCI problems: how close copies come to their originals on real rows that neither was fitted to.

Every problem's original is of the family that the paper gives it, fitted to 80 % of its rows. The copy is the paper's
network; it asks 3000 queries of a space and never sees a label of the data. Two spaces: `learned` from the unlabelled
training rows (quantiles and correlations), and `normal`, the paper's N(0, 1). Then, on the other 20 % of the rows: the
original's accuracy, the copy's, and how often they agree.

    python benchmarks/uci_gap.py [--only iris wine] [--half even] [--spaces learned] [--methods one-shot] [--json FILE]

Defaults are chosen on the even half of the problems, in alphabetical order: abalone, acute-nephritis, and so on. What
`--options '{"draw": "random"}'` changes is passed on to `copy_classifier`.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from functools import partial
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from workers import chosen_problems, each, problem_options

SPACES = ("learned", "normal")
METHODS = ("one-shot", "sequential")
# What the project asks of the learned space, over all problems: the gap in mean accuracy, and the mean fidelity.
LARGEST_GAP, LEAST_FIDELITY = 0.006, 0.94

Row = dict[str, Any]


def run(name: str, options: argparse.Namespace) -> list[Row]:
    """One problem: its original, then a copy for each space, method and seed."""
    from ectype.errors import EctypeWarning
    from ectype_paper import load
    from ectype_paper.original_cache import cached_original

    warnings.simplefilter("ignore", EctypeWarning)  # some originals say the same to all; the table shows it
    clock = perf_counter()
    problem = load(options.folder, name)
    fitted = cached_original(problem)
    answers = fitted.predict(problem.X_test)
    base = {
        "problem": name,
        "original": float((answers == problem.y_test).mean()),
        "fit_seconds": round(perf_counter() - clock, 2),
    }
    copied = partial(copy, problem, fitted, answers, options)
    return [
        {**base, "space": space, "method": method, "seed": seed, **copied(space, method, seed)}
        for space in options.spaces
        for method in options.methods
        for seed in range(options.seeds)
    ]


def copy(
    problem: Any, fitted: Any, answers: Any, options: argparse.Namespace, space: str, method: str, seed: int
) -> Row:
    """One copy: its accuracy, and how often it agrees with the original, on the test rows."""
    import ectype as ec

    clock = perf_counter()
    described = ec.Space.from_data(problem.X_train) if space == "learned" else ec.Space.normal(problem.d)
    result = ec.copy_classifier(
        fitted, described, method=method, budget=options.queries, certificate_n=0, seed=seed, **options.options
    )
    found = result.copy.predict(problem.X_test)
    return {
        "copy": ec.metrics.accuracy(problem.y_test, found),
        "fidelity": ec.metrics.fidelity(answers, found),
        "kept": result.kept,
        "seconds": round(perf_counter() - clock, 2),
    }


def table(rows: list[Row]) -> str:
    """A line per problem and copy, averaged over seeds; then the means over the problems."""
    lines = [f"{'problem':<32}{'space':<9}{'method':<12}{'original':>9}{'copy':>8}{'fidelity':>10}{'seconds':>9}"]
    kinds = list(dict.fromkeys((row["space"], row["method"]) for row in rows))
    for name in sorted({row["problem"] for row in rows}):
        for space, method in kinds:
            line = means([r for r in rows if (r["problem"], r["space"], r["method"]) == (name, space, method)])
            lines.append(f"{name:<32}{space:<9}{method:<12}{line}")
    lines += ["", f"means over {len({row['problem'] for row in rows})} problems"]
    for space, method in kinds:
        of = [row for row in rows if (row["space"], row["method"]) == (space, method)]
        gap = fmean(row["original"] - row["copy"] for row in of)
        lines.append(f"{'':<32}{space:<9}{method:<12}{means(of)}   gap {gap:+.4f}{verdict(space, gap, of)}")
    return "\n".join(lines)


def means(rows: list[Row]) -> str:
    original, copied, agreed, seconds = (
        fmean(row[key] for row in rows) for key in ("original", "copy", "fidelity", "seconds")
    )
    return f"{original:>9.4f}{copied:>8.4f}{agreed:>10.4f}{seconds:>9.1f}"


def verdict(space: str, gap: float, rows: list[Row]) -> str:
    if space != "learned":
        return ""
    reached = gap <= LARGEST_GAP and fmean(row["fidelity"] for row in rows) >= LEAST_FIDELITY
    return f" ({'within' if reached else 'MISSES'} gap {LARGEST_GAP}, fidelity {LEAST_FIDELITY})"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The paper's UCI problems: how close copies come to their originals.")
    problem_options(parser)
    parser.add_argument("--spaces", nargs="+", choices=SPACES, default=list(SPACES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1, help="how many copies of each kind")
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--options", type=json.loads, default={}, metavar="JSON", help="further settings of the copies")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every copy's numbers there too")
    return parser.parse_args()


def main() -> None:
    from ectype.errors import EctypeError

    options = parse()
    rows: list[Row] = []
    try:
        problems = chosen_problems(options)
        for done, found in enumerate(each(partial(run, options=options), problems, options.workers), 1):
            rows += found
            for row in found:
                print(f"{done}/{len(problems)}", json.dumps(row), file=sys.stderr, flush=True)
    except EctypeError as error:
        sys.exit(f"uci_gap.py: {error}")
    print(table(rows))
    if options.json:
        options.json.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
