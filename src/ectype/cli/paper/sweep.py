"""`ectype paper sweep`: problems x methods x thresholds x repetitions, resumable."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ectype.cli.paper.units import UnitFilter, Words, run_units, unit_options
from ectype.paper.settings import DELTAS, ENGINE


@click.command("sweep")
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
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
    from ectype.paper.compact import known as known_units
    from ectype.paper.sweep import problem_names, units

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
