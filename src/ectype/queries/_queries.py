"""Queries: fresh rows of a space with the original's answers, counted, and never beyond a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NoReturn, TypeAlias

import numpy as np

from ectype._common.formatting import join_names
from ectype.errors import BudgetError, SettingError, SpaceError
from ectype.ledger import Ledger
from ectype.original import CHUNK, Answers, Original
from ectype.queries._answer_buffer import AnswerBuffer, AnswerStore
from ectype.queries._dispatch import ask
from ectype.queries._quota import NEAR, Allowance, Meter
from ectype.rng import Stream, stream
from ectype.space import Space
from ectype.types import Table

# How many columns a hint drops at most.
DROPPED = 8

Present: TypeAlias = Callable[[np.ndarray], Table]
"""From the places of rows to these rows as an original takes them."""


class Queries:
    """An original and the space to ask it about, with a hard limit for each purpose, and a ledger where there is one.

    The allowance is the most rows that may reach the original, those that are sent again after a failure included; the
    ledger's counts from the beginning of its run.

    >>> queries = Queries(Original(lambda rows: rows[:, 0] > 0), Space.normal(1), {"training": 10})
    >>> rows, said = next(queries.fresh("training", 6, np.random.default_rng(0)))
    >>> len(said), queries.made
    (6, {'training': 6})
    >>> next(queries.fresh("training", 6, np.random.default_rng(0)))
    Traceback (most recent call last):
        ...
    ectype.errors.BudgetError: budget: expected at most 10 queries, found 6 made and 6 more asked for; raise it
    """

    def __init__(
        self,
        original: Original,
        space: Space,
        limits: Mapping[str, int],
        ledger: Ledger | None = None,
        seed: int = 0,
        allowance: Allowance | None = None,
    ):
        check_fit(original, space)
        self.original, self.space, self.limits, self.ledger = original, space, dict(limits), ledger
        self.made = dict.fromkeys(limits, 0)
        self.kept = AnswerBuffer()
        """What no ledger holds."""
        self._store: AnswerStore = self.kept if ledger is None else ledger
        self.meter = Meter(None if ledger is None else ledger.counts)
        usual = allowance_of(original, sum(limits.values()), max(limits.values(), default=0))
        self.meter.allow(usual if allowance is None else allowance)
        self._stored = None if original.stored is None else _Stored(original, space, seed, sum(limits.values()))

    def fresh(self, purpose: str, n: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, Answers]]:
        """n fresh rows with what the original says to them, a chunk at a time; refused whole if beyond the limit."""
        self._allow(purpose, n)
        for at in range(0, n, CHUNK):
            size = min(CHUNK, n - at)
            if self._stored is not None:
                self.made[purpose] += size
                rows, labels = self._stored.take(size)
                self.kept.add(purpose, rows, Answers(labels))
                yield rows, Answers(labels)
            else:
                rows = self.space.sample(size, rng)
                yield rows, self.said(purpose, rows)

    def ask(self, purpose: str, rows: np.ndarray, present: Present | None = None) -> np.ndarray:
        """The original's labels for these rows."""
        return self.said(purpose, rows, present).labels

    def said(self, purpose: str, rows: np.ndarray, present: Present | None = None) -> Answers:
        """What the original says to these rows; `present` gives them as it takes them, if not the space does.

        What a ledger has is taken from it; all else is asked, and written down there.
        """
        self._allow(purpose, len(rows))
        self.made[purpose] += len(rows)
        batch = self._store.batch(rows, purpose, self._scores)
        if len(batch.fresh):
            shown = present or (lambda places: self.space.present(rows[places]))
            before = Counter(self.original.failures)
            gently = self.ledger is not None and not self.meter.counts.answered
            try:
                ask(self.original, lambda part: shown(batch.fresh[part]), len(batch.fresh), batch, self.meter, gently)
            finally:
                batch.end(self.original.failures - before)
        return batch.answers

    @property
    def _scores(self) -> int:
        """How many scores the original gives to a row; 0 if it is not asked for them."""
        declared = self.original.declared
        return len(declared) if self.original.scored and declared is not None else 0

    def _allow(self, purpose: str, n: int) -> None:
        made, limit = self.made[purpose], self.limits[purpose]
        if made + n > limit:
            raise BudgetError("budget", f"at most {limit} queries", f"{made} made and {n} more asked for", "raise it")


def allowance_of(original: Original, planned: int, at_once: int, share: float | None = None) -> Allowance:
    """The most rows that may reach an original: those planned, of which so many are asked at once, and for retries.

    Requests to an original in this process are as large as the retries allow, not the other way round.
    """
    share = 0.0 if original.stored is not None else share
    request_rows = original.request_rows if original.remote else min(original.request_rows, NEAR)
    return Allowance.of(planned, share, request_rows, at_once)


class _Stored:
    """The rows of a table of stored answers, each used once, in an order that the seed decides."""

    def __init__(self, original: Original, space: Space, seed: int, wanted: int):
        assert original.stored is not None
        frame, self._labels = original.stored
        self._rows = space.read(frame, original.name)
        self._order = stream(seed, Stream.TABLE).permutation(len(self._rows))
        self._at = 0
        if wanted > len(self._rows):
            found = f"a table of {len(self._rows)}"
            hint = "lower the budget or the rows of the certificate"
            raise SettingError(original.name, f"stored answers for {wanted} queries", found, hint)

    def take(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The next n rows with their answers."""
        chosen = self._order[self._at : self._at + n]
        self._at += n
        return self._rows[chosen], self._labels[chosen]


def unused(original: Original, seed: int, used: int) -> Original:
    """A table of stored answers without those that a run with this seed used, so many."""
    assert original.stored is not None
    rows, labels = original.stored
    left = stream(seed, Stream.TABLE).permutation(len(labels))[used:]
    if not len(left):
        hint = "give a table of other answers"
        raise SettingError(original.name, "stored answers that the copy was not made from", "none left", hint)
    other = original.but()
    other.stored = rows.iloc[left], labels[left]
    return other


def check_fit(original: Original, space: object) -> None:
    """Whether the space has the columns that the original takes, as far as it says."""
    if not isinstance(space, Space):
        raise SpaceError("space", "a Space", type(space).__name__, "e.g. Space.normal(d) or Space.from_data(rows)")
    if original.stored is not None:  # read by the names of the space's columns, further ones left out
        return
    if original.names is not None and space.frame and original.names != space.names:
        _refuse_names(original.name, original.names, space.names)
    if original.d is not None and original.d != space.d:
        hint = "leave out what it was not fitted on, such as a column of labels" if space.d > original.d else ""
        raise SpaceError("space", f"the {original.d} columns that {original.name} takes", f"{space.d}", hint)


def _refuse_names(name: str, wanted: Sequence[str], given: Sequence[str]) -> NoReturn:
    """Say which columns an original lacks, or has no use for."""
    more, absent = [n for n in given if n not in wanted], [n for n in wanted if n not in given]
    expected = f"the {len(wanted)} columns that {name} takes"
    if absent:
        hint = f"describe the space from rows as it takes them: {join_names(wanted, 20)}"
        raise SpaceError("space", expected, f"none called {join_names([*map(repr, absent)])}", hint)
    if more:
        options = " ".join(f"--drop {quote(name)}" for name in more[:DROPPED])
        hint = f"leave out what it was not fitted on, such as a column of labels: {options}, or frame.drop"
        raise SpaceError("space", expected, f"also {join_names([*map(repr, more)])}", hint)
    hint = f"describe them in its own: {join_names(wanted, 20)}"
    raise SpaceError("space", f"{expected}, in its order", "another order", hint)
