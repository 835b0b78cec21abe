"""Columns of real traffic that are not kept as they came: left out, or only to a tenth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype.errors import SettingError
from ectype.space import Number, Space

# How many ranges of equal share a masked column has, and how many rows of the space they are found with.
RANGES, DRAWN = 10, 20_000


class Masking:
    """Rows without what may not be kept.

    Columns `without` are NaN. Numbers and dates that are `masked` become the middle of the tenth of the space's
    distribution that they are in: ten values are left, and each of them is one that the space has.

    >>> masking = Masking(Space.uniform(0.0, 100.0, 3), without=["x1"], masked=["x0"])
    >>> masking(np.array([[1.0, 1.0, 7.0], [9.0, 2.0, 8.0], [52.0, 3.0, 9.0]])).round().tolist()
    [[5.0, nan, 7.0], [5.0, nan, 8.0], [55.0, nan, 9.0]]
    >>> masking.dropped
    ['x0', 'x1']
    """

    def __init__(self, space: Space, without: Sequence[str] = (), masked: Sequence[str] = ()):
        for option, names in (("--keep-without", without), ("--keep-masked", masked)):
            if unknown := [name for name in names if name not in space.names]:
                raise SettingError(option, f"columns among {list(space.names)}", unknown, "check their spelling")
        self.masked = [name for name in space.names if name in masked]
        self.dropped = [name for name in space.names if name in {*without, *masked}]
        if len(self.dropped) == space.d:
            raise SettingError(
                "--traffic", "a column that is kept as it comes", "none", "leave out fewer, or mask fewer"
            )
        self._gone = [j for j, name in enumerate(space.names) if name in without]
        self._ranges = _ranges(space, [space.names.index(name) for name in self.masked if name not in without])

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """These rows as they may be kept."""
        rows = rows.copy()
        for j, (ends, middles) in self._ranges.items():
            there = ~np.isnan(rows[:, j])
            rows[there, j] = middles[np.searchsorted(ends, rows[there, j], side="right")]
        rows[:, self._gone] = np.nan
        return rows


def _ranges(space: Space, columns: list[int]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For each column, where its ranges end, and their middles; the same for the same space, always."""
    for column in (space.columns[j] for j in columns):
        if not isinstance(column, Number):
            hint = f"leave it out: --keep-without {column.name}"
            raise SettingError("--keep-masked", "a number or a date", f"{column.name}, a {column.kind}", hint)
    rows = space.sample(DRAWN, np.random.default_rng(0)) if columns else np.empty((0, space.d))
    shares = np.arange(1, 2 * RANGES) / (2 * RANGES)
    found = {j: np.nanquantile(rows[:, j], shares, method="inverted_cdf") for j in columns}
    return {j: (cuts[1::2], cuts[::2]) for j, cuts in found.items()}
