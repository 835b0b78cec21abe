"""A certificate from answers that are there already, such as those to real traffic: nothing is asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy import checks
from understudy.certificate.differences import low_margin
from understudy.certificate.proving import Proving
from understudy.certificate.values import Certificate
from understudy.errors import DirectoryError
from understudy.files import as_path
from understudy.models.classifier import CopyClassifier
from understudy.models.training_rows import training_rows_of
from understudy.original import as_original
from understudy.queries.known import CANDIDATES, OWN, TAUGHT, Known, Wanted
from understudy.queries.ledger import NAME, REPEAT, answers
from understudy.queries.sources import Source
from understudy.space import Space


def known_of(sources: Sequence[Source], copy: object, space: Space, run: str | Path | None = None) -> Known:
    """Answers as the copy sees their rows; without rows that taught it or might have, or that its run asked about."""
    return fresh_of(sources, copy, space, run).some()


def fresh_of(sources: Sequence[Source], copy: object, space: Space, run: str | Path | None = None) -> Known:
    """The same; there may be none."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    known, training_rows = Known.all_of(sources, Wanted(seen)), training_rows_of(copy)
    if run is not None:
        known = unknown_to(known, run, [*map(space.names.index, seen.names)])
    if training_rows is None:
        return known
    taught, candidates = training_rows.find(known.rows, whole=False)
    return known.leaving(candidates, CANDIDATES).leaving(taught[~candidates], TAUGHT)


def unknown_to(known: Known, run: str | Path, columns: Sequence[int]) -> Known:
    """Answers without those about rows that a run asked about, or was given; they have these columns of its space."""
    found = answers(as_path(run) / NAME)
    if not found:
        raise DirectoryError(str(run), "a ledger, to tell which answers the copy learned from", "none")
    for purpose, (rows, _) in found.items():
        if purpose != REPEAT:
            known = known.without(rows[:, columns], OWN)
    return known


def on_answers(copy: object, space: Space, known: Known, confidence: float, seed: int = 0) -> Certificate:
    """The certificate from answers that were given; every one counts, as often as it was."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    proving = Proving(copy, as_original(copy, name="copy"), None, seen, checks.fraction("confidence", confidence), seed)
    proof = proving.proved(known.rows, known.said.labels, low_margin(copy, seen, seed))
    different = len(np.unique(np.where(np.isnan(known.rows), np.inf, known.rows), axis=0))
    return replace(proof, distinct=different, left_out=sum(known.left_out.values()), reasons=known.left_out)
