"""What is certified: a copy, the rows that it is compared on, and the bounds that they give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ectype.certificate.bounds import HeldOut
from ectype.certificate.certificate import Certificate, Stratum
from ectype.certificate.differences import FREE, Comparison, chances_of, located
from ectype.certificate.stratified import PLAIN, Design, designed, drawn, fidelity
from ectype.certificate.user_sample import UserSample
from ectype.ledger import Purpose
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.training_rows import training_rows_of
from ectype.original import CHUNK, Answers, Labels, Original
from ectype.queries import Queries
from ectype.rng import Stream, stream
from ectype.space import Space, Support
from ectype.types import Label


@dataclass(frozen=True)
class Certifier:
    """What is certified, and how sure of it the bounds shall be."""

    copy: object
    copied: Original
    """The copy, as something that can be asked."""
    declared: Labels | None
    """The labels that the original declares."""
    space: Space
    confidence: float
    seed: int

    def designed(self, n: int, design: str) -> Design:
        """Where the rows shall lie, by unlabelled rows; strata may turn out to be worth nothing."""
        if design == PLAIN:
            return Design()
        rows = self.space.sample(FREE, stream(self.seed, Stream.SETS, 1))
        return designed(self._chances(rows), n, self.confidence)

    def drawn(self, queries: Queries, ranks: np.ndarray) -> Iterator[tuple[np.ndarray, Answers]]:
        """Rows of these ranks with what the original says to them, some at a time."""
        rng = stream(self.seed, Stream.CERTIFY)
        for rows in drawn(ranks, lambda size: self.space.sample(size, rng), self._chances):
            yield rows, queries.query(Purpose.CERTIFICATE, rows)

    def _chances(self, rows: np.ndarray) -> np.ndarray:
        chances = chances_of(self.copy, self.space, rows)
        assert chances is not None
        return chances

    def agree(self, rows: np.ndarray, answers: np.ndarray) -> np.ndarray:
        """On which rows copy and original agree."""
        labels = self.declared or Labels(answers)
        return labels.encode(answers) == labels.find(_answers(self.copy, self.copied, self.space, rows))

    def weighted(self, proof: Certificate, strata: tuple[Stratum, ...]) -> Certificate:
        """A certificate of a plain sample with the estimate and the bound of all rows, by their strata."""
        estimate, lower = fidelity(strata, self.confidence)
        n = sum(part.n for part in strata)
        return replace(proof, estimate=estimate, lower=lower, n=n, strata=strata, sample=proof.n)

    def proved(
        self, rows: np.ndarray, answers: np.ndarray, low: float | None = None, explain: bool = True
    ) -> Certificate:
        """The certificate from rows of a matrix and the original's answers; margins below `low` are near."""
        predicted = _answers(self.copy, self.copied, self.space, rows)
        labels = self.declared or Labels(answers)
        proof = HeldOut(rows, labels.encode(answers), labels).certify(labels.find(predicted), self.confidence)
        proof = proof.among(self._labels)
        if not explain:
            return proof
        compared = Comparison(rows, answers, predicted, chances_of(self.copy, self.space, rows))
        return located(proof, compared, self.space, low, seed=self.seed)

    def on_sample(self, sample: UserSample, low: float | None = None, explain: bool = True) -> Certificate | None:
        """The certificate from rows of the user's own that were asked; None, with a warning, if all taught the copy."""
        sample = sample.untaught(training_rows_of(self.copy))
        sample.warn_if_empty("rows")
        if not len(sample):
            return None
        assert sample.answers is not None
        proof = self.proved(sample.rows, sample.answers, low, explain)
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
