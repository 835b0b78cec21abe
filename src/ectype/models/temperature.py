"""How sure an original's scores are: where it is never sure, they are sharpened before models learn from them.

A copy has to find where the highest probability changes hands. Scores that are about even everywhere say most about
what happens away from there, and models would spend themselves on that. A power of them moves no boundary.
"""

from __future__ import annotations

import numpy as np

from ectype.algorithm.uncertainty import softmax

# The mean of the highest probabilities, from which on scores are learned as they are.
SURE = 0.75
# Powers beyond this make labels of scores; and how often the interval of powers is halved.
MOST, HALVINGS = 64.0, 30
# What no probability counts as less than.
LEAST = 1e-12


def fit_temperature(p: np.ndarray) -> float:
    """The power of these probabilities under which the highest are 0.75 in the mean; 1 if they are that much already.

    >>> fit_temperature(np.array([[0.9, 0.1]])), round(fit_temperature(np.array([[0.6, 0.4]])), 2)
    (1.0, 2.71)
    """
    low, high = 1.0, MOST
    if _surety(p) >= SURE:
        return low
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _surety(temper(p, middle)) < SURE else (low, middle)
    return high


def temper(p: np.ndarray, power: float) -> np.ndarray:
    """Probabilities to a power, which sum to one again.

    >>> temper(np.array([[0.75, 0.25]], np.float32), 2.0).tolist()
    [[0.8999999761581421, 0.10000000149011612]]
    """
    return p if power == 1.0 else softmax(power * np.log(np.maximum(p, LEAST, dtype=np.float64))).astype(p.dtype)


def _surety(p: np.ndarray) -> float:
    return float(p.max(axis=1).mean())
