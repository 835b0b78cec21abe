"""Rows of the user's own: some are held out for a certificate, and of the others part are asked about."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ectype.certificate.user_sample import UserSample
from ectype.errors import SettingError
from ectype.ledger import FURTHER_COLUMNS
from ectype.models.training_rows import TrainingRows
from ectype.original import Original
from ectype.plan.plan import Plan
from ectype.queries import PriorAnswers
from ectype.rng import Stream, stream
from ectype.space import SeenRows, Space
from ectype.types import Json, Rows, Table

# The share of the rows that is held out at most.
HELD_OUT = 0.5
NAME = "rows"


@dataclass(frozen=True)
class UserRows:
    """A user's rows, as the space has them, divided before anything is asked."""

    held_out: UserSample
    """A random sample, which training never sees; some may be alike, as they are in production."""
    pool: np.ndarray
    """The others, each distinct one once, in random order."""
    every: UserSample = field(repr=False)
    """All of them."""

    @classmethod
    def of(
        cls, rows: Rows, original: Original, space: Space, plan: Plan, known: PriorAnswers | None = None
    ) -> UserRows:
        """Read and divide them: as many are held out as rows of the space are, but half of them at most.

        Those whose answers are known teach the copy already: nothing is paid for them, and they certify nothing.
        """
        every = unknown = UserSample.of(original, space, rows, NAME)
        if known is not None:
            hidden = [*map(space.names.index, plan.asked.exclude)]
            unknown = every.untaught(TrainingRows.of([known.rows], excluded=hidden))
            unknown.warn_if_empty(NAME)
        order = stream(plan.asked.seed, Stream.OWN).permutation(len(unknown))
        n = min(plan.asked.certificate_n, int(HELD_OUT * len(order)))
        held_out = unknown.at(order[:n])
        seen = SeenRows()
        seen.add(held_out.rows)
        others = unknown.rows[order[n:]]
        pool = others[seen.new(others, at_least=0)]
        found = cls(held_out, pool, every)
        if every.further is not None:
            found.refuse_ambiguous()
        return found

    @property
    def queries(self) -> int:
        """How many queries the certificate on them takes."""
        return self.held_out.distinct if len(self.held_out) else 0

    @property
    def about(self) -> Json:
        """What tells them from other rows: a run is recognised by it."""
        further = self.every.further
        return {NAME: self.every.digest} | ({} if further is None else {FURTHER_COLUMNS: list(further.columns)})

    def present(self, rows: np.ndarray) -> Table:
        """Some of the rows as the original takes them."""
        return self.every.present(np.array([self._places[row.tobytes()] for row in rows]))

    def refuse_ambiguous(self) -> None:
        """Refuse rows that differ only in columns that the space lacks: answers are found by the columns it has."""
        alike = self.every.distinct - len(self._places)
        if alike:
            assert self.every.further is not None
            found = f"{alike} that differ from others only in {', '.join(map(repr, self.every.further.columns))}"
            hint = "leave these columns out if the original does not take them, else describe the space with them"
            raise SettingError(NAME, "rows that differ in the columns of the space", found, hint)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {row.tobytes(): place for place, row in enumerate(self.every.rows)}
