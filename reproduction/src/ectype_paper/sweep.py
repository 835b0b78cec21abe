"""The sweep: problems x methods x thresholds x repetitions, each a unit of its own, none run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

from ectype._common import validation
from ectype.errors import SettingError
from ectype.toy_problems import TOYS
from ectype.workers import MOST_DEATHS, Engine, run_jobs
from ectype_paper.originals import FAMILY_OF
from ectype_paper.problems import load, names
from ectype_paper.store import UnitStore
from ectype_paper.units import METHODS, SPACES, WITHOUT_RESULT, Record, Unit, UnitTask, absolute, run


class UnitOutcome(NamedTuple):
    """A unit that is finished, with its record; or one that failed, with the reason."""

    unit: Unit
    record: Record | None
    error: str
    weight: float


@dataclass(frozen=True)
class PlannedUnit:
    """A task, and roughly the seconds that it takes."""

    task: UnitTask
    weight: float


def problem_names(folder: str | Path | None, chosen: Sequence[str] | None = None) -> tuple[str, ...]:
    """The problems named, or else all of Table 4 that there are, in the folder or built in."""
    known = {*names(folder), *names()}
    for name in chosen or ():
        if name not in known or name not in {*FAMILY_OF, *TOYS}:
            load(folder, name)  # says what is missing; what can be loaded is none of Table 3's
            raise SettingError("problem", "one of the paper's Table 3, or a toy problem", repr(name))
    return tuple(dict.fromkeys(chosen or sorted(known & FAMILY_OF.keys() - {*WITHOUT_RESULT})))


def units(
    problems: Sequence[str], methods: Sequence[str], deltas: Sequence[float], runs: int, space: str
) -> tuple[Unit, ...]:
    """Every unit of a sweep; only the sequential method has thresholds.

    >>> len(units(["iris", "wine"], ["sequential", "one-shot"], [1e-4, 1e-6], runs=3, space="normal"))
    18
    """
    validation.choice("space", space, SPACES)
    for delta in deltas:
        validation.number("delta", delta, "a number from 0 to below 1", 0, 1)
    ways = [
        (method, delta)
        for method in dict.fromkeys(validation.choice("method", method, METHODS) for method in methods)
        for delta in (tuple(dict.fromkeys(deltas)) if method == "sequential" else (None,))
    ]
    repetitions = range(validation.count("runs", runs, 1))
    return tuple(Unit(name, space, *way, repetition) for name in problems for way in ways for repetition in repetitions)


def plan(
    wanted: Sequence[Unit], store: UnitStore, settings: dict[str, Any], folder: str | Path | None
) -> list[PlannedUnit]:
    """The units that the store does not have yet, largest first, each with what is needed to run it."""
    problems = {name: load(folder, name) for name in dict.fromkeys(unit.problem for unit in wanted)}
    digests = {name: problem.digest for name, problem in problems.items()}
    store.refuse_other_data(digests)
    planned = [
        PlannedUnit(
            UnitTask(unit, settings, absolute(folder), digests[unit.problem]), weight(unit, problem.d, settings)
        )
        for unit in wanted
        if unit not in store.records
        for problem in [problems[unit.problem]]
    ]
    return sorted(planned, key=lambda one: -one.weight)


def weight(unit: Unit, d: int, settings: dict[str, Any]) -> float:
    """Roughly the seconds a unit takes: its training steps, and a little for all else."""
    n, rounds = settings["batch"], unit.iterations or settings["iterations"]
    if unit.points is not None:
        n, rounds = unit.points, 1
    pure = n * rounds * (rounds + 1) / 2
    # The share of points kept grows by about a twentieth with every power of ten that the threshold falls.
    share = min(1.0, max(0.05, 0.1 + 0.055 * log10(5e-4 / unit.delta))) if unit.delta else 1.0
    points = {"one-shot": n * rounds, "online": n * rounds, "pure": pure, "sequential": share * pure}[unit.method]
    return 0.5 + settings["epochs"] * points / 32 * 40e-6 * (1 + d / 150)


def sweep(
    planned: Sequence[PlannedUnit], store: UnitStore, engine: Engine, call: Callable[[UnitTask], Record] = run
) -> Iterator[UnitOutcome]:
    """Run the units on an engine, started if there are any; each is kept in the store before it is told of."""
    if not planned:
        return
    with engine:
        for outcome in outcomes(planned, engine, call):
            if outcome.record is not None:
                store.add(outcome.record)
            yield outcome


def outcomes(
    planned: Sequence[PlannedUnit], engine: Engine, call: Callable[[UnitTask], Record]
) -> Iterator[UnitOutcome]:
    """Have all units run by `call`, on an engine that is started."""
    for one, record, error in run_jobs(UnitQueue(planned), engine, call):
        yield UnitOutcome(one.task.unit, record, "" if error is None else _reason(error), one.weight)


def _reason(error: Exception) -> str:
    died = isinstance(error, BrokenExecutor)
    return f"its worker died {MOST_DEATHS} times" if died else f"{type(error).__name__}: {error}"


class UnitQueue:
    """Units that wait, repetition by repetition, so that whatever ends a sweep leaves complete ones.

    Within a repetition the problem with most left comes first, of a problem the largest unit; and a slot stays with its
    problem, whose original it has loaded.
    """

    def __init__(self, planned: Sequence[PlannedUnit]):
        self._of: dict[int, dict[str, list[PlannedUnit]]] = {}
        for one in planned:
            self._units(one).append(one)
        self._taken: set[tuple[int, str]] = set()
        self._at: dict[int, str] = {}

    def take(self, slot: int) -> PlannedUnit | None:
        """The next unit: of the problem that the slot is at, of one that nobody is at, or of the one with most left."""
        if not self._of:
            return None
        near = self._at.get(slot)
        repetition = min(self._of)
        problems = self._of[repetition]
        name = near if near in problems else self._next(repetition)
        self._at[slot] = name
        self._taken.add((repetition, name))
        taken = problems[name].pop(0)
        if not problems[name]:
            del problems[name]
        if not problems:
            del self._of[repetition]
        return taken

    def put_back(self, one: PlannedUnit) -> None:
        """Have a unit taken again, first of its problem."""
        self._units(one).insert(0, one)

    def _units(self, like: PlannedUnit) -> list[PlannedUnit]:
        unit = like.task.unit
        return self._of.setdefault(unit.repetition, {}).setdefault(unit.problem, [])

    def _next(self, repetition: int) -> str:
        problems = self._of[repetition]
        untouched = [name for name in problems if (repetition, name) not in self._taken]
        return max(untouched or problems, key=lambda name: sum(one.weight for one in problems[name]))
