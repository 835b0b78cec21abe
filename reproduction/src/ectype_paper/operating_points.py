"""Operational points: which threshold is best for accuracy, for efficiency, and for convergence.

Exhibits of the UCI problems share what is here: the units they need, and each problem's operational points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ectype.errors import SettingError
from ectype_paper.catalogue import ExhibitOptions, runs_of
from ectype_paper.published import table4
from ectype_paper.sweep import problem_names, units
from ectype_paper.units import DELTAS, Record, Unit

# A threshold is eligible if it keeps more than this share of the single pass's accuracy.
SHARE = 0.95
METHODS = ("one-shot", "sequential")
# The problems of Table 4, in its order.
PROBLEMS = tuple(table4())
# The operational points as Table 4 names them, with the words for them.
PLACES = {
    "best_accuracy": "Best accuracy",
    "best_efficiency": "Best efficiency",
    "best_convergence": "Best convergence",
}


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


class Solved(NamedTuple):
    """A problem by its name, with its operational points, and how accurate its original is."""

    problem: str
    points: Points
    original_accuracy: float


class OfTable4:
    """An exhibit that is made from the units of Table 4, in the space asked for or in several; no curve is needed."""

    runs = 30
    compact = of_uci = True
    spaces: Sequence[str] | None = None

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """The single pass and all thresholds, of every problem."""
        return uci_units(options, self.spaces)


def uci_units(options: ExhibitOptions, spaces: Sequence[str] | None = None) -> tuple[Unit, ...]:
    """The single pass and every threshold, of the problems asked for or all of Table 4, in one space or several."""
    # With a compact table there may be no data to look for, and none is needed.
    problems = options.problems or PROBLEMS if options.compact else problem_names(options.data, options.problems)
    deltas = DELTAS if options.deltas is None else options.deltas
    return tuple(
        unit for space in spaces or [options.space] for unit in units(problems, METHODS, deltas, options.runs, space)
    )


def means_over(options: ExhibitOptions) -> str:
    """What the numbers of an exhibit are means over, and in which space, as a sentence."""
    return f"Means over {runs_of(options.runs)}, space {options.space}."


def solved(records: Sequence[Record], space: str) -> list[Solved]:
    """Every problem of one space, in the order of Table 4; repetitions in their order, so that they pair up.

    Records of other methods are left out.
    """
    there = [record for record in records if record["space"] == space and record["method"] in METHODS]
    there.sort(key=lambda record: record["repetition"])
    by_problem: dict[str, list[Record]] = {name: [] for name in PROBLEMS}
    for record in there:
        by_problem.setdefault(record["problem"], []).append(record)
    return [
        Solved(name, operational_points(those), float(those[0]["original_accuracy"]))
        for name, those in by_problem.items()
        if those
    ]
