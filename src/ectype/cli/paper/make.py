"""`ectype paper NAME`: a figure or a table of the paper, made from the units it needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ectype.cli.paper.units import Ran, UnitFilter, run_units, unit_options
from ectype.paper.catalogue import NAMES

if TYPE_CHECKING:
    from ectype.paper.catalogue import Exhibit, ExhibitOptions
    from ectype.paper.units import Unit

HELP = """{}

The files are written to the directory --out, and so are the units that they are made from. Units that are there
already, of another figure or of `ectype paper sweep`, are not run again; the same command goes on where it was
interrupted. With --units nothing is run at all, and no data is needed.
"""


def make_command(name: str) -> click.Command:
    """The command of one exhibit."""

    @click.command(name, help=HELP.format(NAMES[name][1]))
    @click.option(
        "--out", type=click.Path(path_type=Path), required=True, help="Directory for the files and the units."
    )
    @click.option("--runs", type=int, help="Repetitions.  [default: the paper's]")
    @click.option("--units", "table", type=click.Path(path_type=Path), help="A table of units, as of `paper export`.")
    @unit_options
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
    def command(out: Path, runs: int | None, table: Path | None, wanted: UnitFilter, as_json: bool) -> None:
        _make(name, out, runs, table, wanted, as_json)

    return command


def _make(name: str, out: Path, runs: int | None, table: Path | None, wanted: UnitFilter, as_json: bool) -> None:
    from ectype._common import validation
    from ectype.errors import SettingError
    from ectype.paper.catalogue import exhibit
    from ectype.paper.writing import write

    shown = exhibit(name)
    count = shown.runs if runs is None else validation.count("--runs", runs, 1)
    options = options_of(shown, count, wanted, compact=table is not None)
    if table is not None and not getattr(shown, "compact", False):
        hint = "leave out --units, and it is made from units with curves"
        raise SettingError("--units", "a figure or table that needs no curves by iteration", name, hint)
    units = shown.units(options)
    ran = run_units(units, out, wanted) if table is None and units else _found(units, table)
    if ran.failed:
        ran.tell()
        sys.exit(1)
    files = write(shown.make([ran.records[unit] for unit in units], options), out, name, shown.title)
    if as_json:
        click.echo(json.dumps({"name": name, "files": [*map(str, files)], **ran.counts, "seconds": ran.seconds}))
        return
    ran.tell()
    click.echo("\n".join(map(str, files)))


def options_of(
    shown: Exhibit, runs: int, wanted: UnitFilter, *, compact: bool = False, all_: bool = False
) -> ExhibitOptions:
    """What an exhibit is asked for. Where all are made, problems and thresholds are for those of UCI problems."""
    from ectype.paper.catalogue import ExhibitOptions
    from ectype.paper.settings import ITERATIONS
    from ectype.paper.units import absolute

    own: int = getattr(shown, "iterations", ITERATIONS)
    chosen = not all_ or getattr(shown, "of_uci", False)
    return ExhibitOptions(
        runs=runs,
        iterations=wanted.iterations or own,
        data=absolute(wanted.data),
        problems=wanted.problems if chosen else None,
        deltas=wanted.deltas if chosen else None,
        space=wanted.space,
        compact=compact,
    )


def _found(units: Sequence[Unit], table: Path | None) -> Ran:
    """Units of a table, where nothing has to be run; there may be no need of any."""
    from ectype.paper.compact import take

    records = {} if table is None else dict(zip(units, take(table, units), strict=True))
    return Ran(records, {"units": len(units), "before": len(units), "ran": 0}, {}, {}, table)
