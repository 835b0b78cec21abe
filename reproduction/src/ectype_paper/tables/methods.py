"""Table 2: the methods compared in memory, accuracy and time, as measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row, runs_of
from ectype_paper.units import Record, Unit

PROBLEM = "spirals"
# The threshold that the paper shows Algorithm 5 with on spirals.
DELTA = 1e-6
# The method, its threshold, and the points of a single pass that has fewer than all others ask for.
WAYS = {
    "one-shot single-pass, 500 points": ("one-shot", None, 500),
    "one-shot single-pass, 1000 points": ("one-shot", None, 1000),
    "one-shot single-pass": ("one-shot", None, None),
    "online single-pass": ("online", None, None),
    "pure sequential (Algorithm 1)": ("pure", None, None),
    "sequential (Algorithm 5)": ("sequential", DELTA, None),
}
NOTES = """Measured on {problem}. `points` is how many were held for training at the end, `cpu` the seconds of work on a
whole copy, on one core; means over {runs}, the deviations of accuracy and seconds beside them."""


class Methods:
    """Table 2, with numbers where the paper has words."""

    title = "Table 2: the methods in memory, accuracy and time"
    runs = 30
    compact = True

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Every method on spirals."""
        return tuple(
            Unit(PROBLEM, options.space, method, delta, repetition, points=points)
            for method, delta, points in WAYS.values()
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """A row for each method."""
        ways = {way: name for name, way in WAYS.items()}
        groups: dict[str, list[Record]] = {name: [] for name in WAYS}
        for one in records:
            groups[ways[one["method"], one["delta"], one["points"]]].append(one)
        rows = [_row(name, those) for name, those in groups.items()]
        return MadeExhibit(rows, NOTES.format(problem=PROBLEM, runs=runs_of(options.runs)))


def _row(name: str, records: Sequence[Record]) -> Row:
    def mean(values: list[float]) -> float:
        return float(np.mean(values))

    accuracies, seconds = ([record[column] for record in records] for column in ("accuracy", "cpu"))
    return {
        "method": name,
        "queries": records[0]["queries"],
        "points": round(mean([record["kept"][-1] for record in records])),
        "accuracy": mean(accuracies),
        "accuracy_std": float(np.std(accuracies)),
        "fidelity": mean([record["fidelity"] for record in records]),
        "fidelity_fresh": mean([record["fidelity_fresh"] for record in records]),
        "cpu": mean(seconds),
        "cpu_std": float(np.std(seconds)),
        "runs": len(records),
    }
