"""Which rows of the space a certificate asks about: a plain sample, and more where the copy is unsure.

Rows are free, answers are not. For every row that is asked, a set of rows is drawn, ranked by the copy's margin, and
one of them is taken by its rank (ranked set sampling; McIntyre, 1952). Over all ranks alike, that is a plain random
row of the space, whatever the ranking is worth. So the share of the space that ranks below a cut is known exactly, not
estimated, and the rows taken from below it, and from above, are two independent binomial samples: `buehler` has the
bound of those.
Where the cut is and how many rows are added below it depends on the copy's own probabilities, and on no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ectype.algorithm.uncertainty import margins
from ectype.certificate.bounds import lower_bound
from ectype.certificate.buehler import BuehlerBound, upper_limit
from ectype.certificate.certificate import Stratum

STRATIFIED, PLAIN = "stratified", "plain"
DESIGNS = (STRATIFIED, PLAIN)
# Rows of a set, and those of them that may be near the boundary. Larger sets tell parts apart better, and cost time.
SET, CUTS = 40, (2, 4, 6, 8, 12, 16)
# Shares of the rows that may be added near the boundary. If all differences were elsewhere, these would be lost.
ADDED = (0.0, 0.05, 0.1, 0.15, 0.2)
# The copy's probabilities are believed but for this share, which is spread evenly.
DOUBT = 0.1
# Sets that are ranked at a time.
AT_ONCE = 1000


@dataclass(frozen=True)
class Design:
    """So many of a set's rows are near the boundary, and this share of the rows asked is added there."""

    cut: int = 0
    added: float = 0.0

    @property
    def weights(self) -> tuple[float, float]:
        """The shares of the space near the boundary and away from it."""
        return self.cut / SET, 1 - self.cut / SET

    def sample(self, n: int) -> int:
        """How many of n rows are a plain sample of the space.

        >>> Design(8, 0.2).sample(2000)
        1600
        """
        return n - int(self.added * n)

    def ranks(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """The rank of every row in its set, those of the plain sample first."""
        sample = self.sample(n)
        return np.concatenate([rng.integers(SET, size=sample), rng.integers(max(self.cut, 1), size=n - sample)])

    def width(self, n: float, differ: tuple[float, float], alpha: float) -> float:
        """About how far the bound would be from the estimate, if this share of the rows differed in each part."""
        if not self.cut:
            return float(upper_limit(n * differ[1], n, alpha) - differ[1])
        near = n * (self.weights[0] * (1 - self.added) + self.added)
        parts = zip(self.weights, (near, n - near), differ, strict=True)
        return float(sum((w * (upper_limit(m * q, m, alpha) - q)) ** 2 for w, m, q in parts) ** 0.5)


def order_by_margin(chances: np.ndarray) -> np.ndarray:
    """For sets of rows in turn, by their class probabilities: the positions of each set's rows, by their margins."""
    return margins(np.asarray(chances, float)).reshape(-1, SET).argsort(axis=1, kind="stable")


def choose_design(chances: np.ndarray, n: int, confidence: float) -> Design:
    """The design with the tightest bound that a copy's probabilities promise, from those of unlabelled rows.

    A copy that is everywhere equally sure gets a plain sample.

    >>> choose_design(np.full((400, 2), 0.5), 2000, 0.95)
    Design(cut=0, added=0.0)
    """
    unsure = 1 - np.asarray(chances, float).max(axis=1).reshape(-1, SET)
    by_rank = np.take_along_axis(unsure, order_by_margin(chances), axis=1).mean(axis=0)
    by_rank = (1 - DOUBT) * by_rank + DOUBT * by_rank.mean()

    def width(design: Design) -> float:
        near = float(by_rank[: design.cut].mean()) if design.cut else 0.0
        return design.width(n, (near, float(by_rank[design.cut :].mean())), 1 - confidence)

    return min([Design(), *(Design(cut, added) for cut in CUTS for added in ADDED)], key=width)


def ranked_sets(
    ranks: np.ndarray,
    sample: Callable[[int], np.ndarray],
    chances_of: Callable[[np.ndarray], np.ndarray],
) -> Iterator[np.ndarray]:
    """A row of the space for every rank, each from a set of its own, some at a time."""
    for at in range(0, len(ranks), AT_ONCE):
        some = ranks[at : at + AT_ONCE]
        rows = sample(SET * len(some))
        order = order_by_margin(chances_of(rows))
        yield rows[SET * np.arange(len(some)) + order[np.arange(len(some)), some]]


def strata_of(design: Design, ranks: np.ndarray, agree: np.ndarray) -> tuple[Stratum, ...]:
    """The parts of a design, from the rank of every row and whether copy and original agree on it."""
    near = ranks < design.cut
    places = zip(("near", "away"), design.weights, (near, ~near), strict=True)
    return tuple(Stratum(where, w, int(rows.sum()), int(agree[rows].sum())) for where, w, rows in places if w)


def stratified_bound(strata: tuple[Stratum, ...], confidence: float) -> tuple[float, float]:
    """The unbiased estimate and the exact lower bound; of a part that no row came from, all may differ.

    >>> one = (Stratum("away", 1.0, 2000, 1960),)
    >>> stratified_bound(one, 0.95) == (0.98, lower_bound(1960, 2000))
    True
    """
    known = [part for part in strata if part.n]
    if len(known) == 1:
        (part,) = known
        return part.agreed / part.n, part.weight * lower_bound(part.agreed, part.n, confidence)
    pair, differed = as_binomial_pair(strata)
    return 1 - pair.share(differed), 1 - pair.upper(differed, 1 - confidence)


def as_binomial_pair(strata: tuple[Stratum, ...]) -> tuple[BuehlerBound, tuple[int, int]]:
    """Two strata as a pair of counts, and how many rows differ in each."""
    near, away = strata
    return BuehlerBound((near.weight, away.weight), (near.n, away.n)), (near.n - near.agreed, away.n - away.agreed)
