"""Queries: fresh rows of a space with the original's answers, counted, and never beyond a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from understudy.errors import BudgetError, SpaceError
from understudy.original import CHUNK, Original
from understudy.space import Space


class Queries:
    """An original and the space to ask it about, behind a counter with a hard limit.

    >>> queries = Queries(Original(lambda rows: rows[:, 0] > 0), Space.normal(1), budget=10)
    >>> rows, answers = next(queries.fresh(6, np.random.default_rng(0)))
    >>> len(answers), queries.made
    (6, 6)
    >>> next(queries.fresh(6, np.random.default_rng(0)))
    Traceback (most recent call last):
        ...
    understudy.errors.BudgetError: budget: expected at most 10 queries, found 6 made and 6 more asked for; raise it
    """

    def __init__(self, original: Original, space: Space, budget: int):
        _check_fit(original, space)
        self.original, self.space, self.budget, self.made = original, space, budget, 0

    def fresh(self, n: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """n fresh rows with the original's answers, a chunk at a time; refused whole if beyond the budget."""
        if self.made + n > self.budget:
            found = f"{self.made} made and {n} more asked for"
            raise BudgetError("budget", f"at most {self.budget} queries", found, "raise it")
        for at in range(0, n, CHUNK):
            rows = self.space.sample(min(CHUNK, n - at), rng)
            self.made += len(rows)
            yield rows, self.original.answer(self.space.present(rows))


def _check_fit(original: Original, space: Any) -> None:
    if not isinstance(space, Space):
        raise SpaceError("space", "a Space", type(space).__name__, "e.g. Space.normal(d) or Space.from_data(rows)")
    if original.d is not None and original.d != space.d:
        raise SpaceError("space", f"the {original.d} columns that {original.name} takes", f"{space.d}")
    if original.names is not None and space.frame and original.names != space.names:
        raise SpaceError("space", f"the columns {list(original.names)} that {original.name} takes", list(space.names))
