"""`understudy space`: describe inputs from unlabelled rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from understudy.cli.terminal import printable
from understudy.space.learned import FLOOR

if TYPE_CHECKING:
    from understudy.space import Space


@click.command("space")
@click.argument("data")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The space.json to write.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out, such as one of labels.")
@click.option("--category", multiple=True, metavar="COLUMN", help="Take numbers for names of levels.")
@click.option("--ordered", multiple=True, metavar="COLUMN=A,B,C", help="Levels with an order, lowest first.")
@click.option("--rule", "rules", multiple=True, metavar="RULE", help="What every row keeps, as 'a <= b'.")
@click.option("--floor", type=int, default=FLOOR, show_default=True, help="The fewest rows that may show.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    data: str,
    out: Path,
    drop: tuple[str, ...],
    category: tuple[str, ...],
    ordered: tuple[str, ...],
    rules: tuple[str, ...],
    floor: int,
    as_json: bool,
) -> None:
    """Describe the inputs in DATA, a CSV file of unlabelled rows: columns, distributions, and how they depend.

    The file written holds quantiles, shares and correlations, and nothing that fewer rows than the floor have in
    common. It may be edited. Options that name a column may be given more than once.
    """
    from understudy.original.table import read_csv
    from understudy.space import Space

    frame = read_csv(data)
    orders = {name: levels.split(",") for name, _, levels in (text.partition("=") for text in ordered)}
    _refuse_unknown(frame, data, [*drop, *category, *orders])
    frame = frame.drop(columns=list(drop))
    space = Space.from_data(frame, categories=category, ordered=orders, rules=rules, floor=floor)
    with warnings.catch_warnings(action="ignore"):  # of levels that were left out as too rare
        broken = int((~space.keeps_rules(space.read(frame, data))).sum())
    space.save(out)
    if as_json:
        columns = {column.name: column.kind for column in space.columns}
        click.echo(json.dumps({"out": str(out), "rows": len(frame), "columns": columns, "break_rules": broken}))
        return
    _show(space)
    if broken:
        click.echo(f"{broken} of {len(frame)} rows break a rule", err=True)
    click.echo(f"\nThe space is in {out}.")


def _refuse_unknown(frame: Any, data: str, names: Sequence[str]) -> None:
    from understudy.errors import SpaceError

    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise SpaceError(data, f"columns among {list(frame.columns)}", unknown, "check their spelling")


def _show(space: Space) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for heading in ("column", "kind", "missing", "values"):
        table.add_column(heading, justify="right" if heading == "missing" else "left")
    for column in space.columns:
        missing = f"{column.missing:.1%}" if column.missing else ""
        table.add_row(Text(printable(column.name)), column.kind, missing, Text(printable(column.summary)))
    Console().print(table)
