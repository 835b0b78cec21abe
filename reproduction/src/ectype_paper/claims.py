"""What the paper's text says of the toy problems in numbers or comparisons, and whether it comes out here.

Each claim is a row: as quoted, ours with a 95 % interval over runs, and whether the interval meets what the claim
allows. Of two numbers that were both measured, one is above the other only if their difference is more than its own
interval. What it is measured on are the rows of an exhibit, as its CSV has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ectype_paper.catalogue import Row

Figures = Mapping[str, Sequence[Row]]
# A 95 % interval of a mean, in standard errors.
WIDE = 1.96
# What is said of a comparison that the runs are too few for, and why.
OPEN, NOISE = "open", "less apart than the noise of the runs"
# The iterations that "after it settled" is read as.
LATE = range(20, 31)


class Ours(NamedTuple):
    """A number, and half of its interval."""

    value: float
    half: float


# None where the rows are not enough for it.
Measure = Callable[[Figures], Ours | None]
Bound = float | Measure


class Claim(NamedTuple):
    """A sentence of the text: what it is about, what it says, how to measure it, and from where to where it holds."""

    figure: str
    what: str
    quoted: str
    measure: Measure
    low: Bound = -np.inf
    high: Bound = np.inf
    why: str = ""
    """The reason, where it does not hold."""


def mean_of(table: str, column: str, iterations: Sequence[int], **where: object) -> Measure:
    """A column of the curve that `where` names, over iterations; errors of iterations of a run are as good as one."""

    def measure(figures: Figures) -> Ours | None:
        curve = [row for row in figures.get(table, ()) if where.items() <= row.items()]
        rows = [row for row in curve if row["iteration"] in iterations]
        return _mean(rows, column) if {row["iteration"] for row in rows} == {*iterations} else None

    return measure


def at(table: str, column: str, iteration: int, **where: object) -> Measure:
    """A column of the curve that `where` names, in one iteration."""
    return mean_of(table, column, [iteration], **where)


def at_last(table: str, column: str, **where: object) -> Measure:
    """A column of the curve that `where` names, in its last iteration."""

    def measure(figures: Figures) -> Ours | None:
        curve = [row for row in figures.get(table, ()) if where.items() <= row.items()]
        return _mean(curve[-1:], column) if curve else None

    return measure


def ratio(above: Measure, below: Measure) -> Measure:
    """One number as a multiple of another; the interval takes both as independent."""

    def measure(figures: Figures) -> Ours | None:
        a, b = above(figures), below(figures)
        if a is None or b is None or not a.value * b.value:
            return None
        share = a.value / b.value
        return Ours(share, share * float(np.hypot(a.half / a.value, b.half / b.value)))

    return measure


def growth(table: str, first: int, last: int, **where: object) -> Measure:
    """The points of one iteration as a multiple of those of an earlier one."""
    return ratio(at(table, "points", last, **where), at(table, "points", first, **where))


def between(column: str, first: str, second: str) -> Measure:
    """How much more the first operational point has of something than the second, in the mean of the toy problems."""

    def measure(figures: Figures) -> Ours | None:
        rows = figures.get("fig6", ())
        ends = [[row for row in rows if name in row["point"].split(", ")] for name in (first, second)]
        if not rows or len(ends[0]) != len(ends[1]):
            return None
        a, b = (_mean(those, column) for those in ends)
        return Ours(a.value - b.value, float(np.hypot(a.half, b.half)))

    return measure


def power(column: str, fewest: str, most: str) -> Measure:
    """The power of the number of points that a column of Table 2 grows with, between two methods of it."""

    def measure(figures: Figures) -> Ours | None:
        rows = {row["method"]: row for row in figures.get("table2", ())}
        if not {fewest, most} <= rows.keys():
            return None
        few, many = (_mean([rows[name]], column) for name in (fewest, most))
        grown = float(np.log(rows[most]["points"] / rows[fewest]["points"]))
        error = float(np.hypot(few.half / few.value, many.half / many.value))
        return Ours(float(np.log(many.value / few.value)) / grown, error / grown)

    return measure


def _mean(rows: Sequence[Row], column: str) -> Ours:
    """The mean of a column, with the mean of the intervals; what has no deviation is exact."""
    half = [WIDE * row.get(f"{column}_std", 0.0) / max(row["runs"] - 1, 1) ** 0.5 for row in rows]
    return Ours(float(np.mean([row[column] for row in rows])), float(np.mean(half)))


def _single(n: int, column: str = "accuracy") -> Measure:
    return at("fig1", column, 1, method="one-shot", queries=n)


PURE = {"method": "pure"}
ONLINE = {"method": "online"}
LEARNS = "ours learns more from as few points; the text gives neither initial weights nor the SVM"
KEPT = "fewer points fall below delta here"
REMEMBERS = "ours forgets little even without memory"
MOVES = "Adam with a constant step keeps moving; the theorem is about exact minima"

CLAIMS = (
    Claim("1", "the original: accuracy", "perfect", at("fig1", "original_accuracy", 1, **PURE), 1, 1),
    Claim("1", "one-shot, 500 points: accuracy", "0.85", _single(500), 0.83, 0.87, LEARNS),
    Claim("1", "one-shot, 1000 points: accuracy", "about 1", _single(1000), 0.98, 1, LEARNS),
    Claim(
        "1", "online, 3000 points: accuracy", "about 0.85", at("fig1", "accuracy", 30, **ONLINE), 0.82, 0.88, LEARNS,
    ),
    Claim("1", "sequential, 500 points: accuracy", "0.94", at("fig1", "accuracy", 5, **PURE), 0.92, 0.96, LEARNS),
    Claim("1", "sequential, 1000 points: accuracy", "about 1", at("fig1", "accuracy", 10, **PURE), 0.98, 1, LEARNS),
    Claim(
        "2", "sequential at t=15: rho", "significantly lower than online's", at("fig1", "rho", 15, **PURE),
        high=at("fig1", "rho", 15, **ONLINE),
    ),
    Claim(
        "2", "one-shot, 1000 points: rho", "higher than sequential's", _single(1000, "rho"),
        low=at("fig1", "rho", 10, **PURE),
    ),
    Claim(
        "2", "online, t=5 to 30: rho", "higher than sequential's", mean_of("fig1", "rho", range(5, 31), **ONLINE),
        low=mean_of("fig1", "rho", range(5, 31), **PURE),
    ),
    Claim("3", "delta 1e-10, t=30: points", "about 250", at("fig3", "points", 30, delta=1e-10), 200, 300, KEPT),
    Claim(
        "3", "delta 1e-10, t=30: points, of pure sequential's", "less than 10 %",
        ratio(at("fig3", "points", 30, delta=1e-10), at("fig3", "points", 30, **PURE)), 0, 0.1, KEPT,
    ),
    *(
        Claim(
            "3", f"delta {delta:g}: points at t=30, of those at t=18", "stable from t=18 on",
            growth("fig3", 18, 30, delta=delta), 0.85, 1.15,
        )
        for delta in (1e-10, 1e-8, 1e-6)
    ),
    Claim(
        "3", "delta 1e-6: points at t=3, of pure sequential's", "almost equal at first",
        ratio(at("fig3", "points", 3, delta=1e-6), at("fig3", "points", 3, **PURE)), 0.95, 1,
        "some points are below delta after the first iteration",
    ),
    Claim(
        "3", "delta 1e-10, t=20 to 30: accuracy", "below pure sequential, above online",
        mean_of("fig3", "accuracy", LATE, delta=1e-10), mean_of("fig3", "accuracy", LATE, **ONLINE),
        mean_of("fig3", "accuracy", LATE, **PURE),
    ),
    *(
        Claim(
            "3", f"delta {delta:g}, t=20 to 30: accuracy", "below online",
            mean_of("fig3", "accuracy", LATE, delta=delta), high=mean_of("fig3", "accuracy", LATE, **ONLINE),
            why=REMEMBERS,
        )
        for delta in (1e-8, 1e-6)
    ),
    Claim("3", "pure sequential, t=30: rho", "near 0", at("fig3", "rho", 30, **PURE), 0, 0.02),
    Claim(
        "3", "online: rho at t=30, of that at t=15", "constant",
        ratio(at("fig3", "rho", 30, **ONLINE), at("fig3", "rho", 15, **ONLINE)), 0.85, 1.15,
    ),
    *(
        Claim(
            "3", f"delta {delta:g}, t=20 to 30: rho", "higher than where nothing is dropped",
            mean_of("fig3", "rho", LATE, delta=delta), low=mean_of("fig3", "rho", LATE, **PURE),
        )
        for delta in (1e-10, 1e-8, 1e-6)
    ),
    Claim(
        "3", "delta 1e-6, t=20 to 30: rho", "rises: higher than at t=15", mean_of("fig3", "rho", LATE, delta=1e-6),
        low=at("fig3", "rho", 15, delta=1e-6),
    ),
    *(
        Claim(
            "4", f"lambda {weight:g}: points at t=30, of those at t=18", "constant",
            growth("fig4", 18, 30, memory=weight), 0.85, 1.15,
        )
        for weight in (0.05, 0.1)
    ),
    Claim(
        "4", "lambda 0.005, t=20 to 30: accuracy", "it forgets: below that of 0.05",
        mean_of("fig4", "accuracy", LATE, memory=0.005), high=mean_of("fig4", "accuracy", LATE, memory=0.05),
        why=REMEMBERS,
    ),
    Claim(
        "4", "lambda 0.25: points at t=30, of those at t=18", "still growing, less than linearly",
        growth("fig4", 18, 30, memory=0.25), 1.05, 30 / 18, "the bounded term holds back less than the norm would",
    ),
    Claim(
        "5", "delta 1e-6, t=20 to 30: accuracy", "above 0.95", mean_of("fig5", "accuracy", LATE, delta=1e-6), 0.95,
    ),
    Claim(
        "5", "delta 1e-6, t=20 to 30: points", "about 200", mean_of("fig5", "points", LATE, delta=1e-6), 150, 250, KEPT,
    ),
    Claim(
        "5", "delta 1e-6: points at t=30, of those at t=20", "almost constant",
        growth("fig5", 20, 30, delta=1e-6), 0.85, 1.15,
    ),
    *(
        Claim(
            "5", f"delta {delta:g}, t=20 to 30: accuracy", "comparable with pure sequential (within 0.02)",
            mean_of("fig5", "accuracy", LATE, delta=delta), 0.98, 1,
        )
        for delta in (1e-8, 1e-10)
    ),
    Claim(
        "5", "delta 1e-10, t=30: points", "a third less than 3000", at("fig5", "points", 30, delta=1e-10), 1800, 2200,
        "more is dropped here",
    ),
    Claim(
        "6", "eff at Best efficiency, minus that at Best accuracy", "a significant gain (0.05 or more)",
        between("eff", "best efficiency", "best accuracy"), 0.05,
    ),
    *(
        Claim(
            "6", f"{column} at Best convergence, minus that at Best accuracy", "nearly indistinguishable (within 0.01)",
            between(column, "best convergence", "best accuracy"), -0.01, 0.01,
        )
        for column in ("accuracy", "conv")
    ),
    Claim(
        "6", "conv at Best efficiency, minus that at Best convergence", "not too big a loss (0.05 at most)",
        between("conv", "best efficiency", "best convergence"), -0.05,
    ),
    Claim("Table 2", "pure sequential: power of t of the points trained on", "2",
          at_last("cost", "power_of_work", **PURE), 1.9, 2.1),
    Claim("Table 2", "pure sequential: power of t of the seconds", "2",
          at_last("cost", "power", **PURE), 1.9, 2.1),
    Claim("Table 2", "one-shot: power of N of the seconds, from 500 points to 3000", "1",
          power("cpu", "one-shot single-pass, 500 points", "one-shot single-pass"), 0.9, 1.1),
    Claim("Theorem 1", "pure sequential: risk at t=30, of that at t=1", "goes to that of all points",
          ratio(at("theorems", "risk", 30, **PURE), at("theorems", "risk", 1, **PURE)), 0, 0.05),
    Claim("Theorem 2", "pure sequential: distance of parameters at t=30, of that at t=2", "goes to 0",
          ratio(at("theorems", "moved", 30, **PURE), at("theorems", "moved", 2, **PURE)), 0, 0.05, MOVES),
)  # fmt: skip


def claim_rows(figures: Figures, figure: str | None = None) -> list[Row]:
    """A row for every claim that the rows are enough for; of one figure, or of all that are there."""
    asked = [claim for claim in CLAIMS if figure in (None, claim.figure)]
    return [row for claim in asked if (row := _row(claim, figures)) is not None]


def _row(claim: Claim, figures: Figures) -> Row | None:
    ours, low, high = claim.measure(figures), _bound(claim.low, figures), _bound(claim.high, figures)
    if ours is None or low is None or high is None:
        return None
    verdict = _verdict(_above(ours, low, callable(claim.low)), _above(high, ours, callable(claim.high)))
    return {
        "figure": claim.figure,
        "claim": claim.what,
        "quoted": claim.quoted,
        "ours": f"{_digits(ours.value)} ± {_digits(ours.half)}",
        "agrees": verdict,
        "why": {"yes": "", "no": claim.why, OPEN: NOISE}[verdict],
    }


def _above(upper: Ours, lower: Ours, measured: bool) -> bool | None:
    """Whether one number is above another. Between two that were measured, None if the runs are too few to tell."""
    apart, half = upper.value - lower.value, float(np.hypot(upper.half, lower.half))
    if measured and abs(apart) <= half:
        return None
    return apart + half >= 0


def _verdict(*holds: bool | None) -> str:
    if False in holds:
        return "no"
    return OPEN if None in holds else "yes"


def _bound(bound: Bound, figures: Figures) -> Ours | None:
    return bound(figures) if callable(bound) else Ours(bound, 0.0)


def _digits(value: float) -> str:
    if abs(value) >= 10:
        return f"{value:.0f}"
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.1g}"
