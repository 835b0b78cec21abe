"""`ectype space`: describe inputs from unlabelled rows."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ectype.cli.terminal import say
from ectype.space import DEFAULT_FLOOR

# A width at which no table is cut: what to say has to be there in full.
WHOLE = 10_000


@click.command("space")
@click.argument("data")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The space.json to write.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out, such as one of labels.")
@click.option("--category", multiple=True, metavar="COLUMN", help="Take numbers, or dates, for names of levels.")
@click.option("--number", multiple=True, metavar="COLUMN", help="Take words, such as digits with zeros, for numbers.")
@click.option("--ordered", multiple=True, metavar="COLUMN=A,B,C", help="Levels with an order, lowest first.")
@click.option("--rule", "rules", multiple=True, metavar="RULE", help="What every row keeps, as 'a <= b'.")
@click.option("--floor", type=int, default=DEFAULT_FLOOR, show_default=True, help="The fewest rows that may show.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    data: str,
    out: Path,
    drop: tuple[str, ...],
    category: tuple[str, ...],
    number: tuple[str, ...],
    ordered: tuple[str, ...],
    rules: tuple[str, ...],
    floor: int,
    as_json: bool,
) -> None:
    """Describe the inputs in DATA, a CSV or Parquet file of unlabelled rows: columns, distributions, dependence.

    The file written holds quantiles, shares and correlations, and nothing that fewer rows than the floor have in
    common. It may be edited. Options that name a column may be given more than once. At the end a table says what each
    column was taken for and why, and how many of the rows it covers.
    """
    from ectype.original.stored_answers import read_table
    from ectype.space import Space, column_types_table
    from ectype.space import columns_table as values

    frame = read_table(data)
    orders = {name: levels.split(",") for name, _, levels in (text.partition("=") for text in ordered)}
    _refuse_unknown(frame, data, [*drop, *category, *number, *orders])
    frame = frame.drop(columns=list(drop))
    space = Space.from_data(frame, categories=category, numbers=number, ordered=orders, rules=rules, floor=floor)
    with warnings.catch_warnings(action="ignore"):  # of levels that were left out as too rare
        broken = int((~space.keeps_rules(space.read(frame, data))).sum())
    space.save(out)
    if as_json:
        columns = {column.name: column.kind for column in space.columns}
        read = [{**one._asdict(), "instead": one.spelled(command=True)} for one in space.readings]
        found = {"out": str(out), "rows": len(frame), "columns": columns, "break_rules": broken, "readings": read}
        click.echo(json.dumps(found))
        return
    click.echo(f"\n{values(space).text()}")
    if broken:
        say(f"{broken} of {len(frame)} rows break a rule", err=True)
    say()
    say(f"The space is in {out}. No column of it should be what the original answers: --drop leaves one out.")
    click.echo(f"\n{column_types_table(space.readings, command=True).text(WHOLE)}")


def _refuse_unknown(frame: Any, data: str, names: Sequence[str]) -> None:
    from ectype.errors import SpaceError

    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        hint = "check their spelling; each column takes an option of its own, as in --drop a --drop b"
        raise SpaceError(data, f"columns among {list(frame.columns)}", unknown, hint)
