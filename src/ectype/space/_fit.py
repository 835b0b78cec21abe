"""Learn a space from unlabelled rows: each column's distribution, and the dependence between them as a Gaussian copula.

Only summaries are kept, each of at least as many rows as the floor: rarer levels are left out, and a quantile is the
mean of that many neighbouring values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from ectype._common.formatting import join_names
from ectype.errors import SpaceError, warn
from ectype.space import _dates as dates
from ectype.space._column_types import LEAVE, ColumnType, column_type_of
from ectype.space._columns import Boolean, Category, Date, Number
from ectype.space._copula import Correlation, fit_correlation, normal_scores
from ectype.types import Frame, Label, Series

# Enough knots that linear interpolation between them is invisible beside the sampling noise of a few thousand rows.
QUANTILES = 257
# A numeric column with no more values than this is discrete; inventing values between them would be wrong.
MOST_LEVELS = 32
# The default floor: how many rows a level or a quantile has to summarise.
DEFAULT_FLOOR = 5
# The share of rows that the values of a discrete column have to cover, once rare ones are left out.
COVERED = 0.9

AnyColumn = Number | Date | Boolean | Category


@dataclass(frozen=True)
class ColumnOptions:
    """Options about columns: numbers that are names, words that are numbers, and the order of levels."""

    categories: Sequence[str] = ()
    numbers: Sequence[str] = ()
    ordered: Mapping[str, Sequence[Label]] = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        """The columns that something is said of."""
        return [*self.categories, *self.numbers, *self.ordered]


@dataclass(frozen=True)
class LearnedSpace:
    """A space learned from rows: columns, their correlation, the inferred types, and the share of rows covered."""

    columns: list[AnyColumn]
    correlation: Correlation
    readings: tuple[ColumnType, ...]
    covered: float
    """The share of rows whose values the space has, in all columns."""


def learn_from_matrix(table: np.ndarray, names: Sequence[str], floor: int) -> LearnedSpace:
    """What a matrix of finite numbers shows."""
    columns: list[AnyColumn] = [_number(name, table[:, j], floor) for j, name in enumerate(names)]
    has = np.column_stack([_covered(column, table[:, j]) for j, column in enumerate(columns)])
    readings = tuple(
        column_type_of(column, share) for column, share in zip(columns, has.mean(axis=0).tolist(), strict=True)
    )
    return LearnedSpace(columns, fit_correlation(columns, table), readings, float(has.all(axis=1).mean()))


def learn_from_frame(frame: Frame, where: str, floor: int, options: ColumnOptions) -> LearnedSpace:
    """What a data frame shows, in the layout it has."""
    frame = frame.assign(**{name: _as_numbers(frame[name], f"{where}: column {name}") for name in options.numbers})
    columns = [_column(name, frame[name], where, floor, options) for name in frame.columns]
    table = np.column_stack([_codes(column, frame[column.name]) for column in columns])
    there = ~frame.isna().to_numpy()
    has = np.column_stack([_covered(column, table[:, j]) | ~there[:, j] for j, column in enumerate(columns)])
    readings = tuple(
        column_type_of(column, share, frame[column.name], column.name in options.named)
        for column, share in zip(columns, has.mean(axis=0).tolist(), strict=True)
    )
    columns, table = _in_order_of_dependence(columns, table)
    return LearnedSpace(columns, fit_correlation(columns, table), readings, float(has.all(axis=1).mean()))


def _covered(column: AnyColumn, values: np.ndarray) -> np.ndarray:
    """Which values a column has; a level that was left out is missing here, and a rare number is taken for another."""
    if isinstance(column, Number) and column.values is not None:
        return np.isin(values, np.asarray(column.values))
    return ~np.isnan(values)


def _as_numbers(values: Series, where: str) -> Series:
    """A column of words as numbers."""
    import pandas as pd

    try:
        return pd.to_numeric(values)
    except (TypeError, ValueError) as error:
        raise SpaceError(where, "numbers, or words for them", str(error), "leave it out of the numbers") from error


def _column(name: str, values: Series, where: str, floor: int, options: ColumnOptions) -> AnyColumn:
    at, absent = f"{where}: column {name}", np.asarray(values.isna())
    there, missing = values[~absent], float(absent.mean())
    if not len(there):
        raise SpaceError(at, "at least one value", "none", f"leave the column out{LEAVE}")
    category, order = name in options.categories, options.ordered.get(name)
    try:
        found = _described(name, there, missing, at, floor, category, order)
    except ValidationError as error:
        expected, _, wrong = error.errors()[0]["msg"].removeprefix("Value error, expected ").partition(", found ")
        raise SpaceError(at, expected, wrong or "others", f"mend those rows, or leave the column out{LEAVE}") from error
    usual = found.present(there[:1].to_numpy(np.float64) if _is_number(found) else np.zeros(1))
    return found if usual.dtype == values.dtype else found.model_copy(update={"dtype": str(values.dtype)})


def _is_number(column: AnyColumn) -> bool:
    return isinstance(column, Number) and not isinstance(column, Date)


def _described(
    name: str, there: Series, missing: float, at: str, floor: int, category: bool, order: Sequence[Label] | None
) -> AnyColumn:
    """A column's description, of the values that are not missing."""
    if _is(there, "bool") or all(isinstance(value, (bool, np.bool_)) for value in there):
        return Boolean(name=name, kind="boolean", missing=missing, share=float(there.astype(bool).mean()))
    words = _is(there, "word")
    form = dates.form_of(there) if words and not category and order is None else None
    if form is not None or (_is(there, "date") and not category):
        return _date(name, there, form, missing, floor)
    if category or order is not None or str(there.dtype) == "category" or words:
        return _category(name, there, missing, at, floor, order)
    if _is(there, "number"):
        numbers = there.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            found = f"{numbers[~np.isfinite(numbers)][0]}"
            raise SpaceError(at, "finite numbers", found, f"mend those rows, or leave the column out{LEAVE}")
        _warn_of_rounding(there, numbers, at)
        return _number(name, numbers, floor, missing)
    kinds = join_names(sorted({type(value).__name__ for value in there}))
    found = f"{there.dtype}" if there.dtype != object else f"values of type {kinds}"
    hint = "make them words, as by frame[c].astype(str), or leave the column out"
    raise SpaceError(at, "numbers, booleans, dates or words", found, f"{hint}{LEAVE}")


def _warn_of_rounding(values: Series, numbers: np.ndarray, at: str) -> None:
    """Warn of whole numbers that a float is not, so that neighbours become one."""
    if values.dtype.kind not in "iu" or np.abs(numbers).max() < 2**53:
        return
    rounded = int(sum(int(value) != int(number) for value, number in zip(values, numbers, strict=True)))
    if rounded:
        warn(
            f"{at}: {rounded} whole numbers above 2**53 are rounded to floats, so that neighbours become one. If they "
            "name something, make them words: frame[c].astype(str)"
        )


def _is(values: Series, kind: str) -> bool:
    from pandas.api import types

    if kind == "bool":
        return types.is_bool_dtype(values)
    if kind == "date":
        return types.is_datetime64_any_dtype(values) or types.infer_dtype(values, skipna=False) in ("date", "datetime")
    if kind == "number":
        return types.is_numeric_dtype(values) and not types.is_complex_dtype(values)
    return bool(types.infer_dtype(values, skipna=False) == "string")


def _category(
    name: str, values: Series, missing: float, at: str, floor: int, order: Sequence[Label] | None
) -> Category:
    _refuse_levels(values, at)
    counts = values.value_counts(sort=False)
    ordered = order is not None or bool(getattr(getattr(values, "cat", None), "ordered", False))
    counts = (
        counts.sort_index() if str(values.dtype) == "category" else counts.sort_values(ascending=False, kind="stable")
    )
    counts.index = [_level(level) for level in counts.index]
    if order is not None:
        by_word = {str(level): level for level in counts.index}  # a command line has words alone
        known = [level if level in counts.index else by_word.get(str(level)) for level in order]
        strange = [level for level in counts.index if level not in known]
        if strange:
            raise SpaceError(
                at, f"levels among {join_names(list(order))}", join_names(strange), "name all of them, in order"
            )
        counts = counts.reindex([level for level in known if level is not None])
    kept = counts[counts >= floor]
    if not len(kept):
        expected, found = f"a level that at least {floor} rows have", f"{len(counts)} levels in {len(values)} rows"
        hint = f"leave it out if it only names rows{LEAVE}; or lower the floor (floor=1, --floor 1)"
        raise SpaceError(at, expected, found, hint)
    return Category(
        name=name,
        kind="ordered" if ordered else "category",
        levels=tuple(kept.index),
        shares=tuple((kept / kept.sum()).tolist()),
        missing=missing,
    )


def _refuse_levels(values: Series, at: str) -> None:
    """Refuse levels that are neither words nor whole numbers, of which one may stand for two."""
    levels = [*map(_level, values if values.dtype == object else values.unique())]  # True and 1 are one of the unique
    wrong = [level for level in levels if isinstance(level, bool) or not isinstance(level, (str, int))]
    if wrong:
        hint = "make them words, as by frame[c].astype(str), or leave the column out"
        raise SpaceError(
            at, "levels that are words or whole numbers", join_names([*map(repr, wrong[:4])]), f"{hint}{LEAVE}"
        )
    broken = [level for level in levels if isinstance(level, str) and not _is_text(level)]
    if broken:
        raise SpaceError(at, "words in Unicode", f"half a surrogate pair in {broken[0]!r}", "see how they were read")


def _is_text(word: str) -> bool:
    try:
        return bool(word.encode()) or not word
    except UnicodeEncodeError:
        return False


def _level(value: object) -> object:
    """A level as a word or a whole number; a column of whole numbers with gaps has them as floats."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        return int(plain)
    return plain


def _number(name: str, values: np.ndarray, floor: int, missing: float = 0.0) -> Number:
    whole = np.all(values == np.rint(values)) and np.abs(values).max() < 2**53
    kind: Literal["float", "integer"] = "integer" if whole else "float"
    return Number(name=name, kind=kind, missing=missing, **_distribution(values, floor))


def _date(name: str, values: Series, form: str | None, missing: float, floor: int) -> Date:
    """A date if every value is a midnight; else a timestamp."""
    seconds = dates.dates_to_numbers(values, day=False)
    days = not (seconds % dates.DAY).any()
    described = _distribution(seconds / dates.DAY if days else seconds, floor)
    found: dict[str, Any] = {
        key: described[key] if key == "shares" else tuple(np.rint(described[key]).tolist()) for key in described
    }
    return Date(name=name, kind="date" if days else "timestamp", form=form, missing=missing, **found)


@np.errstate(over="ignore", invalid="ignore")  # such a space is refused when it is made
def _distribution(values: np.ndarray, floor: int) -> dict[str, Any]:
    """A few values with their shares, or quantiles."""
    levels, counts = np.unique(values, return_counts=True)
    common = counts >= floor if len(levels) > 1 else counts > 0
    # A handful of rows is no evidence that a column has only as many values as were seen, unless values repeat.
    if len(levels) == 1 or (
        len(levels) <= min(MOST_LEVELS, len(values) // 2) and counts[common].sum() >= COVERED * len(values)
    ):
        nearest = np.abs(levels[:, None] - levels[common]).argmin(axis=1)
        shares = np.bincount(nearest, weights=counts) / len(values)
        return {"values": tuple(levels[common].tolist()), "shares": tuple(shares.tolist())}
    window = min(floor, len(values))
    smooth = np.convolve(np.sort(values), np.full(window, 1 / window), "valid")
    knots = np.quantile(smooth, np.linspace(0, 1, int(np.clip(len(values) // floor, 2, QUANTILES))))
    return {"quantiles": tuple(float(f"{knot:.12g}") for knot in knots)}


def _codes(column: AnyColumn, values: Series) -> np.ndarray:
    """A column's values as numbers; a level that was left out counts as missing."""
    there = ~np.asarray(values.isna())
    found = np.full(len(there), np.nan)
    if isinstance(column, Category):
        codes = column.codes(values[there])
        found[there] = np.where(codes < 0, np.nan, codes)
    else:
        found[there] = column.numbers(values[there], column.name)
    return found


def _in_order_of_dependence(columns: list[AnyColumn], table: np.ndarray) -> tuple[list[AnyColumn], np.ndarray]:
    """Order the levels of unordered categories along the first principal component of the other columns.

    A Gaussian copula can only express dependence along an order, and these levels have none of their own.
    """
    free = [j for j, column in enumerate(columns) if column.kind == "category" and len(column.levels) > 2]
    others = [j for j in range(len(columns)) if j not in free]
    if not free or not others:
        return columns, table
    scores = np.nan_to_num(normal_scores(table[:, others]))
    main = scores @ np.linalg.eigh(scores.T @ scores)[1][:, -1]
    columns, table = list(columns), table.copy()
    for j in free:
        column, codes = columns[j], table[:, j]
        assert isinstance(column, Category)
        means = [main[codes == code].mean() for code in range(len(column.levels))]
        order = np.argsort(means, kind="stable")
        levels, shares = np.array(column.levels, dtype=object)[order], column.weights[order]
        columns[j] = column.model_copy(update={"levels": tuple(levels), "shares": tuple(shares.tolist())})
        there = ~np.isnan(codes)
        table[there, j] = np.argsort(order)[codes[there].astype(int)]
    return columns, table
