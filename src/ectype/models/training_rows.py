"""The rows that taught a copy, by their hashes: a row of the user's own that equals one of them does not certify it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ectype.space import row_hashes
from ectype.types import Json

# What cascades, estimators of ours and scikit-learn's FrozenEstimator call the copy inside them.
WRAPPED = ("copy", "copy_", "estimator")


@dataclass(frozen=True)
class TrainingRows:
    """The rows that taught a copy, and the user's own rows that might have, by their hashes: no row is kept.

    >>> rows = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> known = TrainingRows.of([rows[:1]], candidates=rows[:2])
    >>> [which.tolist() for which in known.find(rows)]
    [[True, False, False], [False, True, False]]
    """

    taught: np.ndarray
    """Of rows that the copy learned from, as far as it sees their columns."""
    candidates: np.ndarray
    """Of the user's own rows among which queries were chosen, in all columns. Those passed over are the easier ones,
    and no fair sample."""
    excluded: tuple[int, ...] = ()
    """The places of columns that the copy does not see."""
    sample: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    """Of the user's own rows that were held out, in all columns, each as often as it came."""

    @classmethod
    def of(
        cls, taught: Iterable[np.ndarray], candidates: np.ndarray | None = None, excluded: Sequence[int] = ()
    ) -> TrainingRows:
        """From the rows themselves, of all columns; those that taught come in several parts."""
        hashes = _union(hashed(_seen(rows, excluded)) for rows in taught)
        return cls(hashes, _union([] if candidates is None else [hashed(candidates)]), tuple(excluded))

    def __or__(self, other: TrainingRows) -> TrainingRows:
        taught, candidates = _union([self.taught, other.taught]), _union([self.candidates, other.candidates])
        return TrainingRows(taught, candidates, self.excluded, self.sample)

    def find(self, rows: np.ndarray, whole: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Which rows equal some that taught the copy, and which others might have.

        Rows that differ only in what the copy does not see are equal to it. Of rows that are not `whole`, but have only
        what it sees, no candidate is known, unless that is all there is.
        """
        taught = np.isin(hashed(_seen(rows, self.excluded) if whole else rows), self.taught)
        comparable = whole or not self.excluded
        return taught, np.isin(hashed(rows), self.candidates) & ~taught & comparable

    def as_json(self) -> Json:
        """As JSON values."""
        keys = {name: _text(getattr(self, name)) for name in ("taught", "candidates", "sample")}
        return {**keys, "excluded": list(self.excluded)}

    @classmethod
    def from_json(cls, content: Json) -> TrainingRows:
        """Read what `as_json` wrote."""
        keys = {name: _array(content[name]) for name in ("taught", "candidates", "sample")}
        return cls(**keys, excluded=tuple(content["excluded"]))


def training_rows_of(copy: object) -> TrainingRows | None:
    """What is known of the rows that taught a copy, also inside a cascade or an estimator; None if nothing is."""
    for one in (copy, *(getattr(copy, name, None) for name in WRAPPED)):
        found = getattr(one, "training_rows", None)
        if isinstance(found, TrainingRows):
            return found
    return None


def hashed(rows: np.ndarray) -> np.ndarray:
    """Hashes of rows; 0.0 and -0.0 have the same, and so have all NaN."""
    return row_hashes(np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0)))


def _seen(rows: np.ndarray, excluded: Sequence[int]) -> np.ndarray:
    return np.delete(rows, excluded, axis=1) if len(excluded) else rows


def _union(parts: Iterable[np.ndarray]) -> np.ndarray:
    found = list(parts)
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)


def _text(keys: np.ndarray) -> str:
    return b64encode(keys.astype("<u8").tobytes()).decode()


def _array(text: str) -> np.ndarray:
    return np.frombuffer(b64decode(text), "<u8").astype(np.uint64)
