"""Figures 1 and 2: pure sequential, online and single passes, by iteration, on spirals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype_paper.figures.curves import by_iteration, claimed, over, problem_of, some
from ectype_paper.figures.style import COLOURS, band, levels, new_figure, style
from ectype_paper.units import Record, Unit, subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Points of the single passes that are drawn as level lines: the paper says "various".
SINGLE_PASSES = (200, 500, 1000, 3000)
CURVES = {"pure": "sequential", "online": "online single-pass"}
# rho is over the test rows, which stay the same; rho_kept is over what the copy was trained on in that iteration.
COLUMNS = {
    "accuracy": "accuracies", "fidelity": "fidelities", "rho": "test_rhos", "rho_kept": "rhos", "points": "kept"
}  # fmt: skip
RHO = "mean uncertainty $\\rho$"
ABOUT_RHO = "rho is the mean over the test rows, which stay the same while S_t does not; rho_kept is the mean over S_t."
PIXELS = 300
SHOWN = 600


class ByMethod:
    """What figures 1 and 2 are made from."""

    runs = 30

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Pure sequential, online, and single passes of several sizes."""
        ways = [("pure", None), ("online", None), *(("one-shot", n) for n in SINGLE_PASSES)]
        return tuple(
            Unit(problem_of(options), options.space, method, None, repetition, points=points)
            for method, points in ways
            for repetition in range(options.runs)
        )

    def rows(self, records: Sequence[Record]) -> list[Row]:
        """Every method by iteration; a single pass has one."""
        groups = {(record["method"], record["points"]): list[Record]() for record in records}
        for record in records:
            groups[record["method"], record["points"]].append(record)
        return [
            {**row, "original_accuracy": found[0]["original_accuracy"]}
            for (method, _), found in groups.items()
            for row in by_iteration(found, COLUMNS, method=method)
        ]

    def _curves(self, axes: Axes, rows: Sequence[Row], column: str) -> None:
        """The methods that go on as curves, the single passes as level lines."""
        for method, label in CURVES.items():
            band(axes, [row for row in rows if row["method"] == method], column, COLOURS[method], label)
        axes.margins(x=0)
        single = [row for row in rows if row["method"] == "one-shot"]
        levels(axes, [(f"one-shot, n={row['queries']}", row[column]) for row in single])


class Accuracy(ByMethod):
    """Figure 1: the original's boundary, and accuracy by iteration for each method."""

    title = "Figure 1: spirals, accuracy by method"

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """Two panels: a) the boundary, b) the curves."""
        rows = self.rows(records)
        told = claimed("1", {"fig1": rows}, options)
        return MadeExhibit(rows, f"{over(options)} {ABOUT_RHO}\n\n{told}", self.draw(rows, options), some(rows))

    def draw(self, rows: Sequence[Row], options: ExhibitOptions) -> Figure:
        """The figure, from its rows."""
        figure = new_figure(11, 4.2)
        left, right = figure.subplots(1, 2, width_ratios=(0.43, 0.57))
        _boundary(left, options)
        style(right, "iteration (100 queries each)", "copy accuracy", "b)")
        self._curves(right, rows, "accuracy")
        right.legend(loc="lower right", frameon=False)
        return figure


class Uncertainty(ByMethod):
    """Figure 2: mean uncertainty by iteration for each method."""

    title = "Figure 2: spirals, uncertainty by method"

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """One panel, with the methods of figure 1."""
        rows = self.rows(records)
        told = claimed("2", {"fig1": rows}, options)
        return MadeExhibit(rows, f"{over(options)} {ABOUT_RHO}\n\n{told}", self.draw(rows, options), some(rows))

    def draw(self, rows: Sequence[Row], options: ExhibitOptions) -> Figure:
        """The figure, from its rows."""
        figure = new_figure(8, 4.2)
        axes = style(figure.subplots(), "iteration (100 queries each)", RHO)
        axes.set_ylim(0, 1.05 * max(row["rho"] + row["rho_std"] for row in rows))
        self._curves(axes, rows, "rho")
        axes.legend(loc="upper right", frameon=False)
        return figure


def _boundary(axes: Axes, options: ExhibitOptions) -> None:
    """What the original answers in the plane, and some of the data."""
    from ectype.errors import SettingError
    from ectype_paper.problems import load

    problem = load(options.data, problem_of(options))
    if problem.d != 2:
        raise SettingError("--problems", "a problem in the plane", f"{problem.name}, with {problem.d} columns")
    original = subject(problem.name, options.data, problem.digest).original
    reach = 1.05 * np.abs(problem.X_test).max()
    ticks = np.linspace(-reach, reach, PIXELS)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    answers = original.predict(grid).reshape(PIXELS, PIXELS)
    extent = (-reach, reach, -reach, reach)
    axes.imshow(answers, origin="lower", extent=extent, cmap="coolwarm", alpha=0.35, interpolation="nearest")
    axes.contour(ticks, ticks, answers, levels=[0.5], colors="#444444", linewidths=0.8)
    x, y = problem.X_test[:SHOWN].T
    axes.scatter(x, y, c=problem.y_test[:SHOWN], cmap="coolwarm", s=4)
    style(axes, "$x_1$", "$x_2$", "a)").grid(visible=False)
