"""`ectype paper export`: the units of one or more stores as one compact table."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("export")
@click.argument("stores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The table to write, such as units.csv.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def export_command(stores: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the finished units in STORES, directories of sweeps, figures and tables, to one table.

    It holds a row for each way to copy a problem, without what was measured by iteration. `ectype paper NAME
    --units TABLE` makes from it what needs no more. Stores must have the same settings; a unit that is in several is
    taken from the first. A table of an earlier export may be among them.
    """
    from ectype._common.atomic_io import directory_errors
    from ectype.paper.compact import export, merged

    records = merged(stores)
    with directory_errors(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
    export(records, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), "units": len(records)}))
        return
    click.echo(f"{len(records)} units are in {out}.")
