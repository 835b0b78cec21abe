"""What a page is made from beside the result: the answers that were paid for. Nothing is ever asked for a page."""

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
from ectype.models.families import Family, FamilyLimits, boosted, fit
from ectype.original import Answers, LabelledRows, Labels, concatenate
from ectype.runs.directory import finished
from ectype.runs.result import Result
from ectype.space import Encoding, FeatureView, Space, has_required_values
from ectype.types import Answered

# Gradient boosting as one would use it instead: what scikit-learn does unless told otherwise.
PLAIN = BoostingSettings(rounds=100, leaves=31, share=1.0, bins=128)
# Smaller trees are enough to read off what drives two models, side by side.
READING = BoostingSettings(rounds=40, leaves=16, rate=0.2, share=1.0, bins=64)
# The most trees of either, where there are many labels, and the most rows that are read off.
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
        """What the ledger in a run's directory holds, or else what the result still has."""
        folder = None if directory is None else Path(directory)
        book = None if folder is None or not (folder / LEDGER).is_file() else folder / LEDGER
        found = {**result.asked, **({} if book is None else read_answers(book))}
        if Purpose.GIVEN in found:  # those that lack a column are no use where all are seen
            found[Purpose.GIVEN] = _complete(result.space, found[Purpose.GIVEN])
        training = _labelled(found, (Purpose.GIVEN, Purpose.CHECK, Purpose.TRAINING))
        held_out = _labelled(found, (Purpose.CERTIFICATE,))
        return cls(result, training, held_out, None if book is None else summarise_ledger(book), folder)

    @property
    def run(self) -> Path | None:
        """The directory, if it is that of a finished run."""
        return self.directory if self.directory is not None and finished(self.directory) else None

    @cached_property
    def compared(self) -> Comparison | None:
        """The held-out rows with both labels, and the copy's probabilities."""
        if self.held_out is None or not len(self.held_out[1]):
            return None
        rows, said = self.held_out
        copy, chances = self.result.copy, self.chances(rows)
        return Comparison(rows, said, copy.classes[chances.argmax(axis=1)], chances)

    def chances(self, rows: np.ndarray) -> np.ndarray:
        """The copy's probabilities, for rows of all columns."""
        return self.result.copy.model.probabilities(self._view(rows))

    @cached_property
    def plain(self) -> Model | None:
        """Plain boosting of the original's answers: it sees every column, the excluded ones too."""
        return None if self.training is None or not len(self._known[1]) else self._boosted(*self._known, PLAIN)

    @cached_property
    def readings(self) -> tuple[Model, Model] | None:
        """Smaller trees, fitted to the original's answers to held-out rows, and to the copy's answers to the same.

        On rows that taught the copy the two are alike, whatever it learned.
        """
        if self.compared is None:
            return None
        held_out = self._coded((self.compared.rows, self.compared.answers))
        if not len(held_out[1]):
            return None
        rows, codes = (part[:: -(-len(part) // READ)] for part in held_out)
        said = self.chances(rows).argmax(axis=1).astype(np.int32)
        return self._boosted(rows, codes, READING), self._boosted(rows, said, READING)

    @cached_property
    def encoding(self) -> Encoding:
        """What boosting sees of rows: all columns."""
        return Encoding(self.result.space)

    @cached_property
    def _view(self) -> FeatureView:
        return FeatureView(self.result.space, self.result.settings.get("exclude") or ())

    @cached_property
    def _known(self) -> Answered:
        """The rows that taught, with the codes of their labels."""
        assert self.training is not None
        return self._coded(self.training)

    def _coded(self, answered: Answered) -> Answered:
        """Rows with the codes of their labels; without those with labels that the copy does not know."""
        rows, said = answered
        codes = Labels(self.result.copy.classes).find(said)
        return rows[codes >= 0], codes[codes >= 0]

    def rounds(self, how: BoostingSettings) -> int:
        """The rounds of boosting that there are for so many labels."""
        return max(1, min(how.rounds, MOST_TREES // len(self.result.copy.classes)))

    def _boosted(self, rows: np.ndarray, codes: np.ndarray, how: BoostingSettings) -> Model:
        how = replace(how, rounds=self.rounds(how))

        def make(X: np.ndarray, y: np.ndarray, n_c: int, limits: FamilyLimits, seed: int) -> Model:
            return boosted(X, y, n_c, limits, seed, how)

        return fit(Family(make, 0), self.encoding(rows), codes, len(self.result.copy.classes))


def _complete(space: Space, told: LabelledRows) -> LabelledRows:
    there = has_required_values(space, told[0])
    return told[0][there], Answers(told[1].labels[there])


def _labelled(found: Mapping[str, LabelledRows], purposes: Sequence[str]) -> Answered | None:
    """The rows that were asked for these purposes, with their labels; None if there are none."""
    parts = [found[purpose] for purpose in purposes if purpose in found]
    if not parts:
        return None
    rows, said = concatenate(parts)
    return rows, said.labels
