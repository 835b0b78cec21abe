"""Theorems 1 and 2 as curves: the risk on a fixed set settles, and so do the parameters."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.paper.catalogue import Made, Options, Row
from understudy.paper.figures.numbers import by_iteration, only, over, problem_of, some
from understudy.paper.figures.style import COLOURS, OTHERS, band, new_figure, power, style
from understudy.paper.units import Record, Unit

DELTA = 1e-8
COLUMNS = {"moved": "moved", "risk": "test_risks", "accuracy": "accuracies", "fidelity": "fidelities"}


class Theorems:
    """Consecutive distances of the parameters, and the risk, for pure sequential and for Algorithm 5."""

    title = "Theorems 1 and 2: risk and parameters settle"
    runs = 30

    def units(self, options: Options) -> tuple[Unit, ...]:
        """Pure sequential, for which the theorems are, and Algorithm 5, which drops points."""
        delta = only("--deltas", options.deltas, DELTA)
        return tuple(
            Unit(problem_of(options), options.space, method, threshold, repetition)
            for method, threshold in (("pure", None), ("sequential", delta))
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: Options) -> Made:
        """Two panels: a) risk on the test rows, b) distance of consecutive parameters."""
        figure = new_figure(10, 4.2)
        left, right = figure.subplots(1, 2)
        delta = only("--deltas", options.deltas, DELTA)
        labels = {"pure": "pure sequential", "sequential": f"Algorithm 5, $\\delta=${power(delta)}"}
        colours = {"pure": COLOURS["pure"], "sequential": OTHERS[1]}
        rows: list[Row] = []
        for method, label in labels.items():
            found = by_iteration([one for one in records if one["method"] == method], COLUMNS, method=method)
            band(left, found, "risk", colours[method], label)
            band(right, found, "moved", colours[method], label)
            rows += found
        style(left, "iteration", "risk on the test rows (mean $\\rho^2$)", "a)").margins(x=0)
        style(right, "iteration", "$||\\theta_t - \\theta_{t-1}||$", "b)").margins(x=0)
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.legend(loc="upper right", frameon=False)
        notes = (
            f"{over(options)} Risk is the mean of rho^2 over the test rows, against the original's answers. Theorem 1"
            " says that it settles in pure sequential, Theorem 2 that the distance between consecutive parameters goes"
            f" to 0; Algorithm 5 (delta {delta:g}, automatic memory) drops points, which neither theorem covers."
        )
        return Made(rows, f"{notes}\n\n{_settled(rows)}", figure, some(rows))


def _settled(rows: Sequence[Row]) -> str:
    """What the risk and the distance were at first, and at last."""
    told = []
    for method, name in {"pure": "Pure sequential", "sequential": "Algorithm 5"}.items():
        curve = [row for row in rows if row["method"] == method]
        first, last = curve[0], curve[-1]
        told.append(
            f"{name}, from t=1 to t={last['iteration']}: risk {first['risk']:.3g} to {last['risk']:.3g},"
            f" distance {first['moved']:.3g} to {last['moved']:.3g}."
        )
    return "\n\n".join(told)
