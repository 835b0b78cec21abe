"""`understudy frontier`: how small and how fast copies can be, and how faithful they are then."""

from __future__ import annotations

import json
from pathlib import Path

import click

from understudy.runs.settings import FAMILIES


@click.command("frontier")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--family", "families", type=click.Choice(FAMILIES), multiple=True, help="Only this one; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(directory: Path, families: tuple[str, ...], as_json: bool) -> None:
    """Make copies of every family in several sizes from the answers in DIRECTORY; the original is not asked.

    Writes frontier.csv and frontier.svg there: bytes and milliseconds against certified fidelity.
    """
    from rich.console import Console

    from understudy.files import write_text
    from understudy.report.figures import frontier as drawn
    from understudy.runs.frontier import frontier
    from understudy.spreadsheets import without_formulas

    with Console(stderr=True).status("Making copies of every family"):
        table = frontier(directory, families or None)
    files = directory / "frontier.csv", directory / "frontier.svg"
    write_text(files[0], without_formulas(table).to_csv(index=False))
    write_text(files[1], drawn(table))
    if as_json:
        click.echo(json.dumps({"points": table.to_dict("records"), "files": [str(file) for file in files]}))
        return
    _print(table)
    click.echo(f"The table is {files[0]}, the figure {files[1]}.")


def _print(table: object) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for heading in ("family", "size", "taught by"):
        shown.add_column(heading, no_wrap=True)
    for heading in ("bytes", "ms a row", "fidelity", "at least"):
        shown.add_column(heading, justify="right")
    shown.add_column("best for its")
    for one in table.itertuples():  # type: ignore[attr-defined]
        best = ", ".join(word for word, is_best in (("bytes", one.best_by_bytes), ("ms", one.best_by_ms)) if is_best)
        numbers = f"{one.bytes}", f"{one.ms:.3f}", f"{one.fidelity:.4f}", f"{one.lower:.4f}"
        shown.add_row(one.family, one.size, one.teacher, *numbers, best)
    Console().print(shown)
