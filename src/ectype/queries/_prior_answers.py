"""Answers that are known before the first query: converted to a space, each row once, with counts of all others."""

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
from ectype.queries._answer_sources import COLUMNS, Source, convert_rows
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
LEFT_OUT_REASONS = {
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
    """The answers that can be used: of rows in a space, with the labels of an original."""

    space: Space
    exclude: Sequence[str] = ()
    declared: Labels | None = None
    scored: bool = False
    """Whether each answer needs a score for every declared label."""


@dataclass(frozen=True)
class PriorAnswers:
    """Rows of a space's matrix with their answers, and counts of the answers that were left out, by reason.

    Columns that the copy does not see may be unknown; they are NaN.
    """

    rows: np.ndarray
    answers: Answers
    drawn: int = 0
    """The number of rows that runs drew; all others are real."""
    repeated: int = 0
    """Further answers to the same rows with the same label."""
    left_out: dict[str, int] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, sources: Sequence[Source], wanted: AnswerFilter) -> PriorAnswers:
        """Read answers from sources, each row once. It is an error if none can be used."""
        return cls.all_of(sources, wanted).distinct().require_some()

    @classmethod
    def all_of(cls, sources: Sequence[Source], wanted: AnswerFilter) -> PriorAnswers:
        """Read answers from sources, every answer as often as it was given."""
        left_out, parts, drawn = Counter[str](), list[LabelledRows](), 0
        for source in sources:
            found, more = convert_rows(source, wanted.space, wanted.exclude)
            left_out.update(more)
            parts.append((found.rows, _answers_of(source, wanted, found.places)))
            drawn += int((found.places < source.drawn).sum())
        rows, answers = _concatenate(parts)
        return cls(rows, answers, drawn, 0, dict(left_out), tuple(source.name for source in sources))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labelled_rows(self) -> LabelledRows:
        """The rows with their answers."""
        return self.rows, self.answers

    def require_some(self) -> PriorAnswers:
        """Itself; an error, with the reasons, if there is no answer."""
        if not len(self):
            why = "; ".join(reasons_in_words(self.left_out)) or "there are none"
            found = f"none of {sum(self.left_out.values())}: {why}"
            hint = "" if {*self.left_out} <= {OWN, HELD_OUT, *SEEN} else "see that space and columns are the same"
            raise SettingError("answers", "answers that can be used", found, hint)
        return self

    def distinct(self) -> PriorAnswers:
        """Each row once, with its majority label. A row with a tie is left out."""
        first = first_occurrences(self.rows, row_hashes(self.rows))
        groups = defaultdict[int, list[int]](list)
        for at in np.flatnonzero(np.bincount(first, minlength=len(first))[first] > 1).tolist():
            groups[int(first[at])].append(at)
        keep, repeated, conflicts = np.ones(len(self), bool), 0, 0
        for places in groups.values():
            agreed = _majority(self.answers.labels, places)
            keep[places] = False
            keep[agreed[:1]] = True
            repeated += max(len(agreed) - 1, 0)
            conflicts += len(places) - len(agreed)
        found = self.select(keep)
        return replace(found, repeated=repeated, left_out={**self.left_out, **_count_if_any(CONFLICTS, conflicts)})

    def without(self, rows: np.ndarray, why: str, columns: Sequence[int] | None = None) -> PriorAnswers:
        """Leave out answers to any of these rows, and count them.

        `columns` are those that decide, and that `rows` have; by default all.
        """
        own = self.rows if columns is None else self.rows[:, columns]
        asked = {row.tobytes() for row in np.ascontiguousarray(rows)}
        return self.leave_out(np.array([row.tobytes() in asked for row in np.ascontiguousarray(own)], bool), why)

    def leave_out(self, which: np.ndarray, why: str) -> PriorAnswers:
        """Leave out some answers, and count them."""
        left_out = {**self.left_out, **_count_if_any(why, self.left_out.get(why, 0) + int(which.sum()))}
        return replace(self.select(~which), left_out=left_out)

    def select(self, keep: np.ndarray) -> PriorAnswers:
        """Some of the answers."""
        scores = None if self.answers.scores is None else self.answers.scores[keep]
        return replace(self, rows=self.rows[keep], answers=Answers(self.answers.labels[keep], scores))

    def complete_places(self, space: Space) -> np.ndarray:
        """The places of rows of which all columns are known, so that the original can be asked about them."""
        return np.flatnonzero(has_required_values(space, self.rows))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of rows and answers."""
        found = sha256(np.ascontiguousarray(self.rows).tobytes())
        found.update(json.dumps(self.answers.labels.tolist()).encode())
        found.update(b"" if self.answers.scores is None else self.answers.scores.tobytes())
        return found.hexdigest()

    @property
    def seed(self) -> int:
        """A seed from the digest, so that a run with other answers draws other rows."""
        return int(self.digest[:12], 16)

    def as_json(self) -> Json:
        """How many are used, and what was left out, as JSON values."""
        counts = {"used": len(self), "repeated": self.repeated, "left_out": self.left_out}
        return {**counts, "sources": list(self.sources), "sha256": self.digest}


def reasons_in_words(left_out: dict[str, int]) -> Iterator[str]:
    """The reasons why answers were left out, with counts.

    >>> [*reasons_in_words({"levels": 3})]
    ['3 have a level that the space does not know']
    """
    return (f"{n} {LEFT_OUT_REASONS[why]}" for why, n in left_out.items())


def describe_answers(given: Json) -> str:
    """A sentence about prior answers, from `PriorAnswers.as_json`.

    >>> describe_answers({"used": 20, "repeated": 0, "left_out": {"rules": 2}})
    '20 answers were given and cost nothing; left out: 2 break a rule of the space.'
    """
    left = f"; left out: {', '.join(reasons_in_words(given['left_out']))}" if given["left_out"] else ""
    again = f" ({given['repeated']} more say the same of the same rows)" if given["repeated"] else ""
    return f"{given['used']} answers were given and cost nothing{again}{left}."


def _answers_of(source: Source, wanted: AnswerFilter, places: np.ndarray) -> Answers:
    """The answers to some rows, by the declared labels. A label without scores becomes a score of 1."""
    labels, declared = source.answers.labels[places], wanted.declared
    if declared is None:
        return Answers(labels)
    codes = declared.find(labels)
    if (codes < 0).any():
        found = f"{labels[int(np.argmin(codes))].item()!r}, which the original cannot give"
        raise SettingError(source.name, f"labels among {declared}", found, "give answers of the same original")
    scores = np.eye(len(declared), dtype=np.float32)[codes] if wanted.scored else None
    known = source.classes
    if scores is not None and source.answers.scores is not None and known is not None:
        at = declared.find(known.classes)
        if (at >= 0).all():
            scores[:] = 0
            scores[:, at] = source.answers.scores[places]
    return Answers(declared.decode(codes), scores)


def _concatenate(parts: Sequence[LabelledRows]) -> LabelledRows:
    """Concatenate the answers of all sources. Labels of different types are refused."""
    kinds = [part for part in parts if len(part[0])] or list(parts[:1])
    try:
        label_array([label for _, answers in kinds for label in answers.labels[:1].tolist()])
    except ValueError as error:
        raise SettingError("answers", "labels of one type", str(error)) from error
    return concatenate(kinds)


def _majority(labels: np.ndarray, places: Sequence[int]) -> list[int]:
    """Of answers to the same row, the places of those with the majority label; none in a tie."""
    counts = Counter(labels[at].item() for at in places).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return []
    return [at for at in places if labels[at].item() == counts[0][0]]


def _count_if_any(why: str, n: int) -> dict[str, int]:
    return {why: n} if n else {}
