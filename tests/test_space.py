import contextlib
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, spearmanr

from understudy.errors import SpaceError
from understudy.space import Space, open_space


def test_normal_and_uniform_have_their_distributions(rng):
    rows = Space.normal(3).sample(4000, rng)
    assert all(kstest(rows[:, j], "norm").pvalue > 1e-3 for j in range(3))
    rows = Space.uniform([-1, 5], [1, 6]).sample(4000, rng)
    assert kstest(rows[:, 1] - 5, "uniform").pvalue > 1e-3
    assert rows[:, 0].min() >= -1
    assert Space.uniform(0, 1, d=4).d == 4


@pytest.fixture
def table(rng):
    z = rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0], [0.8, 1, -0.5], [0, -0.5, 1]], size=3000)
    return np.column_stack([np.exp(z[:, 0]), z[:, 1] * 100 + 7, np.digitize(z[:, 2], [-1, 0.5])])


def test_from_data_keeps_marginals_and_dependence(table, rng):
    space = Space.from_data(table)
    rows = space.sample(6000, rng)
    for j in range(2):
        at = [0.1, 0.3, 0.5, 0.7, 0.9]
        error = np.quantile(rows[:, j], at) - np.quantile(table[:, j], at)
        assert np.abs(error).max() < 0.1 * table[:, j].std()
    shares = [np.mean(rows[:, 2] == level) for level in (0, 1, 2)]
    np.testing.assert_allclose(shares, [np.mean(table[:, 2] == level) for level in (0, 1, 2)], atol=0.02)
    assert set(np.unique(rows[:, 2])) == {0, 1, 2}  # no values between the levels
    wanted, found = spearmanr(table).statistic, spearmanr(rows).statistic
    np.testing.assert_allclose(found, wanted, atol=0.07)
    assert rows[:, 0].min() >= table[:, 0].min()


def test_more_columns_than_rows(rng):
    table = rng.normal(size=(10, 40))
    assert Space.from_data(table).sample(5, rng).shape == (5, 40)


def test_a_constant_column_stays_constant_and_encodes(rng):
    table = np.column_stack([rng.normal(size=50), np.full(50, 3.0)])
    space = Space.from_data(table)
    assert set(space.sample(20, rng)[:, 1]) == {3.0}
    assert space.moments[1][1] == 1.0


def test_a_data_frame_keeps_its_names_and_the_original_gets_frames(table, rng):
    frame = pd.DataFrame(table, columns=["income", "score", "grade"])
    space = Space.from_data(frame, columns=["grade", "income"])
    shown = space.present(space.sample(4, rng))
    assert list(shown.columns) == ["grade", "income"]
    assert isinstance(Space.from_data(table).present(table), np.ndarray)


def test_json_round_trip(table, tmp_path, rng):
    for space in (Space.normal(2), Space.uniform(0, 2, 3), Space.from_data(pd.DataFrame(table, columns=list("abc")))):
        space.save(tmp_path / "space.json")
        again = Space.load(tmp_path / "space.json")
        assert again == space
        a, b = (s.sample(50, np.random.default_rng(1)) for s in (space, again))
        np.testing.assert_array_equal(a, b)


def test_the_json_holds_no_row(table):
    values = set(json.loads(Space.from_data(table).to_json())["columns"][0]["marginal"]["values"])
    assert len(values & set(table[:, 0])) <= 0.1 * len(values)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space.normal(0), "a whole number of columns above zero, found 0"),
        (lambda: Space.normal(True), "whole number of columns"),
        (lambda: Space.uniform(1, 0, 2), "low must be below high, found low=1.0, high=0.0"),
        (lambda: Space.uniform([0, 1], [1, 2, 3]), "a low and a high bound per column"),
        (lambda: Space.uniform(0, float("inf"), 1), "finite number"),
        (lambda: Space.from_data([[1.0, 2.0]]), "at least 2 rows, found 1"),
        (lambda: Space.from_data([1.0, 2.0]), "a table of rows and columns, found an array of shape (2,)"),
        (lambda: Space.from_data([["a", 1], ["b", 2]]), "a table of numbers"),
        (lambda: Space.from_data([[1.0, np.nan], [2.0, 3.0]]), "finite numbers, found nan in row 0, column 1"),
        (lambda: Space.from_data([[1.0, np.inf], [2.0, 3.0]]), "found inf in row 0"),
        (lambda: Space.from_data(pd.DataFrame({"a": ["x", "y"]})), "numeric columns, found ['a'] with other contents"),
        (
            lambda: Space.from_data(pd.DataFrame({"age": [1, 2]}), columns=["ages"]),
            "columns among ['age'], found ['ages']",
        ),
        (lambda: Space.from_data(np.zeros((3, 0))), "at least one column"),
        (lambda: Space.uniform(-1.7e308, 1.7e308, 1), "far enough from the largest floating-point number"),
        (lambda: Space.from_data(np.eye(3) * 1e300), "far enough from the largest floating-point number"),
        (lambda: Space.load(None), "a readable space.json"),
        (lambda: Space.from_data(pd.DataFrame(np.eye(3)), columns=["0"]), "the columns ['0'], found columns called [0"),
        (lambda: open_space("normal:x"), "normal:D or uniform:LOW:HIGH:D"),
        (lambda: open_space("uniform:0:1"), "normal:D or uniform:LOW:HIGH:D"),
        (lambda: open_space("nowhere.json"), "a readable space.json"),
    ],
)
def test_bad_spaces_say_what_is_wrong(make, message):
    with pytest.raises(SpaceError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": []}, "at least 1 item"),
        ({"surprise": 1}, "surprise: expected Extra inputs are not permitted"),
        ({"version": 2}, "version"),
        ({"correlation": [[1.0]]}, "correlation must be 2 x 2"),
        ({"correlation": [[1.0, 2.0], [2.0, 1.0]]}, "no negative eigenvalue"),
        ({"correlation": [[1.0, 0.5], [0.4, 1.0]]}, "symmetric"),
    ],
)
def test_a_space_file_with_a_fault(change, message, tmp_path):
    content = json.loads(Space.normal(2).to_json()) | change
    (tmp_path / "space.json").write_text(json.dumps(content))
    with pytest.raises(SpaceError) as caught:
        Space.load(tmp_path / "space.json")
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_column_names_are_unique():
    content = json.loads(Space.normal(2).to_json())
    content["columns"][1]["name"] = "x0"
    with pytest.raises(SpaceError, match="unique, found \\['x0'\\]"):
        Space.from_json(json.dumps(content))


KEYS = ["columns", "name", "marginal", "kind", "values", "shares", "format", "cls"]
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(KEYS), part, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_any_document_gives_a_space_or_a_space_error(document):
    with contextlib.suppress(SpaceError):
        assert isinstance(Space.from_json(json.dumps(document)), Space)
