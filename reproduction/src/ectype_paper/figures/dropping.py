"""Figures 3 to 5: what dropping points does, without memory, with a fixed one, and with an automatic one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype_paper.figures.curves import by_iteration, claimed, only, over, problem_of, some
from ectype_paper.figures.spirals import ABOUT_RHO, COLUMNS, RHO
from ectype_paper.figures.style import COLOURS, OTHERS, band, new_figure, power, style
from ectype_paper.units import Record, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTAS = (1e-6, 1e-8, 1e-10)
LAMBDAS = (0.005, 0.05, 0.1, 0.25)
# Without memory, the curves of points are near the ground, and pure sequential leaves the picture.
CUT = 400


class Way(NamedTuple):
    """One of the curves in a figure."""

    method: str
    delta: float | None
    memory: str | float
    label: str
    colour: str


ONLINE = Way("online", None, "automatic", "online single-pass", COLOURS["online"])
PURE = Way("pure", None, "automatic", "pure sequential", COLOURS["pure"])


class Dropping:
    """Three panels of curves: a) accuracy, b) uncertainty, c) points used."""

    runs = 30
    number: int
    most_points: int | None = None
    memory = "automatic"
    others: Sequence[Way] = ()
    """Curves beside those of the thresholds."""

    def ways(self, options: ExhibitOptions) -> Sequence[Way]:
        """The curves: of the paper's thresholds, or of those asked for."""
        chosen = DELTAS if options.deltas is None else options.deltas
        return [
            *self.others,
            *(
                Way("sequential", delta, self.memory, f"$\\delta=${power(delta)}", OTHERS[k % len(OTHERS)])
                for k, delta in enumerate(chosen)
            ),
        ]

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Repetitions of every curve."""
        return tuple(
            Unit(problem_of(options), options.space, way.method, way.delta, repetition, way.memory)
            for way in self.ways(options)
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """The panels as they are in the paper: two, and one below."""
        rows: list[Row] = []
        for k, way in enumerate(self.ways(options)):
            rows += by_iteration(records[k * options.runs : (k + 1) * options.runs], COLUMNS, **_named(way))
        told = claimed(str(self.number), {f"fig{self.number}": rows}, options)
        return MadeExhibit(rows, f"{over(options)} {ABOUT_RHO}\n\n{told}", self.draw(rows, options), some(rows))

    def draw(self, rows: Sequence[Row], options: ExhibitOptions) -> Figure:
        """The figure, from its rows."""
        figure = new_figure(9.5, 7.6)
        axes: dict[str, Axes] = figure.subplot_mosaic([["a", "a", "b", "b"], [".", "c", "c", "."]])
        columns = {"a": "accuracy", "b": "rho", "c": "points"}
        names = {"a": "copy accuracy", "b": RHO, "c": "points used $|S_t|$"}
        curves = [(way, [row for row in rows if _named(way).items() <= row.items()]) for way in self.ways(options)]
        for way, found in curves:
            if not found:
                continue
            labels = {"a": way.label, "b": way.label, "c": f"{way.label}: {found[-1]['points']:.0f}"}
            for panel, column in columns.items():
                band(axes[panel], found, column, way.colour, labels[panel])
        for panel, name in names.items():
            style(axes[panel], "iteration", name, f"{panel})").margins(x=0)
        self._limits(axes)
        axes["a"].legend(loc="lower right", frameon=False, fontsize=9)
        beyond = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
        shown = axes["c"].legend(title=f"points at t={options.iterations}", frameon=False, fontsize=9, **beyond)
        shown.set_in_layout(False)  # there is room beside the panel
        return figure

    def _limits(self, axes: dict[str, Axes]) -> None:
        axes["a"].set_ylim(top=1.01)
        axes["b"].set_ylim(bottom=0)
        axes["c"].set_ylim(0, self.most_points)


class WithoutMemory(Dropping):
    """Figure 3: compressed points are dropped, and forgotten."""

    title = "Figure 3: spirals, dropping without memory"
    number = 3
    most_points = CUT
    memory = "none"
    others = (ONLINE, PURE)


class FixedMemory(Dropping):
    """Figure 4: compressed points are dropped, and the parameters held with a fixed weight."""

    title = "Figure 4: spirals, a fixed weight of memory"
    number = 4

    def ways(self, options: ExhibitOptions) -> Sequence[Way]:
        """Four weights, with the same threshold."""
        delta = only("--deltas", options.deltas, 1e-8)
        labels = {weight: f"$\\lambda={weight:g}$" for weight in LAMBDAS}
        return [Way("sequential", delta, weight, labels[weight], OTHERS[k]) for k, weight in enumerate(LAMBDAS)]


class AutomaticMemory(Dropping):
    """Figure 5: Algorithm 5, in which the weight follows the points."""

    title = "Figure 5: spirals, an automatic weight of memory"
    number = 5


def _named(way: Way) -> Row:
    """What tells the rows of a curve from the others."""
    memory = way.memory if way.method == "sequential" else None
    return {"method": way.method, "delta": way.delta, "memory": memory}
