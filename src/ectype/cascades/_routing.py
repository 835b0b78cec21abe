"""What is certified of a cascade, as plain values: from which margin on, how often, and of what share of the rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import inf, log, sqrt

import numpy as np

from ectype.cascades import _formatting as formatting
from ectype.cascades._calibration_sample import CalibrationSample
from ectype.cascades._thresholds import Held, certified, enough_rows, fewest, grid_of
from ectype.certificate.certificate import Bound, LabelShare, worst_of
from ectype.types import Json

# The part of the error allowance that is for the share answered alone: that bound is from rows that cost nothing.
FOR_SHARE = 1e-3


@dataclass(frozen=True, repr=False)
class Routing:
    """Which rows a copy answers alone, and what is certified of that; all bounds hold at once, with `confidence`."""

    threshold: float
    """The copy answers where its margin is at least this; infinite if nothing could be certified."""
    agree: float
    """Of the rows that the copy answers alone, it gives the original's label on at least this share."""
    confidence: float
    alone: float
    """The share of rows that the copy answers alone."""
    alone_lower: float
    alone_upper: float
    agreement: Bound | None
    """Copy and original on the rows that the copy answers alone; `lower` is `agree`, since that chose the threshold."""
    overall: Bound
    """The cascade and the original, on all rows: higher, since the other answers are the original's own."""
    source: str
    """What rows it was certified by."""
    queries: int
    """How many of them were asked for it."""
    level: float
    """The confidence of the test: higher, by a Bonferroni correction, where the same rows selected the copy."""
    fewest: int
    """The fewest rows that can certify such an agreement."""
    enough: int | None = None
    """If nothing was certified: about how many rows like these would do; None if no number of them would."""
    worst: LabelShare | None = None
    """The original's label that the cascade misses most often, on all rows."""
    left_out: dict[str, int] = field(default_factory=dict)
    """How many rows of the user's own were left out, by reason, such as that they taught the copy."""

    @classmethod
    def of(cls, evidence: CalibrationSample, agree: float, confidence: float) -> Routing:
        """The most lenient threshold that is certified, and what it comes to."""
        allowance = 1 - confidence
        error = allowance * (1 - FOR_SHARE) / evidence.among
        held, grid, about = evidence.held, grid_of(evidence.grid), evidence.population
        shares = (evidence.grid >= grid[:, None]).mean(axis=1)
        place = certified(held, grid, shares, agree, error)
        threshold = inf if place is None else float(grid[place])
        alone = float((about >= threshold).mean())
        off = 0.0 if place is None else sqrt(log(2 / (FOR_SHARE * allowance)) / (2 * len(about)))
        answered = held.margins >= threshold
        differ = int((answered & ~held.alike).sum())
        n = int(answered.sum())
        upper = min(1.0, alone + off)
        return cls(
            threshold=threshold,
            agree=agree,
            confidence=confidence,
            alone=alone,
            alone_lower=max(0.0, alone - off),
            alone_upper=upper,
            agreement=None if place is None else Bound(1 - differ / n, agree, n),
            overall=Bound(1 - differ / len(held), 1 - (1 - agree) * upper, len(held)),
            source=evidence.source,
            queries=evidence.queries,
            level=1 - error,
            fewest=fewest(agree, error),
            enough=enough_rows(held, grid, agree, error) if place is None else None,
            worst=_worst(held, answered & ~held.alike),
            left_out=evidence.left_out,
        )

    def answers(self, margins: np.ndarray) -> np.ndarray:
        """Which rows the copy answers alone, by its margins."""
        return margins >= self.threshold

    @property
    def advice(self) -> str:
        """What would help, if nothing was certified."""
        return formatting.advice(self)

    def __repr__(self) -> str:
        return f"Routing({formatting.short(self)})"

    def __str__(self) -> str:
        return formatting.text(self)

    def _repr_html_(self) -> str:
        return formatting.html(self)

    def as_json(self) -> Json:
        """As JSON values; no threshold is null."""
        return {**asdict(self), "threshold": None if self.threshold == inf else self.threshold}


def _worst(held: Held, missed: np.ndarray) -> LabelShare | None:
    """The label that a cascade misses most often; it misses none of the rows that it asks about."""
    if held.labels is None:
        return None
    labels, codes, counts = np.unique(held.labels, return_inverse=True, return_counts=True)
    lost = np.bincount(codes[missed], minlength=len(labels))
    return worst_of(
        LabelShare(*one) for one in zip(labels.tolist(), (counts - lost).tolist(), counts.tolist(), strict=True)
    )
