"""Dates and timestamps as numbers: whole days since 1970-01-01, or whole seconds since then, in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np

from ectype.types import Series

DAY = 86_400
# How text writes a date without a time of day.
DATE = "%Y-%m-%d"
# A date in the form of ISO 8601, and perhaps a time of day, its fraction, and its offset from UTC.
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:(?P<sep>[T ])\d\d:\d\d(?P<seconds>:\d\d(?P<part>\.\d+)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
# A digit of another script, which strptime of pandas takes for one of ours; and ours, without which it knows "today".
_FOREIGN, _OURS = re.compile(r"(?![0-9])\d"), re.compile("[0-9]")


def number_of(text: str, day: bool) -> float:
    """The number that a date in ISO 8601 is; ValueError if it is none.

    >>> number_of("1970-01-11", day=True), number_of("1970-01-01T01:00", day=False)
    (10.0, 3600.0)
    """
    found = datetime.fromisoformat(text)
    seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return float(seconds // DAY if day else seconds // 1)


def text_of(number: float, day: bool) -> str:
    """A number as a date in ISO 8601.

    >>> text_of(10.0, day=True), text_of(3600.0, day=False)
    ('1970-01-11', '1970-01-01T01:00:00')
    """
    return str(np.datetime64(round(number), "D" if day else "s"))


def limits(day: bool) -> tuple[float, float]:
    """The first and the last date that there are: beyond the years 1 to 9999, pandas and others give up.

    What is meant as milliseconds or nanoseconds since 1970 lies beyond.
    """
    return number_of("0001-01-01", day), number_of("9999-12-31", day)


def step_of(form: str | None) -> int:
    """The seconds from one time that a form can write to the next.

    >>> step_of("%Y-%m-%d %H:%M"), step_of("%Y-%m-%dT%H:%M:%S"), step_of("%d.%m.%Y"), step_of(None)
    (60, 1, 86400, 1)
    """
    steps = {"%S": 1, "%T": 1, "%X": 1, "%c": 1, "%s": 1, "%M": 60, "%R": 60, "%H": 3600, "%I": 3600}
    return 1 if form is None else min((step for mark, step in steps.items() if mark in form), default=DAY)


def form_of(words: Series) -> str | None:
    """How all of these strings write a date, in the terms of strftime; None if they are not all dates.

    >>> import pandas as pd
    >>> form_of(pd.Series(["2026-03-01", "2026-04-01"])), form_of(pd.Series(["2026-03-01 10:00"]))
    ('%Y-%m-%d', '%Y-%m-%d %H:%M')
    """
    shapes: dict[str, int] = {}
    for word in words.unique():
        found = _ISO.fullmatch(word)
        if found is None:
            return None
        shape = _form(found)
        shapes[shape] = shapes.get(shape, 0) + 1
    if len(shapes) > 1:  # some without a time of day
        shapes.pop(DATE, None)
    try:
        dates_to_numbers(words, False)
    except (ValueError, OverflowError):  # such as a 13th month
        return None
    return max(shapes, key=lambda shape: shapes[shape])


def _form(found: re.Match[str]) -> str:
    sep, seconds, part, zone = (found[name] or "" for name in ("sep", "seconds", "part", "zone"))
    time = f"{sep}%H:%M{':%S' if seconds else ''}{'.' + '0' * (len(part) - 1) if part else ''}" if sep else ""
    return f"{DATE}{time}{zone if zone in ('', 'Z') else '+00:00'}"


def dates_to_numbers(values: Series, day: bool, form: str | None = None) -> np.ndarray:
    """Dates, or text in the form of dates, as days or seconds; what is finer is dropped."""
    import pandas as pd

    if getattr(values.dtype, "kind", "O") != "M" and (found := _plainly(values, day)) is not None:
        return found
    if getattr(values.dtype, "kind", "O") != "M":
        if any(isinstance(word, str) and (_FOREIGN.search(word) or not _OURS.search(word)) for word in values):
            raise ValueError("no digits, or those of another script")
        try:
            values = pd.Series(pd.to_datetime(values, format=form or "ISO8601", utc=True))
        except ValueError:
            if form is None:
                raise
            values = pd.Series(pd.to_datetime(values, format="ISO8601", utc=True))
    if getattr(values.dtype, "tz", None) is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    unit = "D" if day else "s"
    return values.to_numpy().astype(f"datetime64[{unit}]").astype(np.int64).astype(np.float64)


def first_non_date(values: Series, form: str | None) -> object:
    """The first value that is no date, by bisection: parsing one value costs as much as parsing many."""
    at, end = 0, len(values)
    while end - at > 1:
        middle = (at + end) // 2
        try:
            dates_to_numbers(values.iloc[at:middle], False, form)
        except (TypeError, ValueError, OverflowError):
            end = middle
        else:
            at = middle
    return values.iloc[at]


def _plainly(values: Series, day: bool) -> np.ndarray | None:
    """Strings in UTC as days or seconds, without pandas, which needs a millisecond; None for other values."""
    words = values.tolist()
    if not all(type(word) is str and len(word) >= 10 and "+" not in word and "-" not in word[10:] for word in words):
        return None
    try:
        found = np.array([word.removesuffix("Z") for word in words], dtype="datetime64[s]")
    except ValueError:
        return None
    return found.astype(f"datetime64[{'D' if day else 's'}]").astype(np.int64).astype(np.float64)


def numbers_to_datetime64(values: np.ndarray, day: bool) -> np.ndarray:
    """Numbers as NumPy's dates, gaps as NaT."""
    gone, unit = np.isnan(values), "D" if day else "s"
    found = np.clip(np.where(gone, 0, values), *limits(day)).astype(np.int64).astype(f"datetime64[{unit}]")
    found[gone] = np.datetime64("NaT")
    return found.astype("datetime64[s]")


def numbers_to_dates(values: np.ndarray, day: bool, dtype: str | None) -> Series:
    """Numbers as dates in a data frame: in a type of pandas, or as objects of Python."""
    import pandas as pd

    column = pd.Series(numbers_to_datetime64(values, day).astype("datetime64[us]"))
    if dtype == "object":
        made = [None if pd.isna(one) else one.date() if day else one.to_pydatetime() for one in column]
        return pd.Series(made, dtype=object)
    if dtype is None:
        return column
    wanted = pd.api.types.pandas_dtype(dtype)
    if getattr(wanted, "tz", None) is not None:
        column = column.dt.tz_localize("UTC")
    return column.astype(wanted)


def numbers_to_text(values: np.ndarray, day: bool, form: str) -> np.ndarray:
    """Numbers as text in the form of dates, gaps as NaN."""
    import pandas as pd

    found = np.full(len(values), np.nan, dtype=object)
    there = ~np.isnan(values)
    found[there] = pd.DatetimeIndex(numbers_to_datetime64(values[there], day)).strftime(form).to_numpy(dtype=object)
    return found
