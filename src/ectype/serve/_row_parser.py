"""From tensors to the rows of a space: what `Space.read` makes of them, without a data frame where all is ordinary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import isfinite

import numpy as np

from ectype.serve._http_types import Refusal, quote_value
from ectype.serve._tensors import Cell, Tensor
from ectype.space import Category, Column, Number, Space, wire_type_of_column

WHERE = "inputs"

Values = list[Cell] | np.ndarray


class ParsedRows:
    """Rows as a matrix, and the values they came with, a list for each column."""

    def __init__(self, matrix: np.ndarray, columns: Sequence[Values] | None = None):
        self.matrix, self._columns = matrix, columns

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def cells(self) -> list[list[Cell]]:
        """The values as they came; those of a matrix of numbers are what it holds."""
        columns = list(self.matrix.T) if self._columns is None else self._columns
        return [values.tolist() if isinstance(values, np.ndarray) else values for values in columns]

    def part(self, which: slice) -> ParsedRows:
        """Some of the rows."""
        return ParsedRows(
            self.matrix[which], None if self._columns is None else [values[which] for values in self._columns]
        )

    def at(self, places: np.ndarray) -> ParsedRows:
        """The rows at these places."""
        columns = None if self._columns is None else [[values[i] for i in places] for values in self._columns]
        return ParsedRows(self.matrix[places], columns)


def concatenate_rows(several: Sequence[ParsedRows]) -> ParsedRows:
    """The rows of all, one below the other."""
    columns = zip(*(rows.cells for rows in several), strict=True)
    return ParsedRows(np.concatenate([rows.matrix for rows in several]), [list(chain(*cells)) for cells in columns])


class RowParser:
    """Reads tensors as rows of a space.

    A data frame costs milliseconds, whatever it holds. So numbers, and levels that the space has, are read here; of
    all else, each column's own `read` says what it is, or why it is nothing.
    """

    def __init__(self, space: Space):
        self.space = space
        self._known = [_known(column) for column in space.columns]

    def __call__(self, tensors: list[Tensor]) -> ParsedRows:
        """The rows that these tensors hold."""
        if len(tensors) == 1 and not self.space.frame and (matrix := self._numbers(tensors[0])) is not None:
            return ParsedRows(matrix)
        columns = self._columns(tensors)
        return ParsedRows(self._matrix(columns), columns)

    def _numbers(self, tensor: Tensor) -> np.ndarray | None:
        """The matrix that a tensor is as it stands; None if it needs a second look."""
        if len(tensor.shape) != 2 or tensor.shape[1] != self.space.d:
            return None
        if not _is_numbers(tensor.values):  # NumPy would make as much room for each word as for the longest
            return None
        flat = np.asarray(tensor.values, np.float64)
        # The sum of squares is a third of the time; that of large numbers may overflow, and says nothing then.
        if isfinite(flat.dot(flat)) or np.isfinite(flat).all():
            return flat.reshape(tensor.shape)
        return None

    def _columns(self, tensors: list[Tensor]) -> list[Values]:
        names, d = self.space.names, self.space.d
        if len(tensors) == 1 and tensors[0].width == d and len(tensors[0].shape) == 2:
            return [tensors[0].values[j::d] for j in range(d)]
        by_name = {tensor.name: tensor for tensor in tensors}
        if len(by_name) < len(tensors):
            raise Refusal(WHERE, "every name once", "one of them twice")
        absent = [name for name in names if name not in by_name]
        if absent:
            one = f"one of shape [rows, {d}]"
            raise Refusal(
                WHERE, f"an input for every column, or {one}", f"none for {', '.join(map(quote_value, absent[:8]))}"
            )
        for name in names:
            if by_name[name].width != 1:
                shape = list(by_name[name].shape)
                raise Refusal(f"input {quote_value(name)}: shape", "[rows] or [rows, 1]", shape)
        return [by_name[name].values for name in names]

    def _matrix(self, columns: list[Values]) -> np.ndarray:
        if not self.space.frame:
            return self.space.read(np.array(columns, dtype=object).T, WHERE)
        known = zip(self.space.columns, self._known, columns, strict=True)
        return np.column_stack([_read(column, levels, values) for column, levels, values in known])


def _is_numbers(values: Values) -> bool:
    """Whether none of these values is text; gaps are NaN."""
    return isinstance(values, np.ndarray) or str not in set(map(type, values))


def datatype(column: Column) -> str:
    """The datatype that a column's values have in production."""
    return wire_type_of_column(column).v2


def _known(column: Column) -> dict[Cell, float]:
    """The values that need no second look, and what they are as numbers; none for numbers, which are all known."""
    if isinstance(column, Number):
        return {}
    levels = column.levels if isinstance(column, Category) else (False, True)
    gap: dict[Cell, float] = {None: np.nan} if column.missing else {}
    return {**{level: float(code) for code, level in enumerate(levels)}, **gap}


def _read(column: Column, known: dict[Cell, float], values: Values) -> np.ndarray:
    if isinstance(column, Number):
        if _is_numbers(values):
            found = np.array(values, dtype=np.float64)
            if np.isfinite(found).all() or (column.missing and not np.isinf(found).any()):
                return found
    else:
        values = values.tolist() if isinstance(values, np.ndarray) else values
        try:
            return np.array([known[value] for value in values])
        except KeyError:
            pass
    import pandas as pd

    return column.read(pd.Series(values, dtype=object), WHERE)
