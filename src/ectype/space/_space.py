"""The operational space: the columns of inputs, the rules between them, and their distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import numpy as np
from pydantic import Field, FiniteFloat, PrivateAttr, ValidationError, model_validator

from ectype._common import validation
from ectype._common.atomic_io import write_text
from ectype._common.bounded_io import MOST_JSON_BYTES, parse_json, read_bytes
from ectype._common.formatting import join_names
from ectype._kernel import RowSampler
from ectype._legacy.names import for_digest, with_space_format_of_today
from ectype.errors import DirectoryError, SpaceError
from ectype.space import _dates as dates
from ectype.space import _formatting as formatting
from ectype.space._column_base import SpacePart
from ectype.space._column_types import ColumnType, warn_of_uncovered
from ectype.space._columns import Category, Column, Date, Number
from ectype.space._copula import check_correlation
from ectype.space._fit import DEFAULT_FLOOR, ColumnOptions, learn_from_frame, learn_from_matrix
from ectype.space._frames import (
    as_matrix,
    as_pandas,
    choose_columns,
    is_frame,
    name_columns,
    refuse_choice_by_name,
    refuse_repeated_columns,
    refuse_table_file,
    refuse_text,
    select_columns,
)
from ectype.space._json import json_text, space_error
from ectype.space._rules import Rule, read_rule
from ectype.types import Json, Label, Rows, Table

# Rules are taken for a contradiction where rejection sampling accepts fewer than one row in so many.
RAREST = 1000
# How many rows are drawn at least, before that.
PATIENCE = 20_000

# The most characters of all rules: every row is held against each.
MOST_RULES = 100_000

S = TypeVar("S", bound="Space")


class Space(SpacePart):
    """Columns with their distributions, joined by a Gaussian copula (or independent, without a correlation).

    >>> import numpy as np
    >>> space = Space.uniform([0, 10], [1, 20])
    >>> rows = space.sample(3, np.random.default_rng(0))
    >>> rows.shape, bool((rows[:, 1] >= 10).all())
    ((3, 2), True)
    """

    format: Literal["ectype.space"] = "ectype.space"
    version: Literal[1] = 1
    columns: Annotated[tuple[Column, ...], Field(min_length=1)]
    correlation: tuple[tuple[FiniteFloat, ...], ...] | None = None
    """Of the columns' normal scores; rows for the missing-value indicators of columns with gaps may follow."""
    rules: tuple[str, ...] = ()
    """Conditions that every row satisfies; `docs/spaces.md` has the syntax."""
    frame: bool = True
    """Whether the original expects a data frame with these column names, rather than a plain array."""
    _readings: tuple[ColumnType, ...] = PrivateAttr(())

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, content: object) -> object:
        return with_space_format_of_today(content)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise ValueError(f"expected every column name once, found {sorted(repeated)} more than once")
        if not self.frame and any(isinstance(column, (Category, Date)) for column in self.columns):
            raise ValueError("expected frame to be true where a column is a category or a date, found false")
        beyond = [repr(self.names[j]) for j in np.flatnonzero(~np.isfinite(self.moments).all(axis=0))]
        if beyond:
            raise ValueError(
                "expected columns far enough from the largest floating-point number to have a deviation, found "
                f"{join_names(beyond)}, which to leave out or to scale"
            )
        if self.correlation is not None:
            check_correlation(self.correlation, self.d, len(self._gaps))
        if sum(map(len, self.rules)) > MOST_RULES:
            raise ValueError(f"expected rules of at most {MOST_RULES} characters in all, found more")
        _ = self._rules  # which parses them
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Space({formatting.space_title(self)}: {join_names(self.names)})"

    def __str__(self) -> str:
        return formatting.space_text(self)

    def _repr_html_(self) -> str:
        return formatting.space_html(self)

    # --- making one -------------------------------------------------------------------------------------------------

    @classmethod
    def normal(cls, d: int) -> Self:
        """Independent standard normal columns: the paper's choice for standardised data."""
        return _plain(cls, [{"mean": 0.0, "std": 1.0}] * _width(d))

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
        return _plain(cls, [{"low": a, "high": b} for a, b in zip(lows, highs, strict=True)])

    @classmethod
    def from_data(
        cls,
        rows: Rows,
        columns: Sequence[str] | None = None,
        *,
        categories: Sequence[str] = (),
        numbers: Sequence[str] = (),
        ordered: Mapping[str, Sequence[Label]] | None = None,
        rules: Sequence[str] = (),
        floor: int = DEFAULT_FLOOR,
    ) -> Self:
        """Learn the space from unlabelled rows: the columns' distributions, joined by a Gaussian copula.

        A data frame keeps its column names, kinds and types, and the original is then asked with data frames; `columns`
        chooses some, `categories` are columns whose numbers or dates are names, `numbers` those whose words are
        numbers, and `ordered` lists levels from the lowest to the highest. Levels of fewer rows than the `floor` are
        left out, and no quantile summarises fewer; a space that has less than 99 % of the rows is a warning. `readings`
        says what each column was taken for, and why.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [20, 30, 40, 50] * 5, "city": ["Bonn", "Nice"] * 10})
        >>> [column.kind for column in Space.from_data(frame).columns]
        ['integer', 'category']
        """
        where, floor, rows = "Space.from_data", validation.count("floor", floor, 1), as_pandas(rows)
        refuse_text(f"{where}: rules", "rules", rules)
        refuse_text(f"{where}: categories", "columns", categories)
        refuse_text(f"{where}: numbers", "columns", numbers)
        options = ColumnOptions(categories, numbers, ordered or {})
        named = is_frame(rows) and all(isinstance(name, str) and name for name in rows.columns)
        if columns is not None:
            rows = (
                choose_columns(rows, columns, where)
                if is_frame(rows) and named
                else refuse_choice_by_name(rows, columns, where)
            )
        if options.named and not (is_frame(rows) and named):
            refuse_choice_by_name(rows, options.named, where)
        if len(rows) < 2 and not isinstance(rows, str):
            raise SpaceError(where, "at least 2 rows", f"{len(rows)}", "give more unlabelled rows")
        if is_frame(rows) and named and len(rows.columns):
            refuse_repeated_columns(rows, where)
            choose_columns(rows, options.named, where)
            learned = learn_from_frame(rows, where, floor, options)
        else:
            table = as_matrix(rows, where)
            learned = learn_from_matrix(table, [f"x{j}" for j in range(table.shape[1])], floor)
        dependence = {"correlation": learned.correlation, "rules": tuple(rules)}
        space = _checked(cls, {"columns": learned.columns, **dependence, "frame": named})
        warn_of_uncovered(where, learned.readings, learned.covered, floor)
        space._readings = learned.readings
        return space

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a space.json."""
        refuse_table_file(path)
        try:
            text = read_bytes(Path(path), MOST_JSON_BYTES).decode()
        except (DirectoryError, ValueError, TypeError) as error:
            found = error.found if isinstance(error, DirectoryError) else error
            raise SpaceError(str(path), "a readable space.json", str(found)) from error
        try:
            return cls.from_json(text)
        except SpaceError as error:
            raise SpaceError(f"{path}: {error.where}", error.expected, error.found, error.hint) from error

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the JSON form that `to_json` writes, or a schema written by hand.

        >>> schema = '{"columns": [{"name": "age", "kind": "integer", "low": 18, "high": 99}]}'
        >>> Space.from_json(schema).names
        ('age',)
        """
        try:
            content = parse_json(text)
        except ValueError as error:
            raise SpaceError("space", "a JSON document", str(error)) from error
        if not isinstance(content, dict):
            raise SpaceError("space", "a JSON object", type(content).__name__)
        return _checked(cls, content)

    def to_json(self) -> str:
        """The JSON form: quantiles, shares and correlations. No row is in it."""
        content = self.model_dump(mode="json", exclude_none=True)
        written: Json = {"mode": "json", "exclude_defaults": True, "exclude_none": True}
        content["columns"] = [column.model_dump(**written) for column in self.columns]
        return json_text(content)

    def save(self, path: str | Path) -> None:
        """Write the JSON form to a file, atomically."""
        try:
            write_text(Path(path), self.to_json() + "\n")
        except DirectoryError as error:
            raise SpaceError(error.where, error.expected, error.found, error.hint) from error

    # --- using it ---------------------------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """A hash of the JSON form, by which spaces are told apart."""
        return sha256(for_digest(self.to_json()).encode()).hexdigest()

    @property
    def readings(self) -> tuple[ColumnType, ...]:
        """What each column was taken for, why, and how many rows it covers: of a space that was just learned from rows.

        >>> import pandas as pd
        >>> space = Space.from_data(pd.DataFrame({"zip": ["01067", "10115"] * 5}))
        >>> space.readings[0].kind, space.readings[0].spelled()
        ('category', "numbers=['zip']")
        """
        return self._readings

    @property
    def d(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """n rows of the distribution, as a float64 matrix; rejection sampling keeps those that satisfy the rules."""
        if not self._rules:
            return self._draw(n, rng)
        kept: list[np.ndarray] = []
        found = drawn = 0
        while found < n:
            if drawn > PATIENCE and drawn > RAREST * found:
                raise self._contradiction(found, drawn)
            rows = self._draw(min(max(2 * (n - found), 64), PATIENCE), rng)
            drawn += len(rows)
            kept.append(rows[self.keeps_rules(rows)][: n - found])
            found += len(kept[-1])
        return np.concatenate(kept)

    def keeps_rules(self, rows: np.ndarray) -> np.ndarray:
        """Which rows of a matrix violate no rule."""
        return np.logical_and.reduce([rule.kept(rows) for rule in self._rules] or [np.ones(len(rows), bool)])

    def without(self, names: Sequence[str]) -> Space:
        """The same space without some columns, and without the rules that mention them.

        >>> Space.normal(3).without(["x1"]).names
        ('x0', 'x2')
        """
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise SpaceError("exclude", f"columns among {list(self.names)}", unknown, "check their spelling")
        kept = [j for j, name in enumerate(self.names) if name not in names]
        if not kept:
            raise SpaceError("exclude", "a column that is left to decide by", "none", "exclude fewer")
        columns = [self.columns[j] for j in kept]
        content: Json = {"columns": columns, "rules": [], "frame": self.frame}
        if self.correlation is not None:
            gaps = [self.d + k for k, j in enumerate(self._gaps) if j in kept and len(self.correlation) > self.d]
            content["correlation"] = np.asarray(self.correlation)[np.ix_(kept + gaps, kept + gaps)].tolist()
        for text in self.rules:
            with suppress(ValueError):
                read_rule(text, tuple(columns))
                content["rules"].append(text)
        return _checked(Space, content)

    def present(self, rows: np.ndarray) -> Table:
        """Rows in the layout the original gets in production: a data frame if it was described by one.

        Always a copy: an original that changes its rows in place must not change those we train and measure on.
        """
        if not self.frame:
            return rows.copy()
        import pandas as pd

        if all(isinstance(column, Number) and column.is_float for column in self.columns):
            return pd.DataFrame(rows.copy(), columns=list(self.names))
        return pd.DataFrame({c.name: c.present(rows[:, j]) for j, c in enumerate(self.columns)})

    def read(self, rows: Rows, where: str) -> np.ndarray:
        """Rows in the layout of production as a matrix, the inverse of `present`. Other columns are ignored."""
        rows = as_pandas(rows)
        if not self.frame:
            matrix = as_matrix(rows, where, tuple(bool(c.missing) for c in self.columns))
            if matrix.shape[1] != self.d:
                raise SpaceError(where, f"rows of {self.d} columns", f"{matrix.shape[1]}")
            return matrix
        if not is_frame(rows):
            rows = name_columns(rows, self.names, where)
        elif not all(isinstance(name, str) for name in rows.columns):
            raise SpaceError(where, f"the columns {list(self.names)}", f"columns called {list(rows.columns)[:8]}")
        rows = select_columns(rows, self.names, where).reset_index(drop=True)
        return np.column_stack([column.read(rows[column.name], where) for column in self.columns])

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every column; a constant column counts as having deviation 1."""
        mean, std = np.array([column.moments for column in self.columns]).T
        return mean, np.where(std > 0, std, 1.0)

    def _draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """n rows of the Gaussian copula, before rules: correlated normal scores, then inverse transform sampling."""
        rows = self._sampler(n, int(rng.integers(2**64, dtype=np.uint64)))
        for j, column in enumerate(self.columns):
            if isinstance(column, Number) and column.truncated:
                rows[:, j] = column.at(rows[:, j])
            if isinstance(column, Date) and column.kind == "timestamp":
                rows[:, j] -= rows[:, j] % dates.step_of(column.form)  # or the original would see another time
        return rows

    def _contradiction(self, found: int, drawn: int) -> SpaceError:
        rows = self._draw(2000, np.random.default_rng(0))
        shares = {rule.text: float(rule.kept(rows).mean()) for rule in self._rules}
        worst = sorted(shares, key=shares.__getitem__)[:3]
        detail = ", ".join(f"{text!r} by {shares[text]:.1%}" for text in worst)
        hint = "check that they do not contradict each other, or the bounds and levels of their columns"
        expected = f"rules that at least one drawn row in {RAREST} keeps"
        return SpaceError("rules", expected, f"{found} of {drawn} that keep all of them (alone: {detail})", hint)

    @cached_property
    def _gaps(self) -> list[int]:
        """The columns in which values may be missing."""
        return [j for j, column in enumerate(self.columns) if column.missing]

    @cached_property
    def _rules(self) -> tuple[Rule, ...]:
        return tuple(read_rule(text, self.columns) for text in self.rules)

    @cached_property
    def _sampler(self) -> RowSampler:
        """The sampler of rows; gaps without a correlation are independent of all else."""
        correlation, scores = None, self.d + len(self._gaps)
        if self.correlation is not None:
            correlation, known = np.eye(scores), len(self.correlation)
            correlation[:known, :known] = self.correlation
        return RowSampler([column.marginal for column in self.columns], correlation)


def _width(d: int) -> int:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 1:
        raise SpaceError("d", "a whole number of columns above zero", repr(d))
    return int(d)


def _plain(cls: type[S], distributions: Sequence[dict[str, float]]) -> S:
    columns = [{"name": f"x{j}", "kind": "float", **found} for j, found in enumerate(distributions)]
    return _checked(cls, {"columns": columns, "frame": False})


def _checked(cls: type[S], content: Json) -> S:
    try:
        space = cls.model_validate(content)
    except ValidationError as error:
        raise space_error(error, content) from error
    if space.rules or any(column.dtype is not None for column in space.columns):
        # A trial sample finds rules that contradict each other, and types that do not fit.
        space.present(space.sample(64, np.random.default_rng(0)))
    return space
