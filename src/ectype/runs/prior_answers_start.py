"""The start of a run that is given answers: they are its first points, once a few of them were asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ectype.errors import PriorAnswersError, warn
from ectype.ledger import Purpose
from ectype.methods.acquisition import POLICIES, Policy
from ectype.original import LabelledRows, concatenate
from ectype.queries import DRIFT_TEST_FACTOR, DriftTest, PriorAnswers, Queries, run_drift_test
from ectype.rng import Stream, stream
from ectype.runs.initialisation import ColdStart
from ectype.runs.query_session import QuerySession
from ectype.space import Space

# How many given rows are asked again, to see whether the original is the same. While that is not clear, up to MORE
# times as many are, and those that differ once more.
ROWS = 16
# How many rows that differ a message shows, and columns of each.
SHOWN, COLUMNS = 5, 8


@dataclass(frozen=True)
class PriorAnswersMixin:
    """What starts have in common that are given answers: a few of these are asked again."""

    known: PriorAnswers = field(kw_only=True)
    again: int = field(default=ROWS, kw_only=True)
    """How many."""
    deterministic: bool = field(default=False, kw_only=True)
    """Whether the original always answers alike, so that a single one that differs is another's."""

    @property
    def given(self) -> LabelledRows | None:
        """The answers."""
        return self.known.labelled_rows

    @property
    def checks(self) -> Mapping[Purpose, int]:
        """Rows that are asked again, and those of them that differ once more."""
        most = min(DRIFT_TEST_FACTOR * self.again, len(self.known))
        return {Purpose.RECHECK: most, Purpose.REPEAT: most}

    def prepare(self, inquiry: QuerySession) -> None:
        """Refuse answers of another original."""
        try:
            recognise(self, inquiry.queries, inquiry.space, inquiry.stream(Stream.CHECK))
        except PriorAnswersError:
            inquiry.abandon()  # other answers, or none, make another run
            raise


@dataclass(frozen=True)
class PriorAnswersStart(PriorAnswersMixin, ColdStart):
    """A run with answers from elsewhere: training points that cost nothing. What certifies it is asked anew."""

    choices: Mapping[str, Policy] = field(default_factory=lambda: POLICIES)

    def stream(self, seed: int, purpose: Stream, t: int) -> np.random.Generator:
        """Random numbers of its own: the run that asked for the answers may have used those of the seed alone."""
        return stream(seed, purpose, t, self.known.seed)

    def first(self, inquiry: QuerySession) -> LabelledRows:
        """The answers, and a batch of fresh rows, if the plan has one."""
        given = self.known.labelled_rows
        return concatenate([given, inquiry.opening()]) if inquiry.plan.batch else given


def recognise(start: PriorAnswersMixin, queries: Queries, space: Space, rng: np.random.Generator) -> DriftTest | None:
    """Ask a few rows again, and refuse the answers if more of them changed than noise explains; gives the check."""
    known = start.known
    places = known.complete_places(space)
    if not len(places):
        said = (
            "none of the given answers has all columns that the original takes: whether they are its own is not known"
        )
        warn(said)
        return None
    rows, labels = known.rows[places], known.answers.labels[places]
    found = run_drift_test(
        queries, rows, labels, start.again, DRIFT_TEST_FACTOR * start.again, rng, start.deterministic, Purpose.RECHECK
    )
    _refuse_type(labels, found.answers)
    differ = found.answers != labels[found.places]
    shown = [*_differences(space, rows[found.places[differ]], labels[found.places[differ]], found.answers[differ])]
    if found.changed:
        _refuse(found, shown)
    if found.stayed:
        said = f"asked again, {found.stayed} of {len(found.places)} given answers are others now: {'; '.join(shown)}"
        warn(f"{said}. Too few to tell another original from noise")
    return found


def _refuse_type(given: np.ndarray, now: np.ndarray) -> None:
    """Refuse 1 where the original says True, and the like: copies answer in the original's type."""
    kinds = {given.dtype.kind, now.dtype.kind}
    if len(kinds) > 1 and kinds & {"b", "U"}:
        expected = f"labels such as {now[0].item()!r}, of the type that the original gives"
        raise PriorAnswersError(
            "answers", expected, f"{given[0].item()!r}", "write them as it does, or name its classes"
        )


def _refuse(found: DriftTest, shown: list[str]) -> None:
    expected = "answers of the same original"
    more = "" if found.flipped == len(shown) else f"; and {found.flipped - len(shown)} more"
    says = f"that it says otherwise to {found.flipped} of {len(found.places)} rows: {'; '.join(shown)}{more}"
    raise PriorAnswersError("answers", expected, says, "leave them out, or give those of this original, as it is now")


def _differences(space: Space, rows: np.ndarray, before: np.ndarray, now: np.ndarray) -> list[str]:
    """Rows that differ, readably: some of their columns, what was given, and what is said now."""
    import pandas as pd

    frame, told = pd.DataFrame(space.present(rows[:SHOWN]), columns=list(space.names)), list[str]()
    for at, row in enumerate(frame.to_dict("records")):
        named = [f"{name}={_value(value)}" for name, value in list(row.items())[:COLUMNS]]
        more = ", ..." if space.d > COLUMNS else ""
        told.append(f"{', '.join(named)}{more} was {before[at].item()!r} and is {now[at].item()!r}")
    return told


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
