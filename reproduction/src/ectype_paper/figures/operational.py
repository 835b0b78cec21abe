"""Figure 6: the operational points of the toy problems; its panels serve other problems too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row, runs_of
from ectype_paper.figures.style import OTHERS, Mark, legend_below, new_figure, style
from ectype_paper.operating_points import Point, Points, operational_points
from ectype_paper.units import DELTAS, Record, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOYS = ("spirals", "yin-yang", "moons")
NAMES = {"accuracy": "copy accuracy", "eff": "efficiency", "conv": "convergence"}
MARKERS = {"best_accuracy": "o", "best_efficiency": "s", "best_convergence": "*"}
# Larger the more corners, so that what is at the same place can still be told apart.
SIZES = {"o": 40, "s": 80, "*": 170, "v": 55}
GREY = "#8a8a8a"


class Panel(NamedTuple):
    """What a panel has on its axes, and the two operational points that it compares."""

    x: str
    y: str
    first: str
    second: str


PANELS = (
    Panel("eff", "accuracy", "best_accuracy", "best_efficiency"),
    Panel("conv", "accuracy", "best_accuracy", "best_convergence"),
    Panel("eff", "conv", "best_convergence", "best_efficiency"),
)


class Toys:
    """Figure 6: single-pass against sequential, and what each operational point costs."""

    title = "Figure 6: toy problems, operational points"
    runs = 30
    compact = True

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Every threshold, and the single pass, on every toy problem."""
        from ectype_paper.sweep import problem_names, units

        names = problem_names(options.data, options.problems or TOYS)
        return units(names, ("sequential", "one-shot"), options.deltas or DELTAS, options.runs, options.space)

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """Four panels: a) accuracy against the single pass's, b) to d) the operational points."""
        every = [
            operational_points([record for record in records if record["problem"] == name])
            for name in dict.fromkeys(record["problem"] for record in records)
        ]
        colours = [OTHERS[k % len(OTHERS)] for k in range(len(every))]
        figure = new_figure(9.5, 8)
        axes = figure.subplots(2, 2).ravel()
        diagonal(style(axes[0], "single-pass accuracy", "sequential accuracy", "a)"), every, colours)
        panels(axes[1:], every, colours, letters="bcd")
        legend(figure, every, colours)
        rows = [{**row, "runs": options.runs} for points in every for row in table(points)]
        chosen = [row for row in rows if row["point"]]
        notes = (
            f"Means over {runs_of(options.runs)}. A threshold is eligible if its mean accuracy is above 0.95 of the"
            " single pass's. Dashed lines are least-squares fits through all eligible thresholds (small dots), drawn"
            " between the two operational points of their panel. The table has the operational points, the CSV every"
            " threshold."
        )
        return MadeExhibit(rows, notes, figure, chosen)


def diagonal(axes: Axes, every: Sequence[Points], colours: Sequence[str]) -> None:
    """Accuracy at Best accuracy against the single pass's; above the line, sequential is better."""
    for points, colour in zip(every, colours, strict=True):
        single, best = points.single_accuracy, points.best_accuracy.accuracy
        axes.errorbar(single.mean, best.mean, best.std, single.std, color=colour, fmt="o", markersize=7, elinewidth=0.8)
    low = min(min(axes.get_xlim()), min(axes.get_ylim()))
    high = max(max(axes.get_xlim()), max(axes.get_ylim()))
    axes.plot([low, high], [low, high], color=GREY, linestyle="--", linewidth=1, zorder=1)
    axes.set(xlim=(low, high), ylim=(low, high))


def panels(
    axes: Sequence[Axes],
    every: Sequence[Points],
    colours: Sequence[str],
    letters: str = "abc",
    same: Callable[[Points, Panel], bool] | None = None,
    dots: bool = True,
) -> None:
    """Accuracy and efficiency, accuracy and convergence, convergence and efficiency: one panel on each of three axes.

    Where two operational points are the `same`, an inverted triangle stands for both.
    """
    for panel, axis, letter in zip(PANELS, axes, letters, strict=True):
        style(axis, NAMES[panel.x], NAMES[panel.y], f"{letter})").locator_params(nbins=6)
        for points, colour in zip(every, colours, strict=True):
            _problem(axis, panel, points, colour, same is not None and same(points, panel), dots)


def _problem(axes: Axes, panel: Panel, points: Points, colour: str, same: bool, dots: bool) -> None:
    """One problem in one panel: its two points, and the line of the solutions between them."""
    first, second = (_at(getattr(points, name), panel) for name in (panel.first, panel.second))
    solutions = [_at(point, panel) for point in eligible(points)]
    if dots:
        x, y = zip(*solutions, strict=True)
        axes.scatter(x, y, s=7, color=colour, alpha=0.45, linewidths=0, zorder=2)
    if same:
        axes.scatter(*first, marker="v", s=SIZES["v"], color=colour, zorder=3)
        return
    line = fit(solutions)
    if line is not None:
        ends = [first[0], second[0]]
        axes.plot(ends, [line[0] + line[1] * x for x in ends], color=GREY, linestyle="--", linewidth=1, zorder=1)
    for name, place in ((panel.first, first), (panel.second, second)):
        marker, face = MARKERS[name], colour if name == panel.first else "none"
        axes.scatter(*place, marker=marker, s=SIZES[marker], facecolors=face, edgecolors=colour, zorder=3)


def fit(solutions: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Where the line of least squares starts, and its slope; None where all are at the same place.

    >>> fit([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)])
    (1.0, 2.0)
    """
    x, y = np.array(solutions).T
    spread = ((x - x.mean()) ** 2).sum()
    if spread < 1e-12:
        return None
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread)
    return float(y.mean()) - slope * float(x.mean()), slope


def eligible(points: Points) -> Sequence[Point]:
    """The thresholds among which the operational points were chosen; all of them, where the most accurate stands in."""
    from ectype_paper.operating_points import SHARE

    least = SHARE * points.single_accuracy.mean
    return [point for point in points.deltas if point.accuracy.mean > least] or points.deltas


def legend(figure: Figure, every: Sequence[Points], colours: Sequence[str]) -> None:
    """What the colours and markers mean, below the panels."""
    marks = [Mark("o", colour, points.problem) for points, colour in zip(every, colours, strict=True)]
    marks += [Mark(MARKERS[name], "#444444", name.replace("_", " ").capitalize()) for name in MARKERS]
    legend_below(figure, marks)


def table(points: Points) -> Iterable[Row]:
    """Every threshold of a problem, and which operational points it is."""
    among = {point.delta for point in eligible(points)} if points.eligible else set()
    for point in points.deltas:
        which = [name.replace("_", " ") for name in MARKERS if getattr(points, name).delta == point.delta]
        row: Row = {"problem": points.problem, "delta": f"{point.delta:g}", "point": ", ".join(which)}
        for name in ("accuracy", "fidelity", "eff", "conv"):
            measure = getattr(point, name)
            row |= {name: measure.mean, f"{name}_std": measure.std}
        row |= {"single_accuracy": points.single_accuracy.mean, "single_fidelity": points.single_fidelity.mean}
        yield {**row, "eligible": point.delta in among}


def _at(point: Point, panel: Panel) -> tuple[float, float]:
    return getattr(point, panel.x).mean, getattr(point, panel.y).mean
