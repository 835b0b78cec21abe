"""Certificates: how often copy and original agree, with an exact bound, on rows that training never saw."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from understudy.errors import SettingError
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
    """Rows with the original's answers, which no training ever sees."""

    rows: np.ndarray
    answers: np.ndarray
    labels: Labels

    @classmethod
    def draw(cls, queries: Queries, n: int, rng: np.random.Generator) -> HeldOut:
        """Ask the original about n fresh rows."""
        rows, answers = zip(*queries.fresh(n, rng), strict=True)
        return cls(np.concatenate(rows), np.concatenate(answers), queries.original.labels)

    def certify(self, predicted: np.ndarray, confidence: float, look: int | None = None) -> Certificate:
        """The certificate of a copy that predicts these codes; `look` is its number, if more than one is looked at."""
        agree = self.answers == predicted

        def bound(which: np.ndarray, confidence: float) -> Bound:
            n, agreed = int(which.sum()), int((agree & which).sum())
            return Bound(agreed / n, lower_bound(agreed, n, confidence), n)

        total = bound(np.ones(len(agree), bool), look_confidence(confidence, look) if look else confidence)
        seen = np.unique(self.answers)
        per_class = {
            label: bound(self.answers == code, confidence)
            for code, label in zip(seen, self.labels.decode(seen).tolist(), strict=True)
        }
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
    if n < 1:
        raise SettingError("n", "at least one fresh row", n)
    if not 0 < confidence < 1:
        raise SettingError("confidence", "a number between 0 and 1", confidence)
    asked = as_original(original)
    held_out = HeldOut.draw(Queries(asked, space, n), n, np.random.default_rng([seed, _FRESH]))
    predicted = as_original(copy, asked.labels.classes).label(space.present(held_out.rows))
    return held_out.certify(predicted, confidence)


# Its own stream of random numbers, so that no seed makes these rows those of a training run.
_FRESH = 0xCE27
