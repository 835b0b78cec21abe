"""What would make a copy more faithful: more answers, scores, another family, or more rows of the user's own.

Every gain is an estimate from the run itself: the trend of its curve, or models that were measured on the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.certificate.diagnosis import trend_of
from understudy.certificate.values import Certificate

# How many labels a scored answer replaces, in the median: benchmarks/answers.py.
SCORED = 2.3
# Gains below this are not worth a word, and neither are differences below so many standard errors.
LEAST, ERRORS = 0.0005, 2.0
BUDGET, FLAT, SCORES, FAMILY, ROWS = "budget", "flat", "scores", "family", "rows"


@dataclass(frozen=True)
class Advice:
    """What would help, in a sentence, and by how much fidelity is expected to rise, where that can be told."""

    about: str
    """`budget`, `scores`, `family` or `rows`; `flat` where more answers would not help."""
    text: str
    gain: float | None = None


def advised(
    proof: Certificate, curve: Sequence[tuple[int, float]], *, scores: bool = False, blend: float | None = None
) -> list[Advice]:
    """What would help a copy of this certificate; `curve` has the error by number of queries.

    `scores` were there and not used; `blend` is what the blend of all answers reaches on the same rows, if the copy is
    something else.
    """
    error, found = 1 - proof.estimate, list[Advice]()
    spread = (max(error, 1 / proof.n) * proof.estimate / proof.n) ** 0.5
    if blend is not None and blend - proof.estimate > max(LEAST, ERRORS * spread):
        gain = blend - proof.estimate
        text = f"to='blend' (--to blend) agrees on {blend:.4f} of the same rows, {_points(gain)} more"
        found.append(Advice(FAMILY, text, gain))
    found += _of_trend(error, curve, scores)
    own = proof.on_data
    if own is not None and proof.estimate - own.estimate > ERRORS * (own.estimate * (1 - own.estimate) / own.n) ** 0.5:
        text = (
            f"on your own rows the copy agrees on {own.estimate:.4f}, in the space on {proof.estimate:.4f}: a higher "
            "rows_share (--rows-share) asks about more of yours"
        )
        found.append(Advice(ROWS, text))
    return found


def _of_trend(error: float, curve: Sequence[tuple[int, float]], scores: bool) -> list[Advice]:
    """What more answers would bring, or more of each answer."""
    trend = trend_of(curve)
    falls = trend is not None and trend.clear

    def gain(times: float) -> float | None:
        """By how much the error falls with so many times the answers, a standard error less than the trend says."""
        return error * (1 - times ** (trend.slope + trend.doubt)) if trend is not None and trend.clear else None

    found, twice, worth = list[Advice](), gain(2.0), gain(SCORED)
    if twice is not None and twice >= LEAST:
        text = f"twice the budget would make it about {_points(twice)} more faithful, by the trend of this run"
        found.append(Advice(BUDGET, text, twice))
    elif trend is not None and not falls and error > LEAST:
        found.append(Advice(FLAT, "over the last rounds fidelity did not clearly rise: more answers may not help"))
    if scores and error > LEAST:
        here = f", here about {_points(worth)}" if worth else ""
        text = "the original gives probabilities, which were not used: with scores=True (--scores) an answer is worth "
        found.append(Advice(SCORES, f"{text}about {SCORED} labels{here}", worth))
    return found


def _points(gain: float) -> str:
    """A share as percentage points, with sensible digits.

    >>> _points(0.0123), _points(0.0007)
    ('1.2 points', '0.07 points')
    """
    return f"{100 * gain:.1f} points" if gain >= 0.001 else f"{100 * gain:.2f} points"
