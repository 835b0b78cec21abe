"""Theorems 1 and 2 as curves: risk and parameters settle; and what each iteration costs.

Pure sequential trains on all points so far, Algorithm 5 on those that it keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype_paper.figures.curves import (
    SHADES,
    by_iteration,
    labels,
    of_method,
    over,
    some,
    threshold,
    two_panels,
    units_of_both,
)
from ectype_paper.figures.style import band, style
from ectype_paper.units import Record, Unit

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


# The points of an iteration's epochs, added up, are its work whatever else the machine had to do.
COST_COLUMNS = {
    "seconds": "cumulated",
    "work": "cumulated_points",
    "points": "kept",
    "accuracy": "accuracies",
    "fidelity": "fidelities",
}
ABOUT_SECONDS = (
    "Seconds of training and of choosing points, in one thread, are added up; they are of a clock, and only a machine"
    " with nothing else to do gives their power. work is the sum of |S_t| so far."
)
# Exponents of t, and the columns that they are fitted to.
POWERS = {"power": "seconds", "power_of_work": "work"}
# Every so many iterations there is a row on the page.
EVERY = 10


class Cost:
    """Seconds of training so far, by iteration."""

    title = "Cost: seconds of training by iteration"
    runs = 3
    iterations = 100

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Pure sequential and Algorithm 5, for more iterations than elsewhere."""
        return units_of_both(options, options.iterations)

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """The rows, with the powers of t that fit them, and the figure."""
        rows: list[Row] = []
        for method in labels(options):
            curve = by_iteration([_cumulated(one) for one in of_method(records, method)], COST_COLUMNS, method=method)
            powers = {name: fitted_power([row[of] for row in curve])[0] for name, of in POWERS.items()}
            rows += [{**row, **powers} for row in curve]
        notes = "\n\n".join([f"{over(options)} {ABOUT_SECONDS}", *_grown(rows, options)])
        return MadeExhibit(rows, notes, self.draw(rows, options), some(rows, EVERY))

    def draw(self, rows: Sequence[Row], options: ExhibitOptions) -> Figure:
        """Two panels of the same: on plain axes, and on logarithmic ones, where a power is a line."""
        figure, plain, logarithmic = two_panels()
        for method, label in labels(options).items():
            curve = of_method(rows, method)
            exponent, factor = fitted_power([row["seconds"] for row in curve])
            band(plain, curve, "seconds", SHADES[method], label)
            band(logarithmic, curve, "seconds", SHADES[method], f"{label}: $t^{{{exponent:.2f}}}$")
            late = np.array([row["iteration"] for row in curve[len(curve) // 2 :]])
            logarithmic.plot(late, factor * late**exponent, color="black", linestyle=":", linewidth=1.2)
        style(plain, "iteration", "seconds of training so far", "a)").margins(x=0)
        # So few that all are the same, or none, have no scale.
        scale = "log" if len({row["seconds"] for row in rows if row["seconds"] > 0}) > 1 else "linear"
        style(logarithmic, "iteration", "seconds of training so far", "b)").set(xscale="log", yscale=scale)
        for axes in (plain, logarithmic):
            axes.legend(loc="upper left", frameon=False)
        return figure


def _grown(rows: Sequence[Row], options: ExhibitOptions) -> Iterator[str]:
    """How the cost of either grows, in words."""
    algorithm_5 = f"Algorithm 5 (delta {threshold(options):g}, automatic memory)"
    for method, words in {"pure": "Pure sequential", "sequential": algorithm_5}.items():
        last = of_method(rows, method)[-1]
        powers = f"seconds grow as t^{last['power']:.2f} and the points trained on as t^{last['power_of_work']:.2f}"
        yield f"{words}: over the later half, {powers}; {last['seconds']:.1f} s in all."


def _cumulated(record: Record) -> Record:
    """A record with what its iterations took so far."""
    return {**record, "cumulated": np.cumsum(record["times"]), "cumulated_points": np.cumsum(record["kept"])}


def fitted_power(seconds: Sequence[float]) -> tuple[float, float]:
    """The exponent and the factor of a power of t, fitted to the later half of a curve that starts at t = 1.

    >>> exponent, factor = fitted_power([3.0 * t**2 for t in range(1, 21)])
    >>> round(exponent, 6), round(factor, 6)
    (2.0, 3.0)
    """
    t = np.log(np.arange(1, len(seconds) + 1))[len(seconds) // 2 :]
    s = np.log(np.maximum(seconds, 1e-9))[len(seconds) // 2 :]
    if len(t) < 2:
        return 0.0, float(np.exp(s[-1]))
    exponent = float(((t - t.mean()) * (s - s.mean())).sum() / ((t - t.mean()) ** 2).sum())
    return exponent, float(np.exp(s.mean() - exponent * t.mean()))
