"""`ectype frontier`: how small and how fast copies can be, and how faithful they are then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ectype._common.formatting import Grid
from ectype.cli.terminal import say
from ectype.plan.settings import FAMILIES


@click.command("frontier")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--family", "families", type=click.Choice(FAMILIES), multiple=True, help="Only this one; may be repeated."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(directory: Path, families: tuple[str, ...], as_json: bool) -> None:
    """Make copies of every family in several sizes from the answers in DIRECTORY; the original is not asked.

    Writes frontier.csv and frontier.svg there: bytes and milliseconds against certified fidelity, which stands beside
    that of the worst label, and of always answering the commonest one.
    """
    from ectype._common.atomic_io import write_text
    from ectype._common.csv_injection import without_formulas
    from ectype.report import frontier_chart
    from ectype.runs.frontier import frontier

    table = frontier(directory, families or None)
    files = directory / "frontier.csv", directory / "frontier.svg"
    write_text(files[0], without_formulas(table).to_csv(index=False))
    write_text(files[1], frontier_chart(table))
    if as_json:
        click.echo(json.dumps({"points": table.to_dict("records"), "files": [str(file) for file in files]}))
        return
    click.echo(f"\n{_text(table)}\n")
    say("fidelity: on the certificate's rows; worst label: of those with that label")
    say(f"baseline: always answering the commonest label has {table['baseline'].iloc[0]:.4f} on the same rows")
    say(f"The table is {files[0]}, the figure {files[1]}.")
    say(f"A row becomes a copy by its number: ectype remake {directory} --take N --out NEW")


def _text(points: Any) -> str:
    """The copies as a table."""
    from ectype.certificate.certificate import LabelShare

    numbers = ("bytes", "ms a row", "fidelity", "at least")
    rows = []
    for number, one in enumerate(points.itertuples(), 1):
        best = ", ".join(word for word, is_best in (("bytes", one.best_by_bytes), ("ms", one.best_by_ms)) if is_best)
        cells = f"{one.bytes}", f"{one.ms:.3f}", f"{one.fidelity:.4f}", f"{one.lower:.4f}"
        worst = LabelShare(one.worst_label, one.worst_agreed, one.worst_n)
        note = best if one.beats_baseline else "no better than baseline"
        rows.append((str(number), one.family, one.size, one.teacher, *cells, str(worst), note))
    heads = "row", "family", "size", "taught by", *numbers, "worst label", "best for its"
    return Grid(heads, rows, right=("row", *numbers)).text()
