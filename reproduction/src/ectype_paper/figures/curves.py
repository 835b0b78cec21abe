"""Curves by iteration: rows of a table, beside what the paper's text says; and the figures that compare two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ectype.errors import SettingError
from ectype_paper.catalogue import ExhibitOptions, Row, runs_of
from ectype_paper.claims import Figures, claim_rows
from ectype_paper.exhibit_io import as_markdown
from ectype_paper.figures.style import COLOURS, OTHERS, new_figure, power
from ectype_paper.units import Record, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Value = TypeVar("Value")
# The threshold of Algorithm 5 where it is compared with pure sequential, and the colours of the two.
DELTA = 1e-8
SHADES = {"pure": COLOURS["pure"], "sequential": OTHERS[1]}


def curve(records: Sequence[Record], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation over repetitions of something that is known by iteration."""
    values = np.array([record[name] for record in records], float)
    return values.mean(axis=0), values.std(axis=0)


def by_iteration(records: Sequence[Record], columns: dict[str, str], **named: object) -> list[Row]:
    """A row for every iteration of repetitions of the same: means and deviations of the columns, and queries so far."""
    curves = {column: curve(records, name) for column, name in columns.items()}
    rounds = len(records[0]["kept"])
    each = records[0]["queries"] // rounds
    return [
        {**named, "iteration": t + 1, "queries": each * (t + 1), "runs": len(records)}
        | {
            column + suffix: float(values[t])
            for column, pair in curves.items()
            for suffix, values in zip(("", "_std"), pair, strict=True)
        }
        for t in range(rounds)
    ]


def some(rows: Sequence[Row], every: int = 5) -> list[Row]:
    """The rows that a page has room for: the first iterations, and every fifth; the CSV has all of them."""
    return [row for row in rows if row["iteration"] == 1 or row["iteration"] % every == 0]


def claimed(figure: str, figures: Figures, options: ExhibitOptions) -> str:
    """What the paper's text says of a figure, and what came out here, where there is enough of it."""
    if (problem_of(options), options.space) != ("spirals", "normal"):
        return ""
    rows = claim_rows(figures, figure)
    return as_markdown(rows) if rows else ""


def only(name: str, given: Sequence[Value] | None, otherwise: Value) -> Value:
    """The one that was asked for, or the paper's."""
    if given is not None and len(given) != 1:
        raise SettingError(name, "one alone for this figure", ", ".join(map(str, given)))
    return otherwise if given is None else given[0]


def problem_of(options: ExhibitOptions) -> str:
    """The problem that a figure by iteration is of."""
    return only("--problems", options.problems, "spirals")


def over(options: ExhibitOptions) -> str:
    """What the means are over, as a sentence."""
    rounds, problem = options.iterations, problem_of(options)
    return f"Mean and standard deviation over {runs_of(options.runs)} of {rounds} iterations, on {problem}."


def threshold(options: ExhibitOptions) -> float:
    """The threshold of Algorithm 5: the one asked for, or the paper's."""
    return only("--deltas", options.deltas, DELTA)


def units_of_both(options: ExhibitOptions, iterations: int | None = None) -> tuple[Unit, ...]:
    """Repetitions of either; of as many iterations as elsewhere, if not said otherwise."""
    return tuple(
        Unit(problem_of(options), options.space, method, delta, repetition, iterations=iterations)
        for method, delta in (("pure", None), ("sequential", threshold(options)))
        for repetition in range(options.runs)
    )


def labels(options: ExhibitOptions) -> dict[str, str]:
    """The names of the curves, by method."""
    return {"pure": "pure sequential", "sequential": f"Algorithm 5, $\\delta=${power(threshold(options))}"}


def of_method(records: Sequence[Record], method: str) -> list[Record]:
    """The records of one of the two."""
    return [record for record in records if record["method"] == method]


def two_panels() -> tuple[Figure, Axes, Axes]:
    """A figure with two panels side by side."""
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2)
    return figure, left, right
