"""Certificates: how often copy and original agree, with an exact bound, on rows that training never saw."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from understudy import checks
from understudy.original import Labels, as_original
from understudy.queries import Queries
from understudy.space import Space


@dataclass(frozen=True)
class Bound:
    """A fidelity estimate from n rows, with its lower confidence bound."""

    estimate: float
    lower: float
    n: int


@dataclass(frozen=True)
class Certificate:
    """Fidelity on fresh rows of the space: estimate, exact lower bound, and the same for each class of the original.

    With confidence `confidence`, the true fidelity is at least `lower`. Bounds per class hold one at a time.
    """

    estimate: float
    lower: float
    confidence: float
    n: int
    per_class: dict[Any, Bound] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The certificate as JSON values; classes become a list, because JSON keys would lose their type."""
        content = {key: value for key, value in asdict(self).items() if key != "per_class"}
        content["per_class"] = [{"label": label, **asdict(bound)} for label, bound in self.per_class.items()]
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Certificate:
        """Read what `as_json` wrote."""
        classes = {
            entry["label"]: Bound(entry["estimate"], entry["lower"], entry["n"]) for entry in content["per_class"]
        }
        return cls(**{**content, "per_class": classes})


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


def look_confidence(confidence: float, look: int) -> float:
    """The confidence to use at a look 1, 2, ... so that all looks together keep the confidence asked for.

    The error allowed is shared out as 6 / (pi * look)^2, which adds up to 1 over any number of looks. Every copy looked
    at was trained without the held-out rows, so this holds however the run decides when to stop.
    """
    return 1 - (1 - confidence) * 6 / (np.pi * look) ** 2


@dataclass(frozen=True)
class HeldOut:
    """Encoded rows with the codes of the original's answers, which no training ever sees."""

    X: np.ndarray
    codes: np.ndarray
    labels: Labels

    def certify(self, predicted: np.ndarray, confidence: float, look: int | None = None, among: int = 1) -> Certificate:
        """The certificate of a copy that predicts these codes.

        `look` is its number, if the run looks at more than one to see whether it may stop; `among` so many copies it
        was chosen by these very rows, whose bounds are then made to hold all at once.
        """
        agree = self.codes == predicted
        corrected = look_confidence(confidence, look) if look else 1 - (1 - confidence) / among

        def bound(which: np.ndarray) -> Bound:
            n, agreed = int(which.sum()), int((agree & which).sum())
            return Bound(agreed / n, lower_bound(agreed, n, corrected), n)

        total, seen = bound(np.ones(len(agree), bool)), np.unique(self.codes)
        labels = self.labels.decode(seen).tolist()
        per_class = {label: bound(self.codes == code) for code, label in zip(seen, labels, strict=True)}
        return Certificate(total.estimate, total.lower, confidence, total.n, per_class)


def certify(
    copy: Any, original: Any, space: Space, n: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Certificate:
    """Certify any classifier against any original, from n fresh rows of the space.

    >>> sign = lambda rows: rows[:, 0] > 0
    >>> always = lambda rows: [True] * len(rows)
    >>> certify(always, sign, Space.normal(1), n=1000).estimate < 0.6
    True
    """
    n, confidence = checks.count("n", n, 1), checks.fraction("confidence", confidence)
    rng = np.random.default_rng([checks.count("seed", seed, 0), _FRESH])
    asked, copied = as_original(original), as_original(copy, name="copy")
    chunks = Queries(asked, space, {"certificate": n}, seed=seed).fresh("certificate", n, rng)
    pairs = [(answers, copied.answer(space.present(rows)), rows) for rows, answers in chunks]
    answers, predicted, rows = (np.concatenate(part) for part in zip(*pairs, strict=True))
    labels = asked.declared or Labels(answers)
    return HeldOut(rows, labels.encode(answers), labels).certify(labels.find(predicted), confidence)


# Its own stream of random numbers, so that no seed makes these rows those of a training run.
_FRESH = 0xCE27
