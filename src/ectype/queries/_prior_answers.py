"""Answers that are known before anything is asked: carried over into a space, each row once, and all others counted."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

import numpy as np

from ectype.errors import SettingError
from ectype.original import Answers, LabelledRows, Labels, concatenate, label_array
from ectype.queries._answer_sources import Source
from ectype.queries._row_conversion import COLUMNS, convert_rows
from ectype.space import (
    BROKEN_RULES,
    IMPOSSIBLE_VALUES,
    UNKNOWN_LEVELS,
    Space,
    first_occurrences,
    has_required_values,
    row_hashes,
)
from ectype.types import Json

# Why an answer is left out, beside what a space cannot have: others say otherwise, or the row belongs to a certificate,
# or to a run that has an answer of its own, or it is to measure and not to teach.
CONFLICTS, HELD_OUT, OWN, APART = "conflicts", "held_out", "own", "apart"
# Why a row of the user's own cannot certify a copy: it was taught, might have been, or the original remembers it.
TAUGHT, CANDIDATES, REMEMBERED = SEEN = "taught", "candidates", "remembered"
REASONS = {
    COLUMNS: "lack a column that is needed",
    UNKNOWN_LEVELS: "have a level that the space does not know",
    IMPOSSIBLE_VALUES: "have a value that the space does not allow",
    BROKEN_RULES: "break a rule of the space",
    CONFLICTS: "are contradicted by other answers to the same row",
    HELD_OUT: "are about rows of the certificate",
    OWN: "are about rows that the copy's run knows already",
    APART: "are held apart, to measure with",
    TAUGHT: "taught the copy, or equal rows that did",
    CANDIDATES: "were passed over when its run chose among them (the easier ones)",
    REMEMBERED: "are kept in the original, which was trained on them",
}


@dataclass(frozen=True)
class AnswerFilter:
    """What answers are wanted for: a space, the columns of it that the copy does not see, and an original's labels."""

    space: Space
    exclude: Sequence[str] = ()
    declared: Labels | None = None
    scored: bool = False
    """Whether scores are wanted too: one of every declared label."""


@dataclass(frozen=True)
class PriorAnswers:
    """Answers that are known: rows of a space's matrix, what was said to them, and what was left out and why.

    Columns that the copy does not see may be unknown; they are NaN.
    """

    rows: np.ndarray
    said: Answers
    drawn: int = 0
    """How many of the rows were drawn by runs; others are as somebody has them."""
    repeated: int = 0
    """Further answers to the same rows that say the same."""
    left_out: dict[str, int] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, sources: Sequence[Source], wanted: AnswerFilter) -> PriorAnswers:
        """Carry answers over, each row once; it is an error if there are none that can be used."""
        return cls.all_of(sources, wanted).distinct().some()

    @classmethod
    def all_of(cls, sources: Sequence[Source], wanted: AnswerFilter) -> PriorAnswers:
        """The same, with every answer as often as it was given."""
        left_out, told, drawn = Counter[str](), list[LabelledRows](), 0
        for source in sources:
            found, lost = convert_rows(source, wanted.space, wanted.exclude)
            left_out.update(lost)
            told.append((found.rows, _said(source, wanted, found.places)))
            drawn += int((found.places < source.drawn).sum())
        rows, said = _together(told)
        return cls(rows, said, drawn, 0, dict(left_out), tuple(source.name for source in sources))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def told(self) -> LabelledRows:
        """The rows with what was said to them."""
        return self.rows, self.said

    def some(self) -> PriorAnswers:
        """Itself, unless there is nothing in it."""
        if not len(self):
            found = f"none of {sum(self.left_out.values())}: {'; '.join(reasons(self.left_out)) or 'there are none'}"
            hint = "" if {*self.left_out} <= {OWN, HELD_OUT, *SEEN} else "see that space and columns are the same"
            raise SettingError("answers", "answers that can be used", found, hint)
        return self

    def distinct(self) -> PriorAnswers:
        """Each row once: with the label that most answers give; if as many give another, not at all."""
        first = first_occurrences(self.rows, row_hashes(self.rows))
        groups = defaultdict[int, list[int]](list)
        for at in np.flatnonzero(np.bincount(first, minlength=len(first))[first] > 1).tolist():
            groups[int(first[at])].append(at)
        keep, repeated, conflicts = np.ones(len(self), bool), 0, 0
        for places in groups.values():
            agreed = _elected(self.said.labels, places)
            keep[places] = False
            keep[agreed[:1]] = True
            repeated += max(len(agreed) - 1, 0)
            conflicts += len(places) - len(agreed)
        found = self.where(keep)
        return replace(found, repeated=repeated, left_out={**self.left_out, **_counted(CONFLICTS, conflicts)})

    def without(self, rows: np.ndarray, why: str, columns: Sequence[int] | None = None) -> PriorAnswers:
        """The same without answers about any of these rows, which are counted as left out.

        `columns` are those that decide, and that `rows` have; by default all.
        """
        own = self.rows if columns is None else self.rows[:, columns]
        asked = {row.tobytes() for row in np.ascontiguousarray(rows)}
        return self.leaving(np.array([row.tobytes() in asked for row in np.ascontiguousarray(own)], bool), why)

    def leaving(self, which: np.ndarray, why: str) -> PriorAnswers:
        """The same without some of them, which are counted as left out."""
        left_out = {**self.left_out, **_counted(why, self.left_out.get(why, 0) + int(which.sum()))}
        return replace(self.where(~which), left_out=left_out)

    def where(self, keep: np.ndarray) -> PriorAnswers:
        """Some of them."""
        scores = None if self.said.scores is None else self.said.scores[keep]
        return replace(self, rows=self.rows[keep], said=Answers(self.said.labels[keep], scores))

    def askable(self, space: Space) -> np.ndarray:
        """The places of rows that the original can be asked about: all of their columns are known."""
        return np.flatnonzero(has_required_values(space, self.rows))

    @cached_property
    def digest(self) -> str:
        """What tells them from other answers."""
        found = sha256(np.ascontiguousarray(self.rows).tobytes())
        found.update(json.dumps(self.said.labels.tolist()).encode())
        found.update(b"" if self.said.scores is None else self.said.scores.tobytes())
        return found.hexdigest()

    @property
    def seed(self) -> int:
        """From the digest, so that a run with other answers draws other rows."""
        return int(self.digest[:12], 16)

    def as_json(self) -> Json:
        """How many are used, and what was left out, as JSON values."""
        counts = {"used": len(self), "repeated": self.repeated, "left_out": self.left_out}
        return {**counts, "sources": list(self.sources), "sha256": self.digest}


def reasons(left_out: dict[str, int]) -> Iterator[str]:
    """Why answers were left out, in words.

    >>> [*reasons({"levels": 3})]
    ['3 have a level that the space does not know']
    """
    return (f"{n} {REASONS[why]}" for why, n in left_out.items())


def sentence(given: Json) -> str:
    """What was given, in a sentence, from what `PriorAnswers.as_json` says.

    >>> sentence({"used": 20, "repeated": 0, "left_out": {"rules": 2}})
    '20 answers were given and cost nothing; left out: 2 break a rule of the space.'
    """
    left = f"; left out: {', '.join(reasons(given['left_out']))}" if given["left_out"] else ""
    again = f" ({given['repeated']} more say the same of the same rows)" if given["repeated"] else ""
    return f"{given['used']} answers were given and cost nothing{again}{left}."


def _said(source: Source, wanted: AnswerFilter, places: np.ndarray) -> Answers:
    """What was said to some rows, in terms of the labels wanted; answers without scores are taken for certain."""
    labels, declared = source.said.labels[places], wanted.declared
    if declared is None:
        return Answers(labels)
    codes = declared.find(labels)
    if (codes < 0).any():
        found = f"{labels[int(np.argmin(codes))].item()!r}, which the original cannot give"
        raise SettingError(source.name, f"labels among {declared}", found, "give answers of the same original")
    scores = np.eye(len(declared), dtype=np.float32)[codes] if wanted.scored else None
    known = source.classes
    if scores is not None and source.said.scores is not None and known is not None:
        at = declared.find(known.classes)
        if (at >= 0).all():
            scores[:] = 0
            scores[:, at] = source.said.scores[places]
    return Answers(declared.decode(codes), scores)


def _together(told: Sequence[LabelledRows]) -> LabelledRows:
    """Answers of all sources, if their labels are of one type."""
    kinds = [part for part in told if len(part[0])] or list(told[:1])
    try:
        label_array([label for _, said in kinds for label in said.labels[:1].tolist()])
    except ValueError as error:
        raise SettingError("answers", "labels of one type", str(error)) from error
    return concatenate(kinds)


def _elected(labels: np.ndarray, places: Sequence[int]) -> list[int]:
    """Of answers to the same row, those that say what most say; none, if no label has most."""
    counts = Counter(labels[at].item() for at in places).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return []
    return [at for at in places if labels[at].item() == counts[0][0]]


def _counted(why: str, n: int) -> dict[str, int]:
    return {why: n} if n else {}
