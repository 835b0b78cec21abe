"""From which margin on a copy is certified to agree with its original often enough: fixed-sequence testing.

A grid of thresholds is fixed before the held-out rows are looked at. Of the k rows with a margin of at least a
threshold, given k, the number on which copy and original differ is binomial, so that "they agree less often than
wanted" has an exact p-value. The thresholds are tested from strict to lenient, each at the whole error allowance, until
one is not rejected; the last one that was is taken. Proof: the bound can only be wrong if a true hypothesis is
rejected, the first true one among them, and that happens with no more than the allowance; what was rejected before it
was false. (Multiple testing by a fixed sequence; "Learn then Test", Angelopoulos and others, 2021.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

# The shares of the rows that thresholds of the grid leave to the copy: finer where most are.
SHARES = (*(k / 50 for k in range(1, 45)), *(k / 100 for k in range(90, 101)))


@dataclass(frozen=True)
class Held:
    """Held-out rows: the copy's margins, and on which of them it gives the original's label."""

    margins: np.ndarray
    alike: np.ndarray

    def __len__(self) -> int:
        return len(self.margins)

    def counts(self, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For every threshold, the rows with at least this margin, and those of them on which the two differ.

        >>> held = Held(np.array([0.9, 0.5, 0.1]), np.array([True, False, True]))
        >>> [found.tolist() for found in held.counts(np.array([0.9, 0.2]))]
        [[1, 2], [0, 1]]
        """
        place = np.searchsorted(-grid, -self.margins)
        rows = np.bincount(place, minlength=len(grid) + 1)
        differ = np.bincount(place[~self.alike], minlength=len(grid) + 1)
        return rows[:-1].cumsum(), differ[:-1].cumsum()


def fewest(agree: float, error: float) -> int:
    """The fewest rows that can certify it: so many without a difference.

    >>> fewest(0.995, 0.05), fewest(0.999, 0.05)
    (598, 2995)
    """
    return ceil(log(error) / log(agree))


def grid_of(margins: np.ndarray, shares: Sequence[float] = SHARES) -> np.ndarray:
    """Thresholds from strict to lenient, from margins of other rows than those that test them.

    >>> grid_of(np.linspace(0, 1, 101), (0.1, 0.5, 1.0)).round(2).tolist()
    [0.9, 0.5, 0.0]
    """
    found = np.unique(np.quantile(margins, 1 - np.asarray(shares), method="lower"))[::-1]
    found[-1] = min(found[-1], 0.0) if max(shares) == 1 else found[-1]  # the last one leaves it all rows
    return found


def p_values(rows: np.ndarray, differ: np.ndarray, agree: float) -> np.ndarray:
    """How likely at most so many differences are, if the two agree just less often than wanted: binomial tails."""
    from scipy.special import betainc

    alike = rows - differ
    return np.where(alike > 0, betainc(np.maximum(alike, 1), differ + 1, agree), 1.0)


def fixed_sequence(p: np.ndarray, start: int, error: float) -> int | None:
    """The last place of those from `start` on that are rejected one after the other; None if the first is not.

    >>> fixed_sequence(np.array([0.9, 0.01, 0.04, 0.06, 0.01]), 1, 0.05)
    2
    """
    kept = np.flatnonzero(p[start:] > error)
    end = start + int(kept[0]) if len(kept) else len(p)
    return end - 1 if end > start else None


def beginning(shares: np.ndarray, n: int, agree: float, error: float) -> int:
    """Where the sequence begins: at the first threshold that leaves the copy enough of n rows, else at the last.

    Enough is the geometric mean of n and the fewest that can certify anything: with these alone a single difference
    would end the sequence. Chosen on the even half of the UCI problems.
    """
    enough = np.flatnonzero(shares * n >= sqrt(n * fewest(agree, error)))
    return int(enough[0]) if len(enough) else len(shares) - 1


def certified(held: Held, grid: np.ndarray, shares: np.ndarray, agree: float, error: float) -> int | None:
    """The place of the most lenient threshold that is certified; `shares` are those that the grid leaves the copy."""
    p = p_values(*held.counts(grid), agree)
    return fixed_sequence(p, beginning(shares, len(held), agree, error), error)


def enough_rows(held: Held, grid: np.ndarray, agree: float, error: float, most: int = 10**7) -> int | None:
    """About how many rows like these would certify some threshold; None if no number would."""
    rows, differ = held.counts(grid)
    seen = rows >= min(20, len(held))
    better = seen & (differ < (1 - agree) * rows)
    n = fewest(agree, error)
    while n <= most and better.any():
        times = n / len(held)
        if (p_values(np.floor(times * rows[better]), np.ceil(times * differ[better]), agree) <= error).any():
            return n
        n = ceil(1.25 * n)
    return None
