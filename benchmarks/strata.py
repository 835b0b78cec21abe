"""What a stratified certificate saves, on 20 copies, and how often every form of a certificate holds.

    python benchmarks/strata.py [--half chosen|reported|all] [--only magic wine] [--runs 10000] [--json]

Copies of 20 originals are compared with these on 40,000 rows of their spaces, to know what is true; certificates of
n = 2000 rows are then simulated from that. `plain` and `strata` are the mean widths of both designs, `rows` is how many
rows the stratified design takes for the plain one's width, as a share, and `near` and `added` are the design: the share
of the space near the boundary, and of the rows that were added there. Its constants were chosen on the first ten.
`alike` is the share of rows if none are added, and the plain sample is weighed by strata afterwards. The last three
are made: copies that get more rows near the boundary, and differ everywhere alike, only away from it, or nowhere.

Then simulated certificates, by what share differs near the boundary and away from it: `held` is the share of those
whose bound is not above the truth, and `exact` what it would be over simulations without end. `drawn` are whole ones of
100 rows, from unlabelled rows on: copies whose margin tells where they differ, tells nothing, or says the opposite.
"""

from __future__ import annotations

import argparse
import json
import warnings
from bisect import bisect_left, bisect_right
from functools import cache, partial
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.stats import binom

import originals as made_of
from ectype.certificate.bounds import lower_bound
from ectype.certificate.buehler import BuehlerBound, upper_limit
from ectype.certificate.stratified import (
    SET,
    Design,
    choose_design,
    order_by_margin,
    ranked_sets,
    strata_of,
    stratified_bound,
)
from workers import FOLDER, each

N, CONFIDENCE, TRUTH, DRAWS, FEWER = 2000, 0.95, 40_000, 12, 0.7
Row = dict[str, Any]
# Data, model, family and budget; the design was chosen on the first ten.
uci, made, mixed = made_of.uci, made_of.made, made_of.mixed
boosting, forest, svm, knn = made_of.boosting, made_of.forest, made_of.svm, made_of.neighbours
nets, medals = made_of.networks, ("bronze", "silver", "gold")
COPIES: dict[str, tuple[Any, Any, str, int]] = {
    "magic": (uci("magic"), boosting, "auto", 2000),
    "image": (uci("statlog-image"), forest, "auto", 2000),
    "made20": (made(20, 3, seed=0), boosting, "auto", 2000),
    "mixed12": (mixed(7, (3, 4, 5, 8), medals, seed=1), made_of.piped(forest), "auto", 2000),
    "waveform": (uci("waveform"), svm, "auto", 2000),
    "ringnorm": (uci("ringnorm"), nets, "auto", 2000),
    "pima": (uci("pima"), knn, "auto", 2000),
    "spambase": (uci("spambase"), boosting, "tree", 2000),
    "titanic": (uci("titanic"), forest, "auto", 1000),
    "wine": (uci("wine"), svm, "linear", 1000),
    "noise": (uci("waveform-noise"), boosting, "auto", 2000),
    "vehicle": (uci("statlog-vehicle"), boosting, "auto", 2000),
    "merluccius": (uci("oocytes_merluccius_nucleus_4d"), forest, "auto", 2000),
    "made30": (made(30, 4, seed=3), svm, "auto", 2000),
    "german": (uci("statlog-german-credit"), nets, "auto", 2000),
    "trisopterus": (uci("oocytes_trisopterus_nucleus_2f"), knn, "auto", 2000),
    "abalone": (uci("abalone"), forest, "tree", 2000),
    "mammographic": (uci("mammographic"), boosting, "auto", 1000),
    "seeds": (uci("seeds"), svm, "auto", 1000),
    "ionosphere": (uci("ionosphere"), nets, "boosting", 2000),
}
HALVES = {"chosen": [*COPIES][:10], "reported": [*COPIES][10:], "all": [*COPIES]}
# Whether rows differ: near the boundary and away from it, as shares.
SHARES = {
    "none": (0.0, 0.0),
    "few": (0.02, 0.0005),
    "near": (0.4, 0.01),
    "even": (0.05, 0.05),
    "sure": (0.0, 0.05),
    "half": (0.5, 0.5),
    "most": (0.9, 0.95),
}
DRAWN = {
    "tells": lambda x: x < 0.06,
    "nothing": lambda x: np.modf(1000 * x)[0] < 0.06,
    "opposite": lambda x: x > 0.94,
}


# --- tightness ----------------------------------------------------------------------------------------------------


def saved(name: str, folder: Any) -> Row:
    """One copy: what its certificates are worth by both designs."""
    import ectype as ec
    from ectype.certificate.differences import probabilities_of

    warnings.simplefilter("ignore")
    data, model, family, budget = COPIES[name]
    found = data(folder, 0)
    some = np.random.default_rng(0).permutation(len(found.y_train))[:1500]
    X = found.X_train.iloc[some] if hasattr(found.X_train, "iloc") else found.X_train[some]
    original, space = model().fit(X, found.y_train[some]), ec.Space.from_data(found.X_train)
    result = ec.copy_classifier(original, space, budget=budget, to=family, certificate_n=500, repeat=0, progress=False)
    rows = space.sample(TRUTH, np.random.default_rng(7))
    chances = probabilities_of(result.copy, space, rows)
    assert chances is not None
    differ = np.asarray(original.predict(space.present(rows))) != result.copy.classes[chances.argmax(axis=1)]
    by_rank = np.take_along_axis(differ.reshape(-1, SET), order_by_margin(chances), axis=1).mean(axis=0)
    return {"copy": name, "family": result.family, "fidelity": 1 - float(differ.mean()), **widths(by_rank, chances)}


def widths(by_rank: np.ndarray, chances: np.ndarray) -> Row:
    """The mean widths of both designs, and what share of the rows gives the stratified one the plain one's."""
    design = choose_design(chances[:5000], N, CONFIDENCE)
    found = compared(design, by_rank)
    alike = compared(Design(8), by_rank)["rows"]
    return {"near": design.weights[0], "added": design.added, **found, "alike": alike}


def compared(design: Design, by_rank: np.ndarray) -> Row:
    """A design beside the plain one, by what share of the rows of each rank differs."""
    rng = np.random.default_rng(0)
    x = rng.binomial(N, by_rank.mean(), 4000)
    plain = float((upper_limit(x, N, 1 - CONFIDENCE) - x / N).mean())
    all_rows, fewer = (mean_width(design, n, by_rank, rng) for n in (N, int(FEWER * N)))
    slope = np.log(fewer / all_rows) / np.log(FEWER)
    rows = float((plain / all_rows) ** (1 / slope)) if design.cut else 1.0
    return {"plain": plain, "strata": all_rows, "rows": rows}


def worst() -> list[Row]:
    """Copies that are sure of what is not so: they differ everywhere alike, only where they are sure, or nowhere."""
    away = np.arange(SET) >= 8
    cases = {"nothing": np.full(SET, 0.05), "opposite": 0.05 * away / away.mean(), "none": np.zeros(SET)}
    about = {"family": "", "near": 0.2, "added": 0.2, "alike": 1.0}
    return [
        {"copy": case, **about, "fidelity": 1 - float(q.mean()), **compared(Design(8, 0.2), q)}
        for case, q in cases.items()
    ]


def mean_width(design: Design, n: int, by_rank: np.ndarray, rng: np.random.Generator) -> float:
    found = []
    for _ in range(DRAWS if design.cut else 4000):
        ranks = design.ranks(n, rng)
        parts = strata_of(design, ranks, rng.random(n) >= by_rank[ranks])
        estimate, lower = stratified_bound(parts, CONFIDENCE)
        found.append(estimate - lower)
    return fmean(found)


# --- coverage -----------------------------------------------------------------------------------------------------


def coverage(runs: int, sizes: tuple[int, ...]) -> list[Row]:
    rng, found = np.random.default_rng(1), []
    for n in sizes:
        for case, shares in SHARES.items():
            found.append({"form": "plain", "n": n, "near": 0, "added": 0, "case": case, **plain(runs, n, shares, rng)})
            for design in (Design(8, 0.2), Design(8, 0.0), Design(2, 0.2)):
                about = {"form": "strata", "n": n, "near": design.weights[0], "added": design.added, "case": case}
                found.append({**about, **stratified(runs, n, design, shares, rng)})
    for case, differ in DRAWN.items():
        for design in (Design(8, 0.2), Design(2, 0.1)):
            about = {"form": "drawn", "n": 100, "near": design.weights[0], "added": design.added, "case": case}
            found.append({**about, **whole(runs, design, differ, rng)})
    return found


def plain(runs: int, n: int, shares: tuple[float, float], rng: np.random.Generator) -> Row:
    truth = 1 - float(np.dot(Design(8).weights, shares))
    agreed, times = np.unique(rng.binomial(n, truth, runs), return_counts=True)
    holds = [lower_bound(int(x), n, CONFIDENCE) <= truth for x in agreed]
    most = bisect_right(range(n + 1), truth, key=lambda x: lower_bound(x, n, CONFIDENCE)) - 1
    return {"truth": truth, "held": float((times * holds).sum() / runs), "exact": float(binom.cdf(most, n, truth))}


def stratified(runs: int, n: int, design: Design, shares: tuple[float, float], rng: np.random.Generator) -> Row:
    """Certificates with the same numbers of rows in both parts: the bound rises with the limit that orders outcomes."""
    near = int((design.ranks(n, rng) < design.cut).sum())
    pair, alpha = BuehlerBound(design.weights, (near, n - near)), 1 - CONFIDENCE
    ends = [binom.interval(1 - 1e-12, m, share) for m, share in zip(pair.n, shares, strict=True)]
    x, y = (np.arange(int(low), int(high) + 1) for low, high in ends)
    limits, truth = pair.approximate(x[:, None], y, alpha).ravel(), float(np.dot(design.weights, shares))
    order = np.argsort(limits, kind="stable")
    first = bisect_left(order, truth, key=lambda i: pair.upper((int(x[i // len(y)]), int(y[i % len(y)])), alpha))
    chances = np.outer(binom.pmf(x, pair.n[0], shares[0]), binom.pmf(y, pair.n[1], shares[1])).ravel()
    drawn_x, drawn_y = (rng.binomial(m, share, runs) for m, share in zip(pair.n, shares, strict=True))
    seen = pair.approximate(drawn_x, drawn_y, alpha)
    held = float((seen >= limits[order[first]] * (1 - 1e-12)).mean())
    return {"truth": 1 - truth, "held": held, "exact": float(chances[order[first:]].sum())}


def whole(runs: int, design: Design, differ: Any, rng: np.random.Generator) -> Row:
    """Whole certificates of a copy on [0, 1] whose margin is the row itself."""
    bound, held = cache(partial(stratified_bound, confidence=CONFIDENCE)), 0
    truth = 1 - float(differ(np.linspace(0, 1, 10**6 + 1)[:-1]).mean())
    for _ in range(runs):
        ranks = design.ranks(100, rng)
        sets = ranked_sets(ranks, rng.random, lambda x: np.column_stack([(1 + x) / 2, (1 - x) / 2]))
        held += bound(strata_of(design, ranks, ~differ(np.concatenate([*sets]))))[1] <= truth
    return {"truth": truth, "held": held / runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=FOLDER, help="<name>.csv.gz files and their index.csv")
    parser.add_argument("--half", choices=tuple(HALVES), default="all", help="to choose on, to report, or all")
    parser.add_argument("--only", nargs="*", choices=tuple(COPIES), help="some copies; none to leave them out")
    parser.add_argument("--runs", type=int, default=10_000, help="simulated certificates of each kind")
    parser.add_argument("--n", type=int, nargs="+", default=[200, 2000], help="rows of those")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = [name for name in HALVES[options.half] if options.only is None or name in options.only]
    copies = sorted(each(partial(saved, folder=options.folder), names, options.workers), key=lambda r: r["rows"])
    copies += worst() if copies else []
    held = coverage(options.runs, tuple(options.n)) if options.runs else []
    if options.json:
        print(json.dumps({"copies": copies, "coverage": held}))
        return
    print(f"{'copy':<14}{'family':<10}" + "".join(f"{name:>10}" for name in (*NUMBERS, "half")))
    for row in copies:
        cells = "".join(f"{row[name]:>10.4f}" for name in NUMBERS)
        print(f"{row['copy']:<14}{row['family']:<10}{cells}{_half(row):>10}")
    for half in HALVES if copies else ():
        some = [row["rows"] for row in copies if row["copy"] in HALVES[half]]
        print(f"rows for the same width, median of {len(some)} ({half}): {median(some):.3f}" if some else "")
    print(
        f"\n{'form':<8}{'n':>6}{'near':>8}{'added':>8}  {'case':<10}{'truth':>8}{'held':>8}{'exact':>8}" if held else ""
    )
    for row in held:
        head = f"{row['form']:<8}{row['n']:>6}{row['near']:>8.3f}{row['added']:>8.3f}  {row['case']:<10}"
        exact = f"{row['exact']:>8.4f}" if "exact" in row else f"{'-':>8}"
        print(f"{head}{row['truth']:>8.4f}{row['held']:>8.4f}{exact}")


NUMBERS = ("fidelity", "near", "added", "plain", "strata", "rows", "alike")


def _half(row: Row) -> str:
    return next((half for half in HALVES if row["copy"] in HALVES[half]), "made")


if __name__ == "__main__":
    main()
