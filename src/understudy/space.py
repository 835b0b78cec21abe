"""The operational space: what inputs look like, and the distribution they are drawn from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from understudy.errors import SpaceError

if TYPE_CHECKING:
    import pandas as pd

# Enough knots that linear interpolation between them is invisible beside the sampling noise of a few thousand rows.
QUANTILES = 257
# A numeric column with no more values than this is a set of levels; inventing values between them would be wrong.
MOST_LEVELS = 32


S = TypeVar("S", bound="Space")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Normal(_Part):
    """A normal marginal."""

    kind: Literal["normal"] = "normal"
    mean: FiniteFloat = 0.0
    std: Annotated[FiniteFloat, Field(gt=0)] = 1.0

    def quantile(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values at the normal scores z (probabilities u)."""
        return self.mean + self.std * z

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        return self.mean, self.std


class Uniform(_Part):
    """A uniform marginal between two bounds."""

    kind: Literal["uniform"] = "uniform"
    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, found low={self.low}, high={self.high}")
        return self

    def quantile(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values at the probabilities u."""
        return self.low + (self.high - self.low) * u

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        return (self.low + self.high) / 2, (self.high - self.low) / 12**0.5


class Quantiles(_Part):
    """A continuous marginal by its values at evenly spaced probabilities from 0 to 1; a plateau is an atom."""

    kind: Literal["quantiles"] = "quantiles"
    values: Annotated[tuple[FiniteFloat, ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if np.any(np.diff(self.values) < 0):
            raise ValueError("quantiles must not decrease")
        return self

    def quantile(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values at the probabilities u."""
        return np.interp(u, np.linspace(0, 1, len(self.values)), self.values)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        values = np.asarray(self.values)
        return float(values.mean()), float(values.std())


class Levels(_Part):
    """A few numeric values, each with its share."""

    kind: Literal["levels"] = "levels"
    values: Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]
    shares: tuple[Annotated[FiniteFloat, Field(gt=0)], ...]

    @model_validator(mode="after")
    def _shares_of_one(self) -> Self:
        if len(self.values) != len(self.shares) or abs(sum(self.shares) - 1) > 1e-6:
            raise ValueError("levels need one share per value, and shares that sum to 1")
        return self

    def quantile(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Values at the probabilities u."""
        upto = np.cumsum(self.shares)[:-1]
        return np.asarray(self.values)[np.searchsorted(upto, u, side="right")]

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        values, shares = np.asarray(self.values), np.asarray(self.shares)
        mean = float(values @ shares)
        return mean, float(np.sqrt((values - mean) ** 2 @ shares))


Marginal = Annotated[Normal | Uniform | Quantiles | Levels, Field(discriminator="kind")]


class Column(_Part):
    """One input: its name and its marginal distribution."""

    name: str
    marginal: Marginal


class Space(_Part):
    """Columns with their marginals, joined by a Gaussian copula (or independent, without a correlation).

    >>> space = Space.uniform([0, 10], [1, 20])
    >>> rows = space.sample(3, np.random.default_rng(0))
    >>> rows.shape, bool((rows[:, 1] >= 10).all())
    ((3, 2), True)
    """

    format: Literal["understudy.space"] = "understudy.space"
    version: Literal[1] = 1
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    correlation: tuple[tuple[FiniteFloat, ...], ...] | None = None
    frame: bool = False
    """Whether the original expects a data frame with these column names, rather than a plain array."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        repeated = {name for name in self.names if self.names.count(name) > 1} if len(set(self.names)) < self.d else ()
        if repeated:
            raise ValueError(f"column names must be unique, found {sorted(repeated)} more than once")
        if not np.isfinite(self.moments).all():
            raise ValueError("columns must stay far enough from the largest floating-point number to have a deviation")
        if self.correlation is not None:
            matrix = [len(row) for row in self.correlation]
            if matrix != [self.d] * self.d:
                raise ValueError(f"correlation must be {self.d} x {self.d}, one row and one column per column")
            array = np.asarray(self.correlation)
            if not (np.allclose(array, array.T, atol=1e-8) and np.allclose(np.diag(array), 1, atol=1e-6)):
                raise ValueError("correlation must be symmetric with ones on its diagonal")
            if np.linalg.eigvalsh(array)[0] < -1e-4:  # room for correlations written with a few digits
                raise ValueError("correlation must have no negative eigenvalue")
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.to_json())

    # --- making one -------------------------------------------------------------------------------------------------

    @classmethod
    def normal(cls, d: int) -> Self:
        """Independent standard normal columns: the paper's choice for standardised data."""
        return _checked(cls, {"columns": _named([Normal()] * _width(d))})

    @classmethod
    def uniform(cls, low: float | Sequence[float], high: float | Sequence[float], d: int | None = None) -> Self:
        """Independent uniform columns between low and high, given per column or once with d."""
        try:
            shape = np.broadcast_shapes(np.shape(low), np.shape(high), (1,) if d is None else (_width(d),))
            lows, highs = (np.broadcast_to(np.asarray(bound, float), shape).tolist() for bound in (low, high))
        except (TypeError, ValueError) as error:
            if isinstance(error, SpaceError):
                raise
            raise SpaceError("Space.uniform", "a low and a high bound per column", f"{low!r} and {high!r}") from error
        bounds = zip(lows, highs, strict=True)
        return _checked(cls, {"columns": _named([{"kind": "uniform", "low": a, "high": b} for a, b in bounds])})

    @classmethod
    def from_data(cls, rows: Any, columns: Sequence[str] | None = None) -> Self:
        """Learn the space from unlabelled numeric rows: empirical marginals joined by a Gaussian copula.

        A data frame keeps its column names, and the original is then asked with data frames. `columns` chooses some.
        """
        table, names = as_matrix(rows, "Space.from_data", columns)
        if len(table) < 2:
            raise SpaceError("Space.from_data", "at least 2 rows", f"{len(table)}", "give more unlabelled rows")
        described = [Column(name=name or f"x{j}", marginal=_marginal(table[:, j])) for j, name in enumerate(names)]
        content = {"columns": described, "correlation": _copula(table), "frame": names[0] is not None}
        return _checked(cls, content)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a space.json."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError, TypeError) as error:
            raise SpaceError(str(path), "a readable space.json", str(error)) from error
        try:
            return cls.from_json(text)
        except SpaceError as error:
            raise SpaceError(f"{path}: {error.where}", error.expected, error.found, error.hint) from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the JSON form that `to_json` writes."""
        try:
            content = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise SpaceError("space", "a JSON document", str(error)) from error
        if not isinstance(content, dict):
            raise SpaceError("space", "a JSON object", type(content).__name__)
        return _checked(cls, content)

    def to_json(self) -> str:
        """The JSON form: quantiles, shares and correlations. No row is in it, but the extremes of a column are."""
        return self.model_dump_json(indent=1)

    def save(self, path: str | Path) -> None:
        """Write the JSON form to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    # --- using it ---------------------------------------------------------------------------------------------------

    @property
    def d(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """n rows drawn from the distribution, as a float64 matrix."""
        z = rng.standard_normal((n, self.d))
        if self._factor is not None:
            z = z @ self._factor.T
        if all(isinstance(column.marginal, Normal) for column in self.columns):
            mean, std = self.moments
            return mean + std * z
        from scipy.special import ndtr

        u = ndtr(z)
        return np.column_stack([c.marginal.quantile(z[:, j], u[:, j]) for j, c in enumerate(self.columns)])

    def present(self, rows: np.ndarray) -> np.ndarray | pd.DataFrame:
        """Rows in the layout the original gets in production: a data frame if it was described by one.

        Always a copy: an original that changes its rows in place must not change those we train and measure on.
        """
        if not self.frame:
            return rows.copy()
        import pandas as pd

        return pd.DataFrame(rows.copy(), columns=list(self.names))

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every column; a constant column counts as having deviation 1."""
        with np.errstate(over="ignore", invalid="ignore"):  # such a space is refused when it is made
            mean, std = np.array([column.marginal.moments for column in self.columns]).T
        return mean, np.where(std > 0, std, 1.0)

    @cached_property
    def _factor(self) -> np.ndarray | None:
        """A matrix whose product with its own transpose is the correlation."""
        if self.correlation is None:
            return None
        values, vectors = np.linalg.eigh(np.asarray(self.correlation))
        return vectors * np.sqrt(np.clip(values, 0, None))


def as_matrix(rows: Any, where: str, columns: Sequence[str] | None = None) -> tuple[np.ndarray, list[str | None]]:
    """A finite float64 matrix, and the column names where there are any; with `columns`, those and in that order."""
    names: list[str | None]
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        # As in scikit-learn, only strings are names: the numbers of a frame made from an array mean positions.
        named = all(isinstance(name, str) and name for name in rows.columns)
        names = [name if named else None for name in rows.columns]
        if columns is not None and not named:
            raise SpaceError(where, f"the columns {list(columns)}", f"columns called {list(rows.columns)[:8]}")
        if columns is not None:
            unknown = [name for name in columns if name not in names]
            if unknown:
                raise SpaceError(where, f"columns among {names}", unknown, "check their spelling")
            rows, names = rows[list(columns)], list(rows[list(columns)].columns)
        text = [str(n) for n, kind in zip(rows.columns, rows.dtypes, strict=True) if kind.kind not in "biuf"]
        if text:
            raise SpaceError(where, "numeric columns", f"{text} with other contents", "encode or leave them out")
        table = rows.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        try:
            table = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise SpaceError(where, "a table of numbers", str(error)) from error
        if table.ndim != 2:
            raise SpaceError(where, "a table of rows and columns", f"an array of shape {table.shape}")
        if columns is not None:
            raise SpaceError(where, "a data frame, to choose columns by name", "an array")
        names = [None] * table.shape[1]
    if table.shape[1] == 0:
        raise SpaceError(where, "at least one column", "none")
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        name = names[column] or f"column {column}"
        raise SpaceError(
            where,
            "finite numbers",
            f"{table[row, column]} in row {row}, {name} ({len(bad)} such cells)",
            "remove or fill those rows",
        )
    return table, names


def _width(d: int) -> int:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 1:
        raise SpaceError("d", "a whole number of columns above zero", repr(d))
    return int(d)


def _named(marginals: Sequence[Any]) -> list[Any]:
    return [{"name": f"x{j}", "marginal": marginal} for j, marginal in enumerate(marginals)]


def _checked(cls: type[S], content: dict[str, Any]) -> S:
    try:
        return cls.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "space"
        found = "nothing" if first["type"] == "missing" else repr(first["input"])[:80]
        raise SpaceError(where, first["msg"].removeprefix("Value error, "), found) from error


def _marginal(values: np.ndarray) -> Quantiles | Levels:
    levels, counts = np.unique(values, return_counts=True)
    # A handful of rows is no evidence that a column has only as many values as were seen, unless values repeat.
    if len(levels) <= min(MOST_LEVELS, len(values) // 2) or len(levels) == 1:
        return Levels(values=tuple(levels.tolist()), shares=tuple((counts / len(values)).tolist()))
    return Quantiles(values=tuple(np.quantile(values, np.linspace(0, 1, QUANTILES)).tolist()))


def _copula(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Correlation of the normal scores of the ranks, ties at their middle rank."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores = ndtri((rankdata(table, axis=0) - 0.5) / len(table))
    scores -= scores.mean(axis=0)
    norm = np.linalg.norm(scores, axis=0)
    scores /= np.where(norm > 0, norm, 1.0)
    correlation = scores.T @ scores
    np.fill_diagonal(correlation, 1.0)
    return tuple(tuple(row) for row in np.clip(correlation, -1, 1).round(6).tolist())


def open_space(spec: str) -> Space:
    """The space that a command line names: a space.json, `normal:D`, or `uniform:LOW:HIGH:D`.

    >>> open_space("uniform:-1:1:3").d
    3
    """
    kind, *parts = spec.split(":")
    try:
        if kind == "normal" and len(parts) == 1:
            return Space.normal(int(parts[0]))
        if kind == "uniform" and len(parts) == 3:
            return Space.uniform(float(parts[0]), float(parts[1]), int(parts[2]))
    except ValueError as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError("space", "normal:D or uniform:LOW:HIGH:D with numbers", repr(spec)) from error
    if kind in ("normal", "uniform") and not Path(spec).exists():
        raise SpaceError("space", "normal:D or uniform:LOW:HIGH:D", repr(spec))
    return Space.load(spec)
