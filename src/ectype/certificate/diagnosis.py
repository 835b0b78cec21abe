"""Why a copy missed its target, and what would make it more faithful.

A target is missed because the original is noisy, the copy too small, or answers or held-out rows are too few. Advice
is given only where it is right nine times in ten: benchmarks/advice.py follows every sentence and prints how often.
Nothing is said of a larger share of the user's own rows, or of answers that would not help: neither was right so often.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from ectype._common.formatting import percent
from ectype.certificate.bounds import lower_bound
from ectype.certificate.certificate import Certificate, LabelShare
from ectype.certificate.repeats import Repeats
from ectype.certificate.trend import BEYOND, SPAN, Trend, clear_trend

# Of held-out rows, up to so many times as many as there were are named; that many show a target as often as this.
FURTHEST, POWER = 20, 0.9
# The share of the held-out error that training error, or the original's noise, has to explain to be the cause.
MOST = 0.5
# A curve is flat where twice as many queries raise it by less than this.
RISE = 0.001
NOISE, CERTIFICATE, CAPACITY, SAMPLES = "noise", "certificate", "capacity", "samples"

# Gains below this are not mentioned, nor differences of less than so many standard errors.
LEAST, ERRORS = 0.0005, 2.0
# A label is rare up to this share of the rows, and missed if the copy agrees on fewer than this share of those. It is
# mentioned from so many answers on: with fewer, the copy may have seen too few rows with it.
RARE, MISSED, ENOUGH = 0.03, 0.5, 1000
BUDGET, SCORES, FAMILY, LABEL = "budget", "scores", "family", "label"


@dataclass(frozen=True)
class Diagnosis:
    """Why a target was missed: the cause, a sentence, and the numbers behind it."""

    cause: str
    """`noise`: the original answers inconsistently; `certificate`: too few held-out rows to show the target;
    `capacity`: the copy underfits its training points; `samples`: it fits them, and needs more."""
    text: str
    held_out_error: float
    training_error: float
    """The share of the points it was trained on that the copy answers otherwise; they are harder than fresh rows, as
    queries go where a copy is unsure. Earlier versions weighted them to be like those."""
    ceiling: float | None
    """The highest fidelity that the original's noise allows."""
    more_queries: int | None = None
    """How many more queries it takes at least, by the trend, where it is clear."""
    certificate_n: int | None = None
    """How many held-out rows would show the target, where there were too few."""


def diagnose(
    target: float,
    proof: Certificate,
    curve: Sequence[tuple[int, float]],
    trained_error: float,
    repeats: Repeats | None,
    whole: bool = False,
) -> Diagnosis:
    """Why the target was missed by the copy of this certificate; `curve` has the error by number of queries.

    `whole` is a copy that is all the answers allow: what it lacks is answers, not size.
    """
    error, level = 1 - proof.estimate, proof.confidence if proof.level is None else proof.level
    ceiling = None if repeats is None else repeats.ceiling
    noise = 0.0 if ceiling is None else 1 - ceiling
    allowed = allowed_error(target, proof.n, level)

    def found(cause: str, text: str, more_queries: int | None = None, certificate_n: int | None = None) -> Diagnosis:
        return Diagnosis(cause, text, error, trained_error, ceiling, more_queries, certificate_n)

    if repeats is not None and repeats.disagreed and (1 - noise < target or noise >= MOST * error > 0):
        return found(NOISE, f"{repeats.text}, and this one does on {percent(proof.estimate)}; lower the target")
    rows = rows_to_show(target, proof.estimate, proof.n, level)
    few, alike = f"{proof.n} held-out rows are too few to show it", percent(proof.estimate)
    if rows:
        text = f"{few} with {alike} of them alike; if that is its true fidelity, {rows} show it {POWER:.0%} of the time"
        return found(CERTIFICATE, f"{text} (certificate_n, --certificate-n)", certificate_n=rows)
    if allowed is None:
        text = f"{few} even if all were alike, and {alike} are; raise certificate_n, or lower the target"
        return found(CERTIFICATE, text)
    wrong = percent(trained_error), percent(error)
    both = f"answers {wrong[0]} of the points it was trained on otherwise, and {wrong[1]} of fresh rows"
    if trained_error >= MOST * error and not whole:
        return found(CAPACITY, f"the copy is too small, or trained too little: it {both}; try to='auto' (--to auto)")
    more, words = further_answers(clear_trend(proof, curve, repeats), error, allowed)
    return found(SAMPLES, f"the copy {both}; {words}", more)


def further_answers(trend: Trend | None, error: float, allowed: float) -> tuple[int | None, str]:
    """How many more answers bring the error down to the allowed one, by the trend; with a sentence that says so."""
    if trend is None or allowed <= 0:
        return None, "how many more answers it takes cannot be told from this run"
    more = trend.further(error, allowed)
    if more is None:
        return None, f"it needs more answers, by the trend of its run more than {BEYOND} times as many as so far"
    if not more:
        return None, "it needs more answers"
    more = _round_down(more)
    return more, f"it needs more answers, by the trend of its run at least {more} more"


def is_flat(curve: Sequence[tuple[int, float]]) -> bool:
    """Whether the mean fidelity of the last rounds is hardly above that of rounds with half as many queries.

    >>> is_flat([(100 * t, 0.95) for t in range(1, 11)]), is_flat([(100 * t, 0.9 + t / 1e3) for t in range(1, 11)])
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
    agreed = _fewest_agreed(target, n, level)
    return None if agreed > n else (n - agreed) / n


def _fewest_agreed(target: float, n: int, level: float) -> int:
    """The fewest of n held-out rows that have to agree to show the target; n + 1 if even all do not."""
    return bisect_left(range(n + 1), target, key=lambda agreed: lower_bound(agreed, n, level))


def rows_to_show(target: float, fidelity: float, n: int, level: float) -> int | None:
    """How many held-out rows mostly show the target, if this is the true fidelity; None if too many to say."""
    from scipy.special import bdtrc

    for rows in np.geomspace(n, FURTHEST * n, 60):
        rows = int(np.ceil(rows / 100) * 100)
        if bdtrc(_fewest_agreed(target, rows, level) - 1, rows, fidelity) >= POWER:
            return rows
    return None


def _round_down(number: int) -> int:
    """A number with two significant digits, since it is an estimate of the least.

    >>> _round_down(1298), _round_down(7)
    (1200, 7)
    """
    unit = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit


@dataclass(frozen=True)
class Advice:
    """A piece of advice: a sentence, and the expected rise of fidelity, where that can be told."""

    about: str
    """`budget`, `scores`, `family` or `label`."""
    text: str
    gain: float | None = None
    """The true one is between half and twice of it nine times in ten."""


def advise(
    proof: Certificate,
    curve: Sequence[tuple[int, float]],
    repeats: Repeats | None = None,
    *,
    scores: bool = False,
    blend: float | None = None,
    choosable: bool = False,
) -> list[Advice]:
    """Advice for a copy of this certificate; `curve` has the error by number of queries.

    `repeats` were asked twice; `scores` were there and not used; `blend` is what the blend of all answers reaches on
    the same rows, if the copy is something else; `choosable`: queries could be about other rows, such as those of a
    rare label.
    """
    error, found = 1 - proof.estimate, list[Advice]()
    spread = (max(error, 1 / proof.n) * proof.estimate / proof.n) ** 0.5
    if blend is not None and blend - proof.estimate > max(LEAST, ERRORS * spread):
        gain = blend - proof.estimate
        text = f"to='blend' (--to blend) agrees on {blend:.4f} of the same rows, {_points(gain)} points more"
        found.append(Advice(FAMILY, text, gain))
    trend = clear_trend(proof, curve, repeats)
    twice = 0.0 if trend is None else trend.gain(error, 2.0)
    if twice >= LEAST:
        low, high = (_points(factor * twice) for factor in SPAN)
        text = f"twice the budget would make it about {_points(twice)} points more faithful, by the trend of this run"
        found.append(Advice(BUDGET, f"{text} ({low} to {high} nine times in ten)", twice))
    if scores and error > LEAST:
        text = "the original gives probabilities, which were not used: with scores=True (--scores) as many queries "
        found.append(Advice(SCORES, f"{text}make a more faithful copy"))
    worst = proof.worst
    if choosable and worst is not None and _is_missed(worst, proof) and curve[-1][0] >= ENOUGH:
        text = f"with draw='balanced' (--draw balanced) the copy would agree on more of the rare label {worst.label!r}"
        found.append(Advice(LABEL, f"{text}, now {worst.agreed} of {worst.n} rows, though perhaps on less of others"))
    return found


def _is_missed(worst: LabelShare, proof: Certificate) -> bool:
    """Whether the worst label is a rare one, and mostly missed."""
    return worst.n <= RARE * proof.sampled and worst.estimate < MISSED


def _points(gain: float) -> str:
    """A share as percentage points, with sensible digits.

    >>> _points(0.0123), _points(0.0007)
    ('1.2', '0.07')
    """
    return f"{100 * gain:.1f}" if gain >= 0.001 else f"{100 * gain:.2f}"
