"""The task of a worker, about one model of a fleet: copy it, resume, remake, check, or refresh."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from ectype.errors import EctypeWarning, SettingError
from ectype.fleet._config import FleetModel
from ectype.fleet._rate_limit_server import RateLimitAccess, RateLimitClient
from ectype.fleet._state_store import CHANGED, DONE, MISSED, ModelFolder, ModelState, utc_now, utc_time
from ectype.ledger import Purpose
from ectype.original import Original, open_original
from ectype.original.stored_answers import read_table
from ectype.plan.resolve import resolve
from ectype.plan.settings import Settings
from ectype.refresh import Refresh
from ectype.report import write_report
from ectype.runs.api import build_job, finish, run_job
from ectype.runs.directory import FURTHER
from ectype.runs.extend import in_directory
from ectype.runs.pipeline import RunJob
from ectype.runs.remake import CHANGES, remake
from ectype.runs.result import Record, Result
from ectype.space import open_space
from ectype.types import Json
from ectype.workers import one_thread

# The parts of a certificate that a state keeps.
PROVED = ("estimate", "lower", "confidence", "n", "per_class", "absent", "worst", "baseline")
# The parts of a run's identity that are about the original, which may change.
ORIGINAL = ("original", "fingerprint", "classes", "opened", "test")


@dataclass(frozen=True)
class FleetTask:
    """A model with what is needed to work on it anywhere that sees the same files."""

    model: FleetModel
    folder: str
    """The fleet's directory."""
    paths: tuple[str, ...]
    """Where modules of the user's own are found."""
    refresh: bool
    """Whether a changed original is copied anew, or only told of."""
    access: RateLimitAccess


def run_task(task: FleetTask) -> ModelState:
    """Do what is due for a model; gives its state then. In a worker, one model after the other."""
    for path in task.paths:
        if path not in sys.path:
            sys.path.insert(0, path)
    client, clock = RateLimitClient(task.access, task.model.name, task.model.host, task.model.cost), perf_counter()
    with client, one_thread(), _collect_warnings() as warned, redirect_stdout(sys.stderr):
        state = _ModelRunner.of(task, client).done()
    notes = "; ".join(filter(None, (state.note, *dict.fromkeys(warned))))
    return replace(state, note=notes, at=utc_now(), seconds=round(perf_counter() - clock, 3))


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings of this package."""
    found: list[str] = []
    with warnings.catch_warnings(record=True, action="always", category=EctypeWarning) as caught:
        yield found
    found.extend(str(one.message) for one in caught if issubclass(one.category, EctypeWarning))


@dataclass(frozen=True)
class _ModelRunner:
    """A model whose original, space and settings were opened."""

    model: FleetModel
    place: ModelFolder
    before: ModelState
    original: Original
    job: RunJob
    client: RateLimitClient
    refresh: bool

    @classmethod
    def of(cls, task: FleetTask, client: RateLimitClient) -> _ModelRunner:
        model, place = task.model, ModelFolder(Path(task.folder), task.model.name)
        plan = resolve(Settings(**model.settings, progress=False))
        original = _open_behind_limits(model, client)
        rows = None if model.rows is None else read_table(model.rows)
        job = build_job(original, open_space(model.space), plan, rows=rows)
        return cls(model, place, place.read(), original, job, client, task.refresh)

    @property
    def recipe(self) -> Json:
        """What the copy is asked to be, apart from the original."""
        return {key: value for key, value in self.job.about.items() if key not in ORIGINAL}

    def done(self) -> ModelState:
        """The state after whatever was due."""
        current = self.place.current
        if current is None:
            return self._copy(self.place.next, "copied")
        if not self.before.recipe:  # it ended before its state was written
            return self._copy(current, "copied")
        differ = {key for key, value in self.recipe.items() if self.before.recipe.get(key) != value}
        if not differ:
            return self._recheck(current)
        if differ <= {*FURTHER}:
            return self._copy(current, "went on")
        if differ <= {*CHANGES}:
            return self._remake(current, {key: self.recipe[key] for key in differ})
        found = f"a copy with another {', '.join(sorted(differ - {*FURTHER}))}"
        hint = f"give the model another name, or remove {self.place.path}"
        raise SettingError(
            self.model.name, "what its copy was made with, or what can be made of its answers", found, hint
        )

    def _copy(self, path: Path, did: str) -> ModelState:
        result = finish(run_job(in_directory(self.job, path)), self._tell)
        return self._state(result, path, did)

    def _remake(self, current: Path, made: Json) -> ModelState:
        path = self.place.next
        result = remake(current, out=path, **{key: getattr(self.job.plan.asked, key) for key in made})
        return self._state(result, path, "remade")

    def _recheck(self, current: Path) -> ModelState:
        """Ask some rows again; if the original answers otherwise, refresh the copy or say so."""
        if self.original.stored is not None:  # answers that lie there do not change
            return replace(self.before, did="checked", checked=utc_now())
        path, model = self.place.next, self.model
        planned = Refresh.of(current, self.original, {}, path, None, model.check, model.deterministic)
        if not self.refresh:
            found, since = planned.checked()
            if not found.changed:  # all of its answers are of then, or later
                return replace(self._state(planned.past.result, current, "checked"), checked=utc_time(since))
            shown = f"{found.stayed} of {len(found.places)} answers changed"
            return replace(self.before, state=CHANGED, note=shown, did="checked")
        result = finish(planned.steps(), self._tell)
        changed = (result.refreshed or {}).get("verdict") == "changed"
        return self._state(result, path, "refreshed") if changed else self._state(result, current, "checked")

    def _state(self, result: Result, path: Path, did: str) -> ModelState:
        """The state of a model whose copy is up to date; its page is written if it is new."""
        if did != "checked" or not (path / "report.html").is_file():
            title = f"A copy of {self.original.name}"
            write_report(path / "report.html", {result.settings["method"]: result}, title=title, answers=path)
        target, proof = result.settings["target"], result.certificate
        missed = target is not None and (proof is None or proof.lower < target)
        why = result.diagnosis.text if missed and result.diagnosis is not None else ""
        return ModelState(
            name=self.model.name,
            state=MISSED if missed else DONE,
            note=why,
            did=did,
            checked=utc_now(),
            copy=str(path.relative_to(self.place.folder)),
            recipe=self.recipe,
            target=target,
            fidelity=None if proof is None else {key: value for key, value in proof.as_json().items() if key in PROVED},
            family=result.family,
            bytes=sum((path / name).stat().st_size for name in ("copy.json", "copy.safetensors")),
            ms=result.ms,
            queries=result.queries[Purpose.TRAINING],
        )

    def _tell(self, record: Record) -> None:
        known = "" if record.fidelity is None else f", fidelity {record.fidelity:.4f}"
        self.client.tell(f"{record.queries} queries{known}")


def _open_behind_limits(model: FleetModel, client: RateLimitClient) -> Original:
    """Open a model's original so that the fleet's limits hold for it, with requests small enough for them."""
    original = open_original(model.original, model.classes, **model.options)
    original.gate = client
    most = client.most()
    if most is not None:
        original.request_rows = min(original.request_rows, most)
    return original
