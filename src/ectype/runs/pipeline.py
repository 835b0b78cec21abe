"""One run, from the first query to the result: eight stages, of which none calls an earlier one."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

import numpy as np

from ectype.certificate.bounds import HeldOut
from ectype.certificate.certificate import Certificate
from ectype.certificate.diagnosis import is_flat
from ectype.certificate.repeats import Repeats
from ectype.certificate.user_sample import UserSample
from ectype.errors import SettingError
from ectype.ledger import Ledger, Purpose
from ectype.methods.asker import RoundAsker, query_limits
from ectype.methods.base import Round
from ectype.methods.prior import Prior
from ectype.methods.registry import method_of
from ectype.models.base import Model
from ectype.models.blend import BLEND
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Labels, Original, concatenate_labels
from ectype.plan.plan import Plan
from ectype.queries import Allowance, Queries, allowance_of
from ectype.runs.evaluation import EvaluationData
from ectype.runs.model_selection import Selection, check_reachable, fit_context, select_copy
from ectype.runs.result import Record
from ectype.runs.sanity_checks import (
    ask_again,
    recheck,
    refuse_no_labels,
    warn_of_absent_labels,
    warn_of_leaked_label,
)
from ectype.space import FeatureView, Space
from ectype.types import Json


@dataclass(frozen=True)
class RunJob:
    """The inputs of a run: an original, a space, a plan, test data, and what is known before the first query."""

    original: Original
    space: Space
    plan: Plan
    about: Json
    """What identifies this run."""
    truth: EvaluationData | None = None
    prior: Prior = field(default_factory=Prior)
    allowed: Allowance | None = None
    """The most rows that may reach the original, where there is more to the run than its plan."""
    out: Path | None = None
    """Where it is kept, if it is."""
    further: bool = False
    """Whether it goes on from a run that was made before."""
    done: bool = False
    """Whether it was finished before, so that nothing is left to do."""

    @property
    def allowance(self) -> Allowance:
        """The most rows that may reach the original: all queries, and retries."""
        if self.allowed is not None:
            return self.allowed
        asked, users = self.plan.asked, self.prior.user_rows
        own = 0 if users is None else users.queries
        at_once = max(*self.plan.ask.batches, asked.certificate_n, own)
        return allowance_of(self.original, self.plan.ask.total + own + 2 * self.prior.rechecks, at_once, asked.retries)

    @property
    def given(self) -> Json | None:
        """What is known of the answers that it was given."""
        return None if self.prior.answers is None else self.prior.answers.as_json()


@dataclass(frozen=True)
class HeldOutRows:
    """Rows that certify the copy, with the original's labels; fixed before anything is learned."""

    rows: np.ndarray
    answers: np.ndarray
    X: np.ndarray
    """The rows, encoded."""
    user_sample: UserSample | None = None
    """The user's own rows that were held out."""

    def coded(self, labels: Labels) -> HeldOut:
        """Them in terms of the labels that are known."""
        return HeldOut(self.X, labels.encode(self.answers), labels)


@dataclass(frozen=True)
class RunOutcome:
    """What the stages of a run came to, before a result is made of it."""

    round: Round
    """The last one."""
    selection: Selection
    """The copy, its certificate, and what it was chosen from."""
    history: list[Record]
    curve: list[float]
    """After every round, the fidelity of what chose the queries: the copy itself, or a weaker one."""
    stopped: str
    held_out: HeldOutRows
    repeats: Repeats | None
    queries: Queries
    seconds: float
    known: int = 0
    """The answers that were given."""

    @property
    def errors(self) -> list[tuple[int, float]]:
        """The error of what chose the queries, by the number of answers."""
        return [(self.known + one.queries, 1 - found) for one, found in zip(self.history, self.curve, strict=True)]


def run_rounds(job: RunJob, ledger: Ledger | None = None) -> Generator[Record, None, RunOutcome]:
    """Ask, learn and choose: a record per round, then what the run came to."""
    clock, plan, prior, original = perf_counter(), job.plan, job.prior, job.original
    queries = Queries(original, job.space, query_limits(plan, prior), ledger, plan.asked.seed, job.allowance)
    asker = RoundAsker(plan, prior, queries)
    check_reachable(plan, asker.view, None if original.declared is None else len(original.declared))
    recheck(prior, asker)  # given answers of another original end it here
    held_out = hold_out(asker)
    labels, repeats = first_answers(job, asker, held_out)
    prior, select = prior.knowing(labels), CopySelector(job, asker.view, held_out)
    history, curve, spared = list[Record](), list[float](), 0.0
    for round, seconds in timed_rounds(method_of(plan, prior)(plan, prior, asker)):  # ask, learn, repeat
        selection, spared = select.so_far(round), spared + round.spared
        curve.append(0.0 if selection.certificate is None else selection.certificate.estimate)
        asked = [plan.ask.known + n for n in (*(one.queries for one in history), queries.made[Purpose.TRAINING])]
        flat = plan.asked.until_flat and is_flat([*zip(asked, curve, strict=True)])
        if not plan.make.network and (flat or round.t + 1 in plan.stop.looks):
            selection = select.best(round)
        history.append(record_of(job, round, selection, queries.made[Purpose.TRAINING], seconds + round.spared))
        yield history[-1]
        if _reached(plan, round, selection.certificate):
            stopped = "target"
            break
        if flat:
            stopped = "plateau"
            break
    else:
        stopped = plan.stop.limited_by
    if held_out.user_sample is None:  # after all others, as a run that ends early needs none
        held_out = replace(held_out, user_sample=asker.user_sample())
    selection = replace(selection, copy=selection.copy.with_training_rows(asker.training_rows))
    taken = perf_counter() - clock + spared
    return RunOutcome(round, selection, history, curve, stopped, held_out, repeats, queries, taken, plan.ask.known)


def hold_out(asker: RoundAsker) -> HeldOutRows:
    """Ask about the rows that certify the copy.

    The user's own come first if they have further columns: an original that refuses these does so before more is paid.
    """
    users = asker.prior.user_rows
    sample = None if users is None or users.every.further is None else asker.user_sample()
    rows, answers = asker.held_out()
    return HeldOutRows(rows, answers, asker.view(rows), sample)


def first_answers(job: RunJob, asker: RoundAsker, held_out: HeldOutRows) -> tuple[Labels, Repeats | None]:
    """Ask about the first round's rows, and check the answers so far; gives the labels known, and the rows asked again.

    They come before the network, because they may define the classes.
    """
    original, plan, repeats = job.original, job.plan, None
    refuse_no_labels(original, held_out.answers)
    enough = 0 < plan.ask.repeats <= len(held_out.answers)
    if enough:  # an original that cannot be copied well enough is known before more is paid
        repeats = ask_again(plan, asker.queries, held_out.rows, held_out.answers)
    rows, said = asker.open()
    answers = concatenate_labels([held_out.answers, said.labels])
    refuse_no_labels(original, answers)
    labels = _known_labels(job, answers)
    warn_of_absent_labels(original, answers)
    warn_of_leaked_label(original, job.space, np.concatenate([held_out.rows, rows]), answers)
    if not enough:
        asked = np.concatenate([held_out.rows, rows[plan.ask.known :]])
        told = concatenate_labels([held_out.answers, said.labels[plan.ask.known :]]) if plan.ask.known else answers
        repeats = ask_again(plan, asker.queries, asked, told)
    return labels, repeats


@dataclass(frozen=True)
class CopySelector:
    """Makes copies of what a method has learned, and certifies them on the held-out rows."""

    job: RunJob
    view: FeatureView
    held_out: HeldOutRows

    def so_far(self, round: Round) -> Selection:
        """What chooses the next rows, as a copy, its bound corrected for the number of looks."""
        asked, labels = self.job.plan.asked, round.labels
        if not asked.certificate_n:
            return Selection(self.as_copy(round.network, labels), None, [])
        copy, held = self.as_copy(round.chooser, labels), self.held_out.coded(labels)
        return Selection(copy, held.certify(copy.decide(held.X), asked.confidence, self.job.plan.stop.comparisons), [])

    def best(self, round: Round) -> Selection:
        """The most faithful copy of the families asked for, fitted to the answers so far."""
        plan, labels = self.job.plan, round.labels
        points = self.job.prior.with_lessons(round.emphasised_points, labels)
        known: dict[str, Model] = {"mlp": round.network} if plan.make.from_rounds else {}
        known |= {} if round.blend is None else {BLEND: round.blend}
        context = fit_context(plan, self.job.space, self.view, points, len(labels), known)
        held = self.held_out.coded(labels)
        return select_copy(plan, context, held, lambda model: self.as_copy(model, labels))

    def as_copy(self, model: Model, labels: Labels) -> CopyClassifier:
        """A model as a classifier."""
        excluded = tuple(map(self.job.space.names.index, self.job.plan.asked.exclude))
        return CopyClassifier(model, labels.classes, self.view.space, excluded)


def timed_rounds(rounds: Iterator[Round]) -> Iterator[tuple[Round, float]]:
    """Every round, with the seconds that it took."""
    while True:
        clock = perf_counter()
        found = next(rounds, None)
        if found is None:
            return
        yield found, perf_counter() - clock


def record_of(job: RunJob, round: Round, selection: Selection, asked: int, seconds: float) -> Record:
    """What the history says of a round."""
    step, proof = round.step, selection.certificate
    return Record(
        iteration=step.t,
        queries=asked,
        kept=len(step.S),
        dropped=step.dropped,
        lam=step.lam,
        mean_rho=step.trained.mean_rho,
        risk=step.trained.risk,
        fidelity=None if proof is None else proof.estimate,
        moved=step.moved,
        epochs=step.trained.epochs,
        seconds=seconds,
        **({} if job.truth is None else job.truth.measured(selection.copy, round.labels)),
    )


def _known_labels(job: RunJob, answers: np.ndarray) -> Labels:
    """The labels declared; else those of the first answers, until others turn up."""
    labels = job.original.declared or Labels(answers)
    if job.truth is not None and (labels.find(job.truth.labels) < 0).all():
        raise SettingError("test", f"labels among {labels}", f"labels such as {job.truth.labels[0].item()!r}")
    return labels


def _reached(plan: Plan, round: Round, proof: Certificate | None) -> bool:
    """Whether the lower bound reaches the target, in a round in which that is checked."""
    target = plan.asked.target
    return bool(target and proof and round.t + 1 in plan.stop.looks and proof.lower >= target)
