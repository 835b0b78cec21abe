"""What is certified of a cascade: the threshold, how often copy and original agree above it, and on what share of rows.

A grid of thresholds is fixed before the held-out rows are looked at. Of the k rows with a margin of at least a
threshold, given k, the number on which copy and original differ is binomial, so that "they agree less often than
wanted" has an exact p-value. The thresholds are tested from strict to lenient, and the most lenient one that is
rejected is taken. The error allowance is shared out between two of them, where the sequence begins; a hypothesis that
is rejected passes what it was tested with on to the next, and one that is kept passes on nothing (the fallback
procedure of Wiens, 2003).

Proof: the outcome is wrong only if a true hypothesis is rejected; until then each true one has been kept, and passed on
nothing, so that the next true one is tested with at most the allowances since the last. These add up to the whole,
however the p-values depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil, inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from ectype.cascades import _formatting as formatting
from ectype.certificate.certificate import Bound, LabelShare, worst_of
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.cascades._calibration_sample import CalibrationSample

# The part of the error allowance that is for the share answered alone: that bound is from rows that cost nothing.
FOR_SHARE = 1e-3
# The shares of the rows that thresholds of the grid leave to the copy: finer where most are.
SHARES = (*(k / 50 for k in range(1, 45)), *(k / 100 for k in range(90, 101)))
# How many times the fewest rows the strictest threshold leaves the copy.
MORE = 1.1


@dataclass(frozen=True)
class HeldOutMargins:
    """Held-out rows: the copy's margins, and on which of them it gives the original's label."""

    margins: np.ndarray
    alike: np.ndarray
    labels: np.ndarray | None = None
    """The original's, where they are known."""

    def __len__(self) -> int:
        return len(self.margins)

    def counts(self, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For every threshold, the rows with at least this margin, and those of them on which the two differ.

        >>> held = HeldOutMargins(np.array([0.9, 0.5, 0.1]), np.array([True, False, True]))
        >>> [found.tolist() for found in held.counts(np.array([0.9, 0.2]))]
        [[1, 2], [0, 1]]
        """
        place = np.searchsorted(-grid, -self.margins)
        rows = np.bincount(place, minlength=len(grid) + 1)
        differ = np.bincount(place[~self.alike], minlength=len(grid) + 1)
        return rows[:-1].cumsum(), differ[:-1].cumsum()


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
    """The kind of rows that certified it."""
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
    def of(cls, sample: CalibrationSample, agree: float, confidence: float) -> Routing:
        """The most lenient threshold that is certified, and what it comes to."""
        allowance = 1 - confidence
        error = allowance * (1 - FOR_SHARE) / sample.among
        held, grid, about = sample.held, threshold_grid(sample.grid), sample.population
        shares = (sample.grid >= grid[:, None]).mean(axis=1)
        place = last_certified(held, grid, shares, agree, error)
        threshold = inf if place is None else float(grid[place])
        alone = float((about >= threshold).mean())
        # Holds for all thresholds at once (Dvoretzky, Kiefer and Wolfowitz, 1956; Massart, 1990): this one was chosen.
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
            source=sample.source,
            queries=sample.queries,
            level=1 - error,
            fewest=fewest_rows(agree, error),
            enough=enough_rows(held, grid, agree, error) if place is None else None,
            worst=_worst(held, answered & ~held.alike),
            left_out=sample.left_out,
        )

    def answers(self, margins: np.ndarray) -> np.ndarray:
        """Which rows the copy answers alone, by its margins."""
        return margins >= self.threshold

    @property
    def advice(self) -> str:
        """Advice, if nothing was certified; else empty."""
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


def _worst(held: HeldOutMargins, missed: np.ndarray) -> LabelShare | None:
    """The label that a cascade misses most often; it misses none of the rows that it asks about."""
    if held.labels is None:
        return None
    labels, codes, counts = np.unique(held.labels, return_inverse=True, return_counts=True)
    lost = np.bincount(codes[missed], minlength=len(labels))
    return worst_of(
        LabelShare(*one) for one in zip(labels.tolist(), (counts - lost).tolist(), counts.tolist(), strict=True)
    )


def fewest_rows(agree: float, error: float) -> int:
    """The fewest rows that can certify it: so many without a difference.

    >>> fewest_rows(0.995, 0.05), fewest_rows(0.999, 0.05)
    (598, 2995)
    """
    return ceil(log(error) / log(agree))


def threshold_grid(margins: np.ndarray, shares: Sequence[float] = SHARES) -> np.ndarray:
    """Thresholds from strict to lenient, from margins of other rows than those that test them.

    >>> threshold_grid(np.linspace(0, 1, 101), (0.1, 0.5, 1.0)).round(2).tolist()
    [0.9, 0.5, 0.0]
    """
    found = np.unique(np.quantile(margins, 1 - np.asarray(shares), method="lower"))[::-1]
    found[-1] = min(found[-1], 0.0) if max(shares) == 1 else found[-1]  # the last one leaves it all rows
    return found


def p_values(rows: np.ndarray, differ: np.ndarray, agree: float) -> np.ndarray:
    """Exact binomial p-values: how likely at most so many differences are, if the two agree on a share of `agree`."""
    from scipy.special import betainc

    alike = rows - differ
    return np.where(alike > 0, betainc(np.maximum(alike, 1), differ + 1, agree), 1.0)


def last_rejection(p: np.ndarray, allowances: np.ndarray) -> int | None:
    """The last place that the fallback procedure (Wiens, 2003) rejects; None if there is none.

    >>> last_rejection(np.array([0.9, 0.01, 0.04, 0.06, 0.01]), np.array([0.0, 0.05, 0.0, 0.0, 0.0]))
    2
    """
    last, carried = None, 0.0
    for place, own in enumerate(allowances.tolist()):
        level = carried + own
        rejected = 0 < level >= p[place]
        last, carried = (place, level) if rejected else (last, 0.0)
    return last


def split_allowance(shares: np.ndarray, n: int, agree: float, error: float) -> np.ndarray:
    """The error allowance, shared out between the places where the sequence begins.

    Half is for a strict threshold that leaves the copy just more of n rows than the fewest that can certify anything;
    there a single difference ends the sequence. Half is for the geometric mean of those and n, where most copies pass
    at once. Chosen on the even half of the UCI problems and on half of the originals of benchmarks/originals.py.
    """
    usual = sqrt(n * fewest_rows(agree, error))
    strict = min(usual, MORE * fewest_rows(agree, error / 2))
    found = np.zeros(len(shares))
    for wanted in (strict, usual):
        enough = np.flatnonzero(shares * n >= wanted)
        found[enough[0] if len(enough) else -1] += error / 2
    return found


def last_certified(
    held: HeldOutMargins, grid: np.ndarray, shares: np.ndarray, agree: float, error: float
) -> int | None:
    """The place of the most lenient threshold that is certified; `shares` are those that the grid leaves the copy."""
    return last_rejection(p_values(*held.counts(grid), agree), split_allowance(shares, len(held), agree, error))


def enough_rows(held: HeldOutMargins, grid: np.ndarray, agree: float, error: float, most: int = 10**7) -> int | None:
    """About how many rows like these would certify some threshold; None if no number would."""
    rows, differ = held.counts(grid)
    seen = rows >= min(20, len(held))
    better = seen & (differ < (1 - agree) * rows)
    n = fewest_rows(agree, error)
    while n <= most and better.any():
        times = n / len(held)
        if (p_values(np.floor(times * rows[better]), np.ceil(times * differ[better]), agree) <= error).any():
            return n
        n = ceil(1.25 * n)
    return None
