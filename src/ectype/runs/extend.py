"""A job in a directory: the same call with a larger budget, or another target, goes on from the answers there."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import NotRequired, TypedDict

from ectype._common.atomic_io import as_path, directory_errors
from ectype._common.bounded_io import UNREADABLE, check_type
from ectype.errors import DirectoryError, IntegrityError
from ectype.plan.plan import OPEN, Plan
from ectype.plan.resolve import resume, with_stages
from ectype.plan.settings import Settings
from ectype.runs.directory import claim, finished, settings_there
from ectype.runs.pipeline import RunJob

# What happens if something is another in the next call with the same directory.
GOES_ON, ANY_TIME, REFUSED = "the run goes on", "nothing", "refused"
# What a run goes on with: more queries, or another target.
FURTHER = ("budget", "iterations", "target")
# What a run is of, beside its settings.
ARGUMENTS = ("original", "classes", "space", "rows", "answers", "test")


class _Earlier(TypedDict):
    """What there has to be of the settings of a run that others go on from."""

    budget: int
    batch: NotRequired[int | None]
    target: float | None
    stages: NotRequired[list[int]]


def resume_rules() -> dict[str, str]:
    """By setting or argument of `copy_classifier`, what happens if it is another in the next call; docs/runs.md has it.

    >>> resume_rules()["budget"], resume_rules()["retries"], resume_rules()["seed"]
    ('the run goes on', 'nothing', 'refused')
    """
    names = (*(part.name for part in fields(Settings)), *ARGUMENTS)
    kinds = {**dict.fromkeys(FURTHER, GOES_ON), **dict.fromkeys(OPEN, ANY_TIME)}
    return {name: kinds.get(name, REFUSED) for name in names}


def extend_job(job: RunJob, path: Path) -> RunJob:
    """The job as it is where the directory has a run that it goes on from; else the job itself.

    Earlier rounds stay as they were asked, so that their answers are taken from the ledger, and further ones follow.
    """
    with directory_errors(path):
        there = settings_there(path)
    if there is None or "refresh_of" in there or "kept" in there:  # kept traffic is no run: it is refused later
        return job
    try:
        check_type(there, _Earlier, "settings")
        if there.get("batch") == 0:
            raise ValueError("settings: batch: expected at least one row, found 0")
    except UNREADABLE as error:
        hint = "restore it from a backup, or copy again in another directory"
        raise IntegrityError(str(path), "the settings of a run", str(error), hint) from error
    before, spent, batch = tuple(there.get("stages", ())), there["budget"], there.get("batch")
    plan, longer = resume(job.plan, before, batch), resume(job.plan, (*before, spent), batch)
    same = plan.ask.queries == spent
    further = job.plan.asked.target != there["target"] if same else longer.ask.queries > spent
    if further or before:
        _refuse_other_batch(job.plan, batch, path)
    if further:
        plan = longer
    elif not same and job.plan.ask.queries >= spent:  # what there is more is no whole batch, and is left over
        plan = with_stages(longer, before)
    return replace(job, plan=plan, about={**job.about, **plan.as_json()}, further=further)


def _refuse_other_batch(plan: Plan, batch: int | None, path: Path) -> None:
    """Refuse to go on in batches of another size, with which the first rounds would have been others."""
    asked = plan.asked.batch
    if asked is not None and asked != batch and plan.asked.method != "one-shot":
        found = "one with batches that grow" if batch is None else f"one with batches of {batch}"
        hint = "leave the batch out, or choose another directory"
        raise DirectoryError(str(path), f"a run with batches of {asked}", found, hint)


def in_directory(job: RunJob, out: str | Path) -> RunJob:
    """The job in a directory, where it goes on from what is there; a directory that holds another run is refused."""
    path = as_path(out)
    job = extend_job(job, path)
    claim(path, job.about)
    return replace(job, out=path, done=finished(path) and not job.further)
