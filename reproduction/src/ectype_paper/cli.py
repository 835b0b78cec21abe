"""`ectype paper`: the experiments of the paper; and `ectype paper NAME`: a figure or a table, made from its units."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ectype_paper.catalogue import NAMES
from ectype_paper.cli_units import Ran, UnitFilter, Words, run_units, unit_options
from ectype_paper.units import DELTAS, ENGINE

if TYPE_CHECKING:
    from ectype_paper.catalogue import Exhibit, ExhibitOptions
    from ectype_paper.units import Unit

HELP = """{}

The files are written to the directory --out, and so are the units that they are made from. Units that are there
already, of another figure or of `ectype paper sweep`, are not run again; the same command goes on where it was
interrupted. With --units nothing is run at all, and no data is needed.
"""
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else."
)


class Exhibits(click.Group):
    """A group with a command for every figure and table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those that run things first, then the exhibits in the paper's order."""
        return [*self.commands, *NAMES]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command by its name; where there is none, all there are."""
        if name in NAMES:
            return exhibit_command(name)
        if name not in self.commands:
            ctx.fail(f"there is no {name!r}; there are {', '.join(self.list_commands(ctx))}")
        return self.commands[name]


@click.group("paper", cls=Exhibits)
def command() -> None:
    """Run the experiments of the paper: its problems, its originals, its methods."""


@command.command("all")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the files and the units.")
@click.option("--runs", type=int, default=30, show_default=True, help="Repetitions; of some things never more than 3.")
@unit_options
@json_option
def all_command(out: Path, runs: int, wanted: UnitFilter, as_json: bool) -> None:
    """Make every figure and table, each in files of its name.

    All units are run first, whole repetitions one after the other, each once though several figures need it, with the
    time that is left for all of them. The same command goes on where it was interrupted; a higher --runs adds to what
    is there. Without --data there are the toy problems and the UCI problems that are built in; --problems and --deltas
    choose among the UCI problems and their thresholds.
    """
    from ectype._common import validation
    from ectype_paper.catalogue import exhibit
    from ectype_paper.exhibit_io import write

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


@command.command("sweep")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the results, and units.csv.")
@click.option("--methods", type=Words(), metavar="A,B", default="sequential,one-shot", show_default=True)
@click.option("--runs", type=int, default=3, show_default=True, help="Repetitions.")
@click.option(
    "--known",
    type=click.Path(path_type=Path),
    metavar="TABLE",
    help="Units in this table, of `paper export`, are not run again.",
)
@unit_options
@json_option
def sweep_command(
    out: Path, methods: tuple[str, ...], runs: int, known: Path | None, wanted: UnitFilter, as_json: bool
) -> None:
    """Copy originals of the paper's problems with every method and threshold, each so many times.

    Every finished unit is kept at once. The same command goes on where it was interrupted, more runs or problems are
    added to what is there, and nothing is run twice. Lists take commas. Without --data, the problems that are built in
    are run.

    Exit codes: 0 all units are finished; 1 some failed; 2 bad input; 3 the cluster was lost, and what is finished is
    kept; 130 interrupted, likewise.
    """
    from ectype_paper.sweep import problem_names, units
    from ectype_paper.unit_table import known as known_units

    problems = problem_names(wanted.data, wanted.problems)
    deltas = DELTAS if wanted.deltas is None else wanted.deltas
    all_units = units(problems, methods, deltas, runs, wanted.space)
    there = set() if known is None else known_units(known, ENGINE)
    ran = run_units([unit for unit in all_units if unit not in there], out, wanted)
    if as_json:
        about = {"out": str(out), "csv": ran.table and str(ran.table), **ran.counts}
        click.echo(json.dumps({**about, "failed": ran.failed, "seconds": ran.seconds}))
    else:
        ran.tell()
        click.echo(f"{ran.finished} of {ran.counts['units']} units are in {out}.")
    if ran.failed:
        sys.exit(1)


@command.command("export")
@click.argument("stores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The table to write, such as units.csv.")
@json_option
def export_command(stores: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the finished units in STORES, directories of sweeps, figures and tables, to one table.

    It holds a row for each way to copy a problem, without what was measured by iteration. `ectype paper NAME
    --units TABLE` makes from it what needs no more. Stores must have the same settings; a unit that is in several is
    taken from the first. A table of an earlier export may be among them.
    """
    from ectype._common.atomic_io import directory_errors
    from ectype_paper.unit_table import export, merged

    records = merged(stores)
    with directory_errors(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    export(records, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), "units": len(records)}))
        return
    click.echo(f"{len(records)} units are in {out}.")


def exhibit_command(name: str) -> click.Command:
    """The command of one exhibit."""

    @click.command(name, help=HELP.format(NAMES[name][1]))
    @click.option(
        "--out", type=click.Path(path_type=Path), required=True, help="Directory for the files and the units."
    )
    @click.option("--runs", type=int, help="Repetitions.  [default: the paper's]")
    @click.option("--units", "table", type=click.Path(path_type=Path), help="A table of units, as of `paper export`.")
    @unit_options
    @json_option
    def command(out: Path, runs: int | None, table: Path | None, wanted: UnitFilter, as_json: bool) -> None:
        _make(name, out, runs, table, wanted, as_json)

    return command


def _make(name: str, out: Path, runs: int | None, table: Path | None, wanted: UnitFilter, as_json: bool) -> None:
    from ectype._common import validation
    from ectype.errors import SettingError
    from ectype_paper.catalogue import exhibit
    from ectype_paper.exhibit_io import write

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
    from ectype_paper.catalogue import ExhibitOptions
    from ectype_paper.units import ITERATIONS, absolute

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
    from ectype_paper.unit_table import take

    records = {} if table is None else dict(zip(units, take(table, units), strict=True))
    return Ran(records, {"units": len(units), "before": len(units), "ran": 0}, {}, {}, table)
