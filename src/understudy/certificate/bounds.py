"""Exact bounds of how often copy and original agree, on rows that training never saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.certificate.values import Bound, Certificate
from understudy.original import Labels


def lower_bound(agreed: int, n: int, confidence: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided lower confidence bound of a proportion.

    >>> round(lower_bound(1960, 2000), 4)
    0.974
    >>> lower_bound(0, 10)
    0.0
    """
    if agreed == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(agreed, n - agreed + 1, 1 - confidence))


def bound_of(agree: np.ndarray, confidence: float) -> Bound:
    """The bound that rows show, of which it is known whether copy and original agree."""
    n, agreed = len(agree), int(agree.sum())
    return Bound(agreed / n, lower_bound(agreed, n, confidence), n)


@dataclass(frozen=True)
class HeldOut:
    """Encoded rows with the codes of the original's answers, which no training ever sees."""

    X: np.ndarray
    codes: np.ndarray
    labels: Labels

    def certify(self, predicted: np.ndarray, confidence: float, among: int = 1) -> Certificate:
        """The certificate of a copy that predicts these codes.

        `among` so many copies it was chosen by these very rows: because it was the best, or the first of them to reach
        a target. All were trained without the rows, and the error allowed is shared out evenly, so that the bounds of
        all of them hold at once, and that of the chosen one too, however it was chosen.
        """
        agree = self.codes == predicted
        level = 1 - (1 - confidence) / among
        total, seen = bound_of(agree, level), np.unique(self.codes)
        labels = self.labels.decode(seen).tolist()
        per_class = {
            label: bound_of(agree[self.codes == code], level) for code, label in zip(seen, labels, strict=True)
        }
        return Certificate(total.estimate, total.lower, confidence, total.n, per_class, level)
