"""`ectype ledger`: what was asked, answered and paid; and what can be done with it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ectype._common.formatting import printable
from ectype.cli.click_groups import WithDefault
from ectype.cli.terminal import say

if TYPE_CHECKING:
    from ectype.ledger import Summary

# How many of the last minutes, hours or days are shown; --json has all.
BINS = 12


@click.group("ledger", cls=WithDefault, default="show")
def command() -> None:
    """Show what a run has asked, or check, merge or compact such directories.

    `ectype ledger DIR` is short for `ectype ledger show DIR`. A directory that is called like one of the
    commands is named with its path: ./merge.
    """


@command.command("show")
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
def show_command(
    directory: Path, price: float | None, export: Path | None, salvage: Path | None, as_json: bool
) -> None:
    """Show what the run in DIRECTORY, finished or not, has asked: queries, answers, cost, failures and repeats.

    By purpose, by label, by round of training, and over time, in minutes, hours or days; then what was asked about it
    since, such as by certify and by checks of a fleet. The cost is of both.
    """
    if salvage is not None:
        _salvage(directory, salvage, as_json)
        return
    from ectype.ledger import LEDGER, SESSIONS, read_sessions, read_timeline, summarise_ledger

    since = summarise_ledger(directory / SESSIONS) if (directory / SESSIONS).is_file() else None
    path = directory / (SESSIONS if since is not None and not (directory / LEDGER).is_file() else LEDGER)
    found, when = summarise_ledger(path), read_timeline(path)
    since = None if path.name == SESSIONS else since  # of a run that was saved from memory, there is nothing else
    if export is not None:
        _export(path, export)
    cost = None if price is None else _cost(price, found, since)
    asked = [entry.as_json() for entry in read_sessions(directory)]
    if as_json:
        labels = [{"label": label, "n": n} for label, n in found.labels.items()]
        more = {"labels": labels, **asdict(when), **(cost or {}), "export": export and str(export)}
        later = {"sessions": asked} | ({} if since is None else {"since": _counted(since)})
        click.echo(json.dumps({**asdict(found), **more, **later}))
        return
    lines = {
        "requests": found.requests,
        "rows asked": found.asked,
        **{f"  {purpose}": n for purpose, n in found.by_purpose.items()},
        "answered": found.answered,
        "no answer, maybe paid": found.maybe_paid,
        **({} if not found.lost else {"  under way when it was stopped": found.lost}),
        "not asked twice": found.saved,
        **({"given, and not asked": found.given} if found.given else {}),
        **({} if cost is None else {"cost so far, at most": cost["cost"]}),
        **{f"answered {label!r}": n for label, n in found.labels.items()},
        **{f"failed: {cause}": n for cause, n in found.failures.items()},
        **({} if found.checked else {"checksums": "none"}),
    }
    lines |= {f"round {one['round']}": one["rows"] for one in when.rounds}
    if since is not None:
        lines |= {"asked since then": since.asked} | {f"  {name}, since": n for name, n in since.by_purpose.items()}
        lines |= {"no answer since, maybe paid": since.maybe_paid} if since.maybe_paid else {}
    lines |= {f"{one['first'][:19]} {one['for']}": one["rows"] for one in asked[-BINS:] if one["first"]}
    lines |= {f"{one.start[:16].replace('T', ' ')} UTC, a {when.bin}": one.rows for one in when.bins[-BINS:]}
    width = max(map(len, lines))
    for name, value in lines.items():
        click.echo(f"{printable(name):<{width}}  {value:>10}")
    if export is not None:
        click.echo(f"\nEvery query is in {export}.")


def _cost(price: float, found: Summary, since: Summary | None) -> dict[str, Any]:
    """What was spent at most, in all, and by the run's purposes."""
    by_purpose = {purpose: round(price * n, 6) for purpose, n in found.by_purpose.items()}
    asked = found.asked + (0 if since is None else since.asked)
    return {"price": price, "cost": round(price * asked, 6), "cost_by_purpose": by_purpose}


def _counted(since: Summary) -> dict[str, Any]:
    """What was asked about a finished run, in numbers."""
    names = ("requests", "asked", "answered", "maybe_paid", "by_purpose", "failures")
    return {name: getattr(since, name) for name in names}


def _salvage(directory: Path, out: Path, as_json: bool) -> None:
    """Write what is left of a damaged ledger to a new directory."""
    from ectype.ledger import salvage_ledger

    n = salvage_ledger(directory, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), "answered": n}))
    else:
        click.echo(f"answers to {n} rows are in {out}; the run's command with --out {out} asks only what was lost")


def _export(ledger: Path, path: Path) -> None:
    """Write every query of a ledger to a file."""
    from ectype._common.atomic_io import atomic_file
    from ectype._common.csv_injection import without_formulas
    from ectype.errors import SettingError
    from ectype.ledger import query_table, space_of

    if path.suffix not in (".csv", ".parquet"):
        raise SettingError("--export", "a file that ends in .csv or .parquet", str(path))
    frame: Any = query_table(ledger, space_of(ledger))
    try:
        with atomic_file(path) as part:
            if path.suffix == ".csv":
                without_formulas(frame).to_csv(part, index=False)
            else:
                frame.to_parquet(part)
    except ImportError as error:
        hint = 'install it: pip install "ectype[parquet]"'
        raise SettingError("--export", "pyarrow, which writes Parquet", "nothing", hint) from error


@command.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def verify_command(directory: Path, as_json: bool) -> None:
    """Check every row of the ledger in DIRECTORY against its chain of checksums, and the chain against run.json.

    What was asked about the run since, in asked.sqlite, is checked against a chain of its own.

    Exit codes: 0 all agree, or there are no checksums, as in version 0.1; 2 it is damaged: the message names the place.
    """
    from ectype.ledger import LEDGER, SESSIONS, verify_ledger

    since = verify_ledger(directory / SESSIONS) if (directory / SESSIONS).is_file() else None
    found = since if since is not None and not (directory / LEDGER).is_file() else verify_ledger(directory / LEDGER)
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


@command.command("merge")
@click.argument("directories", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new directory, for --answers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def merge_command(directories: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Write the answers in DIRECTORIES, which are of one original, to a new directory that --answers takes.

    Rows are those of the first directory's space; others are left out and counted. Two answers to one row that
    contradict each other are refused, and shown. Attempts without an answer and rounds of training are not written.

    Exit codes: 0 done; 2 bad input, nothing was written.
    """
    from ectype.queries import merge_answers, reasons_in_words

    found = merge_answers(directories, out)
    if as_json:
        click.echo(json.dumps({"out": str(out), **asdict(found)}))
        return
    left = f"; left out: {', '.join(reasons_in_words(found.left_out))}" if found.left_out else ""
    say(f"{found.answers} answers are in {out}{left}")


@command.command("compact")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def compact_command(directory: Path, as_json: bool) -> None:
    """Write the ledger in DIRECTORY anew, in fewer bytes: the same answers, under a chain of checksums of their own.

    Left out are the parameters of all rounds of training but the last: a run that goes on makes them again, and what
    was asked by round is no longer told. Counts of failures are kept as sums. A run that was signed is signed again,
    with the key in ECTYPE_SIGNING_KEY.

    Exit codes: 0 done; 2 bad input, nothing was changed.
    """
    from ectype.runs.compact import compact

    found = compact(directory)
    if as_json:
        click.echo(json.dumps({"directory": str(directory), **asdict(found)}))
        return
    say(f"{found.before:,} bytes became {found.after:,}; the parameters of {found.rounds} rounds were left out")
