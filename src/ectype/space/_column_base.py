"""The base of all columns: name, gaps, and the conversion from a data frame to numbers and back."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from ectype._common.formatting import shorten
from ectype.errors import SpaceError
from ectype.types import Series

Share = Annotated[FiniteFloat, Field(gt=0)]
Numbers = tuple[FiniteFloat, ...]


class SpacePart(BaseModel):
    """A part of a space's JSON form."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ColumnBase(SpacePart):
    """A column of any kind."""

    name: Annotated[str, Field(min_length=1)]
    missing: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    """The share of rows without a value."""
    dtype: str | None = None
    """The pandas type in production, where it is not the default of the kind."""
    kind: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}: {self.kind}, {shorten(self.summary, 60)})"

    __str__ = __repr__

    @property
    def summary(self) -> str:
        """What its values are, in a few words."""
        raise NotImplementedError

    @property
    def cut(self) -> float | None:
        """The normal score of its own above which a value is missing."""
        return -NormalDist().inv_cdf(self.missing) if self.missing else None

    def present(self, values: np.ndarray) -> Series:
        """Values as they stand in a data frame in production."""
        import pandas as pd
        from pandas.api.types import pandas_dtype

        column = pd.Series(self.raw(values))
        if self.dtype is None:
            return column.infer_objects()
        try:
            return _below_the_end(column, pandas_dtype(self.dtype)).astype(pandas_dtype(self.dtype))
        except (TypeError, ValueError) as error:
            where = f"column {self.name}: dtype"
            raise SpaceError(where, "a type of pandas that its values hold", f"{self.dtype!r}: {error}") from error

    def read(self, values: Series, where: str) -> np.ndarray:
        """A column of a data frame as numbers, the inverse of `present`."""
        absent = np.asarray(values.isna())
        if absent.any() and not self.missing:
            found = f"{int(absent.sum())} missing, the first in row {int(np.argmax(absent))}"
            hint = "fill them, or describe the column with a share of missing values"
            raise SpaceError(f"{where}: column {self.name}", "a value in every row", found, hint)
        numbers = np.full(len(absent), np.nan)
        numbers[~absent] = self.numbers(values[~absent], where)
        return numbers

    def numbers(self, values: Series, where: str) -> np.ndarray:
        """Values of a data frame, none of them missing, as numbers."""
        raise NotImplementedError

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values as in production, missing ones as NaN."""
        raise NotImplementedError

    def _error(self, where: str, expected: str, found: object, hint: str = "") -> SpaceError:
        return SpaceError(f"{where}: column {self.name}", expected, found, hint)


def _below_the_end(column: Series, dtype: Any) -> Series:
    """Floats that whole numbers of 64 bits hold: their largest is rounded up as a float, and would become another."""
    if getattr(dtype, "kind", "O") not in "iu" or getattr(dtype, "itemsize", 0) < 8 or column.dtype.kind != "f":
        return column
    limits = np.iinfo(f"{dtype.kind}8")
    return column.clip(float(limits.min), np.nextafter(float(limits.max), 0))


def check_shares(values: Sequence[object] | None, shares: Sequence[float] | None) -> None:
    """Refuse shares that are not one for each value, or do not sum to 1."""
    if values is not None and shares is not None and (len(values) != len(shares) or abs(sum(shares) - 1) > 1e-6):
        raise ValueError(f"expected one share for each of {len(values)} values, and a sum of 1, found others")


def shares_of(values: Sequence[object], shares: Sequence[float] | None) -> np.ndarray:
    """The share of each value; equal ones where none are given."""
    return np.full(len(values), 1 / len(values)) if shares is None else np.asarray(shares)


def ends_of(weights: np.ndarray) -> np.ndarray:
    """The probabilities at which one value of a discrete distribution ends and the next begins."""
    return np.cumsum(weights)[:-1]


def with_gaps(levels: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The levels that codes stand for, with NaN where there is none."""
    found = np.full(len(codes), np.nan, dtype=object)
    there = ~np.isnan(codes)
    found[there] = levels[codes[there].astype(int)]
    return found


def moments_of(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of values that have these weights."""
    with np.errstate(over="ignore", invalid="ignore"):  # such a space is refused when it is made
        mean = float(values @ weights)
        return mean, float(np.sqrt((values - mean) ** 2 @ weights))
