"""Copy a classifier: a request is resolved once into a job, which then runs, resumes, or is loaded if finished."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from textwrap import fill
from typing import Any, ParamSpec, TypeVar, cast

from ectype._common.manifest import Key
from ectype.errors import SettingError, warn
from ectype.ledger import Ledger
from ectype.methods.prior import Prior
from ectype.methods.user_rows import UserRows
from ectype.original import Original, as_original
from ectype.original.fingerprint import identity_of
from ectype.plan.plan import Plan
from ectype.plan.resolve import Facts, resolve, resolve_for, with_answers
from ectype.plan.settings import Settings, about
from ectype.progress import ITERATIONS, ProgressTracker, show_progress
from ectype.queries import Allowance, AnswerFilter, AnswerSources, PriorAnswers, Source, check_fit, read_sources
from ectype.runs.assembly import assemble
from ectype.runs.directory import open_run
from ectype.runs.evaluation import EvaluationData
from ectype.runs.extend import in_directory
from ectype.runs.pipeline import RunJob, run_rounds
from ectype.runs.result import Record, Result, load
from ectype.space import FeatureView, Space
from ectype.types import Classes, Json, Rows

P = ParamSpec("P")
R = TypeVar("R")
Steps = Generator[Record, None, Result]


@dataclass
class CopyRequest(Settings):
    """The arguments of `copy_classifier`: the settings, what to copy, and where to keep it."""

    original: object
    space: Space
    _: KW_ONLY
    classes: Classes = None
    out: str | Path | None = None
    test: tuple[Any, ...] | None = None
    rows: Rows | None = None
    answers: AnswerSources | None = None

    def settings(self) -> Settings:
        """The settings alone."""
        return Settings(**{part.name: getattr(self, part.name) for part in fields(Settings)})


def _takes(request: Callable[P, CopyRequest]) -> Callable[[Callable[[CopyRequest], R]], Callable[P, R]]:
    """Give a function the parameters of a request, with their documentation: they are declared in one place."""

    def decorated(function: Callable[[CopyRequest], R]) -> Callable[P, R]:
        @wraps(function)
        def taking(*given: P.args, **named: P.kwargs) -> R:
            return function(_requested(request, function.__name__, *given, **named))

        found = inspect.signature(request).replace(return_annotation=function.__annotations__["return"])
        cast(Any, taking).__signature__ = found
        taking.__doc__ = (function.__doc__ or "").replace("    SETTINGS", _documented())
        return taking

    return decorated


def _requested(request: Callable[P, CopyRequest], name: str, *given: P.args, **named: P.kwargs) -> CopyRequest:
    """The request; an argument that it does not take is an error of the function's, not of ours."""
    known = inspect.signature(request).parameters
    for word in named:
        if word not in known:
            alike = get_close_matches(word, known, 1)
            raise TypeError(f"{name}() takes no {word!r}" + (f"; is it {alike[0]!r}?" if alike else ""))
    return request(*given, **named)


def _documented() -> str:
    """A paragraph of a docstring for every setting."""

    def paragraph(name: str, default: object) -> str:
        found = about(name)
        words = f" One of {', '.join(map(repr, found.kind))}." if isinstance(found.kind, tuple) else ""
        left = f" By default {found.open}." if found.open else ""
        text = f"{name} : {found.text}{words}{left}"
        return fill(text, 116, initial_indent="    ", subsequent_indent="        ")

    return "\n".join(paragraph(part.name, part.default) for part in fields(Settings))


@_takes(CopyRequest)
def copy_classifier(request: CopyRequest) -> Result:
    """Copy a classifier that can only be queried.

    Parameters
    ----------
    original : a fitted estimator, a function rows -> labels, or an `Original`.
    space : what inputs look like; queries are drawn from it.
    SETTINGS
    classes : the labels the original may answer, where it does not say so itself.
    out : a directory that keeps every answer as it comes. The same call with the same directory resumes a run that was
        interrupted, and loads one that is finished; functions are told apart by their names alone.
    test : rows and true labels, to record accuracy by iteration; and, as a third part, the original's answers to these
        rows, to record how often the copy agrees with them.
    rows : unlabelled rows of your own. Part of the queries are about them (`rows_share`), and the certificate has a
        part `on_data` from some that training never saw, at most half of them, `certificate_n` at most.
    answers : answers of the same original that were paid for before: a run's directory, a table of rows with a column
        `label`, or several of these. They are training points beside the budget, which counts what is asked now. Rows
        that the space cannot have are left out; `given` of the result counts them. Up to 16 are asked again at first,
        more if they differ, and answers of another original are refused.

    `to` may also be an unfitted scikit-learn classifier, and `schedule` a `training.Schedule` such as
    `training.steps(200)`.

    Examples
    --------
    >>> disc = lambda rows: (rows**2).sum(axis=1) < 1
    >>> result = copy_classifier(disc, Space.normal(2), budget=300, schedule=100, certificate_n=500)
    >>> result.copy.predict([[0.0, 0.0], [3.0, 3.0]])
    array([ True, False])
    >>> result.queries
    {'training': 300, 'certificate': 500, 'repeat': 16}
    """
    plan = resolve(request.settings())
    job = build_job(
        request.original,
        request.space,
        plan,
        classes=request.classes,
        test=request.test,
        rows=request.rows,
        answers=request.answers,
    )
    job = job if request.out is None else in_directory(job, request.out)
    with show_progress(
        "copy", job.plan.ask.rounds, wanted=plan.asked.progress and not job.done, step=ITERATIONS
    ) as tell:
        return finish(run_job(job), progress_callback(tell))


def copy_steps(
    original: object,
    space: Space,
    settings: Settings | None = None,
    *,
    classes: Classes = None,
    out: str | Path | None = None,
    test: tuple[Any, ...] | None = None,
    rows: Rows | None = None,
    answers: AnswerSources | None = None,
) -> Steps:
    """`copy_classifier` as a generator: yields a record per iteration, returns the result.

    >>> run = copy_steps(lambda rows: rows[:, 0] > 0, Space.normal(1), Settings(budget=200, certificate_n=0))
    >>> [record.queries for record in run]
    [40, 55, 76, 105, 145, 200]
    """
    plan = resolve(Settings() if settings is None else settings)
    job = build_job(original, space, plan, classes=classes, test=test, rows=rows, answers=answers)
    return (yield from run_job(job if out is None else in_directory(job, out)))


def finish(run: Steps, show: Callable[[Record], object] = lambda record: None) -> Result:
    """Consume a run for its result, showing each record on the way."""
    while True:
        try:
            record = next(run)
        except StopIteration as end:
            return end.value
        show(record)


def progress_callback(tell: ProgressTracker) -> Callable[[Record], None]:
    """What shows a record on a bar."""

    def show(record: Record) -> None:
        kept = "" if record.kept == record.queries else f", {record.kept} kept"
        known = "" if record.fidelity is None else f", fidelity {record.fidelity:.4f}"
        tell(record.iteration + 1, f"{record.queries} queries{kept}{known}")

    return show


def build_job(
    original: object,
    space: Space,
    plan: Plan,
    *,
    classes: Classes = None,
    test: tuple[Any, ...] | None = None,
    rows: Rows | None = None,
    answers: AnswerSources | None = None,
) -> RunJob:
    """The job of a run, once original, space, plan and test data were checked against each other."""
    source = as_original(original, classes)
    plan = resolve_for(plan, Facts(source.scored, source.stored is not None, rows is not None))
    if plan.asked.scores and not source.scored:
        source = source.with_scores()
    check_fit(source, space)
    truth = None if test is None else EvaluationData.of(test, space, FeatureView(space, plan.asked.exclude))
    known = None if answers is None else _known(read_sources(answers), source, space, plan)
    own = None if rows is None else UserRows.of(rows, source, space, plan, known)
    plan = plan if known is None else with_answers(plan, len(known), known.drawn)
    about = describe(source, space, plan, truth) | ({} if own is None else own.about)
    if known is None:
        return RunJob(source, space, plan, about, truth, Prior(user_rows=own))
    about = {**about, "answers": known.digest}
    return RunJob(source, space, plan, about, truth, Prior(known, user_rows=own, seed=(known.seed,)))


def _known(sources: Sequence[Source], original: Original, space: Space, plan: Plan) -> PriorAnswers | None:
    """The answers that a run is given, if there are some."""
    if not sources:
        return None
    if original.stored is not None:
        found, hint = "stored answers", "add them to that table"
        raise SettingError("answers", "an original that can be asked again about some", found, hint)
    if plan.asked.max_kept is not None:
        raise SettingError("answers", "a run that keeps all points", "max_kept", "leave out one of the two")
    return PriorAnswers.of(sources, AnswerFilter(space, plan.asked.exclude, original.declared, original.scored))


def run_job(job: RunJob, key: Key | None = None) -> Steps:
    """Run a job: in memory, or in its directory, where it resumes, and is loaded if it is done.

    With a key, the directory is signed.
    """
    if job.out is None:
        result = assemble(job, (yield from run_rounds(job)))
        return replace(result, left_over=job.plan.left_over)
    if job.done:
        result = load(job.out)
        yield from result.history
        return replace(result, left_over=job.plan.left_over)
    with open_run(job.out, job.about, job.space, job.prior.told) as ledger:
        warn_in_flight(ledger, job.allowance)
        result = assemble(job, (yield from run_rounds(job, ledger)))
        ledger.settle()
        return replace(result, directory=result.commit(job.out, key), left_over=job.plan.left_over)


def warn_in_flight(ledger: Ledger, allowance: Allowance) -> None:
    """Say by how much a run that was killed may go beyond its sum: nobody knows whether its last requests arrived."""
    lost = ledger.counts.lost
    if lost:
        warn(
            f"{lost} rows were under way when this run was stopped, and may have been answered; they are asked again: "
            f"at most {allowance.total + lost} rows reach the original in all, {lost} more than were announced"
        )


def describe(original: Original, space: Space, plan: Plan, truth: EvaluationData | None = None) -> Json:
    """What identifies a run, as JSON values; a run's directory is recognised by it."""
    tested = 0 if truth is None else len(truth.labels)
    return {**plan.as_json(), **identity_of(original), "space": space.digest, "test": tested}
