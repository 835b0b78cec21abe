"""Certify any classifier against any original, on rows that training never saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np

from ectype._common import validation
from ectype.certificate.certificate import Certificate
from ectype.certificate.certifier import Certifier
from ectype.certificate.certify_offline import known_of, on_answers
from ectype.certificate.differences import gives_chances, low_margin
from ectype.certificate.stratified import DESIGNS, PLAIN, STRATIFIED, strata_of
from ectype.certificate.user_sample import UserSample
from ectype.errors import SettingError
from ectype.ledger import Ledger, Purpose, open_session
from ectype.models.training_rows import training_rows_of
from ectype.original import Original, as_original, joined
from ectype.progress import ROWS, show_progress
from ectype.queries import Allowance, AnswerSources, Queries, allowance_of, read_sources
from ectype.rng import Stream, stream
from ectype.space import Space
from ectype.types import Answered, Json, Rows

# What the user's own rows are asked for, and what a session is for in which a copy is certified.
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
    known = None if answers is None else known_of(read_sources(answers), copy, space, run)
    sample = None if data is None else sample_of(data, copy, asked, space)
    with open_session(run, CERTIFY, asked, space, about_of(n, seed, design, sample)) as ledger:
        options: CertifyOptions = {"explain": explain, "retries": retries, "progress": progress, "design": design}
        proof = proved(copy, asked, space, n, confidence, seed, sample, ledger, **options)[0]
    return proof if known is None else replace(proof, on_answers=on_answers(copy, space, known, confidence, seed))


def about_of(n: int, seed: int, design: str | None, sample: UserSample | None) -> Json:
    """What tells one session that certifies from another: which rows are asked."""
    return {"n": n, "seed": seed, "design": design, "data": None if sample is None else sample.digest}


class CertifyOptions(TypedDict, total=False):
    """What a certificate may be told beside what is certified."""

    explain: bool
    retries: float | None
    progress: bool
    design: str | None


def proved(
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
    allowance = allowed(original, limits, options.get("retries"))
    queries = Queries(original, space, limits, ledger, seed, allowance)
    about = Certifier(copy, as_original(copy, name="copy"), original.declared, space, confidence, seed)
    chosen = about.designed(n, design_for(options.get("design"), copy, original.stored is not None))
    ranks = chosen.ranks(n, stream(seed, Stream.SETS))
    if chosen.cut:
        fresh = about.drawn(queries, ranks)
    else:
        fresh = queries.fresh(Purpose.CERTIFICATE, n, stream(seed, Stream.CERTIFY))
    with show_progress("certify", sum(limits.values()), wanted=options.get("progress", True), step=ROWS) as tell:
        chunks = list[tuple[np.ndarray, np.ndarray]]()
        for rows, said in fresh:
            chunks.append((rows, said.labels))
            tell(queries.made[Purpose.CERTIFICATE])
        rows, answers = np.concatenate([part for part, _ in chunks]), joined([part for _, part in chunks])
        low, plain = low_margin(copy, space, seed) if explain else None, chosen.sample(n)
        proof = about.proved(rows[:plain], answers[:plain], low, explain)
        if chosen.cut:
            proof = about.weighted(proof, strata_of(chosen, ranks, about.agree(rows, answers)))
        if given is not None:
            proof = replace(proof, on_data=about.on_sample(given.asked(queries, Purpose.DATA), low, explain))
        return proof, (rows[:plain], answers[:plain])


def sample_of(data: Rows, copy: object, original: Original, space: Space) -> UserSample | None:
    """A user's rows without those that taught the copy; None, with a warning, if there are no others."""
    found = UserSample.of(original, space, data).untaught(training_rows_of(copy))
    found.warn_if_empty("data")
    return found if len(found) else None


def design_for(design: str | None, copy: object, stored: bool) -> str:
    """The design asked for, or the one that is possible: strata need probabilities, and rows that can be chosen."""
    possible = gives_chances(copy) and not stored
    if design is None:
        return STRATIFIED if possible else PLAIN
    validation.choice("design", design, DESIGNS)
    if design == STRATIFIED and not possible:
        found = "stored answers" if stored else "a copy that has none"
        raise SettingError("design", "a copy with probabilities, and rows of our choice", found, "take design='plain'")
    return design


def allowed(original: Original, limits: Mapping[Purpose, int], retries: float | None = None) -> Allowance:
    """The most rows that a certificate may take, retries included."""
    share = None if retries is None else validation.number("retries", retries, "a share from 0", 0, inf)
    return allowance_of(original, sum(limits.values()), max(limits.values()), share)
