"""What the paper's text says of spirals in numbers or comparisons, and whether it comes out here.

Each claim is a row: as quoted, ours with a 95 % interval over runs, and whether the interval meets what the claim
allows. Rows are those of Figures 1 to 5, as `results/` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from understudy.paper.catalogue import Row

Figures = Mapping[str, Sequence[Row]]
# A 95 % interval of a mean, in standard errors.
WIDE = 1.96
# The iterations that "after it settled" is read as.
LATE = range(20, 31)


class Ours(NamedTuple):
    """A number, and half of its interval."""

    value: float
    half: float


Measure = Callable[[Figures], Ours]
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


def mean_of(figure: str, column: str, iterations: Sequence[int], **where: object) -> Measure:
    """A column of the curve that `where` names, over iterations; errors of iterations of a run are as good as one."""

    def measure(figures: Figures) -> Ours:
        rows = [row for row in figures[figure] if row["iteration"] in iterations and where.items() <= row.items()]
        half = [WIDE * row[f"{column}_std"] / max(row["runs"] - 1, 1) ** 0.5 for row in rows]
        return Ours(float(np.mean([row[column] for row in rows])), float(np.mean(half)))

    return measure


def at(figure: str, column: str, iteration: int, **where: object) -> Measure:
    """A column of the curve that `where` names, in one iteration."""
    return mean_of(figure, column, [iteration], **where)


def growth(figure: str, first: int, last: int, **where: object) -> Measure:
    """The points of one iteration as a multiple of those of an earlier one; the interval takes both as independent."""

    def measure(figures: Figures) -> Ours:
        before, after = (at(figure, "points", t, **where)(figures) for t in (first, last))
        ratio = after.value / before.value
        return Ours(ratio, ratio * float(np.hypot(after.half / after.value, before.half / before.value)))

    return measure


def _single(n: int) -> Measure:
    return at("fig1", "accuracy", 1, method="one-shot", queries=n)


PURE = {"method": "pure"}
ONLINE = {"method": "online"}
LEARNS = "ours learns more from as few points; the text gives neither initial weights nor the SVM"
KEPT = "fewer points fall below delta here"
REMEMBERS = "ours forgets little even without memory"

CLAIMS = (
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
    Claim("3", "delta 1e-10, t=30: points", "about 250", at("fig3", "points", 30, delta=1e-10), 200, 300, KEPT),
    Claim(
        "3", "delta 1e-10: points at t=30, of those at t=18", "stable from t=18 on",
        growth("fig3", 18, 30, delta=1e-10), 0.85, 1.15,
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
)  # fmt: skip


def claim_rows(figures: Figures) -> list[Row]:
    """A row for every claim about a figure that is there."""
    return [_row(claim, figures) for claim in CLAIMS if _there(claim, figures)]


def _there(claim: Claim, figures: Figures) -> bool:
    return ("fig1" if claim.figure == "2" else f"fig{claim.figure}") in figures


def _row(claim: Claim, figures: Figures) -> Row:
    ours = claim.measure(figures)
    low, high = (bound(figures).value if callable(bound) else bound for bound in (claim.low, claim.high))
    holds = ours.value + ours.half >= low and ours.value - ours.half <= high
    return {
        "figure": claim.figure,
        "claim": claim.what,
        "quoted": claim.quoted,
        "ours": f"{_digits(ours.value)} ± {_digits(ours.half)}",
        "agrees": "yes" if holds else "no",
        "why": "" if holds else claim.why,
    }


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.3f}"
