"""How much a copy answers alone in a cascade, and how often what is certified of that is true.

Each original is copied with the defaults, in the space learned from its unlabelled training rows. A pool of rows that
copy and original have both answered stands for the space, so that the truth is known. Then, many times: held-out rows
are drawn from the pool, a threshold is certified by them, and the agreement on the rows of the pool that the copy would
answer alone is looked up. It holds if it is at least what was certified, or if nothing is answered alone.

`uci`: the paper's UCI problems, of which the rule was chosen on the even half, and the odd half is reported.
`kinds`: originals of eight kinds (benchmarks/originals.py), which are harder to copy; the rule was chosen on the other
half of these.
`--rules` compares valid rules instead: the sequence of tests with two starts, and with one; a Bonferroni correction
over twenty thresholds; and a threshold chosen on one half of the rows and certified on the other.

    python benchmarks/cascade.py [--half odd] [--only wine] [--what uci|kinds] [--rows 2000 5000] [--agree 0.99 0.995]
                                 [--times 1000] [--rules] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from workers import chosen_problems, each, problem_options

if TYPE_CHECKING:
    import numpy as np

    from ectype.cascades._routing import HeldOutMargins

CONFIDENCE = 0.95
# Unlabelled rows for the thresholds.
FREE = 10_000

Row = dict[str, Any]
Rule = Callable[["HeldOutMargins", "np.ndarray", "np.ndarray", float, float], int | None]


def run(name: str, options: argparse.Namespace) -> list[Row]:
    """One original: its copy, the pool, and all simulations."""
    import numpy as np

    import ectype as ec
    from ectype.errors import EctypeWarning

    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", EctypeWarning)
    original, space = subject(name, options)
    copy = ec.copy_classifier(original, space, budget=options.queries, certificate_n=0, repeat=0, progress=False).copy
    rng = np.random.default_rng(options.seed)
    pool = judged(original, copy, space, options.pool, rng)
    free = judged(None, copy, space, FREE, rng)
    base = {"original": name, "fidelity": round(float(pool.alike.mean()), 4)}
    simulated = partial(compared if options.rules else simulate, pool, free.margins, options)
    return [
        {**base, "rows": n, "agree": agree, **simulated(n, agree, np.random.default_rng([options.seed, n])), **best}
        for n in options.rows
        for agree in options.agree
        if (best := {"best": best_share(pool, agree)})
    ]


def subject(name: str, options: argparse.Namespace) -> tuple[Any, Any]:
    """A fitted original and its space."""
    if options.what == "kinds":
        from originals import subject as of_kind

        found = of_kind(name, options.folder)
        return found.original, found.space
    import ectype as ec
    from ectype_paper import load
    from ectype_paper.original_cache import cached_original

    problem = load(options.folder, name)
    return cached_original(problem), ec.Space.from_data(problem.X_train)


def judged(original: Any, copy: Any, space: Any, n: int, rng: np.random.Generator) -> HeldOutMargins:
    """Rows of a space: the copy's margins, and whether it agrees, which nobody looks at without an original."""
    import numpy as np

    from ectype.cascades import _calibration_sample as calibration_sample
    from ectype.cascades._routing import HeldOutMargins

    rows = space.sample(n, rng)
    chances, sure = calibration_sample.predict_with_margins(copy, rows)
    if original is None:
        return HeldOutMargins(sure, np.ones(n, bool))
    return HeldOutMargins(sure, copy.classes_[chances.argmax(axis=1)] == original.predict(space.present(rows)))


def best_share(pool: HeldOutMargins, agree: float) -> float:
    """What the copy could answer alone, if the agreement at every threshold were known."""
    import numpy as np

    order = np.argsort(-pool.margins, kind="stable")
    enough = np.flatnonzero(np.cumsum(pool.alike[order]) >= agree * np.arange(1, len(order) + 1))
    return round(float((enough[-1] + 1) / len(order)), 4) if len(enough) else 0.0


def simulate(
    pool: HeldOutMargins, free: np.ndarray, options: argparse.Namespace, n: int, agree: float, rng: np.random.Generator
) -> Row:
    """Certify many times, as `ec.cascade` does: how often that holds, and the shares answered alone."""
    from ectype.cascades import Routing
    from ectype.cascades._calibration_sample import FRESH, CalibrationSample
    from ectype.cascades._routing import HeldOutMargins

    held, alone = [], []
    for _ in range(options.times):
        drawn = rng.integers(len(pool), size=n)
        evidence = CalibrationSample(HeldOutMargins(pool.margins[drawn], pool.alike[drawn]), FRESH, free, free)
        answered = Routing.of(evidence, agree, CONFIDENCE).answers(pool.margins)
        held.append(not answered.any() or float(pool.alike[answered].mean()) >= agree)
        alone.append(float(answered.mean()))
    nothing = fmean(share == 0 for share in alone)
    return {"holds": round(fmean(held), 4), "alone": round(median(alone), 4), "nothing": round(nothing, 4)}


def compared(
    pool: HeldOutMargins, free: np.ndarray, options: argparse.Namespace, n: int, agree: float, rng: np.random.Generator
) -> Row:
    """The mean share that each rule answers alone, and how often it holds."""
    from ectype.cascades._routing import HeldOutMargins, threshold_grid

    grid = threshold_grid(free)
    shares, found = (free >= grid[:, None]).mean(axis=1), dict[str, list[tuple[bool, float]]]()
    for _ in range(options.times):
        drawn = rng.integers(len(pool), size=n)
        held = HeldOutMargins(pool.margins[drawn], pool.alike[drawn])
        for name, rule in rules().items():
            place = rule(held, grid, shares, agree, 1 - CONFIDENCE)
            answered = pool.margins >= (float("inf") if place is None else grid[place])
            good = place is None or float(pool.alike[answered].mean()) >= agree
            found.setdefault(name, []).append((good, float(answered.mean())))
    return {name: [round(fmean(part), 4) for part in zip(*all_of, strict=True)] for name, all_of in found.items()}


def rules() -> dict[str, Rule]:
    """Rules whose bound holds for the threshold that they choose."""
    import numpy as np

    from ectype.cascades._routing import HeldOutMargins, last_certified, last_rejection, p_values, split_allowance

    def bonferroni(
        held: HeldOutMargins, grid: np.ndarray, shares: np.ndarray, agree: float, error: float
    ) -> int | None:
        start = int(np.flatnonzero(split_allowance(shares, len(held), agree, error))[0])
        places = np.unique(np.linspace(start, len(grid) - 1, 20).round().astype(int))
        good = places[p_values(*held.counts(grid[places]), agree) <= error / len(places)]
        return int(good[-1]) if len(good) else None

    def single(held: HeldOutMargins, grid: np.ndarray, shares: np.ndarray, agree: float, error: float) -> int | None:
        allowances = np.zeros(len(grid))
        allowances[np.flatnonzero(split_allowance(shares, len(held), agree, error))[-1]] = error
        return last_rejection(p_values(*held.counts(grid), agree), allowances)

    def halves(held: HeldOutMargins, grid: np.ndarray, shares: np.ndarray, agree: float, error: float) -> int | None:
        half = len(held) // 2
        first, second = (
            HeldOutMargins(held.margins[part], held.alike[part]) for part in (slice(half), slice(half, None))
        )
        good = np.flatnonzero(p_values(*first.counts(grid), agree) <= error)
        if not len(good):
            return None
        return int(good[-1]) if p_values(*second.counts(grid[good[-1:]]), agree)[0] <= error else None

    return {"two starts": last_certified, "one start": single, "bonferroni": bonferroni, "halves": halves}


def table(rows: list[Row], by_rule: bool) -> str:
    """A line for each original and kind of simulation, then all of them."""
    return compared_table(rows) if by_rule else simulated_table(rows)


def simulated_table(rows: list[Row]) -> str:
    lines = [f"{'original':<32}{'fidelity':>9}{'rows':>7}{'agree':>7}{'holds':>8}{'alone':>8}{'nothing':>9}{'best':>8}"]
    for row in rows:
        numbers = f"{row['holds']:>8.3f}{row['alone']:>8.3f}{row['nothing']:>9.3f}{row['best']:>8.3f}"
        lines.append(f"{row['original']:<32}{row['fidelity']:>9.4f}{row['rows']:>7}{row['agree']:>7}{numbers}")
    lines.append(f"\n{'least holds, medians':<41}{'rows':>7}{'agree':>7}{'holds':>8}{'alone':>8}{'':>9}{'best':>8}")
    for n, agree in dict.fromkeys((row["rows"], row["agree"]) for row in rows):
        of = [row for row in rows if (row["rows"], row["agree"]) == (n, agree)]
        least, alone, best = min(r["holds"] for r in of), median(r["alone"] for r in of), median(r["best"] for r in of)
        numbers = f"{n:>7}{agree:>7}{least:>8.3f}{alone:>8.3f}{'':>9}{best:>8.3f}"
        lines.append(f"{f'{len(of)} originals':<41}{numbers}")
    return "\n".join(lines)


def compared_table(rows: list[Row]) -> str:
    lines = [f"{'rule':<14}{'rows':>7}{'agree':>7}{'least holds':>13}{'mean alone':>12}"]
    for n, agree in dict.fromkeys((row["rows"], row["agree"]) for row in rows):
        of = [row for row in rows if (row["rows"], row["agree"]) == (n, agree)]
        for name in rules():
            holds, alone = zip(*(row[name] for row in of), strict=True)
            lines.append(f"{name:<14}{n:>7}{agree:>7}{min(holds):>13.3f}{fmean(alone):>12.3f}")
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How much a copy answers alone, and whether that holds.")
    problem_options(parser)
    parser.add_argument("--what", choices=("uci", "kinds"), default="uci")
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 5000], help="held-out rows")
    parser.add_argument("--agree", type=float, nargs="+", default=[0.99, 0.995, 0.999])
    parser.add_argument("--times", type=int, default=1000, help="how often each is certified")
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--pool", type=int, default=50_000, help="rows that stand for the space")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", action="store_true", help="compare valid rules")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there too")
    return parser.parse_args()


def names(options: argparse.Namespace) -> list[str]:
    """The originals to copy."""
    if options.what == "uci":
        return chosen_problems(options)
    from originals import REPORTED

    return [name for name in REPORTED if not options.only or name in options.only]


def main() -> None:
    from ectype.errors import EctypeError

    options = parse()
    found: dict[str, list[Row]] = {}
    try:
        chosen = names(options)
        for done, rows in enumerate(each(partial(run, options=options), chosen, options.workers), 1):
            found[rows[0]["original"]] = rows
            print(f"{done}/{len(chosen)}", json.dumps(rows), file=sys.stderr, flush=True)
    except (ModuleNotFoundError, EctypeError) as error:
        sys.exit(f"cascade.py: {error}")
    ordered = [row for name in chosen for row in found[name]]
    print(table(ordered, options.rules))
    if options.json:
        options.json.write_text("\n".join(json.dumps(row) for row in ordered) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
