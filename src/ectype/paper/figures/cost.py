"""What each iteration costs: pure sequential trains on all points so far, Algorithm 5 on those it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ectype.paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype.paper.figures.both import SHADES, labels, of_method, threshold, two_panels, units_of_both
from ectype.paper.figures.numbers import by_iteration, over, some
from ectype.paper.figures.style import band, style
from ectype.paper.units import Record, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The points of an iteration's epochs, added up, are its work whatever else the machine had to do.
COLUMNS = {
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
            curve = by_iteration([_cumulated(one) for one in of_method(records, method)], COLUMNS, method=method)
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
