"""Figures 7 and 8: the UCI problems, sequential copies against the single pass, and their operational points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit
from ectype_paper.figures.operational import MARKERS, SIZES, Panel, panels, table
from ectype_paper.figures.style import OTHERS, Mark, legend_below, new_figure, style
from ectype_paper.operating_points import PLACES, OfTable4, Points, means_over, solved
from ectype_paper.originals import FAMILIES, FAMILY_OF
from ectype_paper.tables.uci import result_rows
from ectype_paper.units import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A distance from the diagonal at which a point is as dark as any.
DARKEST = 0.15
# How many of the farthest points are named, and from which distance on.
NAMED, WORTH_NAMING = 6, 0.02
# How much of the panel's height a name takes.
NAME_HEIGHT = 0.024
GREY = "#444444"


class SinglePass(OfTable4):
    """Figure 7: a point for each problem, above the diagonal where the sequential copy is the better one."""

    title = "Figure 7: UCI problems, single-pass and sequential accuracy"

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """One panel; the points farthest from the diagonal are named."""
        columns = ("dataset", "accuracy_single", "fidelity_single", "best_accuracy_accuracy", "best_accuracy_fidelity")
        rows = [{name: row[name] for name in columns} for row in result_rows(solved(records, options.space))]
        x, y = (np.array([row[name] for row in rows]) for name in ("accuracy_single", "best_accuracy_accuracy"))
        figure = new_figure(6, 5.6)
        axes = style(figure.subplots(), "one-shot single-pass accuracy", "sequential accuracy at Best accuracy")
        _diagonal(axes, x, y, [row["dataset"] for row in rows])
        notes = (
            f"{means_over(options)} {int((y > x).sum())} of {len(rows)} problems "
            f"are above the diagonal, {int((y < x).sum())} below. Points are darker with their distance from it."
        )
        return MadeExhibit(rows, notes, figure)


class OperationalPoints(OfTable4):
    """Figure 8: what Best efficiency and Best convergence cost, a pair of points for each problem."""

    title = "Figure 8: UCI problems, operational points"

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """Three panels, coloured by the family of the original."""
        every = [one.points for one in solved(records, options.space)]
        colours = {family: OTHERS[k % len(OTHERS)] for k, family in enumerate(FAMILIES)}
        family = [FAMILY_OF.get(points.problem, "toy_rbf_svm") for points in every]
        figure = new_figure(15, 5.4)
        panels(figure.subplots(1, 3), every, [colours[name] for name in family], same=_same, dots=False)
        _legend(figure, {name: colours[name] for name in FAMILIES if name in family})
        rows = [row for points in every for row in table(points)]
        notes = (
            f"{means_over(options)} Where the two points of a panel are the same "
            "threshold, an inverted triangle stands for both. Dashed lines are fitted to the eligible thresholds by "
            "least squares. The table has the operational points, the CSV every threshold."
        )
        return MadeExhibit(rows, notes, figure, [row for row in rows if row["point"]])


def _diagonal(axes: Axes, x: np.ndarray, y: np.ndarray, names: Sequence[str]) -> None:
    ends = [min(x.min(), y.min()) - 0.03, max(x.max(), y.max()) + 0.03]
    axes.plot(ends, ends, color="#777777", linestyle="--", linewidth=1, zorder=1)
    distance = np.abs(y - x)
    shade = {"c": distance, "cmap": "Blues", "vmin": -DARKEST / 4, "vmax": DARKEST}
    axes.scatter(x, y, s=36, edgecolors="#33475b", linewidths=0.4, zorder=3, **shade)
    far = [k for k in np.argsort(-distance, kind="stable")[:NAMED] if distance[k] > WORTH_NAMING]
    size, height = ends[1] - ends[0], ends[1]
    for k in sorted(far, key=lambda k: -y[k]):
        height = min(y[k], height - NAME_HEIGHT * size)  # below the name before it
        # On the side that is away from the diagonal, where there is room.
        left = y[k] > x[k] and x[k] - ends[0] > 0.3 * size
        side, gap = ("right", -0.012 * size) if left else ("left", 0.012 * size)
        axes.text(x[k] + gap, height, names[k], ha=side, va="center", fontsize=7, color=GREY, zorder=4)
    axes.set(xlim=ends, ylim=ends, aspect="equal")


def _same(points: Points, panel: Panel) -> bool:
    return getattr(points, panel.first).delta == getattr(points, panel.second).delta


def _legend(figure: Figure, colours: dict[str, str]) -> None:
    marks = [Mark("o", colour, family.replace("_", " ")) for family, colour in colours.items()]
    marks += [Mark(MARKERS[name], GREY, words) for name, words in PLACES.items()]
    marks.append(Mark("v", GREY, "both the same"))
    legend_below(figure, [mark._replace(size=SIZES[mark.marker] ** 0.5) for mark in marks])
