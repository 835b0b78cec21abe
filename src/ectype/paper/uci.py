"""What the exhibits of the UCI problems share: the units they need, and each problem's operational points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ectype.paper.catalogue import ExhibitOptions, runs_of
from ectype.paper.points import Points, operational_points
from ectype.paper.reported import table4
from ectype.paper.settings import DELTAS
from ectype.paper.sweep import problem_names, units
from ectype.paper.units import Record, Unit

METHODS = ("one-shot", "sequential")
# The problems of Table 4, in its order.
PROBLEMS = tuple(table4())
# The operational points as Table 4 names them, with the words for them.
PLACES = {
    "best_accuracy": "Best accuracy",
    "best_efficiency": "Best efficiency",
    "best_convergence": "Best convergence",
}


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
