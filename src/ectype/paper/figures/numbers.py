"""The numbers of figures by iteration: as rows of a table, and beside those that the paper's text names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ectype.errors import SettingError
from ectype.paper.catalogue import ExhibitOptions, Row, runs_of
from ectype.paper.claims import Figures, claim_rows
from ectype.paper.units import Record
from ectype.paper.writing import as_markdown

Value = TypeVar("Value")


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
