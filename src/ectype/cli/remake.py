"""`ectype remake`: another copy from the answers of a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import click

from ectype._common.bounded_io import UNREADABLE, read_bytes
from ectype.cli.click_groups import Grouped
from ectype.cli.run_options import making_options
from ectype.cli.terminal import say
from ectype.errors import SettingError

# The most bytes of a frontier; one that we write takes a few thousand.
MOST_FRONTIER_BYTES = 2**20


@click.command("remake", cls=Grouped)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the new copy.")
@click.option("--take", type=int, metavar="N", help="Hand out a row of the frontier, as `ectype frontier` counts.")
@click.option(
    "--answers",
    multiple=True,
    metavar="DIR|TABLE",
    help="Further answers of the same original to learn from, as for `ectype copy`.",
)
@click.option("--sign", is_flag=True, help="Sign the directory with the key in ECTYPE_SIGNING_KEY.")
@making_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    out: Path,
    take: int | None,
    answers: tuple[str, ...],
    sign: bool,
    as_json: bool,
    **made: Any,
) -> None:
    """Make another copy from the answers of the run in DIRECTORY, which stays as it is; the original is not asked.

    \b
    Examples:
      ectype remake my-copy --out my-tree --to tree --max-leaves 16
      ectype frontier my-copy && ectype remake my-copy --out smaller --take 3

    Exit codes: 0 done; 2 bad input, nothing was written.
    """
    from ectype._common.manifest import Key
    from ectype.cli.copy import reported
    from ectype.progress import show_progress
    from ectype.runs.remake import remake

    key, given = (
        Key.needed() if sign else None,
        {name: value for name, value in made.items() if value not in (None, ())},
    )
    if take is not None and given:
        raise SettingError("--take", "nothing else about what to make", ", ".join(given))
    row = None if take is None else _row(directory, take)
    with show_progress("remake", 1, log=True):
        result = remake(directory, out=out, take=row, answers=answers, key=key, **given)
    settings = result.settings
    report = reported(out / "report.html", {settings["method"]: result}, f"A copy of {settings['original']}")
    if as_json:
        click.echo(json.dumps({**result.summary(), "out": str(out), "report": str(report)}))
        return
    click.echo(f"\n{result}\n")
    say(f"Nothing was asked. The copy is in {out}; its report is {report}.")


def _row(directory: Path, number: int) -> tuple[str, str]:
    """The family and size in a row of the frontier that was written there."""
    path = directory / "frontier.csv"
    if not path.is_file():
        raise SettingError("--take", f"a frontier in {path}", "none", f"run `ectype frontier {directory}` first")
    try:
        lines = csv.DictReader(read_bytes(path, MOST_FRONTIER_BYTES).decode().splitlines())
        rows = [(line["family"], line["size"]) for line in lines]
    except (csv.Error, *UNREADABLE) as error:
        hint = f"run `ectype frontier {directory}` again"
        raise SettingError("--take", f"a frontier in {path}", str(error), hint) from error
    if not 1 <= number <= len(rows):
        raise SettingError("--take", f"a row from 1 to {len(rows)}", number)
    return rows[number - 1]
