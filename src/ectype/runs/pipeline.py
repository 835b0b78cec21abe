"""One run: asks, consumes the loop, measures after every round, and ends with a result."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

from ectype._common.portable import peak_mb
from ectype.algorithm.mlp import Network
from ectype.algorithm.sequential import Step
from ectype.certificate.advice import Advice, advise
from ectype.certificate.bounds import HeldOut
from ectype.certificate.certificate import Certificate
from ectype.certificate.certifier import Certifier
from ectype.certificate.diagnosis import Diagnosis, diagnose, flattened
from ectype.certificate.differences import explained, low_margin
from ectype.certificate.repeats import Repeats
from ectype.errors import SettingError
from ectype.ledger import Ledger, Purpose
from ectype.models.base import Model
from ectype.models.blend_fitting import BLEND
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.distillation import FitContext
from ectype.original import Labels, Original, as_original, joined
from ectype.plan.plan import Plan
from ectype.queries import Allowance, allowance_of
from ectype.runs.evaluation import EvaluationData
from ectype.runs.initialisation import ColdStart, Start
from ectype.runs.model_selection import (
    Selection,
    check_kept,
    check_reachable,
    fit_context,
    listed,
    rounded_latency,
    select_copy,
)
from ectype.runs.network_steps import Loop
from ectype.runs.query_session import QuerySession
from ectype.runs.result import Record, Result
from ectype.runs.user_rows import UserRows
from ectype.space import Space
from ectype.types import Answered, Json


@dataclass(frozen=True)
class RunJob:
    """The inputs of a run: an original, a space, a plan, test data, and how it starts."""

    original: Original
    space: Space
    plan: Plan
    about: Json
    """What identifies this run."""
    truth: EvaluationData | None = None
    start: Start = field(default_factory=ColdStart)
    own: UserRows | None = None
    """Rows of the user's own."""
    allowed: Allowance | None = None
    """The most rows that may reach the original, where there is more to the run than its plan."""
    out: Path | None = None
    """Where it is kept, if it is."""
    further: bool = False
    """Whether it goes on from a run that was made before."""
    done: bool = False
    """Whether it was finished before, so that nothing is left to do."""
    given: Json | None = None
    """What is known of the answers that it was given."""

    @property
    def allowance(self) -> Allowance:
        """The most rows that may reach the original: all queries, and retries."""
        if self.allowed is not None:
            return self.allowed
        own, asked = 0 if self.own is None else self.own.queries, self.plan.asked
        at_once = max(*self.plan.batches, asked.certificate_n, own)
        planned = self.plan.total + own + sum(self.start.checks.values())
        return allowance_of(self.original, planned, at_once, asked.retries)


@dataclass(frozen=True)
class RoundsOutcome:
    """The rounds of a run, and why it stopped."""

    outcome: Selection
    history: list[Record]
    curve: list[float]
    """After every round, the fidelity of what chose the queries: the copy itself, or a weaker one."""
    stopped: str
    last: Step
    known: int = 0
    """The answers that were given."""

    @property
    def errors(self) -> list[tuple[int, float]]:
        """The error of what chose the queries, by the number of answers."""
        return [(self.known + one.queries, 1 - found) for one, found in zip(self.history, self.curve, strict=True)]


@dataclass(frozen=True)
class Run:
    """A run with its first answers; the state that changes from round to round is in its loop and its inquiry."""

    job: RunJob
    inquiry: QuerySession
    loop: Loop
    held_out: Answered
    X: np.ndarray
    """The held-out rows, encoded."""
    repeats: Repeats | None
    clock: float
    """When it began."""

    @classmethod
    def begin(cls, job: RunJob, ledger: Ledger | None = None) -> Run:
        """Make the first queries: they come before the network, because their answers may define the classes."""
        clock = perf_counter()
        inquiry = QuerySession(job.original, job.space, job.plan, job.start, ledger, job.own, job.allowance)
        declared = job.original.declared
        check_reachable(job.plan, inquiry.view, None if declared is None else len(declared))
        job.start.prepare(inquiry)
        if job.own is not None and job.own.every.further is not None and job.own.queries:
            _ = inquiry.user_sample  # first: an original that refuses further columns does so before more is paid
        held_out, repeats = inquiry.held_out(), None
        inquiry.refuse_no_labels(held_out[1])
        enough = 0 < job.plan.repeats <= len(held_out[1])
        if enough:  # an original that cannot be copied well enough is known before more is paid
            repeats = _consistent(job.plan, inquiry.repeat(*held_out))
        first = inquiry.first()
        answers = joined([held_out[1], first[1].labels])
        inquiry.refuse_no_labels(answers)
        labels = job.start.labels(_known_labels(job, answers))
        inquiry.warn_of_absent(answers)
        inquiry.warn_of_label(np.concatenate([held_out[0], first[0]]), answers)
        if not enough:
            asked = np.concatenate([held_out[0], first[0][job.plan.known :]])
            said = joined([held_out[1], first[1].labels[job.plan.known :]]) if job.plan.known else answers
            repeats = _consistent(job.plan, inquiry.repeat(asked, said))
        X, loop = inquiry.view(held_out[0]), Loop(inquiry, labels, first, ledger)
        return cls(job, inquiry, loop, held_out, X, repeats, clock)

    def rounds(self) -> Generator[Record, None, RoundsOutcome]:
        """Consume the loop, with a record of every round, until the plan or the held-out rows end it."""
        plan, history, curve = self.job.plan, list[Record](), list[float]()
        for step in islice(self.loop, plan.iterations):
            outcome = self._so_far(step)
            curve.append(0.0 if outcome.certificate is None else outcome.certificate.estimate)
            flat = plan.asked.until_flat and flattened([*zip(self._asked(history), curve, strict=True)])
            if not plan.network and (flat or step.t + 1 in plan.looks):
                outcome = select_copy(plan, self._workshop(step), self._held(), self._copy)
            history.append(self._record(step, outcome))
            yield history[-1]
            if _reached(plan, step, outcome.certificate):
                return RoundsOutcome(outcome, history, curve, "target", step, plan.known)
            if flat:
                return RoundsOutcome(outcome, history, curve, "plateau", step, plan.known)
        return RoundsOutcome(outcome, history, curve, plan.limited_by, step, plan.known)

    def _asked(self, before: list[Record]) -> list[int]:
        """The answers after every round, this one included."""
        made = [*(record.queries for record in before), self.inquiry.queries.made[Purpose.TRAINING]]
        return [self.job.plan.known + n for n in made]

    def result(self, ended: RoundsOutcome) -> Result:
        """The result: the last copy with its certificate, and why a target was missed, if it was."""
        plan, proof = self.job.plan, ended.outcome.certificate
        copy = ended.outcome.copy.taught_by(self.inquiry.training_rows)
        if plan.network:
            check_kept(plan, copy)
        proof = None if proof is None else self._explained(proof, copy)
        return Result(
            copy=copy,
            certificate=proof,
            history=ended.history,
            space=self.job.space,
            settings=self.job.about,
            queries=self.inquiry.queries.made,
            stopped=ended.stopped,
            seconds=perf_counter() - self.clock + sum(self.loop.spared.values()),
            peak_mb=peak_mb(),
            repeats=self.repeats,
            diagnosis=self._diagnosis(ended),
            advice=self._advice(ended, proof),
            tried=listed(ended.outcome.tried, self._copy),
            ms=rounded_latency(copy),
            given=self.job.given,
            asked=self.inquiry.queries.memory.answers,
        )

    def _held(self) -> HeldOut:
        """The held-out rows, with the labels' current codes."""
        labels = self.loop.labels
        return HeldOut(self.X, labels.encode(self.held_out[1]), labels)

    def _copy(self, model: Model) -> CopyClassifier:
        """A model as a classifier."""
        excluded = tuple(self.job.space.names.index(name) for name in self.job.plan.asked.exclude)
        return CopyClassifier(model, self.loop.labels.classes, self.inquiry.view.space, excluded)

    def _so_far(self, step: Step) -> Selection:
        """The copy after a round, its bound corrected for the number of looks."""
        asked, network = self.job.plan.asked, Network(self.loop.network, step.theta)
        if not asked.certificate_n:
            return Selection(self._copy(network), None, [])
        copy = self._copy(self.inquiry.copy_so_far(network, self.loop.labels))
        return Selection(copy, self._held().certify(copy.decide(self.X), asked.confidence, self.job.plan.stops), [])

    def _workshop(self, last: Step) -> FitContext:
        """What copies of other families are made from."""
        plan, network = self.job.plan, Network(self.loop.network, last.theta)
        labels = self.loop.labels
        points = self.inquiry.emphasised(self.loop.points(last), labels)
        points = self.job.start.lessons(self.inquiry, labels, points)
        known: dict[str, Model] = {"mlp": network} if plan.preset.network else {}
        if self.inquiry.learned.blend is not None:
            known[BLEND] = self.inquiry.learned.blend
        return fit_context(plan, self.job.space, self.inquiry.view, points, network.n_c, known)

    def _record(self, step: Step, outcome: Selection) -> Record:
        truth, proof = self.job.truth, outcome.certificate
        return Record(
            iteration=step.t,
            queries=self.inquiry.queries.made[Purpose.TRAINING],
            kept=len(step.S),
            dropped=step.dropped,
            lam=step.lam,
            mean_rho=step.trained.mean_rho,
            risk=step.trained.risk,
            fidelity=None if proof is None else proof.estimate,
            moved=step.moved,
            epochs=step.trained.epochs,
            seconds=step.seconds + self.loop.spared.get(step.t, 0.0),
            **({} if truth is None else truth.measured(outcome.copy, self.loop.labels)),
        )

    def _explained(self, proof: Certificate, copy: CopyClassifier) -> Certificate:
        """The certificate with its differences."""
        shown = self.job.original.stored is None  # stored rows are the user's
        seed = self.job.plan.asked.seed
        proof = explained(proof, copy, self.job.space, self._held(), self.held_out[0], show=shown, seed=seed)
        return proof if self.job.own is None else replace(proof, on_data=self._on_own(self.job.own, copy))

    def _on_own(self, own: UserRows, copy: CopyClassifier) -> Certificate | None:
        """The certificate on the user's own rows, of which these were held out."""
        if not own.queries:
            return None
        asked, space = self.job.plan.asked, self.job.space
        declared = self.job.original.declared
        proving = Certifier(copy, as_original(copy, name="copy"), declared, space, asked.confidence, asked.seed)
        return proving.on_sample(self.inquiry.user_sample, low_margin(copy, space, asked.seed))

    def _advice(self, ended: RoundsOutcome, proof: Certificate | None) -> list[Advice]:
        """What would make the copy more faithful."""
        if proof is None:
            return []
        original, blend = self.job.original, ended.outcome.blend
        unused = original.both is not None and not original.scored
        choosable = original.stored is None and self.job.plan.draw != "balanced"
        return advise(proof, ended.errors, self.repeats, scores=unused, blend=blend, choosable=choosable)

    def _diagnosis(self, ended: RoundsOutcome) -> Diagnosis | None:
        """Why the target was missed, if it was."""
        proof, target = ended.outcome.certificate, self.job.plan.asked.target
        if proof is None or not target or ended.stopped == "target":
            return None
        copy, points = ended.outcome.copy, self.loop.points(ended.last)
        trained = float((copy.decide(points.X) != points.y).mean())
        return diagnose(target, proof, ended.errors, trained, self.repeats, copy.model.kind == BLEND)


def run_steps(job: RunJob, ledger: Ledger | None = None) -> Generator[Record, None, tuple[Result, Run]]:
    """Yield a record per iteration; return the result, and its run."""
    run = Run.begin(job, ledger)
    ended = yield from run.rounds()
    return run.result(ended), run


def _consistent(plan: Plan, repeats: Repeats | None) -> Repeats | None:
    """Rows that were asked again; a target that they put out of reach is refused."""
    if plan.asked.target and repeats is not None:
        repeats.allow(plan.asked.target, plan.asked.confidence)
    return repeats


def _known_labels(job: RunJob, answers: np.ndarray) -> Labels:
    """The labels declared; else those of the first answers, until others turn up."""
    labels = job.original.declared or Labels(answers)
    if job.truth is not None and (labels.find(job.truth.labels) < 0).all():
        raise SettingError("test", f"labels among {labels}", f"labels such as {job.truth.labels[0].item()!r}")
    return labels


def _reached(plan: Plan, step: Step, proof: Certificate | None) -> bool:
    """Whether the lower bound reaches the target, in a round in which that is checked."""
    target = plan.asked.target
    return bool(target and proof and step.t + 1 in plan.looks and proof.lower >= target)
