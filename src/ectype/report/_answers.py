"""The paid answers that a page is made from, beside the result; nothing is asked for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ectype._kernel import BoostingSettings
from ectype.certificate.differences import Comparison
from ectype.ledger import LEDGER, Purpose, Summary, read_answers, summarise_ledger
from ectype.models.base import Model
from ectype.models.families import Family, FamilyLimits, fit, fit_boosting
from ectype.original import Answers, LabelledRows, Labels, concatenate
from ectype.runs.directory import finished
from ectype.runs.result import Result
from ectype.space import Encoding, FeatureView, Space, has_required_values
from ectype.types import Answered

# Gradient boosting as one would use it instead: what scikit-learn does unless told otherwise.
PLAIN_BOOSTING = BoostingSettings(rounds=100, leaves=31, share=1.0, bins=128)
# Smaller trees are enough to show which columns two models depend on.
SURROGATE = BoostingSettings(rounds=40, leaves=16, rate=0.2, share=1.0, bins=64)
# The most trees of either, where there are many labels, and the most rows that surrogates are fitted to.
MOST_TREES, READ = 2000, 20_000


@dataclass(frozen=True)
class PaidAnswers:
    """Rows with the original's answers and the copy's: those that taught, and those held out; either may be missing."""

    result: Result
    training: Answered | None = None
    held_out: Answered | None = None
    spent: Summary | None = None
    directory: Path | None = None
    """Of the run's files, where there are any."""

    @classmethod
    def of(cls, result: Result, directory: str | Path | None) -> PaidAnswers:
        """Read the ledger in a run's directory; without one, take the answers that the result still has."""
        folder = None if directory is None else Path(directory)
        book = None if folder is None or not (folder / LEDGER).is_file() else folder / LEDGER
        found = {**result.asked, **({} if book is None else read_answers(book))}
        if Purpose.GIVEN in found:  # those that lack a column are no use where all are seen
            found[Purpose.GIVEN] = _complete(result.space, found[Purpose.GIVEN])
        training = _rows_asked_for(found, (Purpose.GIVEN, Purpose.CHECK, Purpose.TRAINING))
        held_out = _rows_asked_for(found, (Purpose.CERTIFICATE,))
        return cls(result, training, held_out, None if book is None else summarise_ledger(book), folder)

    @property
    def run(self) -> Path | None:
        """The directory, if it is that of a finished run."""
        return self.directory if self.directory is not None and finished(self.directory) else None

    @cached_property
    def comparison(self) -> Comparison | None:
        """The held-out rows with both labels, and the copy's probabilities."""
        if self.held_out is None or not len(self.held_out[1]):
            return None
        rows, said = self.held_out
        copy, probabilities = self.result.copy, self.probabilities(rows)
        return Comparison(rows, said, copy.classes[probabilities.argmax(axis=1)], probabilities)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """The copy's probabilities, for rows of all columns."""
        return self.result.copy.model.probabilities(self._view(rows))

    @cached_property
    def plain_boosting(self) -> Model | None:
        """Plain boosting of the original's answers: it sees every column, the excluded ones too."""
        if self.training is None or not len(self._training_codes[1]):
            return None
        return self._fit_boosting(*self._training_codes, PLAIN_BOOSTING)

    @cached_property
    def surrogates(self) -> tuple[Model, Model] | None:
        """Surrogate models: smaller trees, fitted to the original's answers to held-out rows, and to the copy's.

        On rows that taught the copy the two are alike, whatever it learned.
        """
        if self.comparison is None:
            return None
        held_out = self._encode_labels((self.comparison.rows, self.comparison.answers))
        if not len(held_out[1]):
            return None
        rows, codes = (part[:: -(-len(part) // READ)] for part in held_out)
        said = self.probabilities(rows).argmax(axis=1).astype(np.int32)
        return self._fit_boosting(rows, codes, SURROGATE), self._fit_boosting(rows, said, SURROGATE)

    @cached_property
    def encoding(self) -> Encoding:
        """The encoding of rows for boosting, which sees all columns."""
        return Encoding(self.result.space)

    @cached_property
    def _view(self) -> FeatureView:
        return FeatureView(self.result.space, self.result.settings.get("exclude") or ())

    @cached_property
    def _training_codes(self) -> Answered:
        """The rows that taught, with the codes of their labels."""
        assert self.training is not None
        return self._encode_labels(self.training)

    def _encode_labels(self, answered: Answered) -> Answered:
        """Rows with the codes of their labels; without those with labels that the copy does not know."""
        rows, said = answered
        codes = Labels(self.result.copy.classes).find(said)
        return rows[codes >= 0], codes[codes >= 0]

    def rounds(self, how: BoostingSettings) -> int:
        """The rounds of boosting that there are for so many labels."""
        return max(1, min(how.rounds, MOST_TREES // len(self.result.copy.classes)))

    def _fit_boosting(self, rows: np.ndarray, codes: np.ndarray, how: BoostingSettings) -> Model:
        how = replace(how, rounds=self.rounds(how))

        def make(X: np.ndarray, y: np.ndarray, n_c: int, limits: FamilyLimits, seed: int) -> Model:
            return fit_boosting(X, y, n_c, limits, seed, how)

        return fit(Family(make, 0), self.encoding(rows), codes, len(self.result.copy.classes))


def _complete(space: Space, told: LabelledRows) -> LabelledRows:
    there = has_required_values(space, told[0])
    return told[0][there], Answers(told[1].labels[there])


def _rows_asked_for(found: Mapping[str, LabelledRows], purposes: Sequence[str]) -> Answered | None:
    """The rows that were asked for these purposes, with their labels; None if there are none."""
    parts = [found[purpose] for purpose in purposes if purpose in found]
    if not parts:
        return None
    rows, said = concatenate(parts)
    return rows, said.labels
