"""Operational points: which threshold is best for accuracy, for efficiency, and for convergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ectype.errors import SettingError
from ectype.paper.units import Record

# A threshold is eligible if it keeps more than this share of the single pass's accuracy.
SHARE = 0.95


@dataclass(frozen=True)
class Spread:
    """A measure over repetitions.

    >>> Spread((0.5, 1.0)).mean, Spread((0.5, 1.0)).std
    (0.75, 0.25)
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over repetitions."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """The standard deviation over repetitions: of these, not an estimate for others."""
        return float(np.std(self.values))


@dataclass(frozen=True)
class Point:
    """What one threshold gives."""

    delta: float
    accuracy: Spread
    fidelity: Spread
    eff: Spread
    conv: Spread


@dataclass(frozen=True)
class Points:
    """The operational points of one problem, the single pass beside them, and every threshold, largest first."""

    problem: str
    single_accuracy: Spread
    single_fidelity: Spread
    best_accuracy: Point
    best_efficiency: Point
    best_convergence: Point
    deltas: tuple[Point, ...]
    eligible: bool
    """Whether any threshold is within the share of the single pass; if none is, the most accurate stands for all."""


def operational_points(records: Sequence[Record]) -> Points:
    """The points of one problem in one space, from its records; those of other methods and memories are left out.

    Of equally good thresholds the largest is taken: it keeps the fewest points.
    """
    found = {(record["problem"], record["space"]) for record in records}
    if len(found) != 1:
        raise SettingError("records", "those of one problem in one space", sorted(found)[:3])
    problem, _ = found.pop()
    single = [record for record in records if record["method"] == "one-shot" and record["points"] is None]
    accuracy = spread(single, "accuracy")
    deltas = points_by_delta(records)
    eligible = [one for one in deltas if one.accuracy.mean > SHARE * accuracy.mean]
    candidates = eligible or [max(deltas, key=lambda one: one.accuracy.mean)]
    return Points(
        problem=problem,
        single_accuracy=accuracy,
        single_fidelity=spread(single, "fidelity"),
        best_accuracy=max(candidates, key=lambda one: one.accuracy.mean),
        best_efficiency=max(candidates, key=lambda one: one.eff.mean),
        best_convergence=max(candidates, key=lambda one: one.conv.mean),
        deltas=deltas,
        eligible=bool(eligible),
    )


def points_by_delta(records: Sequence[Record]) -> tuple[Point, ...]:
    """What Algorithm 5 gives with each threshold, largest first."""
    found = [record for record in records if record["method"] == "sequential" and record["memory"] == "automatic"]
    if not found:
        raise SettingError("records", "some of the sequential method with automatic memory", "none")
    return tuple(
        Point(delta, *(spread(those, name) for name in ("accuracy", "fidelity", "eff", "conv")))
        for delta in sorted({record["delta"] for record in found}, reverse=True)
        for those in [[record for record in found if record["delta"] == delta]]
    )


def spread(records: Sequence[Record], name: str) -> Spread:
    """A measure over records of the same unit but for its repetition."""
    if not records:
        raise SettingError("records", "some of the single pass", "none")
    return Spread(tuple(float(record[name]) for record in records))
