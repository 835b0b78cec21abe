"""`ectype export`: a finished copy as one file."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ectype.cli.terminal import say
from ectype.export import DIALECTS, FORMATS, ROWS, Exported, export, export_options, format_of


@click.command("export")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", "kind", help=f"One of {', '.join(FORMATS)}.  [default: what FILE ends in]")
@click.option("--dialect", help=f"For SQL, one of {', '.join(DIALECTS)}.  [default: ansi]")
@click.option("--table", help="For SQL that is a query: the table it reads.  [default: copy_input]")
@click.option("--keep", multiple=True, metavar="COLUMN", help="For such a query: a column to hand on beside the label.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    file: Path,
    kind: str | None,
    dialect: str | None,
    table: str | None,
    keep: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the copy in DIRECTORY as FILE, once FILE was compared with the copy on fresh rows.

    copy.onnx takes raw columns and answers labels and probabilities, without ectype. copy.sql computes labels in a
    database: an expression over raw columns for the families tree and linear, a query for others. copy.rules are
    if-then rules to read, for tree and linear. copy.c is C99 without dependencies, compiled before it gets its name
    where there is a compiler. copy.skops is the classifier for Python with ectype. With --format mlflow, FILE is a
    new folder, for `mlflow models serve`.

    Exit codes: 0 done; 2 bad input, or a file that answers otherwise, and nothing was written.
    """
    from ectype.runs.result import load

    export_options(format_of(file, kind), dialect, table, keep)  # before anything is read
    from ectype.progress import show_progress

    with show_progress(f"{file} compared with the copy", ROWS, log=True, step="rows"):
        written = export(load(directory).copy, file, kind, dialect=dialect, table=table, keep=keep)
    if as_json:
        click.echo(json.dumps(written.as_json()))
        return
    say(f"{written.path}: {written.format}{_dialect_of(written)}, {written.bytes:,} bytes; {_comparison(written)}")


def _dialect_of(written: Exported) -> str:
    return f" ({written.dialect})" if written.dialect else ""


def _comparison(written: Exported) -> str:
    if not written.rows:
        return f"not compared with the copy: {written.engine}"
    return (
        f"{written.disagreements} of {written.rows} fresh rows answered otherwise than by the copy, "
        f"at most {written.tolerance} accepted; {written.seconds:.2g} s by {written.engine}"
    )
