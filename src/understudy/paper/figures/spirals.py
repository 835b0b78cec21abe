"""Figures 1 to 5: what each part of the method does, by iteration, on spirals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.paper.catalogue import Made, Options, Row
from understudy.paper.figures.drawing import COLOURS, band, curve, new_figure, style
from understudy.paper.units import Record, Unit, subject

# Points of the single passes that are drawn as level lines.
SINGLE_PASSES = (500, 1000, 2000, 3000)
PIXELS = 300


class Accuracy:
    """Figure 1: the original's boundary, and accuracy by iteration for each method."""

    title = "Figure 1: spirals, accuracy by method"
    runs = 30

    def units(self, options: Options) -> tuple[Unit, ...]:
        """Pure sequential, online, and single passes of several sizes."""
        ways = [("pure", None), ("online", None), *(("one-shot", n) for n in SINGLE_PASSES)]
        return tuple(
            Unit("spirals", "normal", method, None, repetition, points=points)
            for method, points in ways
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: Options) -> Made:
        """Two panels: a) the boundary, b) the curves."""
        figure = new_figure(10, 4.2)
        left, right = figure.subplots(1, 2, width_ratios=(0.43, 0.57))
        _boundary(style(left, "", "", "a)"))
        style(right, "iteration", "copy accuracy", "b)")
        rows: list[Row] = []
        for method in ("pure", "online"):
            found = [record for record in records if record["method"] == method]
            mean, std = curve(found, "accuracies")
            fidelities = curve(found, "fidelities")[0]
            band(right, mean, std, COLOURS[method], {"pure": "sequential", "online": "online single-pass"}[method])
            rows += [
                {"method": method, "points": 100 * (t + 1), "accuracy": a, "std": s, "fidelity": f}
                for t, (a, s, f) in enumerate(zip(mean.tolist(), std.tolist(), fidelities.tolist(), strict=True))
            ]
        for points in SINGLE_PASSES:
            found = [record for record in records if record["points"] == points]
            mean, std = curve(found, "accuracies")
            fidelity = float(curve(found, "fidelities")[0][0])
            right.axhline(mean[0], color=COLOURS["one-shot"], linestyle="--", linewidth=1)
            right.annotate(f"n={points}", (1, mean[0]), fontsize=8, color="#555555", va="bottom")
            one = {"method": "one-shot", "points": points, "accuracy": float(mean[0]), "std": float(std[0])}
            rows.append({**one, "fidelity": fidelity})
        right.legend(loc="lower right", frameon=False)
        return Made(rows, f"Mean and standard deviation over {options.runs} runs.", figure)


def _boundary(axes: object) -> None:
    """What the original answers in the plane, and some of the data."""
    from understudy.paper.problems import load

    problem = load(None, "spirals")
    original = subject("spirals", None, problem.digest).original
    ticks = np.linspace(-2.4, 2.4, PIXELS)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    answers = original.predict(grid).reshape(PIXELS, PIXELS)
    extent = (ticks[0], ticks[-1], ticks[0], ticks[-1])
    axes.imshow(answers, origin="lower", extent=extent, cmap="coolwarm", alpha=0.35)  # type: ignore[attr-defined]
    shown = problem.X_test[:600]
    axes.scatter(*shown.T, c=problem.y_test[:600], cmap="coolwarm", s=4)  # type: ignore[attr-defined]
