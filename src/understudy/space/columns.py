"""The columns of a space: one class for each kind, with its distribution, and its form in production and in memory.

In memory a table of rows is one float64 matrix. A number stands for itself, a boolean is 0 or 1, a category is the
position of its level, and NaN is a missing value.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictInt, StrictStr, model_validator

from understudy.engine.rows import CURVE, NORMAL, STEPS, Marginal
from understudy.errors import SpaceError, UnderstudyWarning
from understudy.types import Series

# The code of a level that the space does not know: it may turn up in rows that a copy is asked about.
UNKNOWN = -1
# Words that CSV files use for a boolean, in lower case.
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}

Share = Annotated[FiniteFloat, Field(gt=0)]
Numbers = tuple[FiniteFloat, ...]


class Part(BaseModel):
    """A part of a space's JSON form."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Column(Part):
    name: Annotated[str, Field(min_length=1)]
    missing: Annotated[FiniteFloat, Field(ge=0, lt=1)] = 0.0
    """The share of rows without a value."""
    dtype: str | None = None
    """The pandas type in production, where it is not the default of the kind."""

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
            return column.astype(pandas_dtype(self.dtype))
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


class Number(_Column):
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
            raise ValueError(f"one distribution is enough, found {' and '.join(given)}")
        if not given and (self.low is None or self.high is None):
            raise ValueError("a number needs low and high, mean and std, quantiles, or values with shares")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low must be below high, found low={self.low}, high={self.high}")
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std go together")
        if self.quantiles is not None and np.any(np.diff(self.quantiles) < 0):
            raise ValueError("quantiles must not decrease")
        if self.shares is not None and self.values is None:
            raise ValueError("shares belong to values")
        _check_shares(self.values, self.shares)
        if self.kind == "integer" and not np.isfinite(self._inside(np.zeros(1))).all():
            raise ValueError("no whole number lies between low and high")
        return self

    @property
    def marginal(self) -> Marginal:
        """How rows are drawn; of a normal distribution with bounds, the probabilities that `at` makes values of."""
        if self.values is not None:
            return Marginal(STEPS, np.asarray(self.values), _ends(self.weights), missing=self.cut)
        if self.truncated:
            return Marginal(CURVE, np.array([0.0, 1.0]), missing=self.cut)
        whole = self.kind == "integer"
        if self.mean is not None and self.std is not None:
            return Marginal(NORMAL, np.array([self.mean, self.std]), whole=whole, missing=self.cut)
        curve = np.asarray(self._bounds if self.quantiles is None else self.quantiles)
        low, high = self._inside(curve[[0, -1]]).tolist()
        return Marginal(CURVE, curve, whole=whole, low=low, high=high, missing=self.cut)

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
    def is_float(self) -> bool:
        """Whether production has it as a plain float."""
        return self.dtype == "float64" or (self.dtype is None and (self.kind == "float" or bool(self.missing)))

    @property
    def weights(self) -> np.ndarray:
        """The share of each of the values."""
        return _weights(self.values or (), self.shares)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        if self.plain and self.mean is not None and self.std is not None:
            return self.mean, self.std
        if self.values is not None:
            return _moments(np.asarray(self.values), self.weights)
        u = (np.arange(2048) + 0.5) / 2048
        return _moments(self.at(u), np.full(2048, 1 / 2048))

    @property
    def summary(self) -> str:
        """What its values are, in a few words."""
        if self.values is not None:
            return ", ".join(f"{value:g}" for value in self.values[:8]) + (", ..." if len(self.values) > 8 else "")
        if self.quantiles is not None:
            middle = self.quantiles[len(self.quantiles) // 2]
            return f"{self.quantiles[0]:g} to {self.quantiles[-1]:g}, half of them below {middle:g}"
        bounds = "" if self.low is None and self.high is None else f"{self.low} to {self.high}"
        return bounds if self.mean is None else f"{self.mean:g} +- {self.std:g} {bounds}".rstrip()

    def numbers(self, values: Series, where: str) -> np.ndarray:
        """Values of a data frame, none of them missing, as numbers."""
        if getattr(values.dtype, "kind", "O") not in "biuf":
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise self._error(where, "numbers", str(error)) from error
        found = values.to_numpy(dtype=np.float64)
        if not np.isfinite(found).all():
            raise self._error(where, "finite numbers", f"{found[~np.isfinite(found)][0]}")
        return found

    def raw(self, values: np.ndarray) -> np.ndarray:
        """Values as in production; whole numbers with gaps are floats, as pandas reads them."""
        return values.astype(np.int64) if self.kind == "integer" and not self.missing else values.copy()

    @property
    def _bounds(self) -> tuple[float, float]:
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        if self.kind == "integer" and self.mean is None and self.quantiles is None:
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
        if self.kind == "integer":
            low, high = np.ceil(low), np.floor(high)
            if low > high:
                return np.full(len(found), np.nan)
            found = np.rint(found)
        return found if self.low is None and self.high is None else np.clip(found, low, high)


class Boolean(_Column):
    """True or false."""

    kind: Literal["boolean"]
    share: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.5
    """The share of true among the values that are not missing."""

    @property
    def marginal(self) -> Marginal:
        """How rows are drawn."""
        return Marginal(STEPS, np.array([0.0, 1.0]), np.array([1 - self.share]), missing=self.cut)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of 0 and 1."""
        return _moments(np.array([0.0, 1.0]), np.array([1 - self.share, self.share]))

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
        return _with_gaps(np.array([False, True]), values) if self.missing else values.astype(bool)


class Category(_Column):
    """One of several levels, ordered or not."""

    kind: Literal["category", "ordered"]
    levels: Annotated[tuple[StrictStr | StrictInt, ...], Field(min_length=1)]
    """In order, for an ordered category; for others in any order, along which the copula has its dependence."""
    shares: tuple[Share, ...] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.levels)) < len(self.levels):
            repeated = sorted({str(level) for level in self.levels if self.levels.count(level) > 1})
            raise ValueError(f"levels must be unique, found {repeated} more than once")
        _check_shares(self.levels, self.shares)
        return self

    @property
    def marginal(self) -> Marginal:
        """How rows are drawn, as positions of levels."""
        return Marginal(STEPS, np.arange(len(self.levels)), _ends(self.weights), missing=self.cut)

    @property
    def weights(self) -> np.ndarray:
        """The share of each level."""
        return _weights(self.levels, self.shares)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the positions."""
        return _moments(np.arange(len(self.levels), dtype=np.float64), self.weights)

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
            warnings.warn(
                f"{where}: column {self.name} has {len(unknown)} rows with levels that its space does not have, such "
                f"as {values.iloc[int(unknown[0])]!r}; they are taken for none of its levels",
                UnderstudyWarning,
                stacklevel=6,
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
        return _with_gaps(np.array(self.levels, dtype=object), values)

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


Column = Annotated[Number | Boolean | Category, Field(discriminator="kind")]


def _check_shares(values: Sequence[object] | None, shares: Sequence[float] | None) -> None:
    if values is not None and shares is not None and (len(values) != len(shares) or abs(sum(shares) - 1) > 1e-6):
        raise ValueError(f"one share for each of {len(values)} values is needed, and shares that sum to 1")


def _weights(values: Sequence[object], shares: Sequence[float] | None) -> np.ndarray:
    return np.full(len(values), 1 / len(values)) if shares is None else np.asarray(shares)


def _ends(weights: np.ndarray) -> np.ndarray:
    """The probabilities at which one value of a discrete distribution ends and the next begins."""
    return np.cumsum(weights)[:-1]


def _with_gaps(levels: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The levels that codes stand for, with NaN where there is none."""
    found = np.full(len(codes), np.nan, dtype=object)
    there = ~np.isnan(codes)
    found[there] = levels[codes[there].astype(int)]
    return found


def _moments(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    with np.errstate(over="ignore", invalid="ignore"):  # such a space is refused when it is made
        mean = float(values @ weights)
        return mean, float(np.sqrt((values - mean) ** 2 @ weights))
