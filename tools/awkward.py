"""Awkward tables: each is described, copied from, certified, exported and reported on, by the library or the command.

Hypothesis draws the tables: columns as they come in life (digits with zeros in front, free text, one level, nothing
but gaps, dates at the ends of calendars, numbers at the ends of floats, nested values and others), under awkward names,
in few rows or many, as a data frame, an array, CSV or Parquet. Each step has to end with a result, or with an error of
ours that says what to do. No column may be lost without a word, and no level: what a space leaves out is in its
readings, and a warning if it is more than one row in a hundred. Anything else is a failure, and is printed.

    python tools/awkward.py
    python tools/awkward.py --tables 40 --seed 7
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
from hypothesis import strategies as st

import ectype as ec
from ectype.cli import main as command
from ectype.errors import EctypeError, EctypeWarning
from ectype.space import Category
from ectype.space._column_types import ENOUGH

Rng = np.random.Generator
Make = Callable[[Rng, int], Any]
LITTLE: dict[str, Any] = {"preset": "fast", "budget": 40, "certificate_n": 40, "repeat": 0, "progress": False}
FILES = ("copy.onnx", "copy.sql", "copy.txt", "copy.c", "copy.skops")


def chosen(*values: object) -> Make:
    """A column of some values, each about equally often."""
    return lambda rng, n: pd.Series([values[int(at)] for at in rng.integers(0, len(values), n)], dtype=object)


def typed(dtype: Any, *values: object) -> Make:
    """The same in a type of pandas."""
    made: Any = chosen(*values)
    return lambda rng, n: made(rng, n).astype(dtype)


def named(codes: Any, levels: Any, ordered: bool = False) -> pd.Categorical:
    """A column of categories, perhaps of more than there are."""
    return pd.Categorical.from_codes(codes, levels, ordered=ordered)


def texts(form: str, most: int = 10**9) -> Make:
    """Words with numbers in them: digits, keys, free text."""
    return lambda rng, n: [form.format(int(value)) for value in rng.integers(0, most, n)]


def after(start: str, days: int, unit: Any = "us") -> Make:
    """Timestamps from a day on."""
    return lambda rng, n: pd.Series(
        np.datetime64(start, "s") + rng.integers(0, days * 86400, n).astype("timedelta64[s]")
    ).dt.as_unit(unit)


def zoned(zone: str) -> Make:
    """Timestamps of a time zone, over its changes of the clock."""
    return lambda rng, n: after("2024-03-30", 400)(rng, n).dt.tz_localize("UTC").dt.tz_convert(zone)


def gappy(make: Make, share: float) -> Make:
    """A column with gaps."""
    return lambda rng, n: pd.Series(make(rng, n)).mask(pd.Series(rng.random(n) < share))


# What columns hold, by what is awkward about them.
COLUMNS: dict[str, Make] = {
    "numbers": lambda rng, n: rng.normal(size=n),
    "whole numbers": lambda rng, n: rng.integers(0, 1000, n),
    "few whole numbers": lambda rng, n: rng.integers(1, 6, n),
    "whole numbers with gaps": gappy(lambda rng, n: rng.integers(1, 6, n).astype(float), 0.2),
    "counts with a tail": lambda rng, n: rng.geometric(0.3, n),
    "booleans": lambda rng, n: rng.random(n) < 0.3,
    "booleans with gaps": gappy(chosen(True, False), 0.1),
    "yes and no": chosen("yes", "no"),
    "zeros and ones": lambda rng, n: rng.integers(0, 2, n),
    "words": chosen("north", "south", "west"),
    "a rare word": lambda rng, n: np.where(np.arange(n) % 40 == 1, "rare", "common"),
    "zeros in front": texts("{:05d}", 90),
    "telephones": texts("00493012{:04d}", 60),
    "many digits": texts("90071992547409{:02d}", 90),
    "very many digits": texts("1844674407370955{:04d}", 30),
    "free text": texts("the {} of text"),
    "keys": lambda rng, n: [f"id-{at}" for at in range(n)],
    "keys that are numbers": lambda rng, n: np.arange(n) + 10**6,
    "hundreds of levels": texts("level {}", 400),
    "mixed": chosen("a", 1, "b", 2),
    "words and numbers": chosen("a", "1", "2.5"),
    "numbers, booleans, gaps": chosen(1, True, 0.5, None),
    "one level": chosen("only"),
    "a constant": chosen(3.0),
    "a constant that is no number": typed("category", "x"),
    "all missing": lambda rng, n: [None] * n,
    "all NaN": lambda rng, n: np.full(n, np.nan),
    "mostly missing": gappy(lambda rng, n: rng.normal(size=n), 0.97),
    "huge": lambda rng, n: rng.choice([-1e308, 0.0, 1e308], n),
    "large": lambda rng, n: rng.normal(size=n) * 1e150,
    "tiny": lambda rng, n: rng.choice([5e-324, 1e-310, 1.0], n),
    "infinite": lambda rng, n: rng.choice([np.inf, 0.0, 1.0], n),
    "neighbours beyond 2**53": lambda rng, n: 2**53 + rng.integers(0, 3, n),
    "unsigned": lambda rng, n: (2**64 - 1) - rng.integers(0, 3, n).astype(np.uint64),
    "objects of Python's integers": chosen(2**70, 1, 2),
    "single precision": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "half precision": lambda rng, n: (1e4 * rng.normal(size=n)).astype(np.float16),
    "bytes of 8 bits": lambda rng, n: rng.integers(-128, 128, n).astype(np.int8),
    "nullable numbers": typed("Int64", 1, 2, None),
    "nullable booleans": typed("boolean", True, None, False),
    "nullable words": typed("string", "a", None, "b"),
    "nullable floats": typed("Float64", 0.5, None, 2.5),
    "Arrow's numbers": typed("int64[pyarrow]", 1, 2, 3),
    "Arrow's words": typed("string[pyarrow]", "a", "b"),
    "Arrow's days": typed("date32[pyarrow]", date(2024, 1, 1), date(2024, 1, 2)),
    "categories": typed("category", "u", "v", "w"),
    "categories of numbers": typed("category", 3, 1, 2),
    "categories of fractions": typed("category", 0.5, 1.5),
    "categories of booleans": typed("category", True, False),
    "ordered": lambda rng, n: named(rng.integers(0, 3, n), ["lo", "mid", "hi"], ordered=True),
    "unused categories": lambda rng, n: named(rng.integers(0, 2, n), ["a", "b", "c", "d"]),
    "sparse": lambda rng, n: pd.Series(pd.arrays.SparseArray(rng.integers(0, 2, n))),
    "days of 1900": after("1900-01-01", 60),
    "days of 2262": after("2262-03-01", 90),
    "the last days": lambda rng, n: rng.choice(["9999-12-31", "2024-01-01", "0001-01-01"], n),
    "nanoseconds": after("2024-01-01", 30, "ns"),
    "a summer time": zoned("Europe/Berlin"),
    "half an hour off": zoned("Asia/Kolkata"),
    "zones in words": chosen("2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00"),
    "days in words": texts("2024-01-{:02d}", 28),
    "days that are none": chosen("2024-02-30", "2024-02-29"),
    "days of Germany": chosen("31.12.2024", "01.02.2025"),
    "days of Python": chosen(date(2024, 1, 1), date(2024, 2, 1)),
    "times of several zones": chosen(
        datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    ),
    "times with and without zones": chosen(datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),
    "times of day": texts("{:02d}:30", 24),
    "spans": lambda rng, n: pd.Series(pd.to_timedelta(rng.integers(0, 99, n), unit="h")),
    "months": lambda rng, n: pd.Series(pd.period_range("2024-01", periods=12, freq="M")[rng.integers(0, 12, n)]),
    "unicode": chosen("Köln", "Ko\u0308ln", "東京", "😀", "\u202eabc"),
    "control characters": chosen("a\x00b", "a\x1b[31m", "line\nbreak", "tab\t"),
    "half a surrogate pair": chosen("\ud800", "a"),
    "spaces": chosen(" a", "a ", "a", " "),
    "empty words": chosen("", "a"),
    "words for gaps": chosen("NA", "None", "null", "a"),
    "quotes": chosen('a"b', "a'b", "a,b", "`", "\\"),
    "formulas": chosen("=1+1", "@sum", "-1"),
    "long words": chosen("x" * 3000, "y"),
    "decimals": chosen(Decimal("1.10"), Decimal("2.20")),
    "bytes": chosen(b"a", b"b"),
    "complex": lambda rng, n: rng.normal(size=n) + 1j,
    "lists": lambda rng, n: [[1, 2], [3]] * (n // 2) + [[1]] * (n % 2),
    "dictionaries": lambda rng, n: [{"a": at} for at in range(n)],
    "objects": lambda rng, n: [object() for _ in range(n)],
    "decimal commas": texts("{},5", 60),
}
ODD_NAMES = (
    *("x", "a b", "y", "label", "class", "x0", "prévision", "東京", "😀", '"quoted"', "it's", "SELECT", "a,b", "a\nb"),
    *("x\x1b[31m", " x", "if", "a`b", "none", "n" * 200, "index", "row", "missing", "copy", "Ko\u0308ln"),
)
NAMES = st.sampled_from(ODD_NAMES) | st.text(min_size=1, max_size=6)
OPTIONS = {"categories": "--category", "numbers": "--number", "floor": "--floor"}
FAMILIES = ("tree", "tree", "linear", "auto")


@dataclass(frozen=True)
class Table:
    """One table: its rows, and how they come."""

    frame: pd.DataFrame
    form: str
    kinds: tuple[str, ...]
    said: dict[str, Any] = field(default_factory=dict)
    file: str = FILES[0]
    to: str = FAMILIES[0]

    def __repr__(self) -> str:
        names = [str(name)[:20] for name in self.frame.columns[:8]]
        said = f", {self.said}" if self.said else ""
        kinds, made = ", ".join(self.kinds), f"{self.to} to {self.file}"
        return f"{len(self.frame)} rows as {self.form}, {kinds}, called {names}{said}, {made}"


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Any of these columns, under any of these names."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def likely(share: float) -> bool:
        return bool(rng.random() < share)

    n = int(rng.choice([2, 3, 12, 60, 200, 200]))
    # Mostly there is a column that nothing is wrong with, or hardly any table would come to a copy.
    usual = ["numbers", "words"][: int(rng.integers(0, 3))]
    kinds = [*usual, *map(str, rng.choice(sorted(COLUMNS), rng.choice([1, 1, 2, 3])))]
    wide = likely(0.02)
    kinds = ["numbers"] * 100 if wide else kinds
    names: list[Any] = [f"c{at}" for at in range(len(kinds))]
    if likely(0.4) and not wide:
        names = draw(st.lists(NAMES, min_size=len(kinds), max_size=len(kinds), unique=likely(0.95)))
    elif likely(0.05):
        names = [*range(len(kinds) - 1), [0, len(kinds), "x", None][int(rng.integers(0, 4))]]
    parts = [pd.Series(COLUMNS[kind](rng, n)).reset_index(drop=True) for kind in kinds]
    frame = pd.concat(parts, axis=1).set_axis(pd.Index(names, dtype=object), axis=1)
    at = int(rng.integers(0, len(kinds)))
    sayable: list[dict[str, Any]] = [{}, {}, {}, {"floor": 1}, {"categories": [names[at]]}, {"numbers": [names[at]]}]
    said = sayable[int(rng.integers(0, len(sayable)))]
    form = str(rng.choice(["frame", "frame", "csv", "csv", "parquet", "array"]))
    said = {} if form == "array" and "floor" not in said else said
    to = "tree" if wide else str(rng.choice(FAMILIES))
    return Table(frame, form, tuple(kinds[:6]), said, str(rng.choice(FILES)), to)


def decide(rows: Any) -> np.ndarray:
    """An original that takes anything: by the first column's words."""
    first = rows.iloc[:, 0] if hasattr(rows, "iloc") else np.asarray(rows)[:, 0]
    return np.array(["yes" if zlib.crc32(repr(value).encode(errors="replace")) % 3 else "no" for value in first])


class Failed(Exception):
    """Something that is neither a result nor an error that says what to do."""


def ended(table: Table, folder: Path) -> str:
    """How a table ends: the last step that was done, or the error that ended it."""
    if table.form in ("csv", "parquet"):
        return _by_command(table, folder)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        end = _by_library(table, folder, told)
    for one in told:
        if not issubclass(one.category, EctypeWarning):
            raise Failed(f"{end}: {one.category.__name__}: {one.message} ({one.filename})")
    return end


def _by_library(table: Table, folder: Path, told: list[warnings.WarningMessage]) -> str:
    rows: Any = table.frame.to_numpy() if table.form == "array" else table.frame
    step = "space"
    try:
        space = ec.Space.from_data(rows, **table.said)
        _check_losses(space, table.frame, [str(one.message) for one in told])
        step = "copy"
        copied = ec.copy_classifier(decide, space, classes=["no", "yes"], to=table.to, out=folder / "run", **LITTLE)
        step = "certify"
        ec.certify(copied.copy, decide, space, n=30, data=rows, progress=False)
        copied.copy.predict(rows)
        step = "report"
        ec.load(folder / "run").report(folder / "page.html")
        step = "export"
        ec.export(copied.copy, folder / table.file)
    except EctypeError as error:
        return f"{step}: {_checked_error(str(error))}"
    except Exception as error:
        raise Failed(f"{step}: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-4)}") from error
    return "done"


def _by_command(table: Table, folder: Path) -> str:
    try:
        name = _written(table, folder)
    except Exception:  # pandas or Arrow cannot write it
        return "no such file"
    (folder / "awkward_original.py").write_text("from awkward import decide\n")
    said = [f"{OPTIONS[key]}={value[0] if key != 'floor' else value}" for key, value in table.said.items()]
    little = ["--preset", "fast", "--budget", "40", "--certificate-n", "40", "--repeat", "0", "--classes", "no,yes"]
    little += ["--to", table.to]
    steps = {
        "space": ["space", name, "--out", "space.json", "--json", *said],
        "copy": ["copy", "awkward_original:decide", "--space", "space.json", "--out", "run", *little],
        "certify": ["certify", "run", "awkward_original:decide", "--data", name, "--n", "30"],
        "report": ["report", "run"],
        "export": ["export", "run", table.file],
    }
    for step, words in steps.items():
        code, out, err = _run(words, folder)
        if code in (2, 3):
            return f"{step}: {_checked_error(err)}"
        if code not in (0, 1):
            raise Failed(f"{step}: exit code {code}\n{err[-2000:]}")
        if step == "space":
            _check_told(json.loads(out), table.frame, err)
    return "done"


def _written(table: Table, folder: Path) -> str:
    name = f"rows.{table.form}"
    if table.form == "csv":
        table.frame.to_csv(folder / name, index=False)
    else:
        table.frame.to_parquet(folder / name)
    return name


def _run(words: list[str], folder: Path) -> tuple[int, str, str]:
    """A command in this process."""
    out, err = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err), _warned(err):
        sys.modules.pop("awkward_original", None)
        try:
            command(words)
        except SystemExit as end:
            return int(end.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


@contextmanager
def _warned(err: StringIO) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", EctypeWarning)
        warnings.showwarning = lambda message, *place, **more: print(message, file=err)
        yield


def _checked_error(text: str) -> str:
    """What an error says it expected, if it says so, and what it found."""
    found = re.search(r"expected (.*?), found ", text, re.DOTALL)
    if found is None:
        raise Failed(f"an error that does not say what was expected and found: {text}")
    return "expected " + re.sub(r"'.*'|[0-9]+", "...", found[1])[:70]


def _check_losses(space: ec.Space, frame: pd.DataFrame, said: list[str]) -> None:
    """No column and no level is lost without a word."""
    if space.d != frame.shape[1] or (space.frame and [*space.names] != [*frame.columns]):
        raise Failed(f"columns {[*frame.columns]} became {space.names}")
    told = {one.name: one.covered for one in space.readings}
    for at, column in enumerate(space.columns):
        values = frame.iloc[:, at].dropna()
        if isinstance(column, Category):
            lost = {str(value) for value in values} - {*map(str, column.levels)}
            lost -= {f"{level}.0" for level in column.levels}
            if lost and told[column.name] == 1.0:
                raise Failed(f"levels {sorted(lost)[:3]} of {column.name!r} are lost without a word")
    if min(told.values()) < ENOUGH and not any("the space covers" in text for text in said):
        raise Failed(f"{told}, without a warning")


def _check_told(told: dict[str, Any], frame: pd.DataFrame, err: str) -> None:
    if len(told["columns"]) != frame.shape[1]:
        raise Failed(f"columns {[*frame.columns]} became {[*told['columns']]}")
    covered = {one["name"]: one["covered"] for one in told["readings"]}
    if min(covered.values()) < ENOUGH and "the space covers" not in err:
        raise Failed(f"{covered}, without a warning")


def tried(n: int, seed: int | None, check: Callable[[Table], None]) -> None:
    """Try n tables, the same for the same seed."""
    checks = hypothesis.HealthCheck
    options = hypothesis.settings(
        max_examples=n,
        deadline=None,
        database=None,
        derandomize=seed is None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[
            checks.too_slow,
            checks.data_too_large,
            checks.filter_too_much,
            checks.large_base_example,
        ],
    )
    trial = options(hypothesis.given(tables())(check))
    (trial if seed is None else hypothesis.seed(seed)(trial))()


def main() -> None:
    """Try tables, print how they ended, and each failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print every table, and how long it took")
    given = parser.parse_args()
    ends, failures, began = Counter[str](), list[tuple[Table, str]](), perf_counter()
    kinds = Counter[str]()

    def check(table: Table) -> None:
        if sum(ends.values()) >= given.tables:
            return
        kinds.update({*table.kinds})
        began = perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                ends[ended(table, Path(folder))] += 1
            except Failed as failure:
                ends["failed"] += 1
                failures.append((table, str(failure)))
                print(f"\n{table!r}\n{failure}", flush=True)
        if given.verbose:
            print(f"{perf_counter() - began:.1f} s: {table!r}", flush=True)

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    tried(given.tables, given.seed, check)
    print(f"{sum(ends.values())} tables, {len(kinds)} kinds of columns, {perf_counter() - began:.0f} s")
    for end, n in ends.most_common():
        print(f"{n:5d}  {end}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
