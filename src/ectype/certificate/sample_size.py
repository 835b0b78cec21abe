"""The sample size for a wanted width of a certificate, at the fidelity that was estimated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ectype.certificate.certificate import Certificate
from ectype.certificate.differences import NEAR
from ectype.certificate.stratified import ADDED, PLAIN, SET, STRATIFIED, Design

# Beyond this many rows, a number would be a guess.
MOST = 10**9


@dataclass(frozen=True)
class SampleSize:
    """About how many rows, by design, would put the bound of a certificate so far below its estimate."""

    width: float
    now: float
    n: int
    rows: dict[str, int]
    """In all; a design is left out if too little is known of it, or if it would take more than a thousand million."""

    @property
    def further(self) -> dict[str, int]:
        """How many more than were asked; none if fewer would do."""
        return {design: max(0, n - self.n) for design, n in self.rows.items()}

    @property
    def text(self) -> str:
        """The plan in a sentence."""
        start = f"the bound is {self.now:.4f} below the estimate; for {self.width:.4f} it would take about"
        each = (f"{n} rows, {self.further[design]} more ({design})" for design, n in self.rows.items())
        return f"{start} {' or '.join(each)}" if self.rows else f"{start} too many rows to say"

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"width": self.width, "now": self.now, "rows": self.rows, "further": self.further}


def sample_size_for(proof: Certificate, width: float | None = None) -> SampleSize:
    """How many rows a width of a certificate would take; without one, half of what it is.

    At the same fidelity, and for a certificate from the start: rows of two certificates must not be added up after the
    first was looked at. A plain certificate has the shares near the boundary and away from it, from which the
    stratified form is estimated; without these, only its own is.

    >>> sample_size_for(Certificate(0.98, 0.974, 0.95, 2000), 0.003).rows
    {'plain': 6902}
    """
    width = proof.width / 2 if width is None else width
    alpha = 1 - (proof.confidence if proof.level is None else proof.level)
    found = {PLAIN: _smallest(lambda n: Design().width(n, (0.0, 1 - proof.estimate), alpha) <= width)}
    parts = _parts(proof)
    if parts is not None:
        design, shares = parts
        # The exact bound is a little tighter than the limit that orders outcomes.
        scale = proof.width / design.width(proof.n, shares, alpha) if proof.strata else 1.0
        found = {STRATIFIED: _smallest(lambda n: scale * design.width(n, shares, alpha) <= width), **found}
    return SampleSize(width, proof.width, proof.n, {design: n for design, n in found.items() if n <= MOST})


def _parts(proof: Certificate) -> tuple[Design, tuple[float, float]] | None:
    """A stratified design with the shares that differ near the boundary and away from it, if they are known."""
    if len(proof.strata) == 2 and all(part.n for part in proof.strata):
        near, away = proof.strata
        design = Design(round(near.weight * SET), 1 - proof.sampled / proof.n)
        return design, (1 - near.agreed / near.n, 1 - away.agreed / away.n)
    if proof.near is None or proof.away is None:
        return None
    return Design(round(NEAR * SET), ADDED[-1]), (1 - proof.near.estimate, 1 - proof.away.estimate)


def _smallest(enough: Callable[[int], bool]) -> int:
    """The smallest number that is enough, given that any larger one is, too; one more than MOST at the most."""
    low, high = 0, 1
    while high <= MOST and not enough(high):
        low, high = high, 2 * high
    high = min(high, MOST + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
