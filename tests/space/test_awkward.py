"""Awkward tables: each ends with a result, or an error that says what to do, and nothing is lost without a word."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

from awkward import ODD_NAMES, Failed, Table, ended, tried
from ectype.errors import EctypeWarning, SpaceError
from ectype.space import Space

pytestmark = pytest.mark.usefixtures("small_lessons")


def test_any_table_ends_with_a_result_or_an_error_that_says_what_to_do(unmeasured):
    ends = []

    def check(table):
        with TemporaryDirectory() as folder:
            ends.append(ended(table, Path(folder)))

    tried(40, None, check)
    assert len(ends) >= 40
    assert ends.count("done") >= 5  # or nothing was tried
    assert len(set(ends)) >= 5


def test_what_is_lost_or_goes_wrong_is_noticed(tmp_path, monkeypatch):
    """The check itself: of a space that drops a column, and of an error of another kind."""
    table = Table(pd.DataFrame({"a": np.arange(60) % 7, "b": ["u", "v"] * 30}), "frame", ("numbers", "words"))
    assert ended(table, tmp_path) == "done"
    learned = Space.from_data
    with monkeypatch.context() as patch:
        patch.setattr(Space, "from_data", lambda rows, **said: learned(rows[["a"]], **said))
        with pytest.raises(Failed, match=r"columns \['a', 'b'\] became \('a',\)"):
            ended(table, tmp_path / "lost")
    with monkeypatch.context() as patch:
        patch.setattr(Space, "sample", lambda *given: 1 / 0)
        with pytest.raises(Failed, match="copy: ZeroDivisionError"):
            ended(table, tmp_path / "failed")


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_names_of_any_kind(form, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=60) for name in ODD_NAMES})
    assert ended(Table(frame, form, ("numbers",)), tmp_path) == "done"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["\ud800"] * 9, r"column a: expected words in Unicode, found half a surrogate pair in '\\ud800'"),
        ([1e308, -1e308] * 5, "found 'a', which to leave out or to scale"),
        (
            [True, 1, 0.5] * 5,
            "column a: expected numbers, booleans, dates or words, found values of type bool, float, int",
        ),
        ([[1], [2]] * 5, "found values of type list; make them words, as by"),
        ([np.timedelta64(1, "h")] * 5, r"found timedelta64\[.*; make them words"),
        ([None] * 5, r"expected at least one value, found none; leave the column out: frame\.drop\(columns"),
    ],
)
def test_columns_that_cannot_be_described_say_what_to_do(values, message):
    with pytest.raises(SpaceError, match=message):
        Space.from_data(
            pd.DataFrame(
                {"a": pd.Series(values, dtype=object if "\ud800" in values else None), "b": range(len(values))}
            )
        )


def test_complex_numbers_are_refused_in_an_array_too():
    with pytest.raises(SpaceError, match="expected numbers, found complex ones; give their real and imaginary parts"):
        Space.from_data(np.ones((9, 2)) * 1j)


def test_a_share_that_is_not_all_is_never_shown_as_all():
    words = ["a"] * 99_999 + ["b"]
    with np.errstate(all="raise"):
        reading = Space.from_data(pd.DataFrame({"w": words})).readings[0]
    assert (reading.covered, reading.share) == (0.99999, "99.99%")
    with pytest.warns(EctypeWarning, match="covers 50"):
        Space.from_data(pd.DataFrame({"w": ["a"] * 9 + [*"bcdefghij"]}))


@pytest.mark.parametrize(
    "values", [np.uint64(2**64 - 1) - np.arange(90, dtype=np.uint64) % 3, 2**63 - 1 - np.arange(90)]
)
def test_the_largest_whole_numbers_are_rounded_with_a_warning_and_stay_large(values):
    """As a float the largest of them is beyond its type, and became 0, or the lowest."""
    with pytest.warns(EctypeWarning, match=r"column a: \d+ whole numbers above 2\*\*53 are rounded to floats.*astype"):
        space = Space.from_data(pd.DataFrame({"a": values}))
    shown = space.present(space.sample(50, np.random.default_rng(0)))
    assert shown["a"].dtype == values.dtype
    assert (shown["a"].astype(float) > 0.999 * float(values.max())).all()


def test_dates_at_the_ends_of_the_calendar_are_drawn_as_they_are():
    frame = pd.DataFrame({"d": ["9999-12-31", "2024-01-01", "0001-01-01"] * 30})
    space = Space.from_data(frame)
    shown = space.present(space.sample(90, np.random.default_rng(0)))
    assert set(shown["d"]) == set(frame["d"])
    np.testing.assert_array_equal(space.present(space.read(frame, "rows"))["d"], frame["d"])


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"a": np.arange(60.0), "one": 1e308}), {}),  # its slider on the page
        (pd.DataFrame({"a": pd.arrays.SparseArray([0, 1] * 30)}), {}),
        (pd.DataFrame({"a": np.arange(60.0), "large": 1e150 * np.arange(60)}), {}),  # the ticks of its chart
    ],
)
def test_tables_that_ended_in_exceptions_of_others(frame, said, tmp_path):
    assert ended(Table(frame, "frame", ("numbers",), said), tmp_path) == "done"


def test_the_largest_numbers_are_compared_in_a_database_too(tmp_path):
    """SQLite has no whole numbers of 64 bits without a sign."""
    values = np.uint64(2**64 - 1) - np.arange(60, dtype=np.uint64) % 3
    frame = pd.DataFrame({"a": np.arange(60.0), "u": values})
    assert ended(Table(frame, "frame", ("unsigned",), {}, "copy.txt", "linear"), tmp_path) == "done"


@pytest.mark.parametrize("values", [[[1], [2]] * 5, [1e308, 0.0] * 5, [0.5, 1.0] * 5])
def test_levels_that_are_no_names_are_refused(values):
    with pytest.raises(SpaceError, match=r"expected levels that are words or whole numbers, found .*; make them words"):
        Space.from_data(pd.DataFrame({"a": values}), categories=["a"])
