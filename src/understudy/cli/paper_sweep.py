"""`understudy paper sweep`: problems x methods x thresholds x repetitions, resumable."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from understudy.paper.settings import DELTAS, EPOCHS, ITERATIONS, METHODS, SPACES

if TYPE_CHECKING:
    from understudy.paper.sweep import Outcome


class Words(click.ParamType):
    """Words with commas between them."""

    name = "words"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words, without those that are empty."""
        return value if isinstance(value, tuple) else tuple(filter(None, (word.strip() for word in value.split(","))))


@click.command("sweep")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the results, and units.csv.")
@click.option("--data", type=click.Path(path_type=Path), help="A folder of <name>.csv.gz with an index.csv.")
@click.option("--problems", type=Words(), metavar="A,B", help="Some problems.  [default: all of Table 4 there are]")
@click.option("--methods", type=Words(), metavar="A,B", default="sequential,one-shot", show_default=True)
@click.option("--deltas", type=Words(), metavar="A,B", help="Thresholds.  [default: the paper's twelve]")
@click.option("--runs", type=int, default=3, show_default=True, help="Repetitions.")
@click.option("--iterations", type=int, default=ITERATIONS, show_default=True)
@click.option("--epochs", type=int, default=EPOCHS, show_default=True, help="Epochs per iteration.")
@click.option("--space", type=click.Choice(SPACES), default=SPACES[0], show_default=True)
@click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True)
@click.option("--workers", type=int, help="Units at a time.  [default: one for each core]")
@click.option("--scheduler", metavar="URL", help="A Dask scheduler such as tcp://10.0.0.1:8786, with --engine dask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def sweep_command(out: Path, as_json: bool, **options: Any) -> None:
    """Copy originals of the paper's problems with every method and threshold, each so many times.

    Every finished unit is kept at once. The same command goes on where it was interrupted, more runs or problems are
    added to what is there, and nothing is run twice. Lists take commas. Without --data, the problems that are built in
    are run.

    Exit codes: 0 all units are finished; 1 some failed; 2 bad input; 3 the cluster was lost, and what is finished is
    kept; 130 interrupted, likewise.
    """
    from understudy.cli.progress import watch
    from understudy.paper.engines import open_engine
    from understudy.paper.settings import paper_settings
    from understudy.paper.store import export, open_store
    from understudy.paper.sweep import plan, sweep

    settings = paper_settings(_positive(options, "iterations"), _positive(options, "epochs"))
    wanted = _units(options)
    engine = open_engine(options["engine"], options["workers"], options["scheduler"])
    with open_store(out, settings) as store:
        planned = plan(wanted, store, settings, options["data"])
        before = len(wanted) - len(planned)
        click.echo(f"{len(wanted)} units, {before} of them finished before", err=True)
        try:
            done = list(watch(sweep(planned, store, engine), len(planned), sum(one.weight for one in planned)))
        finally:
            table = export(list(store.records.values()), out / "units.csv") if store.records else None
        _tell(out, table, len(wanted), before, done, as_json)
    if any(outcome.record is None for outcome in done):
        sys.exit(1)


def _units(options: dict[str, Any]) -> Any:
    from understudy.paper.sweep import problem_names, units

    deltas = DELTAS if options["deltas"] is None else tuple(map(_delta, options["deltas"]))
    problems = problem_names(options["data"], options["problems"])
    return units(problems, options["methods"], deltas, options["runs"], options["space"])


def _delta(word: str) -> float:
    from understudy.errors import SettingError

    try:
        return float(word)
    except ValueError as error:
        raise SettingError("--deltas", "numbers with commas between them", repr(word)) from error


def _positive(options: dict[str, Any], name: str) -> int:
    from understudy import checks

    return checks.count(f"--{name}", options[name], 1, 2**20)


def _tell(out: Path, table: Path | None, total: int, before: int, done: list[Outcome], as_json: bool) -> None:
    """Say what came of it."""
    finished = [outcome.record for outcome in done if outcome.record is not None]
    failed = {str(outcome.unit): outcome.error for outcome in done if outcome.record is None}
    seconds = {
        method: round(sum(times) / len(times), 3)
        for method in METHODS
        if (times := [record["seconds"] for record in finished if record["method"] == method])
    }
    counts = {"units": total, "before": before, "ran": len(finished)}
    if as_json:
        click.echo(
            json.dumps({"out": str(out), "csv": table and str(table), **counts, "failed": failed, "seconds": seconds})
        )
        return
    for unit, error in failed.items():
        click.echo(f"failed: {unit}: {error}", err=True)
    for method, mean in seconds.items():
        click.echo(f"{method:<11}{mean:>9.2f} s a unit")
    click.echo(f"{before + len(finished)} of {total} units are in {out}.")
