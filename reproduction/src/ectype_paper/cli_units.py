"""The options of the commands that run units, and running those units that a store does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ectype.cli.terminal import FINISHED, note_on_interrupt
from ectype_paper.units import EPOCHS, ITERATIONS, METHODS, SPACES

if TYPE_CHECKING:
    from ectype_paper.sweep import UnitOutcome
    from ectype_paper.units import Record, Unit


class Words(click.ParamType):
    """Words with commas between them."""

    name = "words"

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The words, without those that are empty."""
        return value if isinstance(value, tuple) else tuple(filter(None, (word.strip() for word in value.split(","))))


@dataclass(frozen=True)
class UnitFilter:
    """What was said of the units to run, and where to run them."""

    data: Path | None
    problems: tuple[str, ...] | None
    deltas: tuple[float, ...] | None
    iterations: int | None
    epochs: int
    space: str
    engine: str
    workers: int | None
    scheduler: str | None


def unit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it receives them together, as `wanted`."""

    @click.option("--data", type=click.Path(path_type=Path), help="A folder of <name>.csv.gz with an index.csv.")
    @click.option("--problems", type=Words(), metavar="A,B", help="Some problems.  [default: the paper's there are]")
    @click.option("--deltas", type=Words(), metavar="A,B", help="Thresholds.  [default: the paper's]")
    @click.option("--iterations", type=int, help="Of every unit.  [default: 30, or the figure's own]")
    @click.option("--epochs", type=int, default=EPOCHS, show_default=True, help="Epochs per iteration.")
    @click.option("--space", type=click.Choice(SPACES), default=SPACES[0], show_default=True)
    @click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True)
    @click.option("--workers", type=int, help="Units at a time.  [default: one for each core]")
    @click.option("--scheduler", metavar="URL", help="A Dask scheduler such as tcp://10.0.0.1:8786, for --engine dask.")
    @wraps(command)
    def receive(
        data: Path | None,
        problems: tuple[str, ...] | None,
        deltas: tuple[str, ...] | None,
        iterations: int | None,
        epochs: int,
        space: str,
        engine: str,
        workers: int | None,
        scheduler: str | None,
        **others: object,
    ) -> None:
        from ectype._common import validation

        wanted = UnitFilter(
            data=data,
            problems=problems,
            deltas=None if deltas is None else tuple(map(_delta, deltas)),
            iterations=None if iterations is None else validation.count("--iterations", iterations, 1, 2**20),
            epochs=validation.count("--epochs", epochs, 1, 2**20),
            space=space,
            engine=engine,
            workers=workers,
            scheduler=scheduler,
        )
        command(wanted=wanted, **others)

    return receive


def _delta(word: str) -> float:
    from ectype.errors import SettingError

    try:
        return float(word)
    except ValueError as error:
        raise SettingError("--deltas", "numbers with commas between them", repr(word)) from error


@dataclass(frozen=True)
class Ran:
    """What came of units: the records of those that are finished, and how many of them are new."""

    records: Mapping[Unit, Record]
    counts: dict[str, int]
    failed: dict[str, str]
    seconds: dict[str, float]
    """The mean of a unit that was run, by method."""
    table: Path | None

    @property
    def finished(self) -> int:
        """How many of the units wanted are finished."""
        return self.counts["before"] + self.counts["ran"]

    def tell(self) -> None:
        """Say what failed, and how long units took."""
        for unit, error in self.failed.items():
            click.echo(f"failed: {unit}: {error}", err=True)
        for method, mean in self.seconds.items():
            click.echo(f"{method:<11}{mean:>9.2f} s a unit", err=True)


def run_units(units: Sequence[Unit], out: Path, wanted: UnitFilter) -> Ran:
    """Run the units that the store in `out` does not have yet, showing how far it is."""
    from ectype.workers import open_engine
    from ectype_paper.store import open_store
    from ectype_paper.sweep import plan, sweep
    from ectype_paper.unit_progress import watch
    from ectype_paper.unit_table import export
    from ectype_paper.units import paper_settings

    settings = paper_settings(wanted.iterations or ITERATIONS, wanted.epochs)
    engine = open_engine(wanted.engine, wanted.workers, wanted.scheduler)
    with open_store(out, settings) as store:
        planned = plan(units, store, settings, wanted.data)
        before = len(units) - len(planned)
        click.echo(f"{len(units)} units, {before} of them finished before", err=True)
        try:
            with note_on_interrupt(lambda: FINISHED):
                done = list(watch(sweep(planned, store, engine), len(planned), sum(one.weight for one in planned)))
        finally:
            table = None
            if store.records:  # those of earlier versions do not say themselves what trained them
                table = export(
                    [{"engine": settings["engine"], **one} for one in store.records.values()], out / "units.csv"
                )
        counts = {"units": len(units), "before": before, "ran": sum(one.record is not None for one in done)}
        failed = {str(one.unit): one.error for one in done if one.record is None}
        return Ran(dict(store.records), counts, failed, _seconds(done), table)


def _seconds(done: Sequence[UnitOutcome]) -> dict[str, float]:
    records = [one.record for one in done if one.record is not None]
    return {
        method: round(sum(times) / len(times), 3)
        for method in METHODS
        if (times := [record["seconds"] for record in records if record["method"] == method])
    }
