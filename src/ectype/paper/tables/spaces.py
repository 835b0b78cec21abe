"""Table 4 in both spaces: how much of the gap between copy and original closes when the space is learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype.paper.catalogue import ExhibitOptions, MadeExhibit, Row, runs_of
from ectype.paper.settings import SPACES
from ectype.paper.statistics import all_held_out, over_problems
from ectype.paper.tables.results import result_rows
from ectype.paper.uci import PLACES, OfTable4, Solved, solved
from ectype.paper.units import Record

NOTES = """Means over {n} problems and {runs}. `gap` is how much more accurate the original is than the copy; `closed`
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
        notes = NOTES.format(n=len(problems[SPACES[0]]), runs=runs_of(options.runs))
        return MadeExhibit(space_rows(problems), notes)


def space_rows(problems: dict[str, list[Solved]]) -> list[Row]:
    """Single pass and operational points in each space; the problems must be the same in all."""
    tables = {space: result_rows(those) for space, those in problems.items()}
    return [row for copy in COPIES for row in _rows(copy, tables, problems)]


def _rows(copy: str, tables: dict[str, list[Row]], problems: dict[str, list[Solved]]) -> list[Row]:
    accuracy, fidelity = ("accuracy_single", "fidelity_single") if copy == "single" else _names(copy)
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


def _names(place: str) -> tuple[str, str]:
    return f"{place}_accuracy", f"{place}_fidelity"


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
