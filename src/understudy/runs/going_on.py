"""A run that goes on: the same call with a larger budget, or another target, starts from the answers that are there."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from understudy.files import errors_of
from understudy.runs.directory import settings_there
from understudy.runs.plan import OPEN
from understudy.runs.run import Job
from understudy.runs.settings import Settings

# What happens if something is another in the next call with the same directory.
GOES_ON, ANY_TIME, REFUSED = "the run goes on", "nothing", "refused"
# What a run goes on with: more queries, or another target.
FURTHER = ("budget", "iterations", "target")
# What a run is of, beside its settings.
ARGUMENTS = ("original", "classes", "space", "rows", "answers", "test")


def between_calls() -> dict[str, str]:
    """By setting or argument of `copy_classifier`, what happens if it is another in the next call; docs/runs.md has it.

    >>> between_calls()["budget"], between_calls()["retries"], between_calls()["seed"]
    ('the run goes on', 'nothing', 'refused')
    """
    names = (*(part.name for part in fields(Settings)), *ARGUMENTS)
    kinds = {**dict.fromkeys(FURTHER, GOES_ON), **dict.fromkeys(OPEN, ANY_TIME)}
    return {name: kinds.get(name, REFUSED) for name in names}


def gone_on(job: Job, path: Path) -> Job:
    """The job as it is where the directory has a run that it goes on from; else the job itself.

    Earlier rounds stay as they were asked, so that their answers are taken from the ledger, and further ones follow.
    """
    with errors_of(path):
        there = settings_there(path)
    if there is None or "refresh_of" in there or "kept" in there:  # kept traffic is no run: it is refused later
        return job
    before, asked = tuple(there.get("stages", ())), job.plan.queries
    further = asked > there["budget"] or (asked == there["budget"] and job.plan.asked.target != there["target"])
    plan = job.plan.after((*before, there["budget"]) if further else before)
    return replace(job, plan=plan, about={**job.about, **plan.as_json()}, further=further)
