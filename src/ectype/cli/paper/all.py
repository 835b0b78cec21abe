"""`ectype paper all`: every figure and table of the paper, from nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ectype.cli.paper.make import options_of
from ectype.cli.paper.units import UnitFilter, run_units, unit_options
from ectype.paper.catalogue import NAMES


@click.command("all")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the files and the units.")
@click.option("--runs", type=int, default=30, show_default=True, help="Repetitions; of some things never more than 3.")
@unit_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def all_command(out: Path, runs: int, wanted: UnitFilter, as_json: bool) -> None:
    """Make every figure and table, each in files of its name.

    All units are run first, whole repetitions one after the other, each once though several figures need it, with the
    time that is left for all of them. The same command goes on where it was interrupted; a higher --runs adds to what
    is there. Without --data there are the toy problems and the UCI problems that are built in; --problems and --deltas
    choose among the UCI problems and their thresholds.
    """
    from ectype._common import validation
    from ectype.paper.catalogue import exhibit
    from ectype.paper.writing import write

    most = validation.count("--runs", runs, 1)
    shown = {name: exhibit(name) for name in NAMES}
    options = {name: options_of(one, min(most, one.runs), wanted, all_=True) for name, one in shown.items()}
    units = {name: one.units(options[name]) for name, one in shown.items()}
    ran = run_units(tuple(dict.fromkeys(unit for those in units.values() for unit in those)), out, wanted)
    ran.tell()
    if ran.failed:
        sys.exit(1)
    files = [
        path
        for name, one in shown.items()
        for path in write(one.make([ran.records[unit] for unit in units[name]], options[name]), out, name, one.title)
    ]
    if as_json:
        click.echo(json.dumps({"files": [*map(str, files)], **ran.counts, "seconds": ran.seconds}))
        return
    click.echo("\n".join(map(str, files)))
