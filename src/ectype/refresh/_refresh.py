"""A refresh: a check and, if it finds a change, a run that is warm-started from the last one."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ectype._common import validation
from ectype._common.atomic_io import as_path
from ectype.algorithm.training import steps
from ectype.errors import SettingError
from ectype.ledger import Ledger, Purpose, open_session, take_over_session
from ectype.methods.earlier_run import EarlierRun
from ectype.methods.prior import Prior
from ectype.models.blend import BLEND
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.training_rows import TrainingRows
from ectype.original import Labels, Original
from ectype.plan.batch_schedule import BATCH, growing
from ectype.plan.effects import refuse_without_effect
from ectype.plan.plan import Plan
from ectype.plan.resolve import resolve_decided, settings_of_json, with_sizes
from ectype.queries import (
    DRIFT_TEST_FACTOR,
    DRIFT_TEST_ROWS,
    Allowance,
    AnswerSources,
    DriftTest,
    Queries,
    allowance_of,
    check_fit,
    read_sources,
    run_drift_test,
)
from ectype.refresh._flips import flips
from ectype.refresh._new_answers import AGAIN, NewAnswers, measured
from ectype.rng import Stream, stream
from ectype.runs.api import describe, warn_in_flight
from ectype.runs.assembly import assemble
from ectype.runs.directory import claim, finished, open_run
from ectype.runs.evaluation import EvaluationData
from ectype.runs.pipeline import RunJob, run_rounds
from ectype.runs.previous_run import PreviousRun
from ectype.runs.result import Record, Result, load
from ectype.space import FeatureView
from ectype.types import Answered, Json

# The default budget, as a share of the first run's training queries, and the training steps of a round. Batches that do
# not grow are half as large as the last run's: with few queries, each should be chosen well.
SHARE, STEPS = 0.35, 1200
# The share of a batch that margin sampling chooses: with few queries, each should be chosen well.
UNSURE = 0.9
# Where a result has the fidelity on answers that were given.
ON_ANSWERS = "on_answers"


@dataclass(frozen=True)
class Refresh:
    """A refresh whose arguments were checked."""

    directory: Path
    past: PreviousRun
    original: Original
    plan: Plan
    check: int
    budget: int
    """The most queries of the check and of training together."""
    deterministic: bool
    truth: EvaluationData | None
    out: Path
    given: NewAnswers | None = None
    """Answers of today that are there already."""

    @classmethod
    def of(
        cls,
        directory: str | Path,
        original: Original,
        given: Mapping[str, Any],
        out: str | Path | None = None,
        budget: int | None = None,
        check: int = DRIFT_TEST_ROWS,
        deterministic: bool = False,
        test: tuple[Any, ...] | None = None,
        answers: AnswerSources | None = None,
    ) -> Refresh:
        """Check the arguments of a refresh; values in `given` that are not None override the last run's settings."""
        path = as_path(directory)
        past = PreviousRun.of(path)
        if original.stored is not None:
            hint = "copy the new table instead"
            raise SettingError("original", "an original that can be asked", "a table of stored answers", hint)
        check_fit(original, past.result.space)
        check = min(validation.count("check", check, 1), len(past.askable))
        budget = max(round(SHARE * _whole(past)), check) if budget is None else validation.count("budget", budget, 1)
        if budget < check:
            hint = "raise it, or lower the rows of the check"
            raise SettingError("budget", f"at least the {check} rows of the check", budget, hint)
        plan, space = _plan(past, budget, given), past.result.space
        original = original.with_scores(plan.asked.scores)
        truth = None if test is None else EvaluationData.of(test, space, FeatureView(space, plan.asked.exclude))
        place = path.with_name(f"{path.name}-refreshed") if out is None else as_path(out)
        sources = [] if answers is None else read_sources(answers)
        told = NewAnswers.of(sources, path, past, original, plan) if sources else None
        return cls(path, past, original, plan, check, budget, bool(deterministic), truth, place, told)

    @property
    def rounds(self) -> int:
        """The most rounds."""
        return self.plan.ask.rounds if self.plan.ask.grows else 1 + self.budget // self.plan.ask.batch

    @property
    def most_checked(self) -> int:
        """The most rows that are asked again to see whether answers changed; those that did are asked once more."""
        return min(DRIFT_TEST_FACTOR * self.check, self.budget)

    @property
    def repeats(self) -> int:
        """The most rows that are asked once more: those that changed, or are said to have, and a share of all."""
        return self.most_checked + self._contested + self._sized(1).ask.repeats

    @property
    def again(self) -> int:
        """The most queries about rows with given answers, to see that these are its own."""
        return 0 if self.given is None else 2 * min(DRIFT_TEST_FACTOR * AGAIN, len(self.given.learned))

    @property
    def _contested(self) -> int:
        return 0 if self.given is None else min(self.check, len(self.given.claims.places))

    @property
    def allowance(self) -> Allowance:
        """The most rows that may reach the original, retries included."""
        asked = self.plan.asked
        planned = self.budget + asked.certificate_n + self.repeats + self.again
        at_once = max(self.budget, asked.certificate_n)
        return allowance_of(self.original, planned, at_once, asked.retries)

    @property
    def about(self) -> Json:
        """What identifies this refresh, as JSON values."""
        asked = {"budget": self.budget, "check": self.check, "deterministic": self.deterministic}
        described = describe(self.original, self.past.result.space, self.plan, self.truth)
        given = {} if self.given is None else {"answers": self.given.digest}
        return {**described, **asked, **given, "refresh_of": self.past.digest}

    def checked(self) -> tuple[DriftTest, float]:
        """Whether the original has changed, and nothing else; and since when it was asked, in seconds since 1970.

        What is asked is kept beside the run: the same check goes on where it was interrupted.
        """
        with open_session(self.directory, Purpose.CHECK, self.original, self.past.result.space, self.about) as ledger:
            since = time.time() if ledger is None else ledger.since
            return self._checked(ledger), since

    def steps(self) -> Generator[Record, None, Result]:
        """A record per iteration, then the result: the last run's, if no change is found."""
        past = self.past
        if finished(claim(self.out, self.about)):
            result = load(self.out)
            yield from result.history
            return result
        told = None if self.given is None else self.given.learned.labelled_rows
        with open_run(self.out, self.about, past.result.space, told) as ledger:
            warn_in_flight(ledger, self.allowance)
            take_over_session(self.directory, Purpose.CHECK, self.original, past.result.space, self.about, ledger)
            again = self._checked(ledger)
            origin = {"of": str(self.directory), "sha256": past.digest, "whole": _whole(past), "check": again.as_json()}
            if not again.changed:
                ledger.abandon()  # tomorrow the same command has to ask again
                return replace(past.result, refreshed={"verdict": "unchanged", **origin, **self._measured()})
            learned, before = self._split(again)
            job = self._job(again, learned, before)
            outcome = yield from run_rounds(job, ledger)
            result = assemble(job, outcome)
            ledger.settle()
            result = replace(result, copy=result.copy.with_training_rows(self._training_rows(result.copy, learned[0])))
            queries = {**result.queries, str(Purpose.REPEAT): result.queries.get(Purpose.REPEAT, 0) + again.repeated}
            found = flips(past.result, result, before[1], outcome.held_out, self.plan.asked.confidence)
            found = {"verdict": "changed", **origin, **found}
            result = self._with_answers(replace(result, queries=queries, refreshed=found))
            return replace(result, directory=result.commit(self.out))

    def _checked(self, ledger: Ledger | None) -> DriftTest:
        past, limits = self.past, {Purpose.CHECK: self.budget, Purpose.REPEAT: self.budget + self._contested}
        queries = Queries(self.original, past.result.space, limits, ledger, allowance=self.allowance)
        rng = stream(self.plan.asked.seed, past.seed, Stream.CHECK)
        able = past.askable
        rows, said = past.rows[able], past.answers[able]
        claims = None if self.given is None else self.given.claims
        found = run_drift_test(
            queries, rows, said, self.check, self.most_checked, rng, self.deterministic, claims=claims
        )
        return replace(found, places=able[found.places])

    def _training_rows(self, copy: CopyClassifier, learned: np.ndarray) -> TrainingRows:
        """The rows that taught the new copy: today's, and those of the earlier run, which taught its copy too."""
        found, before = copy.training_rows, self.past.result.copy.training_rows
        assert found is not None
        found |= TrainingRows.of([learned], excluded=found.excluded)
        return found if before is None else found | before

    def _measured(self) -> Json:
        """How faithful the copy is on the answers given, where nothing changed and so none of them taught."""
        return {} if self.given is None else {ON_ANSWERS: measured(self.given.fresh, self.past, self.plan)[0]}

    def _with_answers(self, result: Result) -> Result:
        """The result with the fidelity of both copies on answers that were held apart."""
        if self.given is None:
            return result
        found, proof = measured(self.given.unasked(self.out), self.past, self.plan, result.copy)
        whole = result.certificate
        return replace(
            result,
            certificate=None if whole is None else replace(whole, on_answers=proof),
            refreshed={**(result.refreshed or {}), ON_ANSWERS: found},
        )

    def _split(self, again: DriftTest) -> tuple[Answered, Answered]:
        """The earlier run's training rows, and its held-out ones if they may certify again, without those asked now."""
        given, past = self.given, self.past
        known = again.places if given is None else np.union1d(again.places, given.known(past.rows))
        learned, held_out = past.split(known)
        return learned, held_out if past.certifies_again else (held_out[0][:0], held_out[1][:0])

    def _job(self, again: DriftTest, learned: Answered, before: Answered) -> RunJob:
        """The run that follows a check with a change: it begins with the rows of the check, already answered."""
        plan, past, space, given = self._sized(len(again.places)), self.past, self.past.result.space, self.given
        copy, selected = past.result.copy, past.result.tried and len(before[1])
        earlier = EarlierRun(
            plan,
            past.network,
            Labels(copy.classes),
            FeatureView(space, plan.asked.exclude)(learned[0]),
            learned[1],
            # One that was selected by rows that certify the new copy may not teach it.
            copy.model if copy.model.kind == BLEND and not selected else None,
        )
        prior = Prior(
            None if given is None else given.learned,
            again=AGAIN,
            deterministic=self.deterministic,
            opening=past.rows[again.places],
            held_out=before[0],
            earlier=earlier,
            margin_share=UNSURE,
            seed=(past.seed,) if given is None else (past.seed, given.learned.seed),
        )
        return RunJob(self.original, space, plan, self.about, self.truth, prior, allowed=self.allowance)

    def _sized(self, checked: int) -> Plan:
        """The plan of the run that follows a check of so many rows; answers that are given are there before it."""
        known = (0, 0) if self.given is None else (len(self.given.learned), self.given.learned.drawn)
        if self.plan.ask.grows:
            sizes = growing(self.budget + known[0], first=checked + known[0])
        else:
            later = (self.budget - checked) // self.plan.ask.batch
            sizes = (known[0] + self.plan.ask.batch, *(self.plan.ask.batch,) * later)
        return with_sizes(self.plan, sizes, known)


def _plan(past: PreviousRun, budget: int, given: Mapping[str, Any]) -> Plan:
    """The last run's plan, with the defaults of a refresh."""
    before = past.result.settings
    if isinstance(before["to"], dict):
        hint = "copy again, with the same classifier as `to`"
        raise SettingError("refresh", "a copy of a family that has a name here", before["to"]["class"], hint)
    last = settings_of_json(before)
    single, network = last.method == "one-shot", resolve_decided(last).make.network
    batch = BATCH if single else before["batch"]
    usual = replace(
        last,
        method="sequential",
        draw=None if single else last.draw,
        batch=None if batch is None or (single and not network) else max(1, batch // 2),
        iterations=None,
        target=None,
        max_kept=None,  # all answers are at hand
        schedule=steps(STEPS),
    )
    said = {name: value for name, value in given.items() if value is not None}
    chosen = replace(usual, **said)
    plan = resolve_decided(replace(chosen, budget=max(budget, chosen.batch or 1)))
    refuse_without_effect(plan, said)
    return plan


def _whole(past: PreviousRun) -> int:
    """The training queries of the first run, before any refresh."""
    return past.result.refreshed["whole"] if past.result.refreshed else past.result.queries[Purpose.TRAINING]
