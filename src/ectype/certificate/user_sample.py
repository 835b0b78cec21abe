"""A user's own rows for a certificate: asked as they are, without those that taught the copy."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from ectype._common.formatting import join_names
from ectype.certificate.differences import known_levels
from ectype.errors import OriginalError, SettingError, SpaceError, warn
from ectype.ledger import Purpose
from ectype.models.training_rows import TrainingRows
from ectype.original import Original
from ectype.original.in_memory_rows import reads_its_context, rows_in_memory
from ectype.queries import CANDIDATES, REMEMBERED, TAUGHT, Queries, reasons_in_words
from ectype.space import UNKNOWN_LEVELS, Space, as_pandas, is_frame, refuse_repeated_columns
from ectype.types import Frame, Rows, Table


@dataclass(frozen=True)
class UserSample:
    """A user's rows, as the space has them, of which each distinct one is asked once.

    Rows with a level that the space does not know are left out: the copy has no way to see them. Columns that the space
    lacks go to the original all the same, if it may take them: it is asked about the rows as they are.
    """

    space: Space
    rows: np.ndarray
    further: Frame | None = None
    """The columns that the space lacks, where the original gets them."""
    order: tuple[str, ...] = ()
    """All columns in the order in which they came, where there are such."""
    answers: np.ndarray | None = None
    """The original's label of every row, once it was asked."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many rows were left out, by reason."""

    @classmethod
    def of(cls, original: Original, space: Space, data: Rows, name: str = "data") -> UserSample:
        """Read a user's rows, and leave out those that the original holds in memory."""
        if original.stored is not None:
            hint = f"ask the original itself, or leave out {name}"
            raise SettingError(name, "an original that can be asked about new rows", "stored answers", hint)
        whole: Any = as_pandas(data)
        further = [column for column in whole.columns if column not in space.names] if is_frame(whole) else []
        data = whole
        if further and not space.frame and set(space.names) <= set(whole.columns):
            data = whole[list(space.names)]  # an original of arrays takes no further columns
        with warnings.catch_warnings(action="ignore"):  # about unknown levels, which are counted here
            found = cls(space, space.read(data, name) + 0.0)  # in which -0.0 is 0.0
        if further and space.frame and original.names is None:
            refuse_repeated_columns(whole, name)
            beside = whole[further].reset_index(drop=True)
            found = replace(found, further=beside, order=tuple(whole.columns))
            _warn_of_further(name, original, further)
        found = found.without(~known_levels(space, found.rows), UNKNOWN_LEVELS)
        found = found if original.model is None else found.without(_rows_in_memory(original, found, name), REMEMBERED)
        return found.some(name)

    def __len__(self) -> int:
        return len(self.rows)

    def without(self, which: np.ndarray, reason: str) -> UserSample:
        """The same without some of the rows, which are counted."""
        left_out = self.left_out + Counter({reason: int(which.sum())})  # without those that are 0
        return replace(self.at(np.flatnonzero(~which)), left_out=left_out)

    def without_training_rows(self, training_rows: TrainingRows | None) -> UserSample:
        """The same without rows that taught a copy, or might have."""
        if training_rows is None:
            return self
        taught, candidates = training_rows.find(self.rows)
        return self.without(candidates, CANDIDATES).without(taught[~candidates], TAUGHT)

    def at(self, places: np.ndarray) -> UserSample:
        """Some of the rows."""
        further = None if self.further is None else self.further.iloc[places].reset_index(drop=True)
        answers = None if self.answers is None else self.answers[places]
        return replace(self, rows=self.rows[places], further=further, answers=answers)

    def warn_if_empty(self, name: str) -> None:
        """Warn that no row is left, and say why."""
        if not len(self):
            why = "; ".join(reasons_in_words(self.left_out))
            warn(f"{name}: none of these {sum(self.left_out.values())} rows is left to certify on: {why}")

    def some(self, name: str) -> UserSample:
        """Itself, unless no row is left."""
        if not len(self):
            why = "; ".join(reasons_in_words(self.left_out)) or "there are none"
            found = f"none of {sum(self.left_out.values())}: {why}"
            hint = "give rows that it was not asked about, if there are others" if TAUGHT in self.left_out else ""
            raise SpaceError(name, "at least one row that it can be measured on", found, hint)
        return self

    def present(self, places: np.ndarray) -> Table:
        """Rows as the original takes them."""
        presented: Any = self.space.present(self.rows[places])
        if self.further is None:
            return presented
        import pandas as pd

        beside = self.further.iloc[places].reset_index(drop=True)  # each column of the type that it has
        return pd.concat([presented, beside], axis=1)[list(self.order)]

    def ask(self, queries: Queries, purpose: Purpose) -> UserSample:
        """The same with the original's labels, each distinct row asked once."""
        first, which = self._distinct
        try:
            found = queries.query_labels(purpose, self._numbered(first), lambda places: self.present(first[places]))
            return replace(self, answers=found[which])
        except OriginalError as error:
            if self.further is None:
                raise
            more = f"these rows have columns that the space lacks ({_column_names(self.further.columns)})"
            leave = f"{more}: if the original does not take them, leave them out of the rows"
            hint = "; ".join(filter(None, (error.hint, leave)))
            raise type(error)(error.where, error.expected, error.found, hint) from error

    @property
    def distinct(self) -> int:
        """How many different rows there are."""
        return len(self._distinct[0])

    @property
    def digest(self) -> str:
        """A hash that identifies these rows."""
        hashed = sha256(self.rows.tobytes())
        if self.further is not None:
            hashed.update(self.further.to_csv(index=False).encode())
        return hashed.hexdigest()

    def _numbered(self, places: np.ndarray) -> np.ndarray:
        """Distinct rows for a ledger, which sees the space's columns: rows that differ in others alone are numbered."""
        rows, times = self.rows[places], Counter[bytes]()
        if self.further is None:
            return rows
        number = np.zeros(len(rows))
        for at, row in enumerate(rows):
            number[at] = times[row.tobytes()]
            times[row.tobytes()] += 1
        return np.column_stack([rows, number]) if number.any() else rows

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The places of distinct rows and, for every row, its place among them."""
        parts = [np.where(np.isnan(self.rows), np.inf, self.rows)]  # gaps count as equal, NaN does not
        if self.further is not None:
            groups = self.further.astype(str).groupby(list(self.further.columns), sort=False, dropna=False)
            parts.append(groups.ngroup().to_numpy(np.float64)[:, None])
        _, first, which = np.unique(np.hstack(parts), axis=0, return_index=True, return_inverse=True)
        return first, which


def _rows_in_memory(original: Original, sample: UserSample, name: str) -> np.ndarray:
    """Which rows stand in the original itself."""
    found = rows_in_memory(original.model, sample.present(np.arange(len(sample))))
    if reads_its_context(original.model) and not found.any():
        warn(
            f"{original.name} reads the table that it was trained on for every answer: if some of {name} are in that "
            "table, its answers to them are memories. Give rows that it was not trained on"
        )
    return found


def _warn_of_further(name: str, original: Original, further: Sequence[str]) -> None:
    """Name the columns that the space lacks, and say what that means."""
    warn(
        f"{name}: the space lacks {_column_names(further)}. {original.name} is sent these rows with all of their "
        "columns, but drawn rows without those: the copy learns, and is certified on the space, as if they did not "
        "exist. If it uses them, describe the space with them and copy again; if not, leave them out of these rows"
    )


def _column_names(columns: Iterable[str]) -> str:
    return join_names([*map(repr, columns)])
