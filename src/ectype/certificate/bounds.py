"""Exact (Clopper-Pearson) bounds of fidelity, on rows that training never saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ectype.certificate.certificate import Bound, Certificate
from ectype.original import Labels


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
        reach a target. By a Bonferroni correction, the bounds of all of them hold at once, and so does that of the
        selected one, however it was selected. All were trained without the rows.
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
