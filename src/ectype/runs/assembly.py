"""A result, put together from what a run came to: its certificate explained, with a diagnosis and advice."""

from __future__ import annotations

from dataclasses import replace

from ectype._common.portable import peak_mb
from ectype.certificate.certificate import Certificate
from ectype.certificate.certify import Certifier
from ectype.certificate.diagnosis import Advice, Diagnosis, advise, diagnose
from ectype.certificate.differences import boundary_margin, explain
from ectype.models.blend import BLEND
from ectype.original import as_original
from ectype.runs.model_selection import check_kept, listed, rounded_latency
from ectype.runs.pipeline import RunJob, RunOutcome
from ectype.runs.result import Result


def assemble(job: RunJob, outcome: RunOutcome) -> Result:
    """The result: the last copy with its certificate, and why a target was missed, if it was. Nothing is asked."""
    selection = outcome.selection
    if job.plan.make.network:
        check_kept(job.plan, selection.copy)
    proof = None if selection.certificate is None else _explained(job, outcome, selection.certificate)
    return Result(
        copy=selection.copy,
        certificate=proof,
        history=outcome.history,
        space=job.space,
        settings=job.about,
        queries=outcome.queries.made,
        stopped=outcome.stopped,
        seconds=outcome.seconds,
        peak_mb=peak_mb(),
        repeats=outcome.repeats,
        diagnosis=_diagnosis(job, outcome),
        advice=_advice(job, outcome, proof),
        tried=listed(selection.tried, selection.copy.with_model),
        ms=rounded_latency(selection.copy),
        given=job.given,
        vendor=job.original.vendor,
        asked=outcome.queries.memory.answers,
    )


def _explained(job: RunJob, outcome: RunOutcome, proof: Certificate) -> Certificate:
    """The certificate with its differences, and its part on the user's own rows."""
    shown = job.original.stored is None  # stored rows are the user's
    copy, held_out, seed = outcome.selection.copy, outcome.held_out, job.plan.asked.seed
    held = held_out.coded(outcome.round.labels)
    proof = explain(proof, copy, job.space, held, held_out.rows, show=shown, seed=seed)
    return proof if job.prior.user_rows is None else replace(proof, on_data=_on_user_rows(job, outcome))


def _on_user_rows(job: RunJob, outcome: RunOutcome) -> Certificate | None:
    """The certificate on the user's own rows, of which these were held out."""
    sample, copy, asked = outcome.held_out.user_sample, outcome.selection.copy, job.plan.asked
    if sample is None:
        return None
    asks = as_original(copy, name="copy")
    certifier = Certifier(copy, asks, job.original.declared, job.space, asked.confidence, asked.seed)
    return certifier.certify_sample(sample, boundary_margin(copy, job.space, asked.seed))


def _advice(job: RunJob, outcome: RunOutcome, proof: Certificate | None) -> list[Advice]:
    """What would make the copy more faithful."""
    if proof is None:
        return []
    original, blend = job.original, outcome.selection.blend
    unused = original.predict_with_scores is not None and not original.scored
    choosable = original.stored is None and job.plan.ask.draw != "balanced"
    return advise(proof, outcome.errors, outcome.repeats, scores=unused, blend=blend, choosable=choosable)


def _diagnosis(job: RunJob, outcome: RunOutcome) -> Diagnosis | None:
    """Why the target was missed, if it was."""
    proof, target = outcome.selection.certificate, job.plan.asked.target
    if proof is None or not target or outcome.stopped == "target":
        return None
    copy, points = outcome.selection.copy, outcome.round.points
    trained = float((copy.decide(points.X) != points.y).mean())
    return diagnose(target, proof, outcome.errors, trained, outcome.repeats, copy.model.kind == BLEND)
