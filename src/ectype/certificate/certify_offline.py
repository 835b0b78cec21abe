"""A certificate from answers that are there already, such as those to real traffic: nothing is asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ectype._common import validation
from ectype._common.atomic_io import as_path
from ectype.certificate.certificate import Certificate
from ectype.certificate.certifier import Certifier
from ectype.certificate.differences import low_margin
from ectype.errors import DirectoryError
from ectype.ledger import LEDGER, Purpose, read_answers
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.training_rows import training_rows_of
from ectype.original import as_original
from ectype.queries import CANDIDATES, OWN, TAUGHT, AnswerFilter, PriorAnswers, Source
from ectype.space import Space


def known_of(sources: Sequence[Source], copy: object, space: Space, run: str | Path | None = None) -> PriorAnswers:
    """Answers as the copy sees their rows; without rows that taught it or might have, or that its run asked about."""
    return fresh_of(sources, copy, space, run).require_some()


def fresh_of(sources: Sequence[Source], copy: object, space: Space, run: str | Path | None = None) -> PriorAnswers:
    """The same; there may be none."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    known, training_rows = PriorAnswers.all_of(sources, AnswerFilter(seen)), training_rows_of(copy)
    if run is not None:
        known = unknown_to(known, run, [*map(space.names.index, seen.names)])
    if training_rows is None:
        return known
    taught, candidates = training_rows.find(known.rows, whole=False)
    return known.leave_out(candidates, CANDIDATES).leave_out(taught[~candidates], TAUGHT)


def unknown_to(known: PriorAnswers, run: str | Path, columns: Sequence[int]) -> PriorAnswers:
    """Answers without those about rows that a run asked about, or was given; they have these columns of its space."""
    found = read_answers(as_path(run) / LEDGER)
    if not found:
        raise DirectoryError(str(run), "a ledger, to tell which answers the copy learned from", "none")
    for purpose, (rows, _) in found.items():
        if purpose != Purpose.REPEAT:
            known = known.without(rows[:, columns], OWN)
    return known


def on_answers(copy: object, space: Space, known: PriorAnswers, confidence: float, seed: int = 0) -> Certificate:
    """The certificate from answers that were given; every one counts, as often as it was."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    proving = Certifier(
        copy, as_original(copy, name="copy"), None, seen, validation.fraction("confidence", confidence), seed
    )
    proof = proving.proved(known.rows, known.answers.labels, low_margin(copy, seen, seed))
    different = len(np.unique(np.where(np.isnan(known.rows), np.inf, known.rows), axis=0))
    return replace(proof, distinct=different, left_out=sum(known.left_out.values()), reasons=known.left_out)
