"""`ectype fleet`: many originals at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ectype.cli.click_groups import WithDefault
from ectype.cli.terminal import FINISHED, note_on_interrupt, say

if TYPE_CHECKING:
    from ectype.fleet import FleetStatus, ModelState

# Characters of a note in the table at the end; the page and --json have all.
NOTE = 100
Show = tuple["Callable[[ModelState], None]", "Callable[[str, str], None]"]

EXAMPLES = """\b
Examples:
  ectype fleet FLEET.toml --out fleet
  ectype fleet refresh FLEET.toml --out fleet
  ectype fleet status fleet
"""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.argument("table", metavar="FLEET.toml", type=click.Path(path_type=Path)),
        click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for all copies."),
        click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True),
        click.option("--workers", type=int, help="Models at a time.  [default: one for each core]"),
        click.option("--scheduler", metavar="URL", help="A Dask scheduler, such as tcp://10.0.0.1:8786 or tls://..."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else."),
    ):
        command = option(command)
    return command


@click.group("fleet", cls=WithDefault, default="copy", epilog=EXAMPLES)
def command() -> None:
    """Copy, check and refresh all the originals in a table.

    `ectype fleet FLEET.toml --out DIR` copies what is not copied yet, goes on where it was interrupted, and asks
    whether the others have changed. Run it again, by a timer, and it does what is due. `fleet refresh` brings copies
    of changed originals up to date; `fleet status DIR` tells how all of them stand.

    Exit codes: 0 all are as they should be; 1 an original changed, or a target was missed; 2 bad input; 3 some could
    not be done, or a limit was reached, and the same command goes on from there; 130 interrupted, likewise.
    """


@command.command("copy", hidden=True)
@_options
def copy(**given: object) -> None:
    """Copy what is not copied yet, and check the others."""
    _run(refresh=False, **given)  # type: ignore[arg-type]


@command.command("refresh")
@_options
def refresh(**given: object) -> None:
    """As `fleet` alone, and bring copies of originals that have changed up to date."""
    _run(refresh=True, **given)  # type: ignore[arg-type]


@command.command("status")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def status(directory: Path, as_json: bool) -> None:
    """How the models of the fleet in DIRECTORY stand. Nothing is asked."""
    from ectype.fleet import FleetStatus, read_spent, states

    _tell(FleetStatus(tuple(states(directory)), read_spent(directory)), directory, as_json)


def _run(
    table: Path, out: Path, engine: str, workers: int | None, scheduler: str | None, as_json: bool, refresh: bool
) -> None:
    from ectype.fleet import FleetStatus, most_queries, read_fleet, run_fleet
    from ectype.workers import open_engine

    fleet = read_fleet(table)
    opened = open_engine(engine, workers, scheduler)
    first, checks = most_queries(fleet, out.absolute())
    say(
        f"{len(fleet.models)} models: at most {first} queries for first copies and {checks} for checks of others, "
        f"{'and those that refreshes take, ' if refresh else ''}beside requests that fail; the table's limits hold",
        err=True,
    )
    with note_on_interrupt(lambda: FINISHED), _shown(len(fleet.models)) as (done, tell):
        for state in run_fleet(fleet, out, opened, refresh=refresh, tell=tell):
            done(state)
    outlook = FleetStatus.of(fleet, out.absolute())
    _tell(outlook, out, as_json)
    sys.exit(outlook.exit_code)


@contextmanager
def _shown(total: int) -> Iterator[Show]:
    """Show how far a fleet is: a table that lives on a terminal, a line for every model elsewhere."""
    if sys.stderr.isatty():
        with _live(total) as show:
            yield show
        return
    count = 0

    def done(state: ModelState) -> None:
        nonlocal count
        count += 1
        click.echo(f"{count}/{total} {_line(state)}", err=True)

    yield done, lambda name, words: None


@contextmanager
def _live(total: int) -> Iterator[Show]:
    from threading import Lock

    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    at_work: dict[str, str] = {}
    counts: dict[str, int] = {}
    lock = Lock()

    def table() -> Table:
        with lock:
            told = ", ".join(f"{n} {state}" for state, n in counts.items())
            found = Table.grid(padding=(0, 2))
            found.add_row(Text(f"{sum(counts.values())}/{total}"), Text(told))
            for name, words in at_work.items():
                found.add_row(Text(name, overflow="fold"), Text(words))
        return found

    with Live(get_renderable=table, console=Console(stderr=True), refresh_per_second=4, transient=True) as live:

        def done(state: ModelState) -> None:
            with lock:
                at_work.pop(state.name, None)
                counts[state.state] = counts.get(state.state, 0) + 1
            live.console.print(Text(_line(state)))

        def tell(name: str, words: str) -> None:
            from ectype._common.formatting import printable

            with lock:
                at_work[name] = printable(words)

        yield done, tell


def _line(state: ModelState) -> str:
    from ectype._common.formatting import printable
    from ectype.certificate.formatting import short

    found = "" if state.proof is None else f", {printable(short(state.proof))}"
    note = f": {printable(state.note)}" if state.note else ""
    did = f"{state.did}, " if state.did and state.state in ("done", "missed") else ""
    return f"{state.name}: {did}{state.state}{found}{note}"


def _tell(outlook: FleetStatus, out: Path, as_json: bool) -> None:
    from ectype._common.formatting import Grid, printable
    from ectype.fleet import DONE, PAGE_NAME, fleet_verdict

    if as_json:
        models = [state.as_json() for state in outlook.states]
        found = {"models": models, "counts": outlook.counts, "spent": outlook.spent._asdict(), "out": str(out)}
        click.echo(json.dumps({**found, "page": str(out / PAGE_NAME)}))
        return
    shown = [state for state in outlook.states if state.state != DONE]
    if shown:
        cells = [(state.name, state.state, *_bounds(state), printable(state.note)[:NOTE]) for state in shown]
        heads = "model", "state", "at least", "worst label", "baseline", "why"
        click.echo(f"\n{Grid(heads, cells, right=('at least', 'baseline')).text()}\n")
    click.echo(f"{fleet_verdict(outlook)}; {outlook.spent.rows} rows were asked. The page of all is {out / PAGE_NAME}.")


def _bounds(state: ModelState) -> tuple[str, str, str]:
    """The fidelity that is certified, the worst label, and what always answering the commonest one has."""
    proof = state.proof
    if proof is None:
        return "-", "-", "-"
    if proof.worst is None or proof.baseline is None:
        return f"{proof.lower:.4f}", "-", "-"
    return f"{proof.lower:.4f}", str(proof.worst), f"{proof.baseline.estimate:.4f}"
