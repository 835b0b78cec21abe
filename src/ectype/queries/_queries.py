"""Queries to an original, counted by purpose and never beyond a budget; and the checks before the first one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import NoReturn, TypeAlias

import numpy as np

from ectype._common.formatting import join_names
from ectype.errors import BudgetError, SettingError, SpaceError
from ectype.ledger import Ledger, Purpose
from ectype.original import CHUNK, Answers, Original
from ectype.queries._dispatch import send
from ectype.queries._quota import NEAR, Allowance, Quota
from ectype.queries._store import Batch, MemoryStore, Store
from ectype.rng import Stream, stream
from ectype.space import Space
from ectype.types import Table

# How many columns a hint drops at most.
DROPPED = 8

Present: TypeAlias = Callable[[np.ndarray], Table]
"""Gives rows, named by their places, in the layout that an original takes."""


class Queries:
    """An original and the space that its rows are from, with a hard limit for each purpose.

    Answers go to the ledger, if there is one, else to memory. The allowance is the most rows that may reach the
    original, those that are sent again after a failure included. A ledger counts from the beginning of its run.

    >>> queries = Queries(Original(lambda rows: rows[:, 0] > 0), Space.normal(1), {Purpose.TRAINING: 10})
    >>> rows, answers = next(queries.fresh(Purpose.TRAINING, 6, np.random.default_rng(0)))
    >>> len(answers), queries.made
    (6, {'training': 6})
    >>> next(queries.fresh(Purpose.TRAINING, 6, np.random.default_rng(0)))
    Traceback (most recent call last):
        ...
    ectype.errors.BudgetError: budget: expected at most 10 queries, found 6 made and 6 more asked for; raise it
    """

    def __init__(
        self,
        original: Original,
        space: Space,
        limits: Mapping[Purpose, int],
        ledger: Ledger | None = None,
        seed: int = 0,
        allowance: Allowance | None = None,
    ):
        check_fit(original, space)
        self.original, self.space, self.limits, self.ledger = original, space, dict(limits), ledger
        self.made = dict.fromkeys(map(str, limits), 0)
        self.memory = MemoryStore()
        """Answers that are in no ledger: all where there is none, and those of a table."""
        self._store: Store = self.memory if ledger is None else ledger
        self.quota = Quota(self._store.counts)
        usual = allowance_of(original, sum(limits.values()), max(limits.values(), default=0))
        self.quota.allow(usual if allowance is None else allowance)
        self._stored = None if original.stored is None else _Stored(original, space, seed, sum(limits.values()))

    def fresh(self, purpose: Purpose, n: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, Answers]]:
        """Draw n rows of the space and query them, a chunk at a time. All are refused if they exceed the limit."""
        self._allow(purpose, n)
        for at in range(0, n, CHUNK):
            size = min(CHUNK, n - at)
            if self._stored is not None:
                self.made[purpose] += size
                rows, labels = self._stored.take(size)
                self.memory.add(purpose, rows, Answers(labels))
                yield rows, Answers(labels)
            else:
                rows = self.space.sample(size, rng)
                yield rows, self.query(purpose, rows)

    def query_labels(self, purpose: Purpose, rows: np.ndarray, present: Present | None = None) -> np.ndarray:
        """Query rows, for the labels alone."""
        return self.query(purpose, rows, present).labels

    def query(self, purpose: Purpose, rows: np.ndarray, present: Present | None = None) -> Answers:
        """Answers to rows: those that the store has, and for all other rows the original's.

        `present` gives rows in the layout that the original takes; by default, the space does.
        """
        self._allow(purpose, len(rows))
        self.made[purpose] += len(rows)
        batch = self._store.batch(rows, purpose, self._scores)
        if len(batch.fresh):
            present = present or (lambda places: self.space.present(rows[places]))
            self._send(batch, present)
        return batch.answers

    def _send(self, batch: Batch, present: Present) -> None:
        """Send the rows of a batch that have no answer yet."""
        before = Counter(self.original.failures)
        gently = self.ledger is not None and not self.quota.counts.answered
        try:
            send(self.original, lambda part: present(batch.fresh[part]), len(batch.fresh), batch, self.quota, gently)
        finally:
            batch.end(self.original.failures - before)

    @property
    def _scores(self) -> int:
        """The number of scores per row; 0 if the original is not asked for them."""
        declared = self.original.declared
        return len(declared) if self.original.scored and declared is not None else 0

    def _allow(self, purpose: Purpose, n: int) -> None:
        made, limit = self.made[purpose], self.limits[purpose]
        if made + n > limit:
            raise BudgetError("budget", f"at most {limit} queries", f"{made} made and {n} more asked for", "raise it")


def allowance_of(original: Original, planned: int, at_once: int, share: float | None = None) -> Allowance:
    """The most rows that may reach an original: the planned ones, at most `at_once` in one call, and retries.

    Requests to an original in this process are as large as the retries allow, not the other way round.
    """
    share = 0.0 if original.stored is not None else share
    request_rows = original.request_rows if original.remote else min(original.request_rows, NEAR)
    return Allowance.of(planned, share, request_rows, at_once)


class _Stored:
    """Rows of a table of stored answers, each used once, in random order."""

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


def unused_rows(original: Original, seed: int, used: int) -> Original:
    """A table of stored answers without the `used` ones that a run with this seed took."""
    assert original.stored is not None
    rows, labels = original.stored
    left = stream(seed, Stream.TABLE).permutation(len(labels))[used:]
    if not len(left):
        hint = "give a table of other answers"
        raise SettingError(original.name, "stored answers that the copy was not made from", "none left", hint)
    other = original.replace()
    other.stored = rows.iloc[left], labels[left]
    return other


def check_fit(original: Original, space: object) -> None:
    """Refuse a space without the columns that the original takes, as far as it tells them."""
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
    """Refuse a space, naming the columns that the original lacks or does not take."""
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
