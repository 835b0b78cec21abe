"""Rows of the user's own: some are held out for a certificate, and of the others part are asked about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from understudy.certificate.proving import Given
from understudy.original import Original
from understudy.runs.plan import Plan
from understudy.space import Space
from understudy.space.rowkeys import Seen
from understudy.streams import Stream, stream
from understudy.types import Rows

# The purpose of the queries about rows that were held out.
PURPOSE = "rows"
# The share of the rows that is held out at most.
HELD_OUT = 0.5
NAME = "rows"


@dataclass(frozen=True)
class Own:
    """A user's rows, as the space has them."""

    held_out: Given
    """A random sample, which training never sees; some may be alike, as they are in production."""
    pool: np.ndarray
    """The others, each distinct one once, in random order."""
    digest: str
    """What tells them from other rows."""

    @classmethod
    def of(cls, rows: Rows, original: Original, space: Space, plan: Plan) -> Own:
        """Read and divide them: as many are held out as rows of the space are, but half of them at most."""
        given = Given.of(original, space, rows, NAME)
        order = stream(plan.asked.seed, Stream.OWN).permutation(len(given.rows))
        n = min(plan.asked.certificate_n, int(HELD_OUT * len(order)))
        held_out = replace(given, rows=given.rows[order[:n]])
        seen = Seen()
        seen.add(held_out.rows)
        others = given.rows[order[n:]]
        pool = others[seen.new(others, at_least=0)]
        return cls(held_out, pool, sha256(given.rows.tobytes()).hexdigest())

    @property
    def queries(self) -> int:
        """How many queries the certificate on them takes."""
        return len(self.held_out.different) if len(self.held_out.rows) else 0
