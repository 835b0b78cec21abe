"""The learning curve of a run as a power law: how the error falls with the number of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ectype.certificate.certificate import Certificate
from ectype.certificate.repeats import Repeats

# By which power of the answers errors usually fall. Of few rounds, what they say is only half of what is believed.
USUAL = -0.25
# Nine times in ten, what the trend says of twice the answers is right within these factors, and it takes at least this
# share of the answers that it says, up to so many times as many as there are; where it says more than that, it takes
# more than `BEYOND` times as many. Chosen on half of the originals of benchmarks/advice.py, which prints how it is.
SPAN, SHARE, FURTHEST, BEYOND = (0.5, 2.0), 0.7, 4.0, 3
# A copy that makes more than this share of the mistakes of always answering the commonest label has not found yet what
# it is to learn, and its rounds do not tell when it will.
LEARNED = 0.6


class Trend(NamedTuple):
    """The power of the number of answers by which the error falls, and the standard error of that power."""

    answers: int
    """How many there are."""
    slope: float
    standard_error: float

    @property
    def clear(self) -> bool:
        """Whether it does fall."""
        return self.slope + 2 * self.standard_error < 0

    @property
    def power(self) -> float:
        """The power to go by: between a slope a standard error flatter, since curves flatten, and the usual one."""
        return (self.slope + self.standard_error + USUAL) / 2

    def gain(self, error: float, times: float) -> float:
        """By how much this error falls with so many times the answers."""
        return error * (1 - times**self.power)

    def further(self, error: float, allowed: float) -> int | None:
        """How many more answers it takes at least until an error is as low as allowed; None if too many to say."""
        times = float(error / allowed) ** min(-1 / self.power, 50.0)
        return None if times > FURTHEST else max(0, int(self.answers * (SHARE * times - 1)))


def clear_trend(proof: Certificate, curve: Sequence[tuple[int, float]], repeats: Repeats | None) -> Trend | None:
    """The trend of a run, if it predicts what more answers bring.

    It has to be clear, and the copy well above the majority baseline. Where the original was seen
    to answer otherwise when asked again, part of the error is its noise, and no answers lower that.
    """
    known = proof.baseline is None or 1 - proof.estimate <= LEARNED * (1 - proof.baseline.estimate)
    found = None if repeats is not None and repeats.disagreed else trend_of(curve)
    return found if known and found is not None and found.clear else None


def trend_of(curve: Sequence[tuple[int, float]]) -> Trend | None:
    """The trend of the error over the later rounds, which are answers and errors; None if these are too few.

    >>> trend_of([(100 * t, t**-0.5) for t in range(1, 9)]).slope
    -0.5
    >>> trend_of([(100, 0.2), (200, 0.1)])
    """
    answers, errors = np.array(curve, float).T
    late = (answers >= answers[-1] / 4) & (errors > 0)
    if late.sum() < 4:
        return None
    x, y = np.log(answers[late]), np.log(errors[late])
    line = np.polyfit(x, y, 1)
    rest = y - np.polyval(line, x)
    standard_error = float(np.sqrt((rest**2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum()))
    return Trend(int(answers[-1]), round(float(line[0]), 12), standard_error)
