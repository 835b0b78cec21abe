"""Certificates: how often copy and original agree, with an exact bound, on rows that training never saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from understudy.differences import Differences
from understudy.original import Labels


@dataclass(frozen=True)
class Bound:
    """A fidelity estimate from n rows, with its lower confidence bound."""

    estimate: float
    lower: float
    n: int


@dataclass(frozen=True)
class Certificate:
    """Fidelity on fresh rows of the space: estimate, exact lower bound, and the same for parts of the rows.

    With confidence `confidence`, the true fidelity is at least `lower`. Bounds of parts hold one at a time.
    """

    estimate: float
    lower: float
    confidence: float
    n: int
    per_class: dict[Any, Bound] = field(default_factory=dict)
    """By the label that the original gives."""
    level: float | None = None
    """The confidence that each bound was computed at: higher, where the copy was chosen among some by the same rows."""
    margin: float | None = None
    """What is near the boundary: rows whose two likeliest labels the copy gives chances less than this apart."""
    near: Bound | None = None
    away: Bound | None = None
    differences: Differences | None = None
    on_data: Certificate | None = None
    """The same for rows that the user gave; its bounds are about the population that those are a random sample of."""
    distinct: int | None = None
    """Of rows that the user gave: how many of them are different."""
    left_out: int | None = None
    """Of rows that the user gave: how many more have levels that the space does not know, and were not asked about."""

    def as_json(self) -> dict[str, Any]:
        """The certificate as JSON values; classes become a list, because JSON keys would lose their type."""
        content = {part.name: getattr(self, part.name) for part in fields(self)}
        content["per_class"] = [{"label": label, **asdict(bound)} for label, bound in self.per_class.items()]
        for name in ("near", "away"):
            content[name] = None if content[name] is None else asdict(content[name])
        for name in ("differences", "on_data"):
            content[name] = None if content[name] is None else content[name].as_json()
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Certificate:
        """Read what `as_json` wrote, now or before it knew of parts beyond classes."""
        readers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "near": lambda part: Bound(**part),
            "away": lambda part: Bound(**part),
            "differences": Differences.from_json,
            "on_data": cls.from_json,
        }
        parts = {name: read(content[name]) for name, read in readers.items() if content.get(name) is not None}
        classes = {
            entry["label"]: Bound(entry["estimate"], entry["lower"], entry["n"]) for entry in content["per_class"]
        }
        return cls(**{**content, **parts, "per_class": classes})


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
