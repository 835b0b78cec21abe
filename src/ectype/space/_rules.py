"""Rules between columns that every row of a space keeps: `start <= end`, `if plan == 'basic' then seats in [1, 2]`.

A rule is a condition, or `if CONDITION then CONDITION`. A condition is one or more tests joined by `and`. A test
compares a column with a column or a value (`<= < >= > == !=`), lists values (`in [...]`, `not in [...]`), or asks `is
missing` or `is not missing`. Between numbers there may be arithmetic: `start + 5 <= end`, `2 * (a - b) < c`. A date is
written in quotes; what is added to one is days, and so is the difference of two. A column whose name is not a plain
word stands in backticks. Missing values follow three-valued logic, as NULL does in SQL: a comparison with one is
unknown, and only what is false breaks a rule.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ectype.space import _dates as dates
from ectype.space._columns import Boolean, Category, Date, Number

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<quoted>`[^`]+`)"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|==|!=|<|>|[][,()*/+-]))"
)
_KEYWORDS = ("if", "then", "and", "in", "not", "is", "missing", "true", "false")

AnyColumn = Number | Date | Boolean | Category
Verdict = tuple[np.ndarray, np.ndarray]
"""For every row whether a condition is true, and whether it is false; neither means unknown, by a missing value."""


@dataclass(frozen=True)
class Test:
    """One comparison: `decide` gives true or false for every row, `known` says where that means something."""

    decide: Callable[[np.ndarray], np.ndarray]
    known: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, rows: np.ndarray) -> Verdict:
        """Where it is true, and where it is false."""
        found = self.decide(rows)
        if self.known is None:
            return found, ~found
        there = self.known(rows)
        return found & there, ~found & there


@dataclass(frozen=True)
class Rule:
    """A rule, parsed and checked against its columns."""

    text: str
    condition: tuple[Test, ...]
    conclusion: tuple[Test, ...]

    def kept(self, rows: np.ndarray) -> np.ndarray:
        """Which rows do not break the rule."""
        _, broken = _all(self.conclusion, rows)
        if self.condition:
            applies, _ = _all(self.condition, rows)
            broken = broken & applies
        return ~broken


def read_rule(text: str, columns: Sequence[AnyColumn]) -> Rule:
    """Parse a rule about these columns; ValueError says what is wrong with it.

    >>> columns = [Number(name="a", kind="float", low=0, high=1), Number(name="b", kind="float", low=0, high=1)]
    >>> read_rule("a <= b", columns).kept(np.array([[0.2, 0.3], [0.5, 0.1]]))
    array([ True, False])
    """
    try:
        return _Reader(text, columns).rule()
    except ValueError as error:
        raise ValueError(f"rule {text!r}: {error}") from error


def _all(tests: Sequence[Test], rows: np.ndarray) -> Verdict:
    verdicts = [test(rows) for test in tests]
    true = np.logical_and.reduce([verdict[0] for verdict in verdicts])
    return true, np.logical_or.reduce([verdict[1] for verdict in verdicts])


@dataclass(frozen=True)
class Amount:
    """A side of a comparison: a column, a value, or a sum of such; dates are in days."""

    of: Callable[[np.ndarray], np.ndarray]
    columns: tuple[int, ...] = ()
    time: bool = False
    """Whether it is a date."""
    column: int | None = None
    """The column, if it is one alone."""
    words: str = ""
    """The name of that column."""


class _Reader:
    """A recursive descent parser for the text of a rule."""

    def __init__(self, text: str, columns: Sequence[AnyColumn]):
        self.columns = list(columns)
        self.names = [column.name for column in columns]
        self.tokens = _tokens(text)
        self.at = 0

    def rule(self) -> Rule:
        condition: tuple[Test, ...] = ()
        if self.take("if"):
            condition = self.tests()
            self.expect("then")
        conclusion = self.tests()
        if self.at < len(self.tokens):
            raise ValueError(f"expected its end, found {self.tokens[self.at][1]!r}")
        return Rule(" ".join(word for _, word in self.tokens), condition, conclusion)

    def tests(self) -> tuple[Test, ...]:
        found = [self.test()]
        while self.take("and"):
            found.append(self.test())
        return tuple(found)

    def test(self) -> Test:
        left = self.sum("a column")
        if left.column is None or self.peek() not in ("is", "not", "in"):
            return self.comparison(left)
        j = left.column
        if self.take("is"):
            wanted = not self.take("not")
            self.expect("missing")
            return Test(lambda rows: np.isnan(rows[:, j]) == wanted)
        wanted = not self.take("not")
        self.expect("in")
        values = self.values(j)
        return Test(lambda rows: np.isin(rows[:, j], values) == wanted, lambda rows: ~np.isnan(rows[:, j]))

    def comparison(self, left: Amount) -> Test:
        kind, sign = self.next("a comparison")
        if kind != "sign" or sign not in COMPARE:
            raise ValueError(f"expected one of {', '.join(COMPARE)}, in, not in or is after a column, found {sign!r}")
        compare, ordering = COMPARE[sign], sign not in ("==", "!=")
        column = None if left.column is None else self.columns[left.column]
        if ordering and isinstance(column, (Category, Boolean)) and column.kind != "ordered":
            raise ValueError(f"expected == or in, found {sign}: {column.name} has no order")
        right = self.side(left)
        if not {*left.columns, *right.columns}:
            raise ValueError(f"expected a column among {self.names[:20]}, found numbers alone")
        self.comparable(left, right, ordering)
        return Test(
            lambda rows: compare(left.of(rows), right.of(rows)),
            lambda rows: ~np.isnan(left.of(rows)) & ~np.isnan(right.of(rows)),
        )

    def side(self, left: Amount) -> Amount:
        """What the left side is compared with: a level, true or false, or a sum."""
        if left.column is not None and not isinstance(self.columns[left.column], Number):
            at, other = self.at, self.other_column()
            if other is None:
                value = self.value(left.column)
                return Amount(lambda rows: np.full(len(rows), value))
            self.at = at
        return self.sum("a value", left)

    def comparable(self, left: Amount, right: Amount, ordering: bool) -> None:
        """Sides can be compared if both are numbers or dates, or columns with the same levels."""
        a, b = (None if side.column is None else self.columns[side.column] for side in (left, right))
        same = isinstance(a, Category) and isinstance(b, Category) and a.levels == b.levels
        same = same or (isinstance(a, Boolean) and isinstance(b, Boolean))
        for one, other in ((a, b), (b, a)):
            if not isinstance(one, (Category, Boolean)) or same:
                continue
            if other is not None:
                named = f"{left.words} and {right.words}, which are of different kinds or levels"
                raise ValueError(f"expected columns that can be compared, found {named}")
            if (left if one is b else right).columns:
                raise ValueError(f"expected numbers on both sides, found {one.name}, which is none")
        if left.time != right.time:
            hint = "write a date in quotes, as '2026-03-01'; start + 5 is five days later, and end - start is days"
            raise ValueError(
                f"expected a date on both sides, found one on the {'left' if left.time else 'right'}; {hint}"
            )
        both = [self.columns[j] for j in dict.fromkeys((*left.columns, *right.columns))]
        if not ordering and len(both) > 1 and any(column.kind == "float" for column in both):
            named = " and ".join(column.name for column in both)
            raise ValueError(f"expected < or >, found == or !=: {named} would never be equal, being drawn as floats")

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def sum(self, expected: str, beside: Amount | None = None) -> Amount:
        found = self.product(expected, beside)
        while (sign := self.peek()) in ("+", "-"):
            self.at += 1
            found = self.joined(found, sign, self.product("a number", None))
        return found

    def product(self, expected: str, beside: Amount | None) -> Amount:
        found = self.factor(expected, beside)
        while (sign := self.peek()) in ("*", "/"):
            self.at += 1
            found = self.joined(found, sign, self.factor("a number", None))
        return found

    def joined(self, a: Amount, sign: str, b: Amount) -> Amount:
        """Two amounts joined by an operator."""
        for side in (a, b):
            if side.column is not None and not isinstance(self.columns[side.column], Number):
                raise ValueError(f"expected numbers beside {sign}, found {side.words}, which is none")
        if (a.time and b.time and sign != "-") or (b.time and not a.time and sign != "+"):
            raise ValueError(f"expected the difference of two dates, or days added to one, found {sign} between them")
        if a.time and sign in "*/":
            raise ValueError(f"expected a number before {sign}, found a date")
        work = ARITHMETIC[sign]

        def of(rows: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):  # a division by zero is as unknown as a gap
                found = work(a.of(rows), b.of(rows))
            return np.where(np.isfinite(found), found, np.nan)

        return Amount(of, (*a.columns, *b.columns), time=a.time != b.time)

    def factor(self, expected: str, beside: Amount | None) -> Amount:
        if self.take("("):
            found = self.sum(expected)
            self.expect(")")
            return Amount(found.of, found.columns, found.time)
        if self.take("-"):
            return self.joined(Amount(lambda rows: np.zeros(len(rows))), "-", self.factor("a number", beside))
        j = self.other_column()
        if j is not None:
            column, days = self.columns[j], 1.0
            if isinstance(column, Date):
                days = 1.0 if column.kind == "date" else dates.DAY
            return Amount(lambda rows: rows[:, j] / days, (j,), isinstance(column, Date), j, column.name)
        kind, word = self.next(expected)
        if kind == "number":
            value = float(word)
            return Amount(lambda rows: np.full(len(rows), value))
        if kind == "text" and (day := _day(word)) is not None:
            return Amount(lambda rows: np.full(len(rows), day), time=True)
        if beside is not None and beside.column is not None:
            named = self.columns[beside.column]
            raise ValueError(f"expected {'a date' if beside.time else 'a number'} for {named.name}, found {word}")
        raise ValueError(f"expected a column among {self.names[:20]}, found {word!r}")

    def other_column(self) -> int | None:
        """The position of the column that comes next, if one does."""
        if self.at >= len(self.tokens):
            return None
        kind, word = self.tokens[self.at]
        name = word[1:-1] if kind == "quoted" else word
        if kind not in ("word", "quoted") or (kind == "word" and word in _KEYWORDS) or name not in self.names:
            return None
        self.at += 1
        return self.names.index(name)

    def values(self, j: int) -> list[float]:
        self.expect("[")
        found = [self.value(j)]
        while self.take(","):
            found.append(self.value(j))
        self.expect("]")
        return found

    def value(self, j: int) -> float:
        """The next token as a value, in the numbers of column j."""
        sign = "-" if self.take("-") else ""
        kind, word = self.next("a value")
        column, word = self.columns[j], sign + word
        if isinstance(column, Category):
            level: Any = word[1:-1] if kind == "text" else _whole(word) if kind == "number" else word
            if level not in column.levels:
                raise ValueError(f"expected a level of {column.name} among {list(column.levels)[:20]}, found {word}")
            return float(column.levels.index(level))
        if isinstance(column, Boolean) and word in ("true", "false"):
            return float(word == "true")
        if isinstance(column, Date) and kind == "text" and not sign and (day := _day(word)) is not None:
            return day * (1 if column.kind == "date" else dates.DAY)
        if isinstance(column, Number) and not isinstance(column, Date) and kind == "number":
            return float(word)
        dated = "a date in quotes" if isinstance(column, Date) else "a number"
        wanted = "true or false" if isinstance(column, Boolean) else dated
        raise ValueError(f"expected {wanted} for {column.name}, found {word}")

    def next(self, expected: str) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise ValueError(f"expected {expected}, found its end")
        self.at += 1
        return self.tokens[self.at - 1]

    def peek(self) -> str:
        """The next word or sign; nothing at the end."""
        kind, word = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        return word if kind in ("word", "sign") else ""

    def take(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] in (("word", word), ("sign", word)):
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.take(word):
            found = self.tokens[self.at][1] if self.at < len(self.tokens) else "its end"
            raise ValueError(f"expected {word!r}, found {found!r}")


def _day(word: str) -> float | None:
    """A date in quotes as days, with the time of day as a part of one; None if it is no date."""
    try:
        return dates.number_of(word[1:-1], day=False) / dates.DAY
    except ValueError:
        return None


def _whole(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None and text[at:].lstrip().startswith("="):
            raise ValueError("expected ==, found =")
        if match is None:
            raise ValueError(f"expected a column, a value or a sign, found {text[at:].strip()[:20]!r}")
        kind = match.lastgroup or ""
        found.append((kind, match.group(kind)))
        at = match.end()
    if not found:
        raise ValueError("expected a condition, found nothing")
    return found
