"""What would make a copy more faithful: more answers, scores, another family, or asking for a rare label.

It is said only where it is right nine times in ten: benchmarks/advice.py follows every sentence and prints how often.
Nothing is said of a larger share of the user's own rows, or of answers that would not help: neither was right so often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ectype.certificate.certificate import Certificate, LabelShare
from ectype.certificate.repeats import Repeats
from ectype.certificate.trend import SPAN, telling

# Gains below this are not worth a word, and neither are differences below so many standard errors.
LEAST, ERRORS = 0.0005, 2.0
# A label is rare up to this share of the rows, and missed if the copy agrees on fewer than this share of those. Before
# so many answers, it may as well be that there are too few of it to know where to look.
RARE, MISSED, ENOUGH = 0.03, 0.5, 1000
BUDGET, SCORES, FAMILY, LABEL = "budget", "scores", "family", "label"


@dataclass(frozen=True)
class Advice:
    """What would help, in a sentence, and by how much fidelity is expected to rise, where that can be told."""

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
    """What would help a copy of this certificate; `curve` has the error by number of queries.

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
    trend = telling(proof, curve, repeats)
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
