"""Another copy from the answers of a run: of another family, smaller, or under other constraints, without a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ectype._common.atomic_io import as_path, atomic_folder
from ectype._common.manifest import Key
from ectype._common.portable import peak_mb
from ectype.algorithm.sample_set import SampleSet
from ectype.certificate.bounds import HeldOut
from ectype.certificate.certificate import Certificate
from ectype.certificate.certify import Certifier
from ectype.certificate.differences import boundary_margin, explain
from ectype.errors import DirectoryError, SettingError
from ectype.ledger import LEDGER, copy_ledger
from ectype.methods.training_points import emphasise, points
from ectype.models.base import Model
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.training_rows import TrainingRows, hashed
from ectype.original import LabelledRows, Labels, as_original
from ectype.plan.effects import refuse_without_effect
from ectype.plan.plan import Plan
from ectype.plan.resolve import plan_of_json, with_stages
from ectype.plan.settings import MAKE, Settings, about
from ectype.queries import HELD_OUT, OWN, AnswerFilter, AnswerSources, PriorAnswers, Source, read_sources
from ectype.runs.directory import claim, finished
from ectype.runs.frontier import taken
from ectype.runs.model_selection import Selection, fit_context, listed, rounded_latency, select_copy
from ectype.runs.previous_run import PreviousRun
from ectype.runs.result import Result, load
from ectype.space import FeatureView
from ectype.types import Json

# What may be said anew about a copy.
CHANGES = tuple(part.name for part in fields(Settings) if about(part.name).group == MAKE)


def remake(
    directory: str | Path,
    *,
    out: str | Path | None = None,
    take: tuple[str, str] | None = None,
    answers: AnswerSources | None = None,
    key: Key | None = None,
    **made: Any,
) -> Result:
    """Another copy from the answers in a run's directory; the original is not asked.

    Parameters
    ----------
    directory : of a finished run with a ledger; it stays as it is.
    out : a directory for the new run, with a ledger of its own, so that it can be certified, refreshed, or go on.
    take : a row of `frontier(directory)`, by its family and size, such as `("tree", "16 leaves")`.
    answers : further answers of the same original, as for `copy_classifier`, taken at their word, as nothing is asked.
        Rows that the run has an answer of its own to are left out, those of its certificate among them.
    key : signs the new directory.
    made : `to` and the other settings about what to make: layers, max_depth, max_leaves, exclude, increasing,
        decreasing, max_bytes, max_latency. Those that are not given stay as they were.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from ectype import Space, copy_classifier
    >>> with TemporaryDirectory() as folder:
    ...     disc = lambda rows: (rows**2).sum(axis=1) < 1
    ...     _ = copy_classifier(disc, Space.normal(2), budget=300, preset="fast", out=f"{folder}/run")
    ...     result = remake(f"{folder}/run", to="tree", max_leaves=8)
    >>> result.family, result.queries["training"]
    ('tree', 300)
    """
    clock, path = perf_counter(), as_path(directory)
    making = _Making.of(path, made, [] if answers is None else read_sources(answers))
    past, known = making.past, making.known
    if known is not None and take is not None:
        raise SettingError("answers", "none beside take: the frontier is of the run's own", f"{len(known)}")
    settings = {**past.result.settings, **making.plan.as_json(), **making.given_before}
    if out is not None and finished(claim(out, settings)):
        return load(out)
    outcome = making.outcome() if take is None else making.taken(path, take)
    result = replace(
        past.result,
        copy=outcome.copy,
        certificate=making.explain(outcome),
        settings=settings,
        diagnosis=None,
        advice=[],
        tried=listed(outcome.tried, making.copy),
        ms=rounded_latency(outcome.copy),
        seconds=perf_counter() - clock,
        peak_mb=peak_mb(),
        remade={
            "of": str(directory),
            "sha256": past.digest,
            **({} if known is None else {"answers": known.as_json()}),
        },
    )
    if out is not None:
        _write(result, path, as_path(out), key, None if known is None else known.labelled_rows)
        return replace(result, directory=as_path(out))
    return replace(result, directory=path)


@dataclass(frozen=True)
class _Making:
    """A finished run, and what is to be made of its answers."""

    past: PreviousRun
    plan: Plan
    view: FeatureView
    labels: Labels
    learned: SampleSet
    held: SampleSet
    known: PriorAnswers | None = None
    """Further answers that were given."""

    @classmethod
    def of(cls, path: Path, made: Mapping[str, Any], more: Sequence[Source] = ()) -> _Making:
        unknown = [name for name in made if name not in CHANGES]
        if unknown:
            raise SettingError(unknown[0], f"one of {', '.join(CHANGES)}", "a setting that decides what is asked")
        past = PreviousRun.of(path)
        if past.result.refreshed is not None:
            hint = "remake the run that it was refreshed from, or refresh that with another family"
            raise DirectoryError(str(path), "a run that copied its original from scratch", "a refreshed one", hint)
        plan = _plan(past, made)
        view, labels = FeatureView(past.result.space, plan.asked.exclude), Labels(past.result.copy.classes)
        learned, held = past.points(view, labels)
        learned = _emphasised(past, view, learned)
        if not more:
            return cls(past, plan, view, labels, learned, held)
        known = _known(past, plan, view, labels, more)
        given = points([(view(known.rows), known.answers)], labels, past.declared)
        return cls(past, plan, view, labels, given | learned, held, known)

    @property
    def given_before(self) -> Json:
        """What identifies a copy that was made with further answers."""
        if self.known is None:
            return {}
        before = self.past.result.settings.get("answers", "")
        return {"answers": sha256(f"{before}{self.known.digest}".encode()).hexdigest()}

    def outcome(self) -> Selection:
        """The copy that a run with this plan would have handed out for the same answers."""
        past, plan = self.past, self.plan
        same = list(plan.asked.exclude) == list(past.result.settings["exclude"])
        known: dict[str, Model] = {"mlp": past.network} if plan.make.from_rounds and same else {}
        made_of = fit_context(plan, past.result.space, self.view, self.learned, len(self.labels), known)
        return select_copy(plan, made_of, self._held_out, self.copy)

    def taken(self, path: Path, row: tuple[str, str]) -> Selection:
        """The copy in a row of the frontier; its bound holds for all rows of that table at once."""
        one, among = taken(path, row)
        copy = self.copy(one.model)
        proof = self._held_out.certify(copy.decide(self.held.X), self.plan.asked.confidence, among)
        return Selection(copy, proof, [one])

    def explain(self, outcome: Selection) -> Certificate | None:
        """The certificate with its differences."""
        if outcome.certificate is None:
            return None
        space, seed = self.past.result.space, self.plan.asked.seed
        rows = self.past.rows[len(self.past.rows) - len(self.held) :]
        proof = explain(outcome.certificate, outcome.copy, space, self._held_out, rows, show=True, seed=seed)
        return replace(proof, on_data=self._on_data(outcome.copy))

    def _on_data(self, copy: CopyClassifier) -> Certificate | None:
        """The certificate on the user's own rows that the run held out."""
        sample, asked, before = self.past.user_sample, self.plan.asked, self.past.result.certificate
        if sample is None or before is None or before.on_data is None:
            return None
        space, declared = self.past.result.space, self.past.declared
        proving = Certifier(copy, as_original(copy, name="copy"), declared, space, asked.confidence, asked.seed)
        proof = proving.certify_sample(sample, boundary_margin(copy, space, asked.seed))
        return None if proof is None else replace(proof, further=before.on_data.further)

    @property
    def _held_out(self) -> HeldOut:
        return HeldOut(self.held.X, self.held.y, self.labels)

    def copy(self, model: Model) -> CopyClassifier:
        """A model as a classifier."""
        return CopyClassifier(model, self.labels.classes, self.view.space, self.excluded, self.training_rows)

    @property
    def excluded(self) -> tuple[int, ...]:
        """The places of columns that the copy does not see."""
        return tuple(map(self.past.result.space.names.index, self.plan.asked.exclude))

    @cached_property
    def training_rows(self) -> TrainingRows:
        """The rows that teach every copy that is made here; and those that the run might have asked about."""
        rows = [self.past.rows[self.past.divided(self.view)[0]], *([] if self.known is None else [self.known.rows])]
        found, before = TrainingRows.of(rows, excluded=self.excluded), self.past.result.copy.training_rows
        return found if before is None else replace(found, candidates=before.candidates, sample=before.sample)


def _plan(past: PreviousRun, made: Mapping[str, Any]) -> Plan:
    """The plan of the run, for another copy; all answers are at hand, so that no bound on memory is needed."""
    before = past.result.settings
    if isinstance(before["to"], dict):
        if "to" not in made:
            raise SettingError("to", "a family, or a classifier", f"none, where the run has {before['to']['class']}")
        before = {**before, "to": None}
    plan = plan_of_json(before, **{"max_kept": None, **made})
    refuse_without_effect(plan, [name for name, value in made.items() if value is not None])
    return with_stages(plan, tuple(before.get("stages", ())))


def _known(past: PreviousRun, plan: Plan, view: FeatureView, labels: Labels, more: Sequence[Source]) -> PriorAnswers:
    """Further answers, without those about rows that the run knows: no row of its certificate may teach."""
    scored = past.said.scores is not None
    wanted = AnswerFilter(past.result.space, plan.asked.exclude, past.declared or labels, scored)
    learned, held = past.divided(view)
    known = PriorAnswers.of(more, wanted)
    for rows, why in ((past.rows[held], HELD_OUT), (past.rows[learned], OWN)):
        known = known.without(rows, why)
    return known.require_some()


def _emphasised(past: PreviousRun, view: FeatureView, learned: SampleSet) -> SampleSet:
    """The training points; those about rows of the user's own count more, as in the run."""
    known = past.result.copy.training_rows
    if known is None:
        return learned
    own = np.isin(hashed(past.rows[past.divided(view)[0]]), known.candidates)
    return emphasise(learned, learned.where(own)) if own.any() else learned


def _write(result: Result, source: Path, out: Path, key: Key | None, given: LabelledRows | None = None) -> None:
    """Write a run's directory with a ledger of its own; it appears whole."""
    with atomic_folder(out) as folder:
        copy_ledger(source / LEDGER, folder / LEDGER, result.settings, given)
        result.save(folder, key)
