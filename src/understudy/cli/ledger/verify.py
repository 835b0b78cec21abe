"""`understudy ledger verify`: check every row of a ledger."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from understudy.cli.terminal import say


@click.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def verify_command(directory: Path, as_json: bool) -> None:
    """Check every row of the ledger in DIRECTORY against its chain of checksums, and the chain against run.json.

    Exit codes: 0 all agree, or there are no checksums, as in version 0.1; 2 it is damaged: the message names the place.
    """
    from understudy.queries.ledger import NAME, verify

    found = verify(directory / NAME)
    if as_json:
        click.echo(json.dumps({"directory": str(directory), **asdict(found)}))
    elif not found.checked:
        say(f"{directory} was written by version 0.1, without checksums: damage to it would not be noticed")
    else:
        known = f", as {' and '.join(found.anchors)} say{'s' if len(found.anchors) == 1 else ''}"
        say(f"answers to {found.rows} rows, in {found.batches} batches: all agree{known if found.anchors else ''}")
