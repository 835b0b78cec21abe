"""Certifying any classifier against any original: on fresh rows of a space, and on rows that the user gives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TypedDict, Unpack

import numpy as np

from understudy import checks
from understudy.certificate.bounds import HeldOut
from understudy.certificate.differences import (
    FREE,
    Compared,
    chances_of,
    gives_chances,
    known_levels,
    located,
    low_margin,
)
from understudy.certificate.strata import DESIGNS, PLAIN, STRATIFIED, Design, designed, drawn, fidelity, strata_of
from understudy.certificate.values import Certificate, Stratum
from understudy.errors import SettingError, SpaceError
from understudy.models.classifier import CopyClassifier
from understudy.original import CHUNK, Labels, Original, Said, as_original
from understudy.progress import ROWS, shown
from understudy.queries import Allowance, Queries, allowance_of
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
    explain: bool = True,
    retries: float | None = None,
    progress: bool = True,
    design: str | None = None,
) -> Certificate:
    """Certify any classifier against any original, from n fresh rows of the space.

    `design` says which rows: `stratified`, more of them where the copy is unsure, which gives a tighter bound from as
    many; or `plain`, all alike. If not given, it is stratified where the copy has probabilities and the original can
    be asked about any row.

    `data` are unlabelled rows of your own, certified separately as `.on_data`: distinct rows are asked once each, and
    the bound is about the population that the rows are a random sample of. Unless `explain` is false, the certificate
    also says where the two differ: near the boundary or away from it, by labels, conditions and examples.
    `retries` are the rows that may be sent again after failures, as a share of all: a quarter if not given.
    `progress` shows how far it is, on a terminal or in a notebook.
    Of stored answers, give only those that did not train the copy: `queries.unused` has what a run left over.

    >>> sign = lambda rows: rows[:, 0] > 0
    >>> always = lambda rows: [True] * len(rows)
    >>> proof = certify(always, sign, Space.normal(1), n=1000)
    >>> proof.estimate < 0.6, proof.differences.rules[0].text
    (True, 'x0 <= 0')
    """
    options: Options = {"explain": explain, "retries": retries, "progress": progress, "design": design}
    return proved(copy, original, space, n, confidence, seed, data, **options)[0]


class Options(TypedDict, total=False):
    """What a certificate may be told beside what is certified."""

    explain: bool
    retries: float | None
    progress: bool
    design: str | None


def proved(
    copy: object,
    original: object,
    space: Space,
    n: int,
    confidence: float,
    seed: int,
    data: Rows | None,
    **options: Unpack[Options],
) -> tuple[Certificate, Answered]:
    """A certificate, with the rows asked for it that are a plain sample of the space, and their answers."""
    explain, retries = options.get("explain", True), options.get("retries")
    n, confidence = checks.count("n", n, 1), checks.fraction("confidence", confidence)
    seed = checks.count("seed", seed, 0)
    asked, copied = as_original(original), as_original(copy, name="copy")
    given = None if data is None else Given.of(asked, space, data)
    limits = {SPACE: n, DATA: 0 if given is None else len(given.different)}
    queries = Queries(asked, space, limits, seed=seed, allowance=allowed(asked, limits, retries))
    about = Proving(copy, copied, asked.declared, space, confidence, seed)
    chosen = about.designed(n, design_for(options.get("design"), copy, asked.stored is not None))
    ranks = chosen.ranks(n, stream(seed, Stream.SETS))
    fresh = about.drawn(queries, ranks) if chosen.cut else queries.fresh(SPACE, n, stream(seed, Stream.CERTIFY))
    with shown("certify", sum(limits.values()), wanted=options.get("progress", True), step=ROWS) as tell:
        chunks = list[tuple[np.ndarray, np.ndarray]]()
        for rows, said in fresh:
            chunks.append((rows, said.labels))
            tell(queries.made[SPACE])
        rows, answers = (np.concatenate(part) for part in zip(*chunks, strict=True))
        low, plain = low_margin(copy, space, seed) if explain else None, chosen.sample(n)
        proof = about.proved(rows[:plain], answers[:plain], low, explain)
        if chosen.cut:
            proof = about.weighted(proof, strata_of(chosen, ranks, about.agree(rows, answers)))
        if given is not None:
            proof = replace(proof, on_data=about.on_data(given, queries, DATA, low, explain))
        return proof, (rows[:plain], answers[:plain])


def design_for(design: str | None, copy: object, stored: bool) -> str:
    """The design asked for, or the one that is possible: strata need probabilities, and rows that can be chosen."""
    possible = gives_chances(copy) and not stored
    if design is None:
        return STRATIFIED if possible else PLAIN
    checks.choice("design", design, DESIGNS)
    if design == STRATIFIED and not possible:
        found = "stored answers" if stored else "a copy that has none"
        raise SettingError("design", "a copy with probabilities, and rows of our choice", found, "take design='plain'")
    return design


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

    def designed(self, n: int, design: str) -> Design:
        """Where the rows shall lie, by unlabelled rows; strata may turn out to be worth nothing."""
        if design == PLAIN:
            return Design()
        rows = self.space.sample(FREE, stream(self.seed, Stream.SETS, 1))
        return designed(self._chances(rows), n, self.confidence)

    def drawn(self, queries: Queries, ranks: np.ndarray) -> Iterator[tuple[np.ndarray, Said]]:
        """Rows of these ranks with what the original says to them, some at a time."""
        rng = stream(self.seed, Stream.CERTIFY)
        for rows in drawn(ranks, lambda size: self.space.sample(size, rng), self._chances):
            yield rows, queries.said(SPACE, rows)

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
