"""`ectype ledger merge`: the answers of several directories in one."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from ectype.cli.terminal import say


@click.command("merge")
@click.argument("directories", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new directory, for --answers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def merge_command(directories: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the answers in DIRECTORIES, which are of one original, to a new directory that --answers takes.

    Rows are those of the first directory's space; others are left out and counted. Two answers to one row that
    contradict each other are refused, and shown. Attempts without an answer and rounds of training are not written.

    Exit codes: 0 done; 2 bad input, nothing was written.
    """
    from ectype.queries import merge, reasons

    found = merge(directories, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), **asdict(found)}))
        return
    left = f"; left out: {', '.join(reasons(found.left_out))}" if found.left_out else ""
    say(f"{found.answers} answers are in {out}{left}")
