"""`understudy export`: a finished copy as one file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from understudy.export import FORMATS, export, format_of


@click.command("export")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "kind", help=f"One of {', '.join(FORMATS)}.  [default: what FILE ends in]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(directory: Path, file: Path, kind: str | None, as_json: bool) -> None:
    """Write the copy in DIRECTORY as FILE, once FILE was compared with the copy on fresh rows.

    copy.onnx takes raw columns and answers labels and probabilities, without understudy. copy.rules are if-then rules
    to read, copy.sql is an expression over raw columns; both are for the families tree and linear. copy.skops is the
    classifier for Python with understudy.

    Exit codes: 0 done; 2 bad input, or a file that answers otherwise, and nothing was written.
    """
    from understudy.runs.result import load

    format_of(file, kind)  # before anything is read
    written = export(load(directory).copy, file, kind)
    if as_json:
        click.echo(json.dumps(written.as_json()))
        return
    click.echo(
        f"{written.path}: {written.format}, {written.bytes} bytes; {written.disagreements} of {written.rows} fresh "
        f"rows answered otherwise than by the copy, at most {written.tolerance} accepted"
    )
