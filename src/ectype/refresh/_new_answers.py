"""Answers of today that a refresh is given, such as kept traffic: what they are used for.

Most teach the new copy. Some are held apart, to measure both copies on rows that neither learned from. Those about rows
of the earlier run's ledger speak for or against a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ectype.certificate.certificate import Certificate
from ectype.certificate.certify import certify_answers, unseen_answers, without_rows_of_run
from ectype.methods.user_rows import HELD_OUT as SHARE
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Original
from ectype.plan.plan import Plan
from ectype.queries import APART, HELD_OUT, AnswerFilter, LabelClaims, PriorAnswers, Source
from ectype.rng import Stream, stream
from ectype.runs.previous_run import PreviousRun
from ectype.space import first_occurrences, row_hashes
from ectype.types import Json

# Given rows that are asked again after a change, to see that their answers are of the original as it is now. They are
# more than a first copy asks, because answers from before a change differ in few rows: 5 % of them show in 95 of 100.
AGAIN = 60


@dataclass(frozen=True)
class NewAnswers:
    """Answers that a refresh is given."""

    learned: PriorAnswers
    """To learn from: each row once, and none of the earlier run's certificate."""
    fresh: PriorAnswers
    """All about rows that the earlier run does not know, as often as they came, as the copy sees them."""
    apart: PriorAnswers
    """Of these, a random sample that teaches nothing."""
    claims: LabelClaims
    """Those about rows of the earlier run that can be asked again."""
    columns: list[int]
    """The columns that the copy sees."""
    digest: str
    """What tells them from other answers."""

    @classmethod
    def of(
        cls, sources: Sequence[Source], directory: Path, past: PreviousRun, original: Original, plan: Plan
    ) -> NewAnswers:
        """Read and divide them: as many are held apart as rows of the space certify, but half of them at most."""
        space, asked = past.result.space, plan.asked
        columns = [*map(space.names.index, past.result.copy.space.names)]
        every = PriorAnswers.all_of(
            sources, AnswerFilter(space, asked.exclude, original.declared, original.scored)
        ).require_some()
        fresh = unseen_answers(sources, past.result.copy, space, directory)
        order = stream(asked.seed, Stream.OWN, fresh.seed).permutation(len(fresh))
        n = min(asked.certificate_n, int(SHARE * len(order)))
        teach, measure = np.sort(order[n:]), np.sort(order[:n])
        apart = fresh.select(measure).without(fresh.rows[teach], APART)
        learned = every.distinct().without(apart.rows, APART, columns)
        if past.certifies_again:
            learned = learned.without(past.rows[len(past.rows) - past.held_out :], HELD_OUT)
        return cls(learned.require_some(), fresh, apart, _claims(every, past), columns, every.digest)

    def as_json(self) -> Json:
        """How many teach, and what was left out, as JSON values."""
        return self.learned.as_json()

    def known(self, rows: np.ndarray) -> np.ndarray:
        """The places of rows that the new copy learns from by these answers."""
        told = {row.tobytes() for row in np.ascontiguousarray(self.learned.rows)}
        return np.flatnonzero([row.tobytes() in told for row in np.ascontiguousarray(rows)])

    def unasked(self, directory: Path) -> PriorAnswers:
        """Those held apart, without rows that a refresh in this directory asked about all the same."""
        return without_rows_of_run(self.apart, directory, self.columns)


def measured(
    known: PriorAnswers, past: PreviousRun, plan: Plan, after: CopyClassifier | None = None
) -> tuple[Json, Certificate | None]:
    """How faithful the earlier copy is on answers that were given, and the new one; with the latter's certificate.

    The rows are somebody's, so that none is shown as an example.
    """
    found: Json = {"rows": len(known), "left_out": known.left_out}
    proofs = {"before": past.result.copy} | ({} if after is None else {"after": after})
    if not len(known):
        return {**found, **dict.fromkeys(proofs)}, None
    for name, copy in proofs.items():
        proof = _without_rows(certify_answers(copy, past.result.space, known, plan.asked.confidence, plan.asked.seed))
        found |= {"distinct": proof.distinct, name: {"estimate": proof.estimate, "lower": proof.lower}}
    return found, None if after is None else proof


def _without_rows(proof: Certificate) -> Certificate:
    shown = proof.differences
    return proof if shown is None else replace(proof, differences=replace(shown, examples=()))


def _claims(every: PriorAnswers, past: PreviousRun) -> LabelClaims:
    """The first answer that was given to each row of the earlier run: one that most give is likelier to be right."""
    places = past.askable
    rows = np.concatenate([every.rows, past.rows[places]])
    first = first_occurrences(rows, row_hashes(rows))[len(every) :]
    told = first < len(every)
    return LabelClaims(np.flatnonzero(told), every.answers.labels[first[told]])
