"""Certify any classifier against any original, on rows that training never saw.

`certify` asks the original about fresh rows; `certify_answers` takes answers that are there already, and asks nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from ectype._common import validation
from ectype._common.atomic_io import as_path
from ectype.certificate.bounds import HeldOut
from ectype.certificate.certificate import Certificate, Stratum
from ectype.certificate.differences import (
    FREE,
    Comparison,
    add_differences,
    boundary_margin,
    has_probabilities,
    probabilities_of,
)
from ectype.certificate.stratified import (
    DESIGNS,
    PLAIN,
    STRATIFIED,
    Design,
    choose_design,
    ranked_sets,
    strata_of,
    stratified_bound,
)
from ectype.certificate.user_sample import UserSample
from ectype.errors import DirectoryError, SettingError
from ectype.ledger import LEDGER, Ledger, Purpose, open_session, read_answers
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.training_rows import training_rows_of
from ectype.original import CHUNK, Answers, Labels, Original, as_original, concatenate_labels
from ectype.progress import ROWS, show_progress
from ectype.queries import (
    CANDIDATES,
    OWN,
    TAUGHT,
    Allowance,
    AnswerFilter,
    AnswerSources,
    PriorAnswers,
    Queries,
    Source,
    allowance_of,
    read_sources,
)
from ectype.rng import Stream, stream
from ectype.space import Space, Support
from ectype.types import Answered, Json, Label, Rows

# The name of a session in which a copy is certified.
CERTIFY = "certify"


def certify(
    copy: object,
    original: object,
    space: Space,
    n: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    data: Rows | None = None,
    *,
    answers: AnswerSources | None = None,
    run: str | Path | None = None,
    explain: bool = True,
    retries: float | None = None,
    progress: bool = True,
    design: str | None = None,
) -> Certificate:
    """Certify any classifier against any original, from n fresh rows of the space.

    `design` says which rows: `stratified`, more of them where the copy is unsure, which gives a tighter bound from as
    many; or `plain`, all alike. If not given, it is stratified where the copy has probabilities and the original can
    be asked about any row.

    `data` are unlabelled rows of your own, certified separately as `.on_data`: distinct rows are asked once each, with
    all of their columns, and the bound is about the population that the rows are a random sample of. Rows that taught
    the copy, rows equal to them, and rows that its run passed over when it chose are left out and counted; a copy that
    was made here knows which they are. Unless `explain` is false, the certificate
    also says where the two differ: near the boundary or away from it, by labels, conditions and examples.
    `answers` that the original gave before, such as to real traffic, are certified separately as `.on_answers`, and
    nothing is asked for them: a directory of kept traffic or of another run, a table, or several of these. Those that
    the copy learned from are left out likewise; with `run`, its directory, so are those of its certificate.
    With `run`, what is asked is written there too, to `asked.sqlite`: the same call goes on where it was interrupted,
    and nothing that was answered is asked twice; once it has ended, it asks anew. Without, answers are in memory alone.
    `retries` are the rows that may be sent again after failures, as a share of all: a quarter if not given.
    `progress` shows how far it is, on a terminal or in a notebook.
    Of stored answers, give only those that did not train the copy: `queries.unused_rows` has what a run left over.

    >>> sign = lambda rows: rows[:, 0] > 0
    >>> always = lambda rows: [True] * len(rows)
    >>> proof = certify(always, sign, Space.normal(1), n=1000)
    >>> proof.estimate < 0.6, proof.differences.rules[0].text
    (True, 'x0 <= 0')
    """
    n, confidence = validation.count("n", n, 1), validation.fraction("confidence", confidence)
    asked, seed = as_original(original), validation.count("seed", seed, 0)
    known = None if answers is None else unseen_answers(read_sources(answers), copy, space, run).require_some()
    sample = None if data is None else sample_of(data, copy, asked, space)
    with open_session(run, CERTIFY, asked, space, session_identity(n, seed, design, sample)) as ledger:
        options: CertifyOptions = {"explain": explain, "retries": retries, "progress": progress, "design": design}
        proof = certify_with_rows(copy, asked, space, n, confidence, seed, sample, ledger, **options)[0]
    return proof if known is None else replace(proof, on_answers=certify_answers(copy, space, known, confidence, seed))


def session_identity(n: int, seed: int, design: str | None, sample: UserSample | None) -> Json:
    """What identifies a session that certifies: the rows that it asks about."""
    return {"n": n, "seed": seed, "design": design, "data": None if sample is None else sample.digest}


class CertifyOptions(TypedDict, total=False):
    """How to certify, beside what is certified."""

    explain: bool
    retries: float | None
    progress: bool
    design: str | None


def certify_with_rows(
    copy: object,
    original: Original,
    space: Space,
    n: int,
    confidence: float,
    seed: int,
    given: UserSample | None,
    ledger: Ledger | None,
    **options: Unpack[CertifyOptions],
) -> tuple[Certificate, Answered]:
    """A certificate, with the rows asked for it that are a plain sample of the space, and their answers."""
    explain = options.get("explain", True)
    limits = {Purpose.CERTIFICATE: n, Purpose.DATA: 0 if given is None else given.distinct}
    allowance = allowance_for(original, limits, options.get("retries"))
    queries = Queries(original, space, limits, ledger, seed, allowance)
    about = Certifier(copy, as_original(copy, name="copy"), original.declared, space, confidence, seed)
    chosen = about.choose_design(n, design_for(options.get("design"), copy, original.stored is not None))
    ranks = chosen.ranks(n, stream(seed, Stream.SETS))
    if chosen.cut:
        fresh = about.ask_ranked_set(queries, ranks)
    else:
        fresh = queries.fresh(Purpose.CERTIFICATE, n, stream(seed, Stream.CERTIFY))
    with show_progress("certify", sum(limits.values()), wanted=options.get("progress", True), step=ROWS) as tell:
        chunks = list[tuple[np.ndarray, np.ndarray]]()
        for rows, said in fresh:
            chunks.append((rows, said.labels))
            tell(queries.made[Purpose.CERTIFICATE])
        rows, answers = np.concatenate([part for part, _ in chunks]), concatenate_labels([part for _, part in chunks])
        low, plain = boundary_margin(copy, space, seed) if explain else None, chosen.sample(n)
        proof = about.certify_rows(rows[:plain], answers[:plain], low, explain)
        if chosen.cut:
            proof = about.weigh_strata(proof, strata_of(chosen, ranks, about.agreement(rows, answers)))
        if given is not None:
            proof = replace(proof, on_data=about.certify_sample(given.ask(queries, Purpose.DATA), low, explain))
        return proof, (rows[:plain], answers[:plain])


def sample_of(data: Rows, copy: object, original: Original, space: Space) -> UserSample | None:
    """A user's rows without those that taught the copy; None, with a warning, if there are no others."""
    found = UserSample.of(original, space, data).without_training_rows(training_rows_of(copy))
    found.warn_if_empty("data")
    return found if len(found) else None


def design_for(design: str | None, copy: object, stored: bool) -> str:
    """The design asked for, or the one that is possible: strata need probabilities, and rows that can be chosen."""
    possible = has_probabilities(copy) and not stored
    if design is None:
        return STRATIFIED if possible else PLAIN
    validation.choice("design", design, DESIGNS)
    if design == STRATIFIED and not possible:
        found = "stored answers" if stored else "a copy that has none"
        raise SettingError("design", "a copy with probabilities, and rows of our choice", found, "take design='plain'")
    return design


def allowance_for(original: Original, limits: Mapping[Purpose, int], retries: float | None = None) -> Allowance:
    """The most rows that a certificate may take, retries included."""
    share = None if retries is None else validation.number("retries", retries, "a share from 0", 0, inf)
    return allowance_of(original, sum(limits.values()), max(limits.values()), share)


@dataclass(frozen=True)
class Certifier:
    """A copy, the labels of its original, and the space and confidence of its bounds."""

    copy: object
    copied: Original
    """The copy, as something that can be asked."""
    declared: Labels | None
    """The labels that the original declares."""
    space: Space
    confidence: float
    seed: int

    def choose_design(self, n: int, design: str) -> Design:
        """The design with the tightest bound, judged by unlabelled rows; it is plain where strata gain nothing."""
        if design == PLAIN:
            return Design()
        rows = self.space.sample(FREE, stream(self.seed, Stream.SETS, 1))
        return choose_design(self._chances(rows), n, self.confidence)

    def ask_ranked_set(self, queries: Queries, ranks: np.ndarray) -> Iterator[tuple[np.ndarray, Answers]]:
        """Ask about rows of these ranks, some at a time; yield the rows and the answers."""
        rng = stream(self.seed, Stream.CERTIFY)
        for rows in ranked_sets(ranks, lambda size: self.space.sample(size, rng), self._chances):
            yield rows, queries.query(Purpose.CERTIFICATE, rows)

    def _chances(self, rows: np.ndarray) -> np.ndarray:
        chances = probabilities_of(self.copy, self.space, rows)
        assert chances is not None
        return chances

    def agreement(self, rows: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """On which rows copy and original agree."""
        labels = self.declared or Labels(answers)
        return labels.encode(answers) == labels.find(_answers(self.copy, self.copied, self.space, rows))

    def weigh_strata(self, proof: Certificate, strata: tuple[Stratum, ...]) -> Certificate:
        """The certificate of a plain sample, with the estimate and the bound of all rows, weighed by stratum."""
        estimate, lower = stratified_bound(strata, self.confidence)
        n = sum(part.n for part in strata)
        return replace(proof, estimate=estimate, lower=lower, n=n, strata=strata, sample=proof.n)

    def certify_rows(
        self, rows: np.ndarray, answers: np.ndarray, low: float | None = None, explain: bool = True
    ) -> Certificate:
        """The certificate from rows of a matrix and the original's answers; margins below `low` are near."""
        predicted = _answers(self.copy, self.copied, self.space, rows)
        labels = self.declared or Labels(answers)
        proof = HeldOut(rows, labels.encode(answers), labels).certify(labels.find(predicted), self.confidence)
        proof = proof.among(self._labels)
        if not explain:
            return proof
        compared = Comparison(rows, answers, predicted, probabilities_of(self.copy, self.space, rows))
        return add_differences(proof, compared, self.space, low, seed=self.seed)

    def certify_sample(self, sample: UserSample, low: float | None = None, explain: bool = True) -> Certificate | None:
        """The certificate from rows of the user's own that were asked; None, with a warning, if all taught the copy."""
        sample = sample.without_training_rows(training_rows_of(self.copy))
        sample.warn_if_empty("rows")
        if not len(sample):
            return None
        assert sample.answers is not None
        proof = self.certify_rows(sample.rows, sample.answers, low, explain)
        return replace(
            proof,
            distinct=sample.distinct,
            left_out=sum(sample.left_out.values()),
            reasons=dict(sample.left_out),
            outside=int(Support.of(self.space).outside(sample.rows).sum()),
            further=() if sample.further is None else tuple(sample.further.columns),
        )

    @property
    def _labels(self) -> list[Label]:
        """The labels that the original declares, and others that the copy knows."""
        declared = [] if self.declared is None else self.declared.classes.tolist()
        return list(dict.fromkeys([*declared, *np.asarray(getattr(self.copy, "classes_", [])).tolist()]))


def _answers(copy: object, copied: Original, space: Space, rows: np.ndarray) -> np.ndarray:
    """The copy's labels; one of ours takes the matrix itself, which may hold levels that the space does not know."""
    if isinstance(copy, CopyClassifier) and copy.space == space:
        return copy.classes[copy.decide(copy.encoding(rows))]
    parts = [copied.answer(space.present(rows[at : at + CHUNK])) for at in range(0, len(rows), CHUNK)]
    return np.concatenate(parts)


def unseen_answers(
    sources: Sequence[Source], copy: object, space: Space, run: str | Path | None = None
) -> PriorAnswers:
    """Answers as the copy sees their rows; without rows that taught it or might have, or that its run asked about."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    known, training_rows = PriorAnswers.all_of(sources, AnswerFilter(seen)), training_rows_of(copy)
    if run is not None:
        known = without_rows_of_run(known, run, [*map(space.names.index, seen.names)])
    if training_rows is None:
        return known
    taught, candidates = training_rows.find(known.rows, whole=False)
    return known.leave_out(candidates, CANDIDATES).leave_out(taught[~candidates], TAUGHT)


def without_rows_of_run(known: PriorAnswers, run: str | Path, columns: Sequence[int]) -> PriorAnswers:
    """Answers without those about rows that a run asked about, or was given; they have these columns of its space."""
    found = read_answers(as_path(run) / LEDGER)
    if not found:
        raise DirectoryError(str(run), "a ledger, to tell which answers the copy learned from", "none")
    for purpose, (rows, _) in found.items():
        if purpose != Purpose.REPEAT:
            known = known.without(rows[:, columns], OWN)
    return known


def certify_answers(copy: object, space: Space, known: PriorAnswers, confidence: float, seed: int = 0) -> Certificate:
    """The certificate from answers that were given; every one counts, as often as it was."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    proving = Certifier(
        copy, as_original(copy, name="copy"), None, seen, validation.fraction("confidence", confidence), seed
    )
    proof = proving.certify_rows(known.rows, known.answers.labels, boundary_margin(copy, seen, seed))
    different = len(np.unique(np.where(np.isnan(known.rows), np.inf, known.rows), axis=0))
    return replace(proof, distinct=different, left_out=sum(known.left_out.values()), reasons=known.left_out)
