"""Why a target was missed: a noisy original, a copy too small, too few answers, or too few held-out rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from understudy.algorithm.samples import Samples
from understudy.algorithm.uncertainty import margins
from understudy.certificate.bounds import lower_bound
from understudy.certificate.values import Certificate
from understudy.models.base import Model

# Trends are extrapolated to at most so many times what they were seen on.
FURTHEST = 20
# Strata of the held-out rows, by margin, by which training points are weighted.
STRATA = 5
# The share of the held-out error that training error, or the original's noise, has to explain to be the cause.
MOST = 0.5
# A curve is flat where twice as many queries raise it by less than this.
RISE = 0.001
NOISE, CERTIFICATE, CAPACITY, SAMPLES = "noise", "certificate", "capacity", "samples"


@dataclass(frozen=True)
class Diagnosis:
    """Why a target was missed: the cause, a sentence, and the numbers behind it."""

    cause: str
    """`noise`: the original answers inconsistently; `certificate`: too few held-out rows to show the target;
    `capacity`: the copy underfits its training points; `samples`: it fits them, and needs more."""
    text: str
    held_out_error: float
    training_error: float
    """Over all paid points, post-stratified by margin to the held-out rows."""
    ceiling: float | None
    """The highest fidelity that the original's noise allows."""
    more_queries: int | None = None
    """How many more queries the trend suggests, where it is clear."""
    certificate_n: int | None = None
    """How many held-out rows would show the target, where there were too few."""


def diagnosed(
    target: float,
    proof: Certificate,
    curve: Sequence[tuple[int, float]],
    trained_error: float,
    ceiling: float | None,
    whole: bool = False,
) -> Diagnosis:
    """Why the target was missed by the copy of this certificate; `curve` has the error by number of queries.

    `whole` is a copy that is all the answers allow: what it lacks is answers, not size.
    """
    error, level = 1 - proof.estimate, proof.confidence if proof.level is None else proof.level
    noise = 0.0 if ceiling is None else 1 - ceiling
    allowed = allowed_error(target, proof.n, level)

    def found(cause: str, text: str, more_queries: int | None = None, certificate_n: int | None = None) -> Diagnosis:
        return Diagnosis(cause, text, error, trained_error, ceiling, more_queries, certificate_n)

    if ceiling is not None and (ceiling < target or noise >= MOST * error > 0):
        text = (
            f"the original does not always answer alike: no copy can be expected to agree with it on more than "
            f"{ceiling:.2%} of rows, and this one does on {proof.estimate:.2%}; lower the target"
        )
        return found(NOISE, text)
    rows = rows_to_show(target, proof.estimate, proof.n, level)
    if allowed is None or rows:
        advice = f"; about {rows} would" if rows else "; raise certificate_n, or lower the target"
        text = f"{proof.n} held-out rows are too few to show it, with {proof.estimate:.2%} of them alike{advice}"
        return found(CERTIFICATE, text, certificate_n=rows)
    both = f"{trained_error:.2%} of the points it was trained on are answered otherwise, and {error:.2%} of fresh rows"
    more, why = further_queries(curve, error, allowed)
    trend = f"the trend suggests {more} more queries at least" if more else f"how many more cannot be told: {why}"
    if trained_error >= MOST * error and not whole:
        cause, text = CAPACITY, f"the copy is too small, or trained too little: {both}; try larger layers, a longer "
        text += "schedule, or to='auto' (--to auto)" + (f"; else {trend}" if more else "")
    else:
        cause, text = SAMPLES, f"the copy needs more answers: {both}; {trend}"
    return found(cause, text, more)


def flattened(curve: Sequence[tuple[int, float]]) -> bool:
    """Whether the mean fidelity of the last rounds is hardly above that of rounds with half as many queries.

    >>> flattened([(100 * t, 0.95) for t in range(1, 11)]), flattened([(100 * t, 0.9 + t / 1e3) for t in range(1, 11)])
    (True, False)
    """
    n = curve[-1][0]
    late = [fidelity for queries, fidelity in curve if queries > 0.7 * n]
    early = [fidelity for queries, fidelity in curve if 0.3 * n < queries <= 0.5 * n]
    return len(late) > 1 and len(early) > 1 and fmean(late) - fmean(early) < RISE


def allowed_error(target: float, n: int, level: float) -> float | None:
    """The highest error on n held-out rows that still shows the target; None if even an error of 0 does not.

    >>> allowed_error(0.9, 100, 0.95), allowed_error(0.99, 100, 0.95)
    (0.04, None)
    """
    agreed = bisect_left(range(n + 1), target, key=lambda agreed: lower_bound(agreed, n, level))
    return None if agreed > n else (n - agreed) / n


def rows_to_show(target: float, fidelity: float, n: int, level: float) -> int | None:
    """How many held-out rows would show the target at this fidelity; None if too many to say."""
    for rows in np.geomspace(n, FURTHEST * n, 60):
        rows = int(np.ceil(rows / 100) * 100)
        if lower_bound(int(fidelity * rows), rows, level) >= target:
            return rows
    return None


def further_queries(curve: Sequence[tuple[int, float]], error: float, allowed: float) -> tuple[int | None, str]:
    """How many more queries bring the error down to what is allowed, by the power law of its learning curve.

    The exponent is fitted to the later rounds and taken a standard error flatter, since learning curves tend to
    flatten. None, and the reason, where there is no clear fall, or it would have to be extrapolated too far.
    """
    trend = trend_of(curve)
    if trend is None:
        return None, "too few rounds to see a trend"
    if not trend.clear or allowed <= 0:
        return None, "over the last rounds, fidelity did not clearly rise"
    times = float(error / allowed) ** min(-1 / (trend.slope + trend.doubt), 50.0)
    if times > FURTHEST:
        return None, f"at the present trend it would take more than {FURTHEST} times as many as so far"
    return int(_rounded_up(curve[-1][0] * (times - 1))), ""


class Trend(NamedTuple):
    """The power of the number of queries by which the error falls, and the standard error of that power."""

    slope: float
    doubt: float

    @property
    def clear(self) -> bool:
        """Whether it does fall."""
        return self.slope + 2 * self.doubt < 0


def trend_of(curve: Sequence[tuple[int, float]]) -> Trend | None:
    """The trend of the error over the later rounds; None if these are too few."""
    queries, errors = np.array(curve, float).T
    late = (queries >= queries[-1] / 4) & (errors > 0)
    if late.sum() < 4:
        return None
    x, y = np.log(queries[late]), np.log(errors[late])
    line = np.polyfit(x, y, 1)
    rest = y - np.polyval(line, x)
    return Trend(float(line[0]), float(np.sqrt((rest**2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum())))


def _rounded_up(number: float) -> float:
    """A number rounded up to two significant digits, since it is an estimate.

    >>> _rounded_up(1234.0), _rounded_up(7.2)
    (1300.0, 8.0)
    """
    unit = 10.0 ** max(0, np.floor(np.log10(max(number, 1.0))) - 1)
    return float(np.ceil(number / unit) * unit)


def training_error(model: Model, paid: Samples, fresh: np.ndarray) -> float:
    """The share of paid points that a model gets wrong, as if they had been drawn like the fresh rows.

    Queries go where a copy is unsure, so paid points are harder than fresh rows. They are post-stratified by margin:
    each stratum counts by its share of the fresh rows.
    """
    chances = model.probabilities(paid.X)
    wrong, seen, there = chances.argmax(axis=1) != paid.y, margins(chances), margins(model.probabilities(fresh))
    edges = np.quantile(there, np.arange(1, STRATA) / STRATA)
    own, others = np.searchsorted(edges, seen), np.searchsorted(edges, there)
    known = [k for k in range(STRATA) if (own == k).any()]
    weights = np.array([(others == k).mean() for k in known])
    if not weights.any():
        return float(wrong.mean())
    return float(np.average([wrong[own == k].mean() for k in known], weights=weights))
