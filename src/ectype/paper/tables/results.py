"""Table 4: the results on the UCI problems."""

from __future__ import annotations

from collections.abc import Sequence

from ectype.paper.catalogue import ExhibitOptions, MadeExhibit, Row, runs_of
from ectype.paper.points import Point
from ectype.paper.reported import AVERAGES, table4
from ectype.paper.statistics import averages
from ectype.paper.uci import PLACES, OfTable4, Solved, solved
from ectype.paper.units import Record
from ectype.paper.writing import as_markdown

NOTES = """Means over {runs}, the deviation over them beside; the space is {space}. Fidelity is the share of test rows
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
        notes = NOTES.format(runs=runs_of(options.runs), space=options.space, unfit=told, averages=table)
        return MadeExhibit(rows, notes)


def result_rows(problems: Sequence[Solved]) -> list[Row]:
    """The rows of Table 4."""
    return [_row(one) for one in problems]


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


def _row(one: Solved) -> Row:
    points = one.points
    row: Row = {
        "dataset": one.problem,
        "accuracy_original": one.original_accuracy,
        "accuracy_single": points.single_accuracy.mean,
        "accuracy_single_std": points.single_accuracy.std,
        "fidelity_single": points.single_fidelity.mean,
    }
    for place in PLACES:
        row |= _columns(place, getattr(points, place))
    return row


def _columns(place: str, point: Point) -> Row:
    measures = {"eff": point.eff, "conv": point.conv, "accuracy": point.accuracy}
    row: Row = {}
    for name, spread in measures.items():
        row |= {f"{place}_{name}": spread.mean, f"{place}_{name}_std": spread.std}
    return row | {f"{place}_fidelity": point.fidelity.mean}
