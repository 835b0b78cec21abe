"""Table 2: the methods compared in memory, accuracy and time, as measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.paper.catalogue import Made, Options, Row, runs_of
from understudy.paper.units import Record, Unit

PROBLEM = "spirals"
# The threshold that the paper shows Algorithm 5 with on spirals.
DELTA = 1e-6
WAYS = {
    "one-shot single-pass": ("one-shot", None),
    "online single-pass": ("online", None),
    "pure sequential (Algorithm 1)": ("pure", None),
    "sequential (Algorithm 5)": ("sequential", DELTA),
}
NOTES = """Measured on {problem}, {queries}. `points` is how many were held for training at the end, `cpu` the
seconds of work on a whole copy, on one core; means over {runs}, the deviation of accuracy beside it."""


class Methods:
    """Table 2, with numbers where the paper has words."""

    title = "Table 2: the methods in memory, accuracy and time"
    runs = 30
    compact = True

    def units(self, options: Options) -> tuple[Unit, ...]:
        """Every method on spirals."""
        return tuple(
            Unit(PROBLEM, options.space, method, delta, repetition)
            for method, delta in WAYS.values()
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: Options) -> Made:
        """A row for each method."""
        rows = [_row(name, [one for one in records if one["method"] == way[0]]) for name, way in WAYS.items()]
        queries = " or ".join(str(count) for count in sorted({record["queries"] for record in records}))
        notes = NOTES.format(problem=PROBLEM, queries=f"{queries} queries", runs=runs_of(options.runs))
        return Made(rows, notes)


def _row(name: str, records: Sequence[Record]) -> Row:
    def mean(values: list[float]) -> float:
        return float(np.mean(values))

    accuracies = [record["accuracy"] for record in records]
    return {
        "method": name,
        "queries": records[0]["queries"],
        "points": round(mean([record["kept"][-1] for record in records])),
        "accuracy": mean(accuracies),
        "accuracy_std": float(np.std(accuracies)),
        "fidelity": mean([record["fidelity"] for record in records]),
        "fidelity_fresh": mean([record["fidelity_fresh"] for record in records]),
        "cpu": mean([record["cpu"] for record in records]),
    }
