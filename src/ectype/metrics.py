"""The paper's metrics: accuracy, fidelity, conv and eff.

>>> fidelity(["a", "b"], ["a", "a"])
0.5
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ectype.errors import SettingError


def accuracy(y: ArrayLike, predicted: ArrayLike) -> float:
    """A_C: the share of rows on which a model gives the true label.

    >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    truth, found = np.asarray(y), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != found.shape or len(truth) == 0:
        raise SettingError("labels", "two lists of the same length", f"shapes {truth.shape} and {found.shape}")
    return float(np.mean(truth == found))


def fidelity(original: ArrayLike, copy: ArrayLike) -> float:
    """The share of rows on which copy and original give the same label: 1 minus the empirical fidelity error.

    >>> fidelity(["a", "b"], ["a", "b"])
    1.0
    """
    return accuracy(original, copy)


def convergence(accuracies: ArrayLike) -> float:
    """conv: the mean of A(t) over the iterations, divided by its maximum. 1: no iteration is worse than the best.

    >>> convergence([0.5, 1.0, 1.0, 1.0])
    0.875
    """
    curve = _curve("accuracies", accuracies)
    highest = curve.max()
    return float(curve.mean() / highest) if highest > 0 else 0.0


def efficiency(kept: ArrayLike, n: int | ArrayLike) -> float:
    """eff: 1 - sum |S_t| / sum n * t, the share of points saved against keeping all.

    n are the new points of an iteration; where they are not as many in each, a list of them.

    >>> efficiency([100, 200, 300], n=100), efficiency([100, 100, 100], n=100)
    (0.0, 0.5)
    >>> efficiency([100, 100], n=[100, 300])
    0.6
    """
    used = _curve("kept", kept)
    try:
        made = np.broadcast_to(np.asarray(n, float), used.shape).cumsum()
    except ValueError as error:
        raise SettingError("n", f"one number, or {len(used)}", f"an array of shape {np.shape(n)}") from error
    return float(1 - used.sum() / made.sum())


def _curve(name: str, values: ArrayLike) -> np.ndarray:
    curve = np.asarray(values, float)
    if curve.ndim != 1 or len(curve) == 0:
        raise SettingError(name, "one number per iteration", f"an array of shape {curve.shape}")
    return curve
