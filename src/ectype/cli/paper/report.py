"""`ectype paper report`: the numbers in docs/paper.md, filled in from results."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("report")
@click.option("--results", type=click.Path(path_type=Path), required=True, help="A folder with units.csv.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The page whose marked blocks are filled.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def report_command(results: Path, out: Path, as_json: bool) -> None:
    """Fill the blocks between `<!-- begin NAME -->` and `<!-- end NAME -->` of a page with what was measured.

    Everything outside of the blocks stays as it is. The figures that the results are enough for are drawn into the
    folder `figures` beside the page. Nothing is run.
    """
    from ectype.paper.pictures import write_pictures
    from ectype.paper.report import fill_page

    filled = fill_page(out, results)
    drawn = write_pictures(out, results)
    if as_json:
        click.echo(json.dumps({"out": str(out), "blocks": filled, "figures": [*map(str, drawn)]}))
        return
    click.echo(f"{', '.join(filled)} in {out}.")
    for path in drawn:
        click.echo(path)
