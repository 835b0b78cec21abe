"""The plane of two columns of numbers: the points at which decisions are drawn, and the colours of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ectype.rng import Stream, stream
from ectype.space import Number, Space

# Points along each side, the share of drawn rows that the plane leaves out at each end, and how many are drawn.
PIXELS, TAIL, DRAWN = 160, 0.002, 4000
# The colours of labels, on a light ground.
COLOURS = ("#f3d3b8", "#bcd6ec", "#c3e3d0", "#e8cbdd", "#ece5b4", "#cfd3d9", "#cfc3e6", "#bfe2e6")


@dataclass(frozen=True)
class Plane:
    """Points on a grid, line by line from the lowest; and where its sides begin and end."""

    rows: np.ndarray
    low: np.ndarray
    high: np.ndarray


def plane_of(space: Space) -> Plane | None:
    """The plane in which nearly all inputs lie; none unless the space is two columns of numbers without gaps."""
    if space.d != 2 or not all(_is_plain(column) for column in space.columns):
        return None
    low, high = np.quantile(space.sample(DRAWN, stream(0, Stream.PAGE)), [TAIL, 1 - TAIL], axis=0)
    sides = [np.linspace(a, b, PIXELS) for a, b in zip(low, high, strict=True)]
    whole = [column.kind == "integer" for column in space.columns]
    sides = [np.rint(side) if only else side for side, only in zip(sides, whole, strict=True)]
    return Plane(np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2), low, high)


def _is_plain(column: object) -> bool:
    return isinstance(column, Number) and column.kind in ("float", "integer") and not column.missing
