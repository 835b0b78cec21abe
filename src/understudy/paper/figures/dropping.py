"""Figures 3 to 5: what dropping points does, without memory, with a fixed one, and with an automatic one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from understudy.paper.catalogue import Made, Options, Row
from understudy.paper.figures.numbers import beside, by_iteration, only, over, problem_of, some, value
from understudy.paper.figures.spirals import ABOUT_RHO, COLUMNS, RHO
from understudy.paper.figures.style import COLOURS, OTHERS, band, new_figure, power, style
from understudy.paper.units import Record, Unit

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
    most_points: int | None = None

    def ways(self, options: Options) -> Sequence[Way]:
        """The curves."""
        raise NotImplementedError

    def said(self, rows: Sequence[Row]) -> list[tuple[str, str, float | None]]:
        """What the paper's text says of them."""
        raise NotImplementedError

    def units(self, options: Options) -> tuple[Unit, ...]:
        """Repetitions of every curve."""
        return tuple(
            Unit(problem_of(options), options.space, way.method, way.delta, repetition, way.memory)
            for way in self.ways(options)
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: Options) -> Made:
        """The panels as they are in the paper: two, and one below."""
        figure = new_figure(9.5, 7.6)
        axes = figure.subplot_mosaic([["a", "a", "b", "b"], [".", "c", "c", "."]])
        columns = {"a": "accuracy", "b": "rho", "c": "points"}
        names = {"a": "copy accuracy", "b": RHO, "c": "points used $|S_t|$"}
        rows: list[Row] = []
        for k, way in enumerate(self.ways(options)):
            named = {"method": way.method, "delta": way.delta, "memory": _memory(way)}
            found = by_iteration(records[k * options.runs : (k + 1) * options.runs], COLUMNS, **named)
            labels = {"a": way.label, "b": way.label, "c": f"{way.label}: {found[-1]['points']:.0f}"}
            for panel, column in columns.items():
                band(axes[panel], found, column, way.colour, labels[panel])
            rows += found
        for panel, name in names.items():
            style(axes[panel], "iteration", name, f"{panel})").margins(x=0)
        self._limits(axes)
        axes["a"].legend(loc="lower right", frameon=False, fontsize=9)
        beyond = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
        shown = axes["c"].legend(title=f"points at t={options.iterations}", frameon=False, fontsize=9, **beyond)
        shown.set_in_layout(False)  # there is room beside the panel
        return Made(rows, f"{over(options)} {ABOUT_RHO}\n\n{beside(self.said(rows), options)}", figure, some(rows))

    def _limits(self, axes: dict[str, Any]) -> None:
        axes["a"].set_ylim(top=1.01)
        axes["b"].set_ylim(bottom=0)
        axes["c"].set_ylim(0, self.most_points)


class WithoutMemory(Dropping):
    """Figure 3: compressed points are dropped, and forgotten."""

    title = "Figure 3: spirals, dropping without memory"
    most_points = CUT

    def ways(self, options: Options) -> Sequence[Way]:
        """Online, pure sequential, and some thresholds between them."""
        return [ONLINE, PURE, *_thresholds(options, "none")]

    def said(self, rows: Sequence[Row]) -> list[tuple[str, str, float | None]]:
        """The smallest threshold settles at some points; the others are worse than online."""
        return [
            _last(rows, "points", "about 250", delta=1e-10),
            _last(rows, "points", "less than that", delta=1e-8),
            _last(rows, "points", "less than that", delta=1e-6),
            _last(rows, "accuracy", "below pure sequential, above online", delta=1e-10),
            _last(rows, "accuracy", "below online", delta=1e-8),
            _last(rows, "accuracy", "below online", delta=1e-6),
            _last(rows, "accuracy", "about 0.85", method="online"),
            _last(rows, "accuracy", "the best", method="pure"),
            _last(rows, "rho", "near 0", method="pure"),
            _last(rows, "rho", "roughly constant over iterations", method="online"),
        ]


class FixedMemory(Dropping):
    """Figure 4: compressed points are dropped, and the parameters held with a fixed weight."""

    title = "Figure 4: spirals, a fixed weight of memory"

    def ways(self, options: Options) -> Sequence[Way]:
        """Four weights, with the same threshold."""
        delta = only("--deltas", options.deltas, 1e-8)
        labels = {weight: f"$\\lambda={weight:g}$" for weight in LAMBDAS}
        return [Way("sequential", delta, weight, labels[weight], OTHERS[k]) for k, weight in enumerate(LAMBDAS)]

    def said(self, rows: Sequence[Row]) -> list[tuple[str, str, float | None]]:
        """Points grow with the weight; in the middle they stay the same."""
        said = {0.005: "few: it forgets", 0.05: "constant", 0.1: "constant", 0.25: "still growing, less than linearly"}
        return [_last(rows, "points", text, memory=weight) for weight, text in said.items()]


class AutomaticMemory(Dropping):
    """Figure 5: Algorithm 5, in which the weight follows the points."""

    title = "Figure 5: spirals, an automatic weight of memory"

    def ways(self, options: Options) -> Sequence[Way]:
        """Some thresholds."""
        return _thresholds(options, "automatic")

    def said(self, rows: Sequence[Row]) -> list[tuple[str, str, float | None]]:
        """Accurate on a small and constant number of points."""
        return [
            _last(rows, "accuracy", "above 0.95", delta=1e-6),
            _last(rows, "points", "about 200, almost constant", delta=1e-6),
            _last(rows, "accuracy", "comparable with pure sequential", delta=1e-8),
            _last(rows, "accuracy", "comparable with pure sequential", delta=1e-10),
            _last(rows, "points", "a third less than 3000, or a third of it", delta=1e-10),
        ]


def _thresholds(options: Options, memory: str) -> list[Way]:
    chosen = DELTAS if options.deltas is None else options.deltas
    return [
        Way("sequential", delta, memory, f"$\\delta=${power(delta)}", OTHERS[k % len(OTHERS)])
        for k, delta in enumerate(chosen)
    ]


def _memory(way: Way) -> str | float | None:
    return way.memory if way.method == "sequential" else None


def _last(rows: Sequence[Row], column: str, said: str, **where: Any) -> tuple[str, str, float | None]:
    """A number at the last iteration, beside what is said of it."""
    last = max(row["iteration"] for row in rows)
    (name, which), *_ = where.items()
    labels = {"delta": f"delta {which}", "memory": f"lambda {which}", "method": f"{which}"}
    return f"{labels[name]}, t={last}: {column}", said, value(rows, column, iteration=last, **where)
