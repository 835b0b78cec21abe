"""`ectype ledger verify`: check every row of a ledger."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from ectype.cli.terminal import say


@click.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def verify_command(directory: Path, as_json: bool) -> None:
    """Check every row of the ledger in DIRECTORY against its chain of checksums, and the chain against run.json.

    What was asked about the run since, in asked.sqlite, is checked against a chain of its own.

    Exit codes: 0 all agree, or there are no checksums, as in version 0.1; 2 it is damaged: the message names the place.
    """
    from ectype.ledger import NAME, SESSIONS, verify

    since = verify(directory / SESSIONS) if (directory / SESSIONS).is_file() else None
    found = since if since is not None and not (directory / NAME).is_file() else verify(directory / NAME)
    if as_json:
        more = {} if since is None else {"since": asdict(since)}
        click.echo(json.dumps({"directory": str(directory), **asdict(found), **more}))
        return
    if since is not None and since is not found:
        say(f"answers to {since.rows} rows since then, in {since.batches} batches: all agree")
    if not found.checked:
        say(f"{directory} was written by version 0.1, without checksums: damage to it would not be noticed")
    else:
        known = f", as {' and '.join(found.anchors)} say{'s' if len(found.anchors) == 1 else ''}"
        say(f"answers to {found.rows} rows, in {found.batches} batches: all agree{known if found.anchors else ''}")
