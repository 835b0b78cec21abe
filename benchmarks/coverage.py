"""How often certificates hold: simulated runs with a known true fidelity, and real runs measured on many fresh rows.

    python benchmarks/coverage.py

`fixed`: a copy of known fidelity on n held-out rows. `chosen`: the best on those rows of 4 equally good copies.
`rising`, `stuck` and `swinging`: runs of 30 rounds that stop as soon as the bound reaches the target; their copies get
better, stay just below the target, or go up and down about it, with errors that are kept from round to round or drawn
anew.
`held` is the share of runs whose bound at the end is not above the true fidelity of the copy handed out, and `exact`
what it would be over runs without end; `wrongly` the share that stopped with a copy below the target; `look` the mean
round at the end.

Real runs copy a disc: `network` by small networks; `blend` by blends, whose members are weighed and calibrated by
answers that some of them did not see, but not by the certificate's rows; `tree` by trees, whose teacher the
certificate's rows choose; `auto` by the smallest of all families that reaches a target, in three looks. A `refreshed`
copy follows a disc that has moved, and most of its rows are those of the first certificate, asked again. All get a
tenth of the usual training: what is weighed and chosen is the same, and there can be more runs.
`per_class`, `near` and `away` are the shares of such bounds that hold, `rules` that of certificates all of whose rules
do, `fidelity` the mean of what is true, and `reached` the share of runs that did reach the target.

What users do (`--users`) is tried on an original that cannot be learned, a coin for every row, so that every copy is
right about half of all fresh rows, whatever was done to it: the run is extended twice, has its target lowered twice, is
refreshed eight times, certified twice, remade five times, or made a frontier or a cascade of. `alone` is the share of
bounds that hold, each by itself; `picked` the share of runs in which the highest of their bounds does, which is what
whoever picks a copy by its certificate relies on. `rows` are a user's own, given to the run and then to `certify`, of
an original that can be learned, where some are harder than others; `all rows` what is measured if those that taught are
counted too, `not taught` if only these are left out. In `clusters` rows come in thirty groups with one answer each.
"""

from __future__ import annotations

import argparse
import json
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import ectype as ec
from ectype.certificate.bounds import HeldOut, bound_of, lower_bound
from ectype.certificate.differences import margins_of
from ectype.models.capacity import Capacity
from ectype.original import Labels
from ectype.plan.presets import PRESETS

CONFIDENCE, LOOKS, CHOICES, FRESH = 0.95, 30, 4, 200_000
LABELS = Labels([0, 1])


def held_out(n: int, rng: np.random.Generator) -> HeldOut:
    return HeldOut(np.zeros((n, 1)), rng.integers(0, 2, n).astype(np.int32), LABELS)


def fixed(runs: int, n: int, truth: float, rng: np.random.Generator) -> dict[str, Any]:
    held = 0
    for _ in range(runs):
        rows = held_out(n, rng)
        wrong = rng.uniform(size=n) >= truth
        held += rows.certify(np.where(wrong, 1 - rows.codes, rows.codes), CONFIDENCE).lower <= truth
    return {"case": "fixed", "n": n, "truth": truth, "held": held / runs, "exact": exact(n, truth, 1)}


def chosen(runs: int, n: int, truth: float, rng: np.random.Generator) -> dict[str, Any]:
    held = 0
    for _ in range(runs):
        rows = held_out(n, rng)
        wrong = rng.uniform(size=(CHOICES, n)) >= truth
        best = wrong[wrong.sum(axis=1).argmin()]
        proof = rows.certify(np.where(best, 1 - rows.codes, rows.codes), CONFIDENCE, among=CHOICES)
        held += proof.lower <= truth
    return {"case": "chosen", "n": n, "truth": truth, "held": held / runs, "exact": exact(n, truth, CHOICES)}


def exact(n: int, truth: float, among: int) -> float:
    """The chance that the bounds of all of so many copies with independent errors hold."""
    from scipy.stats import binom

    level = 1 - (1 - CONFIDENCE) / among
    most = bisect_right(range(n + 1), truth, key=lambda agreed: lower_bound(agreed, n, level)) - 1
    return float(binom.cdf(most, n, truth) ** among)


def stopped(
    name: str, truths: np.ndarray, target: float, kept: bool, runs: int, n: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Runs that look at a copy of each of these fidelities in turn; errors are on the same rows each time, or anew."""
    held, wrongly, looks = 0, 0, 0
    for _ in range(runs):
        rows, u = held_out(n, rng), rng.uniform(size=n)
        for truth in truths:
            looks += 1
            wrong = (u if kept else rng.uniform(size=n)) >= truth
            proof = rows.certify(np.where(wrong, 1 - rows.codes, rows.codes), CONFIDENCE, among=len(truths))
            if proof.lower >= target:
                wrongly += truth < target
                break
        held += proof.lower <= truth
    errors = "kept" if kept else "anew"
    found = {"case": name, "errors": errors, "n": n, "target": target, "held": held / runs, "wrongly": wrongly / runs}
    return {**found, "look": looks / runs}


def simulated(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for n in (200, 2000):
        for truth in (0.8, 0.95, 0.99, 0.999):
            yield fixed(runs, n, truth, rng)
        yield chosen(runs, n, 0.95, rng)
    t = np.arange(1, LOOKS + 1)
    truths = {"rising": 1 - 0.1 * t**-0.5, "stuck": np.full(LOOKS, 0.9499), "swinging": 0.95 + 0.01 * (-1.0) ** t}
    for name, course in truths.items():
        for kept in (True, False):
            yield stopped(name, course, 0.95, kept, runs, 2000, rng)


def disc(rows: np.ndarray) -> np.ndarray:
    return (rows**2).sum(axis=1) < 1


def moved(rows: np.ndarray) -> np.ndarray:
    return disc(rows - [0.3, 0.0])


# Of real runs, the settings; all hold 500 rows out.
NETWORK = {"batch": 20, "iterations": 10, "layers": (8,), "schedule": ec.training.steps(60)}
MADE = {"budget": 120, "schedule": ec.training.steps(60)}
REAL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("network", NETWORK),
    ("network", {**NETWORK, "target": 0.9}),
    ("blend", MADE),
    ("tree", {**MADE, "to": "tree"}),
    ("auto", {**MADE, "to": "auto", "target": 0.9}),
    ("refreshed blend", MADE),
    ("refreshed tree", {**MADE, "to": "tree"}),
)
LITTLE = Capacity(share=0.1, free_rows=2000)


def end_to_end(case: str, settings: dict[str, Any], runs: int) -> dict[str, Any]:
    """Real runs; the truth is measured on many rows that no run saw."""
    space, again = ec.Space.normal(2), case.startswith("refreshed")
    fresh = space.sample(FRESH, np.random.default_rng(2**31))
    answers, frame = (moved if again else disc)(fresh), pd.DataFrame(fresh, columns=list(space.names))
    held: dict[str, list[bool]] = {"held": [], "per_class": [], "near": [], "away": [], "rules": []}
    reached, fidelity = 0, 0.0
    for seed in range(runs):
        result = copied(space, {**settings, "seed": seed}, again)
        agree = result.copy.predict(fresh) == answers
        reached, fidelity = reached + (result.stopped == "target"), fidelity + agree.mean()
        for name, bounds in holds(result, fresh, frame, answers, agree).items():
            held[name] += bounds
    means = {name: float(np.mean(found)) if found else None for name, found in held.items()}
    target = {"target": settings.get("target"), "reached": reached / runs, "fidelity": float(fidelity / runs)}
    return {"case": case, "runs": runs, "n": 500, **target, **means}


def copied(space: ec.Space, settings: dict[str, Any], again: bool) -> ec.Result:
    """A copy of the disc; or one that is refreshed after the disc has moved."""
    with warnings.catch_warnings(action="ignore"), TemporaryDirectory() as folder:
        out = Path(folder) / "run" if again else None
        result = ec.copy_classifier(disc, space, certificate_n=500, repeat=0, out=out, **settings)
        if again:
            result = ec.refresh(Path(folder) / "run", moved, check=60, budget=90, deterministic=True)
        return result


def holds(
    result: ec.Result, fresh: np.ndarray, frame: pd.DataFrame, answers: np.ndarray, agree: np.ndarray
) -> dict[str, list[bool]]:
    """Which bounds of a certificate hold."""
    proof = result.certificate
    assert proof is not None
    assert proof.differences is not None
    found = {"held": [proof.lower <= agree.mean()]}
    found["per_class"] = [bound.lower <= agree[answers == label].mean() for label, bound in proof.per_class.items()]
    if proof.near is not None and proof.away is not None:
        margins = margins_of(result.copy, result.space, fresh)
        assert margins is not None
        assert proof.margin is not None
        near = margins < proof.margin
        found["near"] = [proof.near.lower <= agree[near].mean()]
        found["away"] = [proof.away.lower <= agree[~near].mean()]
    shares = [1 - agree[np.asarray(frame.eval(rule.text), bool)].mean() for rule in proof.differences.rules]
    found["rules"] = [all(r.lower <= share for r, share in zip(proof.differences.rules, shares, strict=True))]
    return found


# --- what users do ----------------------------------------------------------------------------------------------------

PLANE = ec.Space.normal(2)
QUICK: dict[str, Any] = {
    "preset": "fast",
    "layers": (8,),
    "schedule": ec.training.steps(20),
    "certificate_n": 200,
    "repeat": 0.0,
    "progress": False,
}
Bounds = list[tuple[float, float]]
"""Lower bounds that a user got to see, each with what is true."""
MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


def coin(seed: int) -> ec.Original:
    """Labels that have nothing to do with one another: a hash of each row."""

    def toss(rows: np.ndarray) -> np.ndarray:
        mixed = (np.ascontiguousarray(rows, np.float64).view(np.uint64) * MIX).sum(axis=1, dtype=np.uint64)
        mixed += np.uint64(seed * 2 + 1)
        for shift in (31, 29, 32):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(0xBF58476D1CE4E5B9)
        return (mixed >> np.uint64(63)).astype(bool)

    return ec.Original(toss, [False, True], name="coin")


def of(result: ec.Result) -> float:
    assert result.certificate is not None
    return result.certificate.lower


def extended(seed: int, folder: Path) -> dict[str, Bounds]:
    lower = [
        of(ec.copy_classifier(coin(seed), PLANE, budget=budget, seed=seed, out=folder / "run", **QUICK))
        for budget in (60, 120, 180)
    ]
    return {"extended": [(bound, 0.5) for bound in lower]}


def retargeted(seed: int, folder: Path) -> dict[str, Bounds]:
    settings = {**QUICK, "budget": 60, "seed": seed, "out": folder / "run"}
    lower = [of(ec.copy_classifier(coin(seed), PLANE, target=target, **settings)) for target in (0.6, 0.55, 0.51)]
    return {"re-targeted": [(bound, 0.5) for bound in lower]}


def refreshed(seed: int, folder: Path) -> dict[str, Bounds]:
    ec.copy_classifier(coin(9 * seed), PLANE, budget=60, seed=seed, out=folder / "0", **QUICK)
    lower = []
    for k in range(1, 9):
        before, after = folder / str(k - 1), folder / str(k)
        lower.append(of(ec.refresh(before, coin(9 * seed + k), out=after, check=30, budget=60, progress=False)))
    return {"refreshed": [(bound, 0.5) for bound in lower]}


def finished(seed: int, folder: Path) -> dict[str, Bounds]:
    """One run, and all that is made of it."""
    original = coin(seed)
    result = ec.copy_classifier(original, PLANE, budget=60, seed=seed, out=folder / "run", **QUICK)
    again = [ec.certify(result.copy, original, PLANE, 200, seed=k, progress=False).lower for k in (1, 2)]
    remade = [of(ec.remake(folder / "run", to="tree", max_leaves=leaves)) for leaves in (2, 4, 8, 16, 32)]
    table = ec.frontier(folder / "run", ["tree"], progress=False)
    alone = ec.cascade(result, original, agree=0.6).alone
    return {
        "certified": [(bound, 0.5) for bound in again],
        "remade": [(bound, 0.5) for bound in remade],
        "frontier": [(float(table["lower"].max()), 0.5)],
        "cascade": [(0.6 if alone else 0.0, 0.5)],
    }


def waves(rows: np.ndarray) -> np.ndarray:
    return np.sin(6 * rows[:, 0]) + np.sin(5 * rows[:, 1]) > 0


def own_rows(seed: int, folder: Path) -> dict[str, Bounds]:
    rng = np.random.default_rng(seed)
    rows, fresh = rng.normal(size=(600, 2)), rng.normal(size=(20_000, 2))
    settings: dict[str, Any] = {"budget": 300, "seed": seed, "certificate_n": 300, "repeat": 0.0, "progress": False}
    result = ec.copy_classifier(waves, PLANE, rows=rows, rows_share=0.5, **settings)
    agree = result.copy.predict(rows) == waves(rows)
    assert result.copy.training_rows is not None
    taught, _ = result.copy.training_rows.find(rows)
    truth = float((result.copy.predict(fresh) == waves(fresh)).mean())
    proof = ec.certify(result.copy, waves, PLANE, 10, data=rows, explain=False, progress=False)
    assert proof.on_data is not None
    seen = {"rows": proof.on_data.lower}
    seen |= {"all rows": bound_of(agree, CONFIDENCE).lower, "not taught": bound_of(agree[~taught], CONFIDENCE).lower}
    return {name: [(bound, truth)] for name, bound in seen.items()}


def clusters(seed: int, folder: Path) -> dict[str, Bounds]:
    rng, groups = np.random.default_rng(seed), coin(seed)
    centres = rng.integers(-(2**30), 2**30, (30, 2)).astype(float)
    rows = np.repeat(centres, 20, axis=0) + rng.uniform(-0.1, 0.1, (600, 2))
    answer = ec.Original(lambda rows: groups.predict(np.rint(rows)), [False, True], name="groups")
    proof = ec.certify(lambda rows: rows[:, 0] > 0, answer, PLANE, 10, data=rows, explain=False, progress=False)
    assert proof.on_data is not None
    return {"clusters": [(proof.on_data.lower, 0.5)]}


DONE = (extended, retargeted, refreshed, finished, own_rows, clusters)


def users(runs: int) -> Iterator[dict[str, Any]]:
    """What users do, and how often the bounds hold that they get to see."""
    for what in DONE:
        found: dict[str, list[Bounds]] = {}
        for seed in range(runs):
            with warnings.catch_warnings(action="ignore"), TemporaryDirectory() as folder:
                for name, bounds in what(seed, Path(folder)).items():
                    found.setdefault(name, []).append(bounds)
        for name, seen in found.items():
            alone = [lower <= truth for bounds in seen for lower, truth in bounds]
            picked = [lower <= truth for lower, truth in map(max, seen)]
            row = {"case": name, "runs": runs, "bounds": len(seen[0])}
            yield {**row, "alone": float(np.mean(alone)), "picked": float(np.mean(picked))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs of each kind")
    parser.add_argument("--real", type=int, default=100, help="real runs of each kind")
    parser.add_argument(
        "--only", nargs="+", choices=sorted({case for case, _ in REAL}), help="real runs of these kinds"
    )
    parser.add_argument("--users", type=int, default=1000, help="runs of each thing that users do")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = list(simulated(options.runs, np.random.default_rng(options.seed)))
    for name in ("default", "fast"):
        PRESETS[name] = replace(PRESETS[name], effort=LITTLE)
    cases = [(case, settings) for case, settings in REAL if not options.only or case in options.only]
    real = [end_to_end(case, settings, options.real) for case, settings in cases] if options.real else []
    done = list(users(options.users)) if options.users else []
    if options.json:
        print(json.dumps({"simulated": found, "real": real, "users": done}))
        return
    names = ("case", "errors", "n", "truth", "target", "held", "exact", "wrongly", "look")
    print("  ".join(f"{name:>8}" for name in names))
    for row in found:
        print("  ".join(f"{_cell(row.get(name)):>8}" for name in names))
    parts = ("runs", "n", "target", "reached", "fidelity", "held", "per_class", "near", "away", "rules")
    print(f"\n{'case':<16}" + "".join(f"{name:>10}" for name in parts))
    for row in real:
        print(f"{row['case']:<16}" + "".join(f"{_cell(row.get(name)):>10}" for name in parts))
    print("\n" + "".join(f"{name:>12}" for name in ("case", "runs", "bounds", "alone", "picked")))
    for row in done:
        print("".join(f"{_cell(row[name]):>12}" for name in ("case", "runs", "bounds", "alone", "picked")))


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
