"""An exact bound from two binomial counts (Buehler, 1957): rows near a copy's boundary, and rows away from it.

The share that differs is w1 q1 + w2 q2: the weights are known, the two shares are not. Outcomes are ordered by an
approximate upper limit of it, and the bound is the largest total at which an outcome no higher than the one
seen still has a chance of alpha, whatever the two shares are that make up this total. So it holds for all of them, not
in the limit of many rows but for these. No bound that respects the order is tighter. With one part it is
that of Clopper and Pearson (1934).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# The search ends when the bound is known to this share of its distance from the estimate; what is left is added to it.
CLOSE = 2e-3
# Cells that the search begins with, rounds of halving, and cells to halve in one. To end by these is safe, less tight.
CELLS, ROUNDS, MANY = 16, 24, 1000
# What rounding may do to a chance, or to the order of outcomes.
ROUNDING = 1e-9
# Counts further than so many standard deviations from what is expected are left out: less than ROUNDING together.
FAR = 8.0
TINY = 1e-16


def upper_limit(differed: np.ndarray | float, n: np.ndarray | float, alpha: float) -> np.ndarray:
    """The upper confidence limit of a share (Clopper and Pearson, 1934); counts need not be whole.

    >>> upper_limit(np.array([0, 59]), 59, 0.05).round(3).tolist()
    [0.05, 1.0]
    """
    from scipy.special import betaincinv

    x, n = np.asarray(differed, float), np.asarray(n, float)
    return np.where(x < n, betaincinv(x + 1, np.maximum(n - x, ROUNDING), 1 - alpha), 1.0)


@dataclass(frozen=True)
class BuehlerBound:
    """Two parts of the space with their weights, and the number of rows asked in each."""

    weights: tuple[float, float]
    n: tuple[int, int]

    def share(self, differed: tuple[float, float]) -> float:
        """The unbiased estimate of the share of the space on which copy and original differ."""
        return float(sum(w * x / n for w, x, n in zip(self.weights, differed, self.n, strict=True)))

    def approximate(self, first: np.ndarray | float, second: np.ndarray | float, alpha: float) -> np.ndarray:
        """The upper limit that orders outcomes: both parts' own limits, their distances added as squares.

        This is the method of variance estimates recovery (MOVER; Zou and Donner, 2008).
        It rises with either count: a limit rises with its count, so its distance falls by less than the share rises.
        """
        total, squares = np.zeros(()), np.zeros(())
        for w, n, x in zip(self.weights, self.n, (first, second), strict=True):
            share = np.asarray(x, float) / n
            total, squares = total + w * share, squares + (w * (upper_limit(x, n, alpha) - share)) ** 2
        return total + np.sqrt(squares)

    def upper(self, differed: tuple[int, int], alpha: float) -> float:
        """The exact upper bound of the share that differs.

        >>> BuehlerBound((0.2, 0.8), (700, 1300)).upper((90, 5), 0.05) < float(upper_limit(60, 2000, 0.05))
        True
        """
        return min(1.0, _Search(self, self._outcomes(differed, alpha), alpha).top(self.share(differed)))

    def _outcomes(self, differed: tuple[int, int], alpha: float) -> np.ndarray:
        """All outcomes no higher than this one: for every first count that occurs, the largest second."""
        seen = float(self.approximate(*differed, alpha)) * (1 + ROUNDING)
        first = np.arange(_largest(lambda x: self.approximate(x, 0, alpha) <= seen, np.array([self.n[0]]))[0] + 1)
        most = np.full(len(first), self.n[1])
        return _largest(lambda x: self.approximate(first, x, alpha) <= seen, most)


def _largest(holds: Callable[[np.ndarray], np.ndarray], most: np.ndarray) -> np.ndarray:
    """For every entry, the largest count up to `most` for which it holds, given that it holds for 0."""
    low, high = np.zeros_like(most), most + 1
    while (high - low > 1).any():
        middle = (low + high) // 2
        fine = holds(middle)
        low, high = np.where(fine, middle, low), np.where(fine, high, middle)
    return low


class _Search:
    """The largest total of two shares at which these outcomes have a chance of alpha or more.

    `second(q1)`, the largest q2 for a q1, falls with q1. So over a cell [a, b] of q1 the total is at most
    w1 b + w2 second(a), and cells that cannot hold the largest are left. All that is known of `second` are brackets,
    and the upper ends are used: what is returned is never below the largest total.
    """

    def __init__(self, pair: BuehlerBound, outcomes: np.ndarray, alpha: float):
        self.pair, self.outcomes, self.alpha = pair, outcomes, alpha
        self.parts = [_Binomial(n) for n in pair.n]
        last = float(upper_limit(len(outcomes) - 1, pair.n[0], alpha))
        self.q = np.linspace(0, last, CELLS + 1)
        highest = float(upper_limit(outcomes[0], pair.n[1], alpha))
        self.low, self.high = self._bisect(self.q, np.zeros(CELLS + 1), np.full(CELLS + 1, highest), 8)

    def top(self, estimate: float) -> float:
        """The largest total, from above; how close depends on its distance from the estimate."""
        w1, w2 = self.pair.weights
        for _ in range(ROUNDS):
            most, least = w1 * self.q[1:] + w2 * self.high[:-1], float((w1 * self.q + w2 * self.low).max())
            top = float(most.max())
            open_cells = np.flatnonzero(most > least)
            if top - least <= CLOSE * (top - estimate) or len(open_cells) > MANY:
                break
            self._split(open_cells)
        return top

    def _split(self, cells: np.ndarray) -> None:
        """Halve these cells, and the brackets at their lower ends."""
        middle = (self.q[cells] + self.q[cells + 1]) / 2
        points = np.concatenate([self.q[cells], middle])
        low, high = np.concatenate([self.low[cells], self.low[cells + 1]]), np.tile(self.high[cells], 2)
        low, high = self._bisect(points, low, high, 2)
        k = len(cells)
        self.low[cells], self.high[cells] = low[:k], high[:k]
        self.q, self.low, self.high = (
            np.insert(old, cells + 1, new)
            for old, new in ((self.q, middle), (self.low, low[k:]), (self.high, high[k:]))
        )

    def _bisect(self, q: np.ndarray, low: np.ndarray, high: np.ndarray, times: int) -> tuple[np.ndarray, np.ndarray]:
        for _ in range(times):
            middle = (low + high) / 2
            likely = self._chance(q, middle) >= self.alpha * (1 - ROUNDING)
            low, high = np.where(likely, middle, low), np.where(likely, high, middle)
        return low, high

    def _chance(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """How likely the outcomes are, for pairs of shares."""
        (start, chance), (least, other) = self.parts[0].near(first), self.parts[1].near(second)
        x = start[:, None] + np.arange(chance.shape[1])
        possible = x < len(self.outcomes)
        most = self.outcomes[np.where(possible, x, 0)] - least[:, None] + 1
        below = np.pad(np.cumsum(other, axis=1), ((0, 0), (1, 0)))
        below = np.take_along_axis(below, np.clip(most, 0, other.shape[1]), axis=1)
        return np.asarray((chance * below * possible).sum(axis=1))


class _Binomial:
    """The chances of counts among n, near what is expected: those further away add nothing that counts."""

    def __init__(self, n: int):
        from scipy.special import gammaln

        x = np.arange(n + 1.0)
        self.n, self.ways = n, gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1)

    def near(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For every share, the first count that matters, and the chances of it and those after it."""
        p = np.clip(share, TINY, 1 - TINY)[:, None]
        reach = FAR * np.sqrt(self.n * share * (1 - share)) + FAR**2
        length = min(int(2 * reach.max()) + 2, self.n + 1)
        start = np.clip((self.n * share - reach).astype(int), 0, self.n + 1 - length)
        x = start[:, None] + np.arange(length)
        return start, np.exp(self.ways[x] + x * np.log(p) + (self.n - x) * np.log1p(-p))
