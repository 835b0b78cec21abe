"""Tables of the UCI problems: the data sets and originals (Table 3), the results (Table 4), and both spaces."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ectype.workers import one_thread
from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row, runs_of
from ectype_paper.exhibit_io import as_markdown
from ectype_paper.operating_points import PLACES, OfTable4, Point, Solved, solved
from ectype_paper.original_cache import cached_original
from ectype_paper.originals import FAMILY_OF, family_of
from ectype_paper.problems import load, names
from ectype_paper.published import AVERAGES, table3, table4
from ectype_paper.statistics import all_held_out, averages, over_problems
from ectype_paper.sweep import problem_names
from ectype_paper.units import SPACES, Record, Unit

ABOUT_DATA_SETS = """\
`accuracy_original` is ours, on our 20 % of test rows; columns that begin with `paper_` are the paper's. The
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
        rows = [_data_set_row(options.data, name) for name in sorted(problems, key=lambda name: _place(order, name))]
        return MadeExhibit(rows, ABOUT_DATA_SETS)


def _place(order: list[str], name: str) -> int:
    return order.index(name) if name in order else len(order)


def _data_set_row(folder: str | None, name: str) -> Row:
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


ABOUT_RESULTS = """\
Means over {runs}, the deviation over them beside; the space is {space}. Fidelity is the share of test rows
on which copy and original agree.{unfit}

{averages}
"""


class Table4(OfTable4):
    """Table 4: the columns of the paper, and fidelity beside every accuracy."""

    title = "Table 4: single-pass and sequential copies of the UCI problems"

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """A row for each problem; the averages are in the notes."""
        problems = solved(records, options.space)
        rows = result_rows(problems)
        unfit = [one.problem for one in problems if not one.points.eligible]
        told = f" No threshold is within 5 % of the single pass for {', '.join(unfit)}." if unfit else ""
        table = as_markdown(average_rows(rows))
        notes = ABOUT_RESULTS.format(runs=runs_of(options.runs), space=options.space, unfit=told, averages=table)
        return MadeExhibit(rows, notes)


def result_rows(problems: Sequence[Solved]) -> list[Row]:
    """The rows of Table 4."""
    return [_result_row(one) for one in problems]


def average_rows(rows: Sequence[Row]) -> list[Row]:
    """The averages of Table 4: ours, what the paper prints, and the mean of the paper's rows for the same problems."""
    ours, theirs = averages(rows), paper_rows(rows)
    paper = averages(theirs) if theirs else {}
    return [
        {"average": name, "ours": value, "paper, printed": AVERAGES.get(name), "paper, these rows": paper.get(name)}
        for name, value in ours.items()
    ]


def paper_rows(rows: Sequence[Row]) -> list[Row]:
    """The paper's rows of the same problems."""
    return [table4()[row["dataset"]] for row in rows if row["dataset"] in table4()]


def _result_row(one: Solved) -> Row:
    points = one.points
    row: Row = {
        "dataset": one.problem,
        "accuracy_original": one.original_accuracy,
        "accuracy_single": points.single_accuracy.mean,
        "accuracy_single_std": points.single_accuracy.std,
        "fidelity_single": points.single_fidelity.mean,
    }
    for place in PLACES:
        row |= _place_columns(place, getattr(points, place))
    return row


def _place_columns(place: str, point: Point) -> Row:
    measures = {"eff": point.eff, "conv": point.conv, "accuracy": point.accuracy}
    row: Row = {}
    for name, spread in measures.items():
        row |= {f"{place}_{name}": spread.mean, f"{place}_{name}_std": spread.std}
    return row | {f"{place}_fidelity": point.fidelity.mean}


ABOUT_SPACES = """\
Means over {n} problems and {runs}. `gap` is how much more accurate the original is than the copy; `closed`
is the share of the gap under N(0, 1) that is gone where the space was learned from unlabelled training rows; `p` is
Wilcoxon's signed-rank test over problems of accuracy in one space against the other. `held-out gap` is that of runs
whose threshold the other runs chose."""
COPIES = {"single": "one-shot single-pass", **PLACES}


class Spaces(OfTable4):
    """The paper's N(0, 1) beside a space learned from rows without labels."""

    title = "Spaces: the gap between copy and original"
    runs = 3
    spaces = SPACES

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """A row for each way of copying and each space."""
        problems = {space: solved(records, space) for space in SPACES}
        notes = ABOUT_SPACES.format(n=len(problems[SPACES[0]]), runs=runs_of(options.runs))
        return MadeExhibit(space_rows(problems), notes)


def space_rows(problems: dict[str, list[Solved]]) -> list[Row]:
    """Single pass and operational points in each space; the problems must be the same in all."""
    tables = {space: result_rows(those) for space, those in problems.items()}
    return [row for copy in COPIES for row in _copy_rows(copy, tables, problems)]


def _copy_rows(copy: str, tables: dict[str, list[Row]], problems: dict[str, list[Solved]]) -> list[Row]:
    accuracy, fidelity = ("accuracy_single", "fidelity_single") if copy == "single" else _place_names(copy)
    first = _mean(tables[SPACES[0]], "accuracy_original") - _mean(tables[SPACES[0]], accuracy)
    rows: list[Row] = []
    for space, table in tables.items():
        original, copied = _mean(table, "accuracy_original"), _mean(table, accuracy)
        row: Row = {"copy": COPIES[copy], "space": space, "original accuracy": original, "copy accuracy": copied}
        row |= {"fidelity": _mean(table, fidelity), "gap": original - copied, "closed": None, "p": None}
        row["held-out gap"] = None if copy == "single" else _held_out_gap(problems[space], copy)
        row["eff"] = None if copy == "single" else _mean(table, f"{copy}_eff")
        row["conv"] = None if copy == "single" else _mean(table, f"{copy}_conv")
        if space != SPACES[0]:
            row["closed"] = 1 - row["gap"] / first if first > 0 else None
            differences = [a[accuracy] - b[accuracy] for a, b in zip(table, tables[SPACES[0]], strict=True)]
            row["p"] = f"{over_problems(differences).p:.2g}"
        rows.append(row)
    return rows


def _held_out_gap(problems: Sequence[Solved], place: str) -> float | None:
    lead = all_held_out([one.points for one in problems], place)
    if lead is None:
        return None
    behind = [one.original_accuracy - one.points.single_accuracy.mean for one in problems]
    return float(np.mean(behind) - np.mean(lead))


def _place_names(place: str) -> tuple[str, str]:
    return f"{place}_accuracy", f"{place}_fidelity"


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
