"""Table 3: the data sets and their originals, the paper's numbers beside ours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ectype.paper.cache import cached_original
from ectype.paper.catalogue import ExhibitOptions, MadeExhibit, Row
from ectype.paper.originals import FAMILY_OF, family_of
from ectype.paper.problems import load, names
from ectype.paper.reported import table3
from ectype.paper.sweep import problem_names
from ectype.paper.units import Record, Unit
from ectype.workers import one_thread

NOTES = """`accuracy_original` is ours, on our 20 % of test rows; columns that begin with `paper_` are the paper's. The
paper's split is not known, and neither are its grids: accuracies agree as far as that lets them."""


class DataSets:
    """Table 3: nothing is copied for it, but originals are fitted, or taken from the cache."""

    title = "Table 3: the data sets and their originals"
    runs = 1
    of_uci = True

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """None."""
        return ()

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """A row for each problem that there is data of."""
        listed = {*FAMILY_OF} & {*names(options.data), *names()}
        problems = problem_names(options.data, options.problems or sorted(listed))
        order = list(table3())
        rows = [_row(options.data, name) for name in sorted(problems, key=lambda name: _place(order, name))]
        return MadeExhibit(rows, NOTES)


def _place(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _row(folder: str | None, name: str) -> Row:
    problem = load(folder, name)
    with one_thread(), warnings.catch_warnings(action="ignore", category=UserWarning):
        accuracy = float((cached_original(problem).predict(problem.X_test) == problem.y_test).mean())
    paper = table3().get(name, {})
    row = {
        "dataset": name,
        "classes": problem.n_classes,
        "samples": len(problem.y_train) + len(problem.y_test),
        "features": problem.d,
        "original": family_of(problem),
        "accuracy_original": accuracy,
    }
    return row | {f"paper_{key}": paper.get(key) for key in ("classes", "samples", "features", "accuracy_original")}
