"""A run that goes on: the same call with a larger budget, or another target, starts from the answers that are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from understudy.files import errors_of
from understudy.runs.directory import settings_there
from understudy.runs.run import Job


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
