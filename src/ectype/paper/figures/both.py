"""Pure sequential beside Algorithm 5: what the figures that compare the two have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ectype.paper.catalogue import ExhibitOptions
from ectype.paper.figures.numbers import only, problem_of
from ectype.paper.figures.style import COLOURS, OTHERS, new_figure, power
from ectype.paper.units import Record, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTA = 1e-8
SHADES = {"pure": COLOURS["pure"], "sequential": OTHERS[1]}


def threshold(options: ExhibitOptions) -> float:
    """The threshold of Algorithm 5: the one asked for, or the paper's."""
    return only("--deltas", options.deltas, DELTA)


def units_of_both(options: ExhibitOptions, iterations: int | None = None) -> tuple[Unit, ...]:
    """Repetitions of either; of as many iterations as elsewhere, if not said otherwise."""
    return tuple(
        Unit(problem_of(options), options.space, method, delta, repetition, iterations=iterations)
        for method, delta in (("pure", None), ("sequential", threshold(options)))
        for repetition in range(options.runs)
    )


def labels(options: ExhibitOptions) -> dict[str, str]:
    """The names of the curves, by method."""
    return {"pure": "pure sequential", "sequential": f"Algorithm 5, $\\delta=${power(threshold(options))}"}


def of_method(records: Sequence[Record], method: str) -> list[Record]:
    """The records of one of the two."""
    return [record for record in records if record["method"] == method]


def two_panels() -> tuple[Figure, Axes, Axes]:
    """A figure with two panels side by side."""
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2)
    return figure, left, right
