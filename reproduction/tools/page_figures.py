"""The figures of docs/paper.md, from a folder of results alone: small SVG files, the same for the same results."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ectype._common.atomic_io import as_path, directory_errors, write_bytes
from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row, exhibit
from ectype_paper.claims import Figures
from ectype_paper.exhibit_io import drawn
from ectype_paper.store import unit_of
from ectype_paper.unit_table import read_table
from ectype_paper.units import Record, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Figures by iteration, and the table of rows that each is drawn from; the others need the table of units only.
CURVES = {
    "fig1": "fig1", "fig2": "fig1", "fig3": "fig3", "fig4": "fig4", "fig5": "fig5", "theorems": "theorems",
    "cost": "cost",
}  # fmt: skip
OF_UNITS = ("fig6", "fig7", "fig8")
# Beside the page they are in.
FOLDER = "figures"
# Numbers with more places than a hundredth of a point can show.
LONG = re.compile(rb"-?\d+\.\d{3,}")


def write_pictures(page: str | Path, results: str | Path, names: Sequence[str] | None = None) -> list[Path]:
    """Draw the figures that the results are enough for into the folder beside a page; gives the files."""
    folder = as_path(page).parent / FOLDER
    with directory_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return [write_bytes(folder / f"{name}.svg", picture) for name, picture in pictures(results, names)]


def pictures(results: str | Path, names: Sequence[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """Every figure of these names that the results are enough for, as a small SVG."""
    curves, table = read_curves(results), as_path(results) / "units.csv"
    wanted = [name for name in (*CURVES, *OF_UNITS) if names is None or name in names]
    records = read_table(table) if table.exists() and {*wanted} & {*OF_UNITS} else []
    for name in wanted:
        made = None if name in CURVES else made_of(records, name)
        figure = _of_rows(name, curves) if made is None else made.figure
        if figure is not None:
            yield name, small(drawn(figure, "svg"))


def read_curves(results: str | Path) -> Figures:
    """The rows of figures by iteration that a folder of results has, by the name of the table."""
    found = {name: read_rows(results, name) for name in dict.fromkeys(CURVES.values())}
    return {name: rows for name, rows in found.items() if rows}


def read_rows(results: str | Path, name: str) -> list[Row]:
    """The rows of an exhibit as its CSV has them; none where there is no such file."""
    path = as_path(results) / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{column: _value(cell) for column, cell in row.items()} for row in csv.DictReader(file)]


def small(picture: bytes) -> bytes:
    """An SVG with two places for every number.

    >>> small(b'<path d="M 12.345678 -0.001"/>')
    b'<path d="M 12.35 0"/>'
    """

    def rounded(found: re.Match[bytes]) -> bytes:
        text = f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
        return b"0" if text == "-0" else text.encode()

    return LONG.sub(rounded, picture)


def _value(cell: str) -> Any:
    if cell == "":
        return None
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            continue
    return cell


def _of_rows(name: str, curves: Figures) -> Figure | None:
    rows = curves.get(CURVES.get(name, name))
    shown: Any = exhibit(name)
    return None if rows is None else shown.draw(rows, ExhibitOptions(rows[0]["runs"]))


def made_of(records: Sequence[Record], name: str) -> MadeExhibit | None:
    """An exhibit of as many repetitions as every unit of it has; None where there are none."""
    shown, there = exhibit(name), {unit_of(record): record for record in records}
    runs = _complete(name, there)
    options = ExhibitOptions(runs, compact=True)
    return shown.make([there[unit] for unit in shown.units(options)], options) if runs else None


def _complete(name: str, there: dict[Unit, Record]) -> int:
    """How many repetitions of an exhibit a table of units is enough for."""
    runs = 0
    while all(unit in there for unit in exhibit(name).units(ExhibitOptions(runs + 1, compact=True))):
        runs += 1
    return runs
