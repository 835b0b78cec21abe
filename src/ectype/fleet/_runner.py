"""Run a fleet: work on its models on an engine, keep the state of each as it comes, and write a page about all."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ectype._common.atomic_io import directory_errors, folder_lock, make_folder
from ectype._common.portable import LOCK, UNFINISHED
from ectype.errors import EctypeError, SharedQuotaError
from ectype.fleet._config import Fleet, FleetModel
from ectype.fleet._page import write_page
from ectype.fleet._quotas import RequestScheduler, SpendLog, Spent, read_spent
from ectype.fleet._rate_limit_server import ProgressCallback, RateLimitAccess, RateLimitServer
from ectype.fleet._round import FleetRound
from ectype.fleet._state_store import CHANGED, FAILED, LIMITED, MISSED, ModelFolder, ModelState, utc_now
from ectype.fleet._tasks import FleetTask, run_task
from ectype.plan.resolve import resolve
from ectype.plan.settings import Settings
from ectype.queries import DRIFT_TEST_FACTOR
from ectype.workers import Engine, run_jobs


@dataclass(frozen=True)
class FleetStatus:
    """How a fleet stands: its models, beginning with those that need attention, and what they cost."""

    states: tuple[ModelState, ...]
    spent: Spent

    @classmethod
    def of(cls, fleet: Fleet, folder: Path) -> FleetStatus:
        """How it stands in a directory."""
        found = [ModelFolder(folder, model.name).read() for model in fleet.models]
        return cls(tuple(sorted(found, key=lambda state: state.attention)), read_spent(folder))

    @property
    def counts(self) -> dict[str, int]:
        """Models by their state."""
        return dict(Counter(state.state for state in self.states))

    @property
    def exit_code(self) -> int:
        """3 if some could not be done and can go on, 1 if some fall short of what was asked, else 0."""
        found = self.counts
        if any(state.goes_on for state in self.states):
            return 3
        return 1 if any(found.get(state) for state in (CHANGED, MISSED)) else 0


def most_queries(fleet: Fleet, folder: Path) -> tuple[int, int]:
    """The most queries that first copies take, without what failed requests do, and the most of checks of others."""
    first = checks = 0
    for model in fleet.models:
        if ModelFolder(folder, model.name).current is None:
            plan = resolve(Settings(**model.settings))
            first += plan.ask.total + (0 if model.rows is None else plan.asked.certificate_n)
        else:
            checks += DRIFT_TEST_FACTOR * model.check
    return first, checks


@dataclass(frozen=True)
class FleetJob:
    """A model to work on."""

    task: FleetTask

    @property
    def host(self) -> str:
        """The host that it asks."""
        return self.task.model.host


class FleetQueue:
    """Waiting models. The next one is of the host that the fewest running models ask: it waits the least for limits."""

    def __init__(self, jobs: Sequence[FleetJob]):
        self._of: dict[str, deque[FleetJob]] = {}
        for job in jobs:
            self._of.setdefault(job.host, deque()).append(job)
        self._at: dict[int, str] = {}

    def take(self, slot: int) -> FleetJob | None:
        """The next model for a slot."""
        self._at.pop(slot, None)
        if not self._of:
            return None
        busy = Counter(self._at.values())
        host = min(self._of, key=lambda host: (busy[host], -len(self._of[host])))
        job = self._of[host].popleft()
        if not self._of[host]:
            del self._of[host]
        self._at[slot] = host
        return job

    def put_back(self, job: FleetJob) -> None:
        """Have a model taken again, first of its host."""
        self._of.setdefault(job.host, deque()).appendleft(job)


def run_fleet(
    fleet: Fleet,
    out: str | Path,
    engine: Engine,
    *,
    refresh: bool = False,
    tell: ProgressCallback = lambda name, words: None,
) -> Iterator[ModelState]:
    """Do what is due for every model; gives the state of each as it comes. A model's failure is its own.

    New models are copied, and those that were interrupted go on; one that was asked to be more faithful goes on, and
    one that is to be otherwise is remade from its answers. Of the others, some rows are asked again, if that is due:
    with `refresh`, a copy whose original has changed is brought up to date. If the last round was interrupted, this one
    goes on with the models that are left of it.
    """
    folder = Path(out).absolute()
    with _fleet_lock(folder), ExitStack() as closing:
        round = FleetRound.of(folder, refresh)
        due = [model for model in round.left(fleet.models) if _is_due(model, ModelFolder(folder, model.name).read())]
        if due:
            spend_log = SpendLog(folder, fleet.limits)
            closing.enter_context(engine)
            server = closing.enter_context(
                RateLimitServer(RequestScheduler(fleet.limits, spend_log), tell, engine.address)
            )
            jobs = [FleetJob(_task(model, fleet, folder, refresh, server.access)) for model in due]
            for job, state, error in run_jobs(FleetQueue(jobs), engine, run_task):
                place = ModelFolder(folder, job.task.model.name)
                found = state if state is not None else _failure_state(place.read(), error)
                place.write(found)
                if not found.goes_on:
                    round.finish(job.task.model)
                yield found
        round.end()
        write_page(folder, FleetStatus.of(fleet, folder))


def _task(model: FleetModel, fleet: Fleet, folder: Path, refresh: bool, access: RateLimitAccess) -> FleetTask:
    return FleetTask(model, str(folder), (os.getcwd(), str(fleet.folder)), refresh, access)


def _is_due(model: FleetModel, state: ModelState) -> bool:
    """Whether there is something to do: always, unless it is well and was checked not long ago."""
    if not model.every or not state.checked or state.goes_on:
        return True
    return (datetime.now(UTC) - datetime.fromisoformat(state.checked)).total_seconds() >= model.every


def _failure_state(before: ModelState, error: Exception | None) -> ModelState:
    """The state of a model that could not be worked on; its copy stays what it was."""
    ours = isinstance(error, EctypeError)
    note = str(error) if ours else f"{type(error).__name__}: {error}"
    return replace(before, state=LIMITED if isinstance(error, SharedQuotaError) else FAILED, note=note, at=utc_now())


@contextmanager
def _fleet_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a fleet's directory, and remove the unfinished files of a driver that was killed."""
    with directory_errors(folder):
        make_folder(folder)
    with folder_lock(folder):
        for left in (*folder.glob(f"{UNFINISHED}*"), *folder.glob(f"*/{UNFINISHED}*")):
            if left.is_file() and left.name != LOCK:
                left.unlink()
        yield
