"""The inputs of a copy: standardised numbers, one-hot levels, and missing-value indicators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype.space._columns import Category, Number
from ectype.space._space import Space

# Inputs are clipped at so many standard deviations: a network is linear there anyway, and float32 would overflow.
CLIP_DEVIATIONS = 1e6
# A number with no more values than this may be a code for names: it is one-hot encoded beside the number itself.
# Without that, a network has to bend from one value to the next; a tree does not.
FEW = 8
# Numbers that are standardised at a time.
BLOCK = 2**14


class FeatureView:
    """The encoded inputs of a copy, from all columns but the excluded ones."""

    def __init__(self, space: Space, exclude: Sequence[str] = ()):
        self.seen = [j for j, name in enumerate(space.names) if name not in exclude]
        self.space = space.without(exclude) if exclude else space
        self.encoding = Encoding(self.space)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The inputs, from rows of all columns."""
        return self.encoding(rows if len(self.seen) == rows.shape[1] else rows[:, self.seen])


class Encoding:
    """From the rows of a space, as a matrix, to a copy's inputs.

    >>> Encoding(Space.uniform([0, 10], [2, 30]))(np.array([[1.0, 20.0]]))
    array([[0., 0.]], dtype=float32)
    """

    def __init__(self, space: Space):
        kinds = [isinstance(column, Category) and column.kind == "category" for column in space.columns]
        self.numbers = [j for j, free in enumerate(kinds) if not free]
        self.levels = [
            (j, len(column.levels))
            for j, column in enumerate(space.columns)
            if kinds[j] and isinstance(column, Category)
        ]
        self.values = [
            (j, np.asarray(column.values))
            for j, column in enumerate(space.columns)
            if isinstance(column, Number) and column.values is not None and 2 < len(column.values) <= FEW
        ]
        self.nearest = [(j, *_between(values)) for j, values in self.values]
        self.gaps = [j for j, column in enumerate(space.columns) if column.missing]
        self.d = space.d
        self.center, self.scale = (moment[self.numbers] for moment in space.moments)
        self.plain = len(self.numbers) == space.d and not self.gaps and not self.values
        self.ordered = [k for k, j in enumerate(self.numbers) if isinstance(space.columns[j], Category)]
        self.absent = [k for k, j in enumerate(self.numbers) if k in self.ordered or j in self.gaps]

    @property
    def width(self) -> int:
        """The number of inputs."""
        levels = sum(k for _, k in self.levels) + sum(len(values) for _, values in self.values)
        return len(self.numbers) + levels + len(self.gaps)

    @property
    def sources(self) -> np.ndarray:
        """The column that each input is made from."""
        levels = [j for j, k in self.levels for _ in range(k)]
        values = [j for j, values in self.values for _ in values]
        return np.array([*self.numbers, *levels, *values, *self.gaps])

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The inputs, float32: numbers, levels of categories, values of numbers that have few, gaps."""
        if self.plain and not self.ordered:
            return self._standardised(rows)
        inputs = np.zeros((len(rows), self.width), np.float32)
        at = len(self.numbers)
        inputs[:, :at] = self._standardised(rows if at == self.d else rows[:, self.numbers])
        for k in self.absent:
            found = rows[:, self.numbers[k]]
            there = found >= 0 if k in self.ordered else found == found  # below: a level that the space does not have
            inputs[~there, k] = 0.0
        for j, k in self.levels:
            inputs[:, at : at + k] = rows[:, [j]] == np.arange(k)
            at += k
        everyone = np.arange(len(rows))
        for j, order, middles in self.nearest:
            found = rows[:, j].copy()  # contiguous: it is read more than once
            nearest = sum((found > middle for middle in middles), np.zeros(len(rows), np.intp))
            inputs[everyone, at + order[nearest]] = found == found
            at += len(order)
        inputs[:, at:] = np.isnan(rows[:, self.gaps])
        return inputs

    def _standardised(self, rows: np.ndarray) -> np.ndarray:
        """Numbers alone; some rows at a time, so that temporary arrays stay in the processor's cache."""
        inputs, block = np.empty(rows.shape, np.float32), max(1, BLOCK // max(1, rows.shape[1]))
        for at in range(0, len(rows), block):
            part = rows[at : at + block] - self.center
            part /= self.scale
            inputs[at : at + block] = np.clip(part, -CLIP_DEVIATIONS, CLIP_DEVIATIONS, out=part)
        return inputs


def _between(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of values from the lowest to the highest, and what is midway between neighbours."""
    order = np.argsort(values, kind="stable")
    low, high = values[order[:-1]], values[order[1:]]
    return order, low + (high - low) / 2
