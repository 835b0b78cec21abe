"""Fill the marked blocks of docs/paper.md, and draw its figures, from results alone; nothing is run.

    python reproduction/tools/fill_page.py --results reproduction/results --out docs/paper.md

Blocks stand between `<!-- begin NAME -->` and `<!-- end NAME -->`; everything outside of them stays as it is. Figures
are drawn into the folder `figures` beside the page.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ectype._common.atomic_io import as_path, write_text
from ectype.errors import EctypeError, SettingError
from ectype_paper.catalogue import Row, runs_of
from ectype_paper.claims import Figures, claim_rows
from ectype_paper.operating_points import METHODS, PLACES, PROBLEMS, Solved, solved
from ectype_paper.published import table4
from ectype_paper.statistics import held_out
from ectype_paper.store import unit_of
from ectype_paper.sweep import units
from ectype_paper.tables.statistics import quoted_rows, significant_rows, tested_rows, threshold_rows
from ectype_paper.tables.uci import average_rows, result_rows, space_rows
from ectype_paper.unit_table import read_table
from ectype_paper.units import DELTAS, SPACES, Record
from page_figures import made_of, read_curves, write_pictures

UNITS, DATA_SETS = "units.csv", "table3.csv"
MARK = re.compile(r"(<!-- begin (?P<name>[\w-]+) -->\n)(?P<text>.*?)(<!-- end (?P=name) -->)", re.S)
NOT_THERE = "Not there yet: `results/{}` is missing{}.\n"
# From which difference on a number is said to differ from the paper's: of an original, of a single pass, of eff.
DIFFERS = {"O": ("accuracy_original", 0.03), "S": ("accuracy_single", 0.05), "E": ("best_accuracy_eff", 0.1)}


@dataclass(frozen=True)
class SavedResults:
    """What there is to report: the records, the rows of Table 3 if they are there, and repetitions by space.

    `curves` are the rows of the figures by iteration.
    """

    records: Sequence[Record]
    data_sets: Sequence[Row]
    runs: dict[str, int]
    curves: Figures

    def solved(self, space: str, runs: int | None = None) -> list[Solved]:
        """The problems of a space that are complete, all with as many repetitions."""
        runs = self.runs[space] if runs is None else runs
        complete = {name for name in PROBLEMS if complete_runs(self.records, name, space) >= runs}
        wanted = {*units(sorted(complete), METHODS, DELTAS, runs, space)}
        return solved([one for one in self.records if unit_of(one) in wanted], space)


def complete_runs(records: Sequence[Record], problem: str, space: str) -> int:
    """How many repetitions of a problem have the single pass and every threshold."""
    there = {unit_of(one) for one in records if one["problem"] == problem and one["space"] == space}
    runs = 0
    while there.issuperset(units([problem], METHODS, DELTAS, runs + 1, space)):
        runs += 1
    return runs


def read_results(folder: str | Path) -> SavedResults | None:
    """What a folder of results has; None where there is no table of units."""
    path = as_path(folder)
    if not (path / UNITS).exists():
        return None
    records = read_table(path / UNITS)
    data_sets: list[Row] = []
    if (path / DATA_SETS).exists():
        with (path / DATA_SETS).open(encoding="utf-8", newline="") as file:
            data_sets = list(csv.DictReader(file))
    runs = {}
    for space in SPACES:
        found = [complete_runs(records, problem, space) for problem in PROBLEMS]
        runs[space] = min((count for count in found if count), default=0)
    return SavedResults(records, data_sets, runs, read_curves(path))


def fill_page(page: str | Path, folder: str | Path) -> list[str]:
    """Fill the marked blocks of a page from a folder of results; gives their names."""
    path = as_path(page)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingError(str(path), "a page with marked blocks", str(error)) from error
    filled = fill(text, read_results(folder))
    write_text(path, filled)
    return [found["name"] for found in MARK.finditer(text)]


def fill(text: str, results: SavedResults | None) -> str:
    """A page with its blocks as the results have them; what is missing is said to be missing."""

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in BLOCKS:
            raise SettingError(f"<!-- begin {name} -->", f"one of {', '.join(BLOCKS)}", repr(name))
        written = NOT_THERE.format(UNITS, "") if results is None else BLOCKS[name](results)
        return f"{found[1]}{written}{found[4]}"

    return MARK.sub(block, text)


def _table(rows: Sequence[Row]) -> str:
    from ectype_paper.exhibit_io import as_markdown

    return as_markdown(rows) + "\n"


def _with_results(make: Callable[[list[Solved]], str]) -> Callable[[SavedResults], str]:
    """A block that is made of the problems in the paper's space."""

    def block(results: SavedResults) -> str:
        problems = results.solved(SPACES[0]) if results.runs[SPACES[0]] else []
        return make(problems) if problems else NOT_THERE.format(UNITS, " every problem with all thresholds")

    return block


def _extent(results: SavedResults) -> str:
    """How much there is, and by which engine."""
    lines = []
    for space in SPACES:
        count, runs = len(results.solved(space)) if results.runs[space] else 0, results.runs[space]
        of = [one for one in results.records if one["space"] == space and one["problem"] in PROBLEMS]
        engines = " and ".join(sorted({str(one["engine"]) for one in of}))
        told = f", engine {engines}" if engines else ""
        lines.append(
            f"- space {space}: {count} of {len(PROBLEMS)} problems with all thresholds, {runs_of(runs)}{told}\n"
        )
    return "".join(lines)


def _hours(results: SavedResults) -> str:
    """What the units took, by kind: seconds of work of one, and hours of one core for all."""
    groups: dict[tuple[str, str, str, int], list[float]] = {}
    for one in results.records:
        if one["cpu"] is not None:
            problems = "UCI" if one["problem"] in PROBLEMS else "toys"
            groups.setdefault((problems, one["space"], one["method"], one["queries"]), []).append(one["cpu"])
    names = ("problems", "space", "method", "queries")
    kinds = [dict(zip(names, kind, strict=True)) | _work(found) for kind, found in sorted(groups.items())]
    every = [seconds for found in groups.values() for seconds in found]
    return _table([*kinds, {**dict.fromkeys(names, ""), "problems": "all", **_work(every)}])


def _work(seconds: Sequence[float]) -> Row:
    return {"units": len(seconds), "cpu seconds of one": sum(seconds) / len(seconds), "core hours": sum(seconds) / 3600}


def _accuracies(problems: list[Solved]) -> str:
    """Accuracies row by row, ours and the paper's, and fidelity, which the paper does not have."""
    rows = []
    for one, row in zip(problems, result_rows(problems), strict=True):
        paper = table4()[row["dataset"]]
        shown = {"problem": row["dataset"], "original": _beside(row, paper, "accuracy_original")}
        shown |= {"single": _beside(row, paper, "accuracy_single"), "fidelity": f"{row['fidelity_single']:.3f}"}
        for place, words in PLACES.items():
            shown[words] = _beside(row, paper, f"{place}_accuracy")
            shown[f"fidelity, {words}"] = f"{row[f'{place}_fidelity']:.3f}"
        held = held_out(one.points, "best_accuracy")
        rows.append({**shown, "held-out": "" if held is None else f"{held:.3f}", "differs": _differs(row, paper)})
    return _table(rows)


def _costs(problems: list[Solved]) -> str:
    """Eff and conv row by row, ours and the paper's."""
    rows = []
    for row in result_rows(problems):
        paper = table4()[row["dataset"]]
        shown = {"problem": row["dataset"]}
        for place, words in PLACES.items():
            for measure in ("eff", "conv"):
                shown[f"{measure}, {words}"] = _beside(row, paper, f"{place}_{measure}")
        rows.append(shown)
    return _table(rows)


def _beside(row: Row, paper: Row, name: str) -> str:
    return f"{row[name]:.3f} ({paper[name]:.3f})"


def _differs(row: Row, paper: Row) -> str:
    marks = [mark for mark, (name, margin) in DIFFERS.items() if abs(row[name] - paper[name]) > margin]
    return " ".join(marks)


def _spaces(results: SavedResults) -> str:
    runs = min(results.runs[space] for space in SPACES)
    if not runs:
        return NOT_THERE.format(UNITS, " problems with all thresholds in both spaces")
    found = {space: {one.problem: one for one in results.solved(space, runs)} for space in SPACES}
    both = [name for name in PROBLEMS if all(name in those for those in found.values())]
    if not both:
        return NOT_THERE.format(UNITS, " problems with all thresholds in both spaces")
    table = _table(space_rows({space: [those[name] for name in both] for space, those in found.items()}))
    return f"{len(both)} problems, {runs_of(runs)}:\n\n{table}"


def _exhibit(name: str) -> Callable[[SavedResults], str]:
    """A block with what an exhibit says and its rows, made of the units."""

    def block(results: SavedResults) -> str:
        made = made_of(results.records, name)
        if made is None:
            return NOT_THERE.format(UNITS, f" the units of `ectype paper {name}`")
        return f"{made.notes.strip()}\n\n{_table(made.rows)}"

    return block


def _claims(results: SavedResults) -> str:
    of_units = {name: made_of(results.records, name) for name in ("fig6", "table2")}
    figures = {**results.curves, **{name: made.rows for name, made in of_units.items() if made is not None}}
    if not figures:
        return NOT_THERE.format("fig1.csv", ", and those of the other figures")
    told = ", ".join(f"{name} {runs_of(rows[0]['runs'])}" for name, rows in figures.items())
    return f"{told}:\n\n{_table(claim_rows(figures))}"


def _data_sets(results: SavedResults) -> str:
    if not results.data_sets:
        return NOT_THERE.format(DATA_SETS, "; `ectype paper table3` writes it")
    return _table([_data_set(row) for row in results.data_sets])


def _data_set(row: Row) -> Row:
    shown: dict[str, Any] = {"problem": row["dataset"], "original": row["original"]}
    for name in ("classes", "samples", "features"):
        ours, paper = row[name], row[f"paper_{name}"]
        shown[name] = ours if ours == paper else f"{ours} ({paper})"
    return shown | {"accuracy": f"{float(row['accuracy_original']):.3f} ({float(row['paper_accuracy_original']):.3f})"}


# What can stand in a marked block.
BLOCKS: dict[str, Callable[[SavedResults], str]] = {
    "extent": _extent,
    "hours": _hours,
    "accuracies": _with_results(_accuracies),
    "costs": _with_results(_costs),
    "averages": _with_results(lambda problems: _table(average_rows(result_rows(problems)))),
    "quoted": _with_results(lambda problems: _table(quoted_rows(result_rows(problems)))),
    "tests": _with_results(lambda problems: _table(tested_rows(problems))),
    "significant": _with_results(lambda problems: _table(significant_rows(problems))),
    "thresholds": _with_results(lambda problems: _table(threshold_rows(problems))),
    "spaces": _spaces,
    "methods": _exhibit("table2"),
    "claims": _claims,
    "stages": _exhibit("stages"),
    "scale": _exhibit("scale"),
    "data-sets": _data_sets,
}


def main() -> None:
    """Fill a page, and draw its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="a folder with units.csv")
    parser.add_argument("--out", type=Path, required=True, help="the page whose marked blocks are filled")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    told = parser.parse_args()
    try:
        filled = fill_page(told.out, told.results)
        drawn = write_pictures(told.out, told.results)
    except EctypeError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    if told.json:
        print(json.dumps({"out": str(told.out), "blocks": filled, "figures": [*map(str, drawn)]}))
        return
    print(f"{', '.join(filled)} in {told.out}.", *drawn, sep="\n")


if __name__ == "__main__":
    main()
