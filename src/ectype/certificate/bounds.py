"""Exact bounds of fidelity on rows that training never saw, and how well probabilities are calibrated on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ectype.certificate.certificate import Bound, Certificate
from ectype.original import Labels

# Groups of rows, by the copy's probability of its own label.
BINS = 15


def lower_bound(agreed: int, n: int, confidence: float = 0.95) -> float:
    """The exact one-sided lower confidence bound of a proportion (Clopper and Pearson, 1934).

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
    """The bound from rows, by whether copy and original agree on each."""
    n, agreed = len(agree), int(agree.sum())
    return Bound(agreed / n, lower_bound(agreed, n, confidence), n)


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, encoded, with the codes of the original's answers."""

    X: np.ndarray
    codes: np.ndarray
    labels: Labels

    def certify(self, predicted: np.ndarray, confidence: float, among: int = 1) -> Certificate:
        """The certificate of a copy that predicts these codes.

        `among` is the number of copies that it was selected from by these very rows: as the best, or as the first to
        reach a target. By a Bonferroni correction (Dunn, 1961), the bounds of all of them hold at once, and so does
        that of the selected one, however it was selected. All were trained without the rows.
        """
        agree = self.codes == predicted
        level = 1 - (1 - confidence) / among
        total, seen = bound_of(agree, level), np.unique(self.codes)
        labels = self.labels.decode(seen).tolist()
        per_class = {
            label: bound_of(agree[self.codes == code], level) for code, label in zip(seen, labels, strict=True)
        }
        proof = Certificate(total.estimate, total.lower, confidence, total.n, per_class, level)
        return proof.among(self.labels.classes.tolist())


def expected_calibration_error(sure: np.ndarray, agree: np.ndarray) -> float:
    """The expected calibration error (ECE): the mean gap between probability and frequency, over bins of probability.

    After Naeini et al. (2015); as in Guo et al. (2017), of the label that is given, in bins of equal width.
    `sure` is the copy's probability of the label it gives, `agree` whether the original gives it too.

    >>> expected_calibration_error(np.array([0.9] * 10), np.array([True] * 9 + [False]))
    0.0
    >>> expected_calibration_error(np.array([1.0] * 10), np.array([True] * 9 + [False]))
    0.1
    """
    group = np.minimum((np.asarray(sure, float) * BINS).astype(int), BINS - 1)
    gap = np.bincount(group, weights=np.asarray(agree, float) - sure, minlength=BINS)
    return round(float(np.abs(gap).sum() / len(group)), 12)
