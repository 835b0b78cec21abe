"""`understudy ledger`: what a run has asked, and what was answered."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from understudy.display import printable


@click.command("ledger")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--price", type=float, help="What one query costs, to add up what was spent.")
@click.option("--export", type=click.Path(path_type=Path), help="Write every query to a .csv or .parquet file.")
@click.option(
    "--salvage",
    type=click.Path(path_type=Path),
    metavar="NEW",
    help="Of a damaged ledger: write the answers that are whole to a new directory, to go on from there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(directory: Path, price: float | None, export: Path | None, salvage: Path | None, as_json: bool) -> None:
    """Show what the run in DIRECTORY, finished or not, has asked: queries, answers, cost, failures and repeats."""
    if salvage is not None:
        _salvage(directory, salvage, as_json)
        return
    from understudy.queries.ledger import NAME, summary

    found = summary(directory / NAME)
    if export is not None:
        _export(directory, export)
    cost = None if price is None else {"price": price, "cost": round(price * found.asked, 6)}
    if as_json:
        labels = [{"label": label, "n": n} for label, n in found.labels.items()]
        click.echo(json.dumps({**asdict(found), "labels": labels, **(cost or {}), "export": export and str(export)}))
        return
    lines = {
        "requests": found.requests,
        "rows asked": found.asked,
        **{f"  {purpose}": n for purpose, n in found.by_purpose.items()},
        "answered": found.answered,
        "no answer, maybe paid": found.maybe_paid,
        **({} if not found.lost else {"  under way when it was stopped": found.lost}),
        "not asked twice": found.saved,
        **({} if cost is None else {"cost so far, at most": cost["cost"]}),
        **{f"answered {label!r}": n for label, n in found.labels.items()},
        **{f"failed: {cause}": n for cause, n in found.failures.items()},
        **({} if found.checked else {"checksums": "none"}),
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        click.echo(f"{printable(name):<{width}}  {value:>10}")
    if export is not None:
        click.echo(f"\nEvery query is in {export}.")


def _salvage(directory: Path, out: Path, as_json: bool) -> None:
    """Write what is left of a damaged ledger to a new directory."""
    from understudy.queries.ledger import salvage

    n = salvage(directory, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), "answered": n}))
    else:
        click.echo(f"answers to {n} rows are in {out}; the run's command with --out {out} asks only what was lost")


def _export(directory: Path, path: Path) -> None:
    """Write every query to a file."""
    from understudy.errors import SettingError
    from understudy.files import written
    from understudy.queries.ledger import NAME, entries, space_of
    from understudy.spreadsheets import without_formulas

    if path.suffix not in (".csv", ".parquet"):
        raise SettingError("--export", "a file that ends in .csv or .parquet", str(path))
    frame: Any = entries(directory / NAME, space_of(directory / NAME))
    try:
        with written(path) as part:
            if path.suffix == ".csv":
                without_formulas(frame).to_csv(part, index=False)
            else:
                frame.to_parquet(part)
    except ImportError as error:
        hint = 'install it: pip install "understudy[parquet]"'
        raise SettingError("--export", "pyarrow, which writes Parquet", "nothing", hint) from error
