"""Whether a copy's probabilities mean what they say."""

from __future__ import annotations

import numpy as np

# Groups of rows, by the copy's probability of its own label.
BINS = 15


def calibration_error(sure: np.ndarray, agree: np.ndarray) -> float:
    """The expected calibration error (ECE): the mean gap between probability and frequency, over bins of probability.

    `sure` is the copy's probability of the label it gives, `agree` whether the original gives it too.

    >>> calibration_error(np.array([0.9] * 10), np.array([True] * 9 + [False]))
    0.0
    >>> calibration_error(np.array([1.0] * 10), np.array([True] * 9 + [False]))
    0.1
    """
    group = np.minimum((np.asarray(sure, float) * BINS).astype(int), BINS - 1)
    gap = np.bincount(group, weights=np.asarray(agree, float) - sure, minlength=BINS)
    return round(float(np.abs(gap).sum() / len(group)), 12)
