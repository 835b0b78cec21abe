"""Rules between columns that every row of a space keeps: `start <= end`, `if plan == 'basic' then seats in [1, 2]`.

A rule is a condition, or `if CONDITION then CONDITION`. A condition is one or more tests joined by `and`. A test
compares a column with a column or a value (`<= < >= > == !=`), lists values (`in [...]`, `not in [...]`), or asks `is
missing` or `is not missing`. A column whose name is not a plain word stands in backticks. Missing values follow
three-valued logic, as NULL does in SQL: a comparison with one is unknown, and only what is false breaks a rule.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.space.columns import Boolean, Category, Number

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<quoted>`[^`]+`)"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|==|!=|<|>|\[|\]|,))"
)
_KEYWORDS = ("if", "then", "and", "in", "not", "is", "missing", "true", "false")

AnyColumn = Number | Boolean | Category
Verdict = tuple[np.ndarray, np.ndarray]
"""For every row whether a condition is true, and whether it is false; neither means unknown, by a missing value."""


@dataclass(frozen=True)
class Test:
    """One comparison: `decide` gives true or false for every row without missing values."""

    columns: tuple[int, ...]
    decide: Callable[[np.ndarray], np.ndarray]
    open_to_missing: bool = True

    def __call__(self, rows: np.ndarray) -> Verdict:
        """Where it is true, and where it is false."""
        found = self.decide(rows)
        if not self.open_to_missing:
            return found, ~found
        there = ~np.isnan(rows[:, list(self.columns)]).any(axis=1)
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


class _Reader:
    """A recursive descent parser for the text of a rule."""

    def __init__(self, text: str, columns: Sequence[AnyColumn]):
        self.columns = list(columns)
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
        j = self.column()
        if self.take("is"):
            wanted = not self.take("not")
            self.expect("missing")
            return Test((j,), lambda rows: np.isnan(rows[:, j]) == wanted, open_to_missing=False)
        if self.take("not"):
            self.expect("in")
            values = self.values(j)
            return Test((j,), lambda rows: ~np.isin(rows[:, j], values))
        if self.take("in"):
            values = self.values(j)
            return Test((j,), lambda rows: np.isin(rows[:, j], values))
        return self.comparison(j)

    def comparison(self, j: int) -> Test:
        kind, sign = self.next("a comparison")
        if kind != "sign" or sign not in COMPARE:
            raise ValueError(f"expected one of {', '.join(COMPARE)}, in, not in or is after a column, found {sign!r}")
        compare, column = COMPARE[sign], self.columns[j]
        ordering = sign not in ("==", "!=")
        if ordering and isinstance(column, (Category, Boolean)) and column.kind != "ordered":
            raise ValueError(f"{column.name} has no order, so that {sign} means nothing for it; use == or in")
        other = self.other_column()
        if other is None:
            value = self.value(j)
            return Test((j,), lambda rows: compare(rows[:, j], value))
        self.comparable(column, self.columns[other], ordering)
        return Test((j, other), lambda rows: compare(rows[:, j], rows[:, other]))

    def comparable(self, a: AnyColumn, b: AnyColumn, ordering: bool) -> None:
        """Two columns can be compared if they are numbers, or have the same levels."""
        alike = (isinstance(a, Number) and isinstance(b, Number)) or (isinstance(a, Boolean) and isinstance(b, Boolean))
        alike = alike or (isinstance(a, Category) and isinstance(b, Category) and a.levels == b.levels)
        if not alike:
            raise ValueError(f"{a.name} and {b.name} are of different kinds or levels and cannot be compared")
        if not ordering and "float" in (a.kind, b.kind):
            raise ValueError(f"{a.name} and {b.name} would never be equal, or always differ, being drawn as floats")

    def column(self) -> int:
        found = self.other_column()
        if found is None:
            _, word = self.next("a column")
            raise ValueError(f"expected a column among {[c.name for c in self.columns][:20]}, found {word!r}")
        return found

    def other_column(self) -> int | None:
        """The position of the column that comes next, if one does."""
        if self.at >= len(self.tokens):
            return None
        kind, word = self.tokens[self.at]
        name = word[1:-1] if kind == "quoted" else word
        names = [column.name for column in self.columns]
        if kind not in ("word", "quoted") or (kind == "word" and word in _KEYWORDS) or name not in names:
            return None
        self.at += 1
        return names.index(name)

    def values(self, j: int) -> list[float]:
        self.expect("[")
        found = [self.value(j)]
        while self.take(","):
            found.append(self.value(j))
        self.expect("]")
        return found

    def value(self, j: int) -> float:
        """The next token as a value, in the numbers of column j."""
        kind, word = self.next("a value")
        column = self.columns[j]
        if isinstance(column, Category):
            level: Any = word[1:-1] if kind == "text" else _whole(word) if kind == "number" else word
            if level not in column.levels:
                raise ValueError(f"expected a level of {column.name} among {list(column.levels)[:20]}, found {word}")
            return float(column.levels.index(level))
        if isinstance(column, Boolean) and word in ("true", "false"):
            return float(word == "true")
        if isinstance(column, Number) and kind == "number":
            return float(word)
        wanted = "true or false" if isinstance(column, Boolean) else "a number"
        raise ValueError(f"expected {wanted} for {column.name}, found {word}")

    def next(self, expected: str) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise ValueError(f"expected {expected}, found its end")
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] in (("word", word), ("sign", word)):
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.take(word):
            found = self.tokens[self.at][1] if self.at < len(self.tokens) else "its end"
            raise ValueError(f"expected {word!r}, found {found!r}")


def _whole(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"cannot read {text[at:].strip()[:20]!r}")
        kind = match.lastgroup or ""
        found.append((kind, match.group(kind)))
        at = match.end()
    if not found:
        raise ValueError("expected a condition, found nothing")
    return found
