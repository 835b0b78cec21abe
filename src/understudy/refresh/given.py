"""Answers of today that a refresh is given, such as kept traffic: what they are used for.

Most teach the new copy. Some are held apart, to measure both copies on rows that neither learned from. Those about rows
of the earlier run's ledger speak for or against a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from understudy.certificate.answered import fresh_of, on_answers, unknown_to
from understudy.certificate.values import Certificate
from understudy.models.classifier import CopyClassifier
from understudy.original import Original
from understudy.queries.check import Claims
from understudy.queries.known import APART, HELD_OUT, Known, Wanted
from understudy.queries.sources import Source
from understudy.runs.finished import Past
from understudy.runs.own import HELD_OUT as SHARE
from understudy.runs.plan import Plan
from understudy.space.rowkeys import first_of_each, keys_of
from understudy.streams import Stream, stream
from understudy.types import Json

# Given rows that are asked again after a change, to see that their answers are of the original as it is now. They are
# more than a first copy asks, because answers from before a change differ in few rows: 5 % of them show in 95 of 100.
AGAIN = 60


@dataclass(frozen=True)
class Given:
    """Answers that a refresh is given."""

    learned: Known
    """To learn from: each row once, and none of the earlier run's certificate."""
    fresh: Known
    """All about rows that the earlier run does not know, as often as they came, as the copy sees them."""
    apart: Known
    """Of these, a random sample that teaches nothing."""
    claims: Claims
    """Those about rows of the earlier run that can be asked again."""
    columns: list[int]
    """The columns that the copy sees."""
    digest: str
    """What tells them from other answers."""

    @classmethod
    def of(cls, sources: Sequence[Source], directory: Path, past: Past, original: Original, plan: Plan) -> Given:
        """Read and divide them: as many are held apart as rows of the space certify, but half of them at most."""
        space, asked = past.result.space, plan.asked
        columns = [*map(space.names.index, past.result.copy.space.names)]
        every = Known.all_of(sources, Wanted(space, asked.exclude, original.declared, original.scored)).some()
        fresh = fresh_of(sources, past.result.copy, space, directory)
        order = stream(asked.seed, Stream.OWN, fresh.seed).permutation(len(fresh))
        n = min(asked.certificate_n, int(SHARE * len(order)))
        teach, measure = np.sort(order[n:]), np.sort(order[:n])
        apart = fresh.where(measure).without(fresh.rows[teach], APART)
        learned = every.distinct().without(apart.rows, APART, columns)
        if past.certifies_again:
            learned = learned.without(past.rows[len(past.rows) - past.held_out :], HELD_OUT)
        return cls(learned.some(), fresh, apart, _claims(every, past), columns, every.digest)

    def as_json(self) -> Json:
        """How many teach, and what was left out, as JSON values."""
        return self.learned.as_json()

    def known(self, rows: np.ndarray) -> np.ndarray:
        """The places of rows that the new copy learns from by these answers."""
        told = {row.tobytes() for row in np.ascontiguousarray(self.learned.rows)}
        return np.flatnonzero([row.tobytes() in told for row in np.ascontiguousarray(rows)])

    def unasked(self, directory: Path) -> Known:
        """Those held apart, without rows that a refresh in this directory asked about all the same."""
        return unknown_to(self.apart, directory, self.columns)


def measured(
    known: Known, past: Past, plan: Plan, after: CopyClassifier | None = None
) -> tuple[Json, Certificate | None]:
    """How faithful the earlier copy is on answers that were given, and the new one; with the latter's certificate.

    The rows are somebody's, so that none is shown as an example.
    """
    found: Json = {"rows": len(known), "left_out": known.left_out}
    proofs = {"before": past.result.copy} | ({} if after is None else {"after": after})
    if not len(known):
        return {**found, **dict.fromkeys(proofs)}, None
    for name, copy in proofs.items():
        proof = _without_rows(on_answers(copy, past.result.space, known, plan.asked.confidence, plan.asked.seed))
        found |= {"distinct": proof.distinct, name: {"estimate": proof.estimate, "lower": proof.lower}}
    return found, None if after is None else proof


def _without_rows(proof: Certificate) -> Certificate:
    shown = proof.differences
    return proof if shown is None else replace(proof, differences=replace(shown, examples=()))


def _claims(every: Known, past: Past) -> Claims:
    """The first answer that was given to each row of the earlier run: one that most give is likelier to be right."""
    places = past.askable
    rows = np.concatenate([every.rows, past.rows[places]])
    first = first_of_each(rows, keys_of(rows))[len(every) :]
    told = first < len(every)
    return Claims(np.flatnonzero(told), every.said.labels[first[told]])
