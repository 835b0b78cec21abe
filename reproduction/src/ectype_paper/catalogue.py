"""Every figure and table of the paper by name: the units it is made from, and how it is made of them.

An exhibit lives in a module of its own that is imported only when it is asked for; `ectype paper NAME` runs the
units that the result store does not have yet, and writes what comes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from ectype.errors import SettingError
from ectype_paper.units import ITERATIONS, Record, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]

# The name: its module, the class in it, and one line of help that must not cost an import.
NAMES = {
    "fig1": ("ectype_paper.figures.spirals:Accuracy", "Accuracy by iteration on spirals, by method."),
    "fig2": ("ectype_paper.figures.spirals:Uncertainty", "Uncertainty by iteration on spirals, by method."),
    "fig3": ("ectype_paper.figures.dropping:WithoutMemory", "Dropping points without memory, on spirals."),
    "fig4": ("ectype_paper.figures.dropping:FixedMemory", "Dropping points with a fixed memory, on spirals."),
    "fig5": ("ectype_paper.figures.dropping:AutomaticMemory", "Dropping with an automatic memory, on spirals."),
    "fig6": ("ectype_paper.figures.operational:Toys", "Operational points of the toy problems."),
    "fig7": ("ectype_paper.figures.uci:SinglePass", "Single-pass and sequential accuracy, UCI problems."),
    "fig8": ("ectype_paper.figures.uci:OperationalPoints", "Operational points of the UCI problems."),
    "table2": ("ectype_paper.tables.methods:Methods", "The methods in memory, accuracy and time."),
    "table3": ("ectype_paper.tables.uci:DataSets", "The data sets and their originals."),
    "table4": ("ectype_paper.tables.uci:Table4", "The results on the UCI problems."),
    "statistics": (
        "ectype_paper.tables.statistics:Statistics",
        "Tests of Table 4, and what the text quotes.",
    ),
    "spaces": ("ectype_paper.tables.uci:Spaces", "Copies in the paper's space and in a learned one."),
    "stages": ("ectype_paper.tables.extensions:StagesTable", "Algorithms 3 and 4 as printed, and plain epochs."),
    "scale": ("ectype_paper.tables.extensions:ScaleTable", "Ten times the queries: 30,000 on ten problems."),
    "theorems": ("ectype_paper.figures.theorems:Theorems", "Risk and parameters settle: Theorems 1 and 2."),
    "cost": ("ectype_paper.figures.theorems:Cost", "Seconds of training by iteration, up to 100."),
}


@dataclass(frozen=True)
class ExhibitOptions:
    """What an exhibit is asked for; None is the exhibit's own choice, which is the paper's."""

    runs: int
    iterations: int = ITERATIONS
    data: str | None = None
    problems: tuple[str, ...] | None = None
    deltas: tuple[float, ...] | None = None
    space: str = "normal"
    compact: bool = False
    """Whether records come from a compact table of units: without curves, and where there may be no data."""


@dataclass(frozen=True)
class MadeExhibit:
    """An exhibit: a figure if it is one, the numbers in it, and what there is to say of them, as Markdown."""

    rows: Sequence[Row]
    notes: str
    figure: Figure | None = None
    shown: Sequence[Row] | None = None
    """The rows on the page, if not all."""


class Exhibit(Protocol):
    """A figure or a table of the paper.

    One with `compact = True` can be made from a compact table of units; one with `of_uci = True` is of UCI problems;
    one with an attribute `iterations` has as many where nobody says so.
    """

    title: str
    runs: int
    """Repetitions, where nobody says how many."""

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """What has to be run for it."""

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """It, from the records of these units, which are in the same order."""


def runs_of(runs: int) -> str:
    """How many runs, in words that fit one and many.

    >>> runs_of(1), runs_of(3)
    ('1 run', '3 runs')
    """
    return f"{runs} run" + "s" * (runs != 1)


def exhibit(name: str) -> Exhibit:
    """The figure or table of this name."""
    if name not in NAMES:
        raise SettingError("NAME", f"one of {', '.join(NAMES)}", repr(name))
    module, attribute = NAMES[name][0].split(":")
    return getattr(import_module(module), attribute)()
