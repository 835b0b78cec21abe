"""The paper's metrics: accuracy, fidelity, conv and eff."""

from __future__ import annotations

from typing import Any

import numpy as np


def accuracy(y: Any, predicted: Any) -> float:
    """A_C: the share of rows on which a model gives the true label.

    >>> accuracy([0, 1, 1, 0], [0, 1, 0, 0])
    0.75
    """
    return float(np.mean(np.asarray(y) == np.asarray(predicted)))


def fidelity(original: Any, copy: Any) -> float:
    """The share of rows on which copy and original give the same label: 1 minus the empirical fidelity error.

    >>> fidelity(["a", "b"], ["a", "b"])
    1.0
    """
    return accuracy(original, copy)


def convergence(accuracies: Any) -> float:
    """conv: the mean of A(t) over the iterations, divided by its maximum. 1 is a copy that was finished at once.

    >>> convergence([0.5, 1.0, 1.0, 1.0])
    0.875
    """
    curve = np.asarray(accuracies, float)
    highest = curve.max()
    return float(curve.mean() / highest) if highest > 0 else 0.0


def efficiency(kept: Any, n: int) -> float:
    """eff: 1 minus the points used, |S_t| added up, over the points that keeping all would have used, n * t.

    >>> efficiency([100, 200, 300], n=100), efficiency([100, 100, 100], n=100)
    (0.0, 0.5)
    """
    used = np.asarray(kept, float)
    return float(1 - used.sum() / (n * np.arange(1, len(used) + 1)).sum())
