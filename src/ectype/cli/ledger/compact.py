"""`ectype ledger compact`: the same answers in fewer bytes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from ectype.cli.terminal import say


@click.command("compact")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def compact_command(directory: Path, as_json: bool) -> None:
    """Write the ledger in DIRECTORY anew, in fewer bytes: the same answers, under a chain of checksums of their own.

    Left out are the parameters of all rounds of training but the last: a run that goes on makes them again, and what
    was asked by round is no longer told. Counts of failures are kept as sums. A run that was signed is signed again,
    with the key in ECTYPE_SIGNING_KEY.

    Exit codes: 0 done; 2 bad input, nothing was changed.
    """
    from ectype.runs.compact import compact

    found = compact(directory)
    if as_json:
        click.echo(json.dumps({"directory": str(directory), **asdict(found)}))
        return
    say(f"{found.before:,} bytes became {found.after:,}; the parameters of {found.rounds} rounds were left out")
