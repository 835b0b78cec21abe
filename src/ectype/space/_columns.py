"""The columns of a space: one class for each kind, with its distribution, and its form in production and in memory.

In memory a table of rows is one float64 matrix. A number stands for itself, a boolean is 0 or 1, a category is the
position of its level, a date is days and a timestamp seconds since 1970, and NaN is a missing value.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    Field,
    FiniteFloat,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from ectype._common import validation
from ectype._common.formatting import number
from ectype._kernel import DISCRETE_MARGINAL, NORMAL_MARGINAL, QUANTILE_MARGINAL, Marginal
from ectype.errors import SpaceError, warn
from ectype.space import _dates as dates
from ectype.space._column_base import (
    ColumnBase,
    Numbers,
    Share,
    check_shares,
    ends_of,
    moments_of,
    shares_of,
    with_gaps,
)
from ectype.types import Series

# The code of a level that the space does not know: it may turn up in rows that a copy is asked about.
UNKNOWN_LEVEL = -1
# Words that CSV files use for a boolean, in lower case.
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}


class Number(ColumnBase):
    """A float or an integer, given by its bounds, mean and deviation, quantiles, or a few values with their shares."""

    kind: Literal["float", "integer"]
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    mean: FiniteFloat | None = None
    std: Annotated[FiniteFloat, Field(gt=0)] | None = None
    quantiles: Annotated[Numbers, Field(min_length=2)] | None = None
    """Values at evenly spaced probabilities from 0 to 1; a plateau is a point mass."""
    values: Annotated[Numbers, Field(min_length=1)] | None = None
    shares: tuple[Share, ...] | None = None

    @model_validator(mode="after")
    def _one_distribution(self) -> Self:
        ways = ("mean", "quantiles", "values")
        given = [way for way in ways if getattr(self, way) is not None]
        if len(given) > 1:
            raise ValueError(f"expected one distribution, found {' and '.join(given)}")
        if not given and (self.low is None or self.high is None):
            raise ValueError(
                "expected low and high, mean and std, quantiles, or values with shares, found none of them"
            )
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"expected low below high, found {self.word(self.low)} and {self.word(self.high)}")
        if (self.mean is None) != (self.std is None):
            raise ValueError("expected mean and std, found one of them")
        if self.quantiles is not None and any(after < before for before, after in pairwise(self.quantiles)):
            raise ValueError("expected quantiles that never decrease, found others")
        if self.shares is not None and self.values is None:
            raise ValueError("expected values to which the shares belong, found none")
        check_shares(self.values, self.shares)
        if self.whole and not np.isfinite(self._inside(np.zeros(1))).all():
            raise ValueError("expected a whole number between low and high, found none")
        return self

    @property
    def marginal(self) -> Marginal:
        """How rows are drawn; of a normal distribution with bounds, the probabilities that `at` makes values of."""
        if self.values is not None:
            return Marginal(DISCRETE_MARGINAL, np.asarray(self.values), ends_of(self.weights), missing=self.cut)
        if self.truncated:
            return Marginal(QUANTILE_MARGINAL, np.array([0.0, 1.0]), missing=self.cut)
        if self.mean is not None and self.std is not None:
            return Marginal(NORMAL_MARGINAL, np.array([self.mean, self.std]), whole=self.whole, missing=self.cut)
        curve = np.asarray(self._bounds if self.quantiles is None else self.quantiles)
        low, high = self._inside(curve[[0, -1]]).tolist()
        return Marginal(QUANTILE_MARGINAL, curve, whole=self.whole, low=low, high=high, missing=self.cut)

    def at(self, u: np.ndarray) -> np.ndarray:
        """Inverse transform sampling: the values at probabilities."""
        if self.mean is not None and self.std is not None:
            found = self.mean + self.std * self._scores(self.mean, self.std, u)
        elif self.quantiles is not None:
            found = np.interp(u, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        else:
            low, high = self._bounds
            found = low + (high - low) * u
        return self._inside(found)

    @property
    def truncated(self) -> bool:
        """Whether this is a normal distribution with bounds."""
        return self.mean is not None and not (self.low is None and self.high is None)

    @property
    def plain(self) -> bool:
        """Whether this is a normal distribution without bounds."""
        return self.kind == "float" and self.mean is not None and self.low is None and self.high is None

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.kind != "float"

    @property
    def is_float(self) -> bool:
        """Whether production has it as a plain float."""
        return self.dtype == "float64" or (self.dtype is None and (self.kind == "float" or bool(self.missing)))

    @property
    def weights(self) -> np.ndarray:
        """The share of each of the values."""
        return shares_of(self.values or (), self.shares)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        if self.plain and self.mean is not None and self.std is not None:
            return self.mean, self.std
        if self.values is not None:
            return moments_of(np.asarray(self.values), self.weights)
        u = (np.arange(2048) + 0.5) / 2048
        return moments_of(self.at(u), np.full(2048, 1 / 2048))

    @property
    def summary(self) -> str:
        """What its values are, in a few words."""
        if self.values is not None:
            return ", ".join(map(self.word, self.values[:8])) + (", ..." if len(self.values) > 8 else "")
        if self.quantiles is not None:
            found = [self.quantiles[k] for k in (0, len(self.quantiles) // 2, -1)]
            low, middle, high = (self.word(round(value) if self.whole else value) for value in found)
            return f"{low} to {high}, median {middle}"
        ends = ["" if end is None else self.word(end) for end in (self.low, self.high)]
        bounds = f"{ends[0] or 'anything'} to {ends[1] or 'anything'}" if any(ends) else ""
        if self.mean is None or self.std is None:
            return bounds
        return f"mean {self.word(self.mean)}, deviation {number(self.std)}" + (f", {bounds}" if bounds else "")

    def word(self, value: float, exact: bool = False) -> str:
        """A value as people write it: with a few digits, or all that matter."""
        return f"{value:.15g}" if exact else number(value)

    def numbers(self, values: Series, where: str) -> np.ndarray:
        """Values of a data frame, none of them missing, as numbers."""
        if getattr(values.dtype, "kind", "O") not in "biuf":
            try:
                validation.numerals(values)
                values = values.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise self._error(where, "numbers", str(error)) from error
        found = values.to_numpy(dtype=np.float64)
        if not np.isfinite(found).all():
            raise self._error(where, "finite numbers", f"{found[~np.isfinite(found)][0]}")
        return found

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values as in production; whole numbers with gaps are floats, as pandas reads them."""
        return values.astype(np.int64) if self.whole and not self.missing else values.copy()

    @property
    def _bounds(self) -> tuple[float, float]:
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        if self.whole and self.mean is None and self.quantiles is None:
            return np.ceil(low) - 0.5, np.floor(high) + 0.5  # so that the outermost are as likely as the others
        return low, high

    def _scores(self, mean: float, std: float, u: np.ndarray) -> np.ndarray:
        """Normal scores at probabilities between those of the bounds."""
        from scipy.special import ndtr, ndtri

        low, high = (ndtr((bound - mean) / std) for bound in self._bounds)
        return ndtri(low + (high - low) * u)

    def _inside(self, found: np.ndarray) -> np.ndarray:
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        if self.whole:
            low, high = np.ceil(low), np.floor(high)
            if low > high:
                return np.full(len(found), np.nan)
            found = np.rint(found)
        return found if self.low is None and self.high is None else np.clip(found, low, high)


class Date(Number):
    """A date, or a timestamp: a number that production has as a date, or as text in the form of one.

    Its number is what copies and exported files see: whole days since 1970-01-01, or whole seconds since then, in UTC.
    In JSON its bounds, mean, quantiles and values may be text: 2026-03-01, or 2026-03-01T12:30:00.
    """

    kind: Literal["date", "timestamp"]  # type: ignore[assignment]
    form: str | None = None
    """How production writes it, in the terms of strftime, where it is text there."""

    @field_validator("low", "high", "mean", "quantiles", "values", mode="before")
    @classmethod
    def _from_text(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, (list, tuple)):
            return tuple(cls._from_text(part, info) for part in value)
        return dates.number_of(value, info.data.get("kind") == "date") if isinstance(value, str) else value

    @field_serializer("low", "high", "mean", "quantiles", "values", when_used="json")
    def _as_text(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.word(part, exact=True) for part in value]
        return None if value is None else self.word(value, exact=True)

    @model_validator(mode="after")
    def _within_years(self) -> Self:
        given = [value for value in (self.low, self.high, self.mean) if value is not None]
        first, last = self.limits
        for value in (*given, *(self.quantiles or ()), *(self.values or ())):
            if not first <= value <= last:
                raise ValueError(f"expected dates from the year 1 to 9999, found {value:g}")
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest number that is a date."""
        return dates.limits(self.kind == "date")

    @property
    def is_float(self) -> bool:
        """Whether production has it as a plain float."""
        return False

    def word(self, value: float, exact: bool = False) -> str:
        """A value as people write it."""
        text = dates.text_of(value, self.kind == "date")
        return text if exact else text[:16].replace("T", " ")

    def numbers(self, values: Series, where: str) -> np.ndarray:
        """Values of a data frame, none of them missing, as days or seconds; numbers are taken for such."""
        if getattr(values.dtype, "kind", "O") in "iuf":
            found = np.floor(super().numbers(values, where))
            beyond = (found < self.limits[0]) | (found > self.limits[1])
            if beyond.any():
                unit = "days" if self.kind == "date" else "seconds"
                raise self._error(where, f"dates, or {unit} since 1970-01-01", f"{found[beyond][0]:.6g}")
            return found
        try:
            return dates.dates_to_numbers(values, self.kind == "date", self.form)
        except (TypeError, ValueError, OverflowError) as error:
            example = dates.numbers_to_text(np.array([self.moments[0]]), self.kind == "date", self.form or "%Y-%m-%d")[
                0
            ]
            raise self._error(
                where, f"dates such as {example}", repr(dates.first_non_date(values, self.form))
            ) from error

    def present(self, values: np.ndarray) -> Series:
        """Values as they stand in a data frame in production."""
        if self.form is not None:
            return super().present(values)
        try:
            return dates.numbers_to_dates(values, self.kind == "date", self.dtype)
        except (TypeError, ValueError) as error:
            where, expected = f"column {self.name}: dtype", "a type of pandas for dates, or object"
            raise SpaceError(where, expected, f"{self.dtype!r}: {error}") from error

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values as text in production."""
        return dates.numbers_to_text(values, self.kind == "date", self.form or "")


class Boolean(ColumnBase):
    """True or false."""

    kind: Literal["boolean"]
    share: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.5
    """The share of true among the values that are not missing."""

    @property
    def marginal(self) -> Marginal:
        """How rows are drawn."""
        return Marginal(DISCRETE_MARGINAL, np.array([0.0, 1.0]), np.array([1 - self.share]), missing=self.cut)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of 0 and 1."""
        return moments_of(np.array([0.0, 1.0]), np.array([1 - self.share, self.share]))

    @property
    def summary(self) -> str:
        """How often it is true."""
        return f"true in {self.share:.1%}"

    def numbers(self, values: Series, where: str) -> np.ndarray:
        """Values of a data frame, none of them missing, as 0 and 1."""
        if values.dtype.kind in "biuf":
            found = values.to_numpy(dtype=np.float64)
        else:
            found = np.array([WORDS.get(str(value).strip().lower(), np.nan) for value in values])
        wrong = ~np.isin(found, (0.0, 1.0))
        if wrong.any():
            raise self._error(where, "true or false", repr(values.iloc[int(np.argmax(wrong))]))
        return found

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values as in production."""
        return with_gaps(np.array([False, True]), values) if self.missing else values.astype(bool)


class Category(ColumnBase):
    """One of several levels, ordered or not."""

    kind: Literal["category", "ordered"]
    levels: Annotated[tuple[StrictStr | StrictInt, ...], Field(min_length=1)]
    """In order, for an ordered category; for others in any order, along which the copula has its dependence."""
    shares: tuple[Share, ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.levels)) < len(self.levels):
            repeated = sorted({str(level) for level in self.levels if self.levels.count(level) > 1})
            raise ValueError(f"expected every level once, found {repeated} more than once")
        check_shares(self.levels, self.shares)
        return self

    @property
    def marginal(self) -> Marginal:
        """How rows are drawn, as positions of levels."""
        return Marginal(DISCRETE_MARGINAL, np.arange(len(self.levels)), ends_of(self.weights), missing=self.cut)

    @property
    def weights(self) -> np.ndarray:
        """The share of each level."""
        return shares_of(self.levels, self.shares)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the positions."""
        return moments_of(np.arange(len(self.levels), dtype=np.float64), self.weights)

    @property
    def summary(self) -> str:
        """The levels, in a few words."""
        joined = (" < " if self.kind == "ordered" else ", ").join(str(level) for level in self.levels[:8])
        return joined + (", ..." if len(self.levels) > 8 else "")

    def numbers(self, values: Series, where: str) -> np.ndarray:
        """Values of a data frame, none of them missing, as positions of levels; UNKNOWN for other levels."""
        found = self.codes(values)
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            warn(
                f"{where}: column {self.name} has {len(unknown)} rows with levels that its space does not have, such "
                f"as {values.iloc[int(unknown[0])]!r}; they are taken for none of its levels"
            )
        return found.astype(np.float64)

    def codes(self, values: Series) -> np.ndarray:
        """Positions of levels, UNKNOWN for others; where all levels are strings, a number matches its string."""
        found = self._positions(values)
        if (found < 0).any() and all(isinstance(level, str) for level in self.levels):
            found = np.where(found < 0, self._positions(values.astype(str)), found)
        return found

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values as in production."""
        return with_gaps(np.array(self.levels, dtype=object), values)

    def present(self, values: np.ndarray) -> Series:
        """Values as they stand in a data frame in production."""
        import pandas as pd

        if self.dtype == "category":
            codes = np.where(np.isnan(values), -1, values).astype(int)
            levels: Any = list(self.levels)
            return pd.Series(pd.Categorical.from_codes(codes, levels, ordered=self.kind == "ordered"))
        return super().present(values)

    def _positions(self, values: Series) -> np.ndarray:
        """Positions of levels, -1 for others."""
        import pandas as pd

        return pd.Index(list(self.levels), dtype=object).get_indexer(pd.Index(values.astype(object), dtype=object))


Column = Annotated[Number | Date | Boolean | Category, Field(discriminator="kind")]
