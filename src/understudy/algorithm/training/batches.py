"""Which rows go into a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.types import Array

# Steps per draw of random numbers: one draw for many steps costs next to nothing beside the steps.
BLOCK = 64


class Groups(NamedTuple):
    """Where each group of rows starts, and how many rows it has; the first n groups are drawn equally often."""

    starts: Array
    counts: Array
    n: Array

    @classmethod
    def of(cls, counts: np.ndarray, size: int) -> Groups:
        """A group for every class that has points, in a sample set sorted by class; padded to `size`."""
        present = counts > 0
        pad = (0, size - int(present.sum()))
        return cls(
            np.pad((np.cumsum(counts) - counts)[present], pad).astype(np.int32),
            np.pad(counts[present], pad, constant_values=1).astype(np.uint32),
            np.uint32(present.sum()),
        )

    def before(self, start: int, count: int, weight: float) -> Groups:
        """These and one more, of rows from `start` on, which is drawn `weight` times as often as all of them together.

        The slots are divided in proportion to the weights, in whole numbers.
        """
        size = len(self.starts)
        old = np.arange(max(int(self.n), round(size / (1 + weight)))) % int(self.n)
        new = size - len(old)
        return Groups(
            np.concatenate([self.starts[old], np.full(new, start, np.int32)]),
            np.concatenate([self.counts[old], np.full(new, count, np.uint32)]),
            np.uint32(size),
        )


def draw_rows(bits: Array, groups: Groups) -> Array:
    """Row numbers for batches: a uniformly drawn group, then a uniformly drawn row of it.

    `bits` are random numbers below 2**32: an array for the groups, and one for the rows.
    """
    group, row = bits
    group = (group % groups.n).astype(np.int32)
    return groups.starts[group] + (row % groups.counts[group]).astype(np.int32)


class Shuffled:
    """Row numbers like those of `draw_rows`, but sampled without replacement.

    All rows of a group come in random order before any of them comes again, and so do the groups.
    """

    def __init__(self, rng: np.random.Generator, groups: Groups) -> None:
        n = int(groups.n)
        starts, first, places = np.unique(groups.starts[:n], return_index=True, return_inverse=True)
        self._groups = _Deck(rng, np.tile(places, -(-16 * BLOCK // n)))  # a small deck would be shuffled all the time
        self._rows = [
            _Deck(rng, np.arange(start, start + count))
            for start, count in zip(starts, groups.counts[first].tolist(), strict=True)
        ]

    def draw(self, n: int) -> np.ndarray:
        """The next n rows."""
        if len(self._rows) == 1:
            return self._rows[0].draw(n)
        group, rows = self._groups.draw(n), np.empty(n, np.intp)
        for number, deck in enumerate(self._rows):
            here = group == number
            rows[here] = deck.draw(int(here.sum()))
        return rows


class _Deck:
    """Cards drawn without replacement, and shuffled again when all were drawn."""

    def __init__(self, rng: np.random.Generator, cards: np.ndarray) -> None:
        self._rng, self._cards, self._rest = rng, cards, cards[:0]

    def draw(self, n: int) -> np.ndarray:
        parts, missing = [self._rest], n - len(self._rest)
        for _ in range(-(-missing // len(self._cards))):
            parts.append(self._rng.permutation(self._cards))
        cards = np.concatenate(parts)
        self._rest = cards[n:]
        return cards[:n]
