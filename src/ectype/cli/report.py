"""`ectype report`: a page about a finished copy."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("report")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.  [default: report.html in DIRECTORY]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(directory: Path, out: Path | None, as_json: bool) -> None:
    """Write report.html into the DIRECTORY of a finished copy, from what is stored there; nothing is asked.

    With --out the page goes elsewhere, and DIRECTORY may be read-only.
    """
    from ectype.report import write_report
    from ectype.runs.result import load

    result = load(directory)
    title = f"A copy of {result.settings['original']}"
    path = write_report(
        out or directory / "report.html", {result.settings["method"]: result}, title=title, answers=directory
    )
    click.echo(json.dumps({**result.summary(), "out": str(directory), "report": str(path)}) if as_json else path)
