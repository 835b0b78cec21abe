"""Certifying any classifier against any original: on fresh rows of a space, and on rows that the user gives."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path

import numpy as np

from understudy import checks
from understudy.certificate.bounds import HeldOut
from understudy.certificate.differences import Compared, chances_of, known_levels, located, low_margin
from understudy.certificate.values import Certificate
from understudy.errors import DirectoryError, SettingError, SpaceError
from understudy.files import as_path
from understudy.models.classifier import CopyClassifier
from understudy.original import CHUNK, Labels, Original, as_original
from understudy.progress import ROWS, shown
from understudy.queries import Allowance, Queries, allowance_of
from understudy.queries.known import OWN, Known, Wanted
from understudy.queries.ledger import NAME, REPEAT
from understudy.queries.ledger import answers as answers_in
from understudy.queries.sources import Answers, Source, sources_of
from understudy.space import Space
from understudy.space.tables import is_frame
from understudy.streams import Stream, stream
from understudy.types import Answered, Rows

SPACE, DATA = "certificate", "data"


def certify(
    copy: object,
    original: object,
    space: Space,
    n: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
    data: Rows | None = None,
    *,
    answers: Answers | None = None,
    run: str | Path | None = None,
    explain: bool = True,
    retries: float | None = None,
    progress: bool = True,
) -> Certificate:
    """Certify any classifier against any original, from n fresh rows of the space.

    `data` are unlabelled rows of your own, certified separately as `.on_data`: distinct rows are asked once each, and
    the bound is about the population that the rows are a random sample of. Unless `explain` is false, the certificate
    also says where the two differ: near the boundary or away from it, by labels, conditions and examples.
    `answers` that the original gave before, such as to real traffic, are certified separately as `.on_answers`, and
    nothing is asked for them: a directory of kept traffic or of another run, a table, or several of these. Those that
    the copy learned from must not be among them; `run`, the directory of the copy, leaves them out.
    `retries` are the rows that may be sent again after failures, as a share of all: a quarter if not given.
    `progress` shows how far it is, on a terminal or in a notebook.
    Of stored answers, give only those that did not train the copy: `queries.unused` has what a run left over.

    >>> sign = lambda rows: rows[:, 0] > 0
    >>> always = lambda rows: [True] * len(rows)
    >>> proof = certify(always, sign, Space.normal(1), n=1000)
    >>> proof.estimate < 0.6, proof.differences.rules[0].text
    (True, 'x0 <= 0')
    """
    known = None if answers is None else known_of(sources_of(answers), copy, space, run)
    proof = proved(
        copy, original, space, n, confidence, seed, data, explain=explain, retries=retries, progress=progress
    )[0]
    return proof if known is None else replace(proof, on_answers=on_answers(copy, space, known, confidence, seed))


def known_of(sources: Sequence[Source], copy: object, space: Space, run: str | Path | None = None) -> Known:
    """Answers as the copy sees their rows; without rows that its run asked about, or was given."""
    own = isinstance(copy, CopyClassifier)
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    known = Known.all_of(sources, Wanted(seen))
    if run is None:
        return known.some()
    found = answers_in(as_path(run) / NAME)
    if not found:
        raise DirectoryError(str(run), "a ledger, to tell which answers the copy learned from", "none")
    excluded = [space.names.index(name) for name in space.names if own and name not in seen.names]
    for purpose, (rows, _) in found.items():
        if purpose != REPEAT:
            known = known.without(np.delete(rows, excluded, axis=1), OWN)
    return known.some()


def on_answers(copy: object, space: Space, known: Known, confidence: float, seed: int = 0) -> Certificate:
    """The certificate from answers that were given; every one counts, as often as it was."""
    seen = copy.space if isinstance(copy, CopyClassifier) else space
    proving = Proving(copy, as_original(copy, name="copy"), None, seen, checks.fraction("confidence", confidence), seed)
    proof = proving.proved(known.rows, known.said.labels, low_margin(copy, seen, seed))
    different = len(np.unique(np.where(np.isnan(known.rows), np.inf, known.rows), axis=0))
    return replace(proof, distinct=different, left_out=sum(known.left_out.values()))


def proved(
    copy: object,
    original: object,
    space: Space,
    n: int,
    confidence: float,
    seed: int,
    data: Rows | None,
    *,
    explain: bool = True,
    retries: float | None = None,
    progress: bool = True,
) -> tuple[Certificate, Answered]:
    """A certificate, with the rows of the space that were asked for it, and their answers."""
    n, confidence = checks.count("n", n, 1), checks.fraction("confidence", confidence)
    seed = checks.count("seed", seed, 0)
    asked, copied = as_original(original), as_original(copy, name="copy")
    given = None if data is None else Given.of(asked, space, data)
    limits = {SPACE: n, DATA: 0 if given is None else len(given.different)}
    queries = Queries(asked, space, limits, seed=seed, allowance=allowed(asked, limits, retries))
    with shown("certify", sum(limits.values()), wanted=progress, step=ROWS) as tell:
        chunks = list[tuple[np.ndarray, np.ndarray]]()
        for rows, said in queries.fresh(SPACE, n, stream(seed, Stream.CERTIFY)):
            chunks.append((rows, said.labels))
            tell(queries.made[SPACE])
        rows, answers = (np.concatenate(part) for part in zip(*chunks, strict=True))
        low = low_margin(copy, space, seed) if explain else None
        about = Proving(copy, copied, asked.declared, space, confidence, seed)
        proof = about.proved(rows, answers, low, explain)
        if given is not None:
            proof = replace(proof, on_data=about.on_data(given, queries, DATA, low, explain))
        return proof, (rows, answers)


def allowed(original: Original, limits: Mapping[str, int], retries: float | None = None) -> Allowance:
    """The most rows that a certificate may take, retries included."""
    share = None if retries is None else checks.number("retries", retries, "a share from 0", 0, inf)
    return allowance_of(original, sum(limits.values()), max(limits.values()), share)


@dataclass(frozen=True)
class Proving:
    """What is certified, and how sure of it the bounds shall be."""

    copy: object
    copied: Original
    """The copy, as something that can be asked."""
    declared: Labels | None
    """The labels that the original declares."""
    space: Space
    confidence: float
    seed: int

    def proved(
        self, rows: np.ndarray, answers: np.ndarray, low: float | None = None, explain: bool = True
    ) -> Certificate:
        """The certificate from rows of a matrix and the original's answers; margins below `low` are near."""
        predicted = _answers(self.copy, self.copied, self.space, rows)
        labels = self.declared or Labels(answers)
        proof = HeldOut(rows, labels.encode(answers), labels).certify(labels.find(predicted), self.confidence)
        if not explain:
            return proof
        compared = Compared(rows, answers, predicted, chances_of(self.copy, self.space, rows))
        return located(proof, compared, self.space, low, seed=self.seed)

    def on_data(
        self, given: Given, queries: Queries, purpose: str, low: float | None = None, explain: bool = True
    ) -> Certificate:
        """The certificate from rows of the user's own, each distinct one asked once."""
        answers = queries.ask(purpose, given.different)[given.which]
        proof = self.proved(given.rows, answers, low, explain)
        return replace(proof, distinct=len(given.different), left_out=given.left_out)


def _answers(copy: object, copied: Original, space: Space, rows: np.ndarray) -> np.ndarray:
    """The copy's labels; one of ours takes the matrix itself, which may hold levels that the space does not know."""
    if isinstance(copy, CopyClassifier) and copy.space == space:
        return copy.classes[copy.decide(copy.encoding(rows))]
    parts = [copied.answer(space.present(rows[at : at + CHUNK])) for at in range(0, len(rows), CHUNK)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Given:
    """A user's rows, of which each distinct one is asked once.

    Rows with a level that the space does not know are left out: they cannot be converted back for the original.
    """

    rows: np.ndarray
    left_out: int = 0

    @classmethod
    def of(cls, original: Original, space: Space, data: Rows, name: str = "data") -> Given:
        """Read a user's rows."""
        if original.stored is not None:
            hint = f"ask the original itself, or leave out {name}"
            raise SettingError(name, "an original that can be asked about new rows", "stored answers", hint)
        if not space.frame and is_frame(data) and set(space.names) <= set(data.columns):
            data = data[list(space.names)]  # further columns are ignored here too, if names tell which
        with warnings.catch_warnings(action="ignore"):  # about unknown levels, which are counted here
            rows = space.read(data, name)
        known = known_levels(space, rows)
        if not known.any():
            raise SpaceError(name, "at least one row with levels that the space knows", f"none of {len(rows)}")
        return cls(rows[known], int((~known).sum()))

    @property
    def different(self) -> np.ndarray:
        """The distinct rows."""
        return self.rows[self._distinct[0]]

    @property
    def which(self) -> np.ndarray:
        """For every row, its place among the distinct ones."""
        return self._distinct[1]

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        filled = np.where(np.isnan(self.rows), np.inf, self.rows)  # gaps count as equal, NaN does not
        _, first, which = np.unique(filled, axis=0, return_index=True, return_inverse=True)
        return first, which
