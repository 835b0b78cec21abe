"""Theorems 1 and 2 as curves: the risk on a fixed set settles, and so do the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ectype.paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype.paper.figures.both import SHADES, labels, of_method, threshold, two_panels, units_of_both
from ectype.paper.figures.numbers import by_iteration, over, some
from ectype.paper.figures.style import band, style
from ectype.paper.units import Record, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {"moved": "moved", "risk": "test_risks", "accuracy": "accuracies", "fidelity": "fidelities"}


class Theorems:
    """Consecutive distances of the parameters, and the risk, for pure sequential and for Algorithm 5."""

    title = "Theorems 1 and 2: risk and parameters settle"
    runs = 30

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Pure sequential, for which the theorems are, and Algorithm 5, which drops points."""
        return units_of_both(options)

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """Two panels: a) risk on the test rows, b) distance of consecutive parameters."""
        rows = [
            row
            for method in labels(options)
            for row in by_iteration(of_method(records, method), COLUMNS, method=method)
        ]
        notes = (
            f"{over(options)} Risk is the mean of rho^2 over the test rows, against the original's answers. Theorem 1"
            " says that it settles in pure sequential, Theorem 2 that the distance between consecutive parameters goes"
            f" to 0; Algorithm 5 (delta {threshold(options):g}, automatic memory) drops points, which neither theorem"
            " covers."
        )
        return MadeExhibit(rows, f"{notes}\n\n{_settled(rows)}", self.draw(rows, options), some(rows))

    def draw(self, rows: Sequence[Row], options: ExhibitOptions) -> Figure:
        """The figure, from its rows."""
        figure, left, right = two_panels()
        for method, label in labels(options).items():
            found = of_method(rows, method)
            band(left, found, "risk", SHADES[method], label)
            band(right, found, "moved", SHADES[method], label)
        style(left, "iteration", "risk on the test rows (mean $\\rho^2$)", "a)").margins(x=0)
        style(right, "iteration", "$||\\theta_t - \\theta_{t-1}||$", "b)").margins(x=0)
        for axes in (left, right):
            axes.set_ylim(bottom=0)
            axes.legend(loc="upper right", frameon=False)
        return figure


def _settled(rows: Sequence[Row]) -> str:
    """What the risk and the distance were at first, and at last."""
    told = []
    for method, name in {"pure": "Pure sequential", "sequential": "Algorithm 5"}.items():
        curve = of_method(rows, method)
        first, last = curve[0], curve[-1]
        told.append(
            f"{name}, from t=1 to t={last['iteration']}: risk {first['risk']:.3g} to {last['risk']:.3g},"
            f" distance {first['moved']:.3g} to {last['moved']:.3g}."
        )
    return "\n\n".join(told)
