import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ectype as ec
from ectype.errors import SpaceError
from ectype.space import Boolean, Category, Date, Number
from ectype.space._rules import read_rule

COLUMNS = [
    Number(name="a", kind="float", low=0, high=1, missing=0.1),
    Number(name="b", kind="integer", low=0, high=9),
    Boolean(name="on", kind="boolean"),
    Category(name="city", kind="category", levels=("Bonn", "Nice", "Rome")),
    Category(name="grade", kind="ordered", levels=("low", "mid", "high")),
    Number(name="two words", kind="float", low=0, high=1),
    Category(name="zone", kind="category", levels=(1, -2)),
    Date(name="day", kind="date", low="2026-01-01", high="2026-12-31"),
    Date(name="at", kind="timestamp", low="2026-01-01", high="2026-12-31"),
]
DAYS = np.array(["2026-03-01", "2026-03-05", "2026-04-01"], dtype="datetime64[D]").astype(float)
TIMES = np.array(["2026-03-01T12:00", "2026-03-10T00:00", "2026-03-31T23:59"], dtype="datetime64[s]").astype(float)
#        a    b  on city grade two zone day at
ROWS = np.array(
    [
        [0.5, 3, 1, 0, 0, 0.1, 0, DAYS[0], TIMES[0]],
        [np.nan, 7, 0, 1, 2, 0.9, 1, DAYS[1], TIMES[1]],
        [0.2, 0, 1, 2, 1, 0.2, 1, DAYS[2], TIMES[2]],
    ]
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <= 0.3", [0, 1, 1]),
        ("a > 0.3", [1, 1, 0]),
        ("a <= `two words`", [0, 1, 1]),
        ("a is missing", [0, 1, 0]),
        ("a is not missing", [1, 0, 1]),
        ("b != 3", [0, 1, 1]),
        ("b in [3, 7]", [1, 1, 0]),
        ("b not in [3, 7]", [0, 0, 1]),
        ("b >= -1e0", [1, 1, 1]),
        ("on == true", [1, 0, 1]),
        ("city == 'Bonn'", [1, 0, 0]),
        ('city in ["Bonn", "Rome"]', [1, 0, 1]),
        ("grade >= 'mid'", [0, 1, 1]),
        ("zone == -2", [0, 1, 1]),
        ("zone in [-2, 1]", [1, 1, 1]),
        ("if on == true then city == 'Bonn'", [1, 1, 0]),
        ("if city == 'Nice' then a is missing", [1, 1, 1]),
        ("if a > 0 then b > 2", [1, 1, 0]),
        ("if on == true and b > 0 then grade == 'low' and zone == 1", [1, 1, 1]),
        ("a + 0.5 <= b", [1, 1, 0]),
        ("b -1 >= 2", [1, 1, 0]),
        ("2 * (b - 1) - a < 3.6", [1, 1, 1]),
        ("-b > -3", [0, 0, 1]),
        ("5 <= b + a", [0, 1, 0]),
        ("a / b < 1", [1, 1, 1]),
        ("b + 1 == 4", [1, 0, 0]),
        ("day >= '2026-03-05'", [0, 1, 1]),
        ("day + 5 <= at", [0, 1, 0]),
        ("at - day >= 0.5", [1, 1, 0]),
        ("at < day + 1", [1, 0, 1]),
        ("if day in ['2026-03-01'] then at == '2026-03-01T12:00'", [1, 1, 1]),
    ],
)
def test_rules_say_which_rows_keep_them(text, kept):
    assert read_rule(text, COLUMNS).kept(ROWS).tolist() == [bool(k) for k in kept]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a condition, found nothing"),
        ("c > 1", "expected a column among"),
        ("a", "expected a comparison, found its end"),
        ("a >", "expected a value, found its end"),
        ("a > 'x'", "expected a number for a, found 'x'"),
        ("a = 1", "expected ==, found ="),
        ("city < 'Rome'", "city has no order"),
        ("city == 'Oslo'", "expected a level of city among ['Bonn', 'Nice', 'Rome'], found 'Oslo'"),
        ("on == 1", "expected true or false for on"),
        ("a == `two words`", "would never be equal"),
        ("a <= city", "different kinds"),
        ("city == grade", "different kinds or levels"),
        ("if a > 1", "expected 'then', found 'its end'"),
        ("a > 1 b", "expected its end, found 'b'"),
        ("b in [1, 2", "expected ']'"),
        ("b not 1", "expected 'in'"),
        ("zone == 3.5", "expected a level of zone"),
        ("city + 1 > 2", "expected numbers beside +, found city, which is none"),
        ("b > city", "expected columns that can be compared, found b and city"),
        ("b + 1 > city", "expected numbers on both sides, found city, which is none"),
        ("a + b == 1", "a and b would never be equal"),
        ("1 < 2", "expected a column among"),
        ("b + > 2", "expected a column among"),
        ("(b > 2", "expected ')', found '>'"),
        ("day > 5", "expected a date on both sides, found one on the left; write a date in quotes, as '2026-03-01'"),
        ("day > 'soon'", "expected a date for day, found 'soon'"),
        ("day in [5]", "expected a date in quotes for day, found 5"),
        ("day + at > '2026-01-01'", "expected the difference of two dates, or days added to one, found + between them"),
        ("day * 2 > '2026-01-01'", "expected a number before *, found a date"),
    ],
)
def test_rules_that_cannot_be_read(text, message):
    with pytest.raises(ValueError, match="rule") as caught:
        read_rule(text, COLUMNS)
    assert message in str(caught.value)


def test_rules_of_any_length_are_not_parsed():
    space = ec.Space.normal(1)
    content = {**json.loads(space.to_json()), "rules": ["x0 > 0 and " * 10_000 + "x0 > 0"]}
    with pytest.raises(SpaceError, match="rules of at most 100000 characters in all"):
        ec.Space.from_json(json.dumps(content))


WORDS = [
    "a",
    "b",
    "on",
    "city",
    "`two words`",
    "if",
    "then",
    "and",
    "in",
    "not",
    "is",
    "missing",
    "<=",
    "==",
    "[",
    "]",
    "+",
]


@given(st.lists(st.sampled_from([*WORDS, ",", "1", "'Bonn'", "true"]), max_size=9).map(" ".join) | st.text(max_size=30))
def test_any_text_gives_a_rule_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert read_rule(text, COLUMNS).kept(ROWS).shape == (3,)
