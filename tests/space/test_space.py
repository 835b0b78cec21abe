import contextlib
import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, spearmanr, truncnorm

from ectype.errors import EctypeWarning, SpaceError
from ectype.space import Space, open_space
from ectype.space._space import PATIENCE


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


def test_a_space_is_written_whole_or_not_at_all(tmp_path):
    with pytest.raises(SpaceError, match="a file that can be written"):
        Space.normal(2).save(tmp_path / "nowhere" / "space.json")
    (tmp_path / "space.json").mkdir()
    with pytest.raises(SpaceError, match="a file that can be written"):
        Space.normal(2).save(tmp_path / "space.json")
    assert [path.name for path in tmp_path.iterdir()] == ["space.json"]


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


def test_the_json_holds_nothing_of_a_single_row(table):
    knots = json.loads(Space.from_data(table).to_json())["columns"][0]["quantiles"]
    assert not set(knots) & set(table[:, 0])
    lowest, highest = np.sort(table[:, 0])[:5], np.sort(table[:, 0])[-5:]
    assert (knots[0], knots[-1]) == pytest.approx((lowest.mean(), highest.mean()))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Space.normal(0), "a whole number of columns above zero, found 0"),
        (lambda: Space.normal(True), "whole number of columns"),
        (lambda: Space.uniform(1, 0, 2), "column x0: expected low below high, found 1 and 0"),
        (lambda: Space.uniform([0, 1], [1, 2, 3]), "a low and a high bound per column"),
        (lambda: Space.uniform(0, float("inf"), 1), "finite number"),
        (lambda: Space.from_data([[1.0, 2.0]]), "at least 2 rows, found 1"),
        (lambda: Space.from_data([1.0, 2.0]), "a table of rows and columns, found an array of shape (2,)"),
        (lambda: Space.from_data([["a", 1], ["b", 2]]), "a table of numbers"),
        (lambda: Space.from_data([[1.0, np.nan], [2.0, 3.0]]), "finite numbers, found nan in row 0, column 1"),
        (lambda: Space.from_data([[1.0, np.inf], [2.0, 3.0]]), "found inf in row 0"),
        (lambda: Space.from_data(pd.DataFrame({"a": ["x", "y"]})), "a level that at least 5 rows have, found 2 levels"),
        (
            lambda: Space.from_data(pd.DataFrame({"a": [None, None]})),
            "column a: expected at least one value, found none",
        ),
        (lambda: Space.from_data(pd.DataFrame({"a": [np.inf, 1.0]})), "column a: expected finite numbers, found inf"),
        (
            lambda: Space.from_data(pd.DataFrame({"a": [1j, 2j]})),
            "column a: expected numbers, booleans, dates or words",
        ),
        (lambda: Space.from_data(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])), "['a'] more than once; rename"),
        (lambda: Space.from_data(np.eye(3), rules=["x0 <"]), "rule 'x0 <': expected a value, found its end"),
        (
            lambda: Space.from_data(pd.DataFrame({"age": [1, 2]}), columns=["ages"]),
            "columns among ['age'], found ['ages']",
        ),
        (lambda: Space.from_data(np.zeros((3, 0))), "at least one column"),
        (lambda: Space.uniform(-1.7e308, 1.7e308, 1), "far enough from the largest floating-point number"),
        (lambda: Space.from_data(np.eye(3) * 1e300), "far enough from the largest floating-point number"),
        (lambda: Space.load(None), "a readable space.json"),
        (lambda: Space.from_data(pd.DataFrame(np.eye(3)), columns=["0"]), "the columns ['0'], found columns called [0"),
        (lambda: Space.normal(2).read([["1", "1_000"]], "here"), "a table of numbers, found not a number: '1_000'"),
        (lambda: Space.normal(2).read([[b"1", b"1_000"]], "here"), "a table of numbers"),
        (lambda: Space.normal(2).read(np.array([["1", "\u0661"]]), "here"), "a table of numbers"),
        (lambda: Space.from_data(np.eye(3), rules=["x0 < \u0661"]), "rule 'x0 < \u0661'"),
        (lambda: open_space("normal:1_0"), "normal:D or uniform:LOW:HIGH:D"),
        (lambda: open_space("normal:x"), "normal:D or uniform:LOW:HIGH:D"),
        (lambda: open_space("uniform:0:1"), "normal:D or uniform:LOW:HIGH:D"),
        (lambda: open_space("nowhere.json"), "a readable space.json"),
    ],
)
def test_bad_spaces_say_what_is_wrong(make, message):
    with pytest.raises(SpaceError) as caught:
        make()
    assert message in str(caught.value)


BOX = [{"name": f"x{j}", "kind": "float", "low": 0, "high": 1} for j in range(2)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": []}, "at least 1 item"),
        ({"surprise": 1}, "surprise: expected Extra inputs are not permitted"),
        ({"version": 2}, "version"),
        ({"correlation": [[1.0]]}, "a correlation of 2 x 2"),
        ({"rules": ["x0 > 100"], "columns": BOX}, "rules that at least one drawn row in 1000 keeps, found 0 of"),
        ({"rules": ["x0 < x9"]}, "rule 'x0 < x9': expected a number for x0, found x9"),
        (
            {"columns": [{"name": "a", "kind": "float", "low": 2, "high": 1}]},
            "column a: expected low below high, found 2 and 1",
        ),
        ({"columns": [{"name": "a", "kind": "float"}]}, "column a: expected low and high, mean and std, quantiles"),
        ({"columns": [{"name": "a", "kind": "day"}]}, "column a: kind: expected one of 'float', 'integer', 'date'"),
        ({"columns": [{"name": "a", "kind": "date", "low": "2026-13-01", "high": 9}]}, "column a: low: expected month"),
        ({"columns": [{"name": "a", "kind": "date", "low": 0, "high": 1e9}]}, "the year 1 to 9999, found 1e+09"),
        ({"columns": [{"kind": "float", "low": 0, "high": 1}]}, "column 0: expected 'name', found nothing"),
        (
            {"columns": [{"name": "a", "kind": "category", "levels": ["u", "v"]}]},
            "expected frame to be true where a column",
        ),
        (
            {"columns": [{"name": "a", "kind": "category", "levels": ["u", "u"]}]},
            "expected every level once, found ['u']",
        ),
        (
            {"columns": [{"name": "a", "kind": "float", "low": 0, "high": 1, "dtype": "x"}], "frame": True},
            "a type of pandas that its values hold, found",
        ),
        (
            {"columns": [{"name": "a", "kind": "integer", "low": 0.2, "high": 0.8}]},
            "a whole number between low and high, found none",
        ),
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
    with pytest.raises(SpaceError, match="every column name once, found \\['x0'\\]"):
        Space.from_json(json.dumps(content))


KEYS = ["columns", "name", "kind", "values", "shares", "levels", "low", "high", "rules", "missing", "quantiles", "cls"]
KINDS = st.sampled_from(["float", "integer", "date", "timestamp", "boolean", "category", "ordered"])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(KEYS), part, max_size=4),
    max_leaves=12,
)


COLUMNS = st.fixed_dictionaries(
    {"name": st.text(max_size=3), "kind": KINDS},
    optional={
        "low": st.floats(),
        "high": st.floats(),
        "mean": st.floats(),
        "std": st.floats(),
        "missing": st.floats(0, 1),
        "share": st.floats(0, 1),
        "quantiles": st.lists(st.floats(), max_size=3),
        "values": st.lists(st.floats(), max_size=3),
        "levels": st.lists(st.text(max_size=2) | st.integers(), max_size=3),
        "shares": st.lists(st.floats(0, 1), max_size=3),
        "dtype": st.sampled_from(["int64", "category", "str", "object", "float32", "nonsense"]),
    },
)


@given(st.lists(COLUMNS, max_size=3), st.lists(st.text(max_size=12), max_size=1), st.booleans())
def test_any_columns_give_a_space_that_draws_or_a_space_error(columns, rules, frame):
    document = {"columns": columns, "rules": rules, "frame": frame}
    with contextlib.suppress(SpaceError):
        space = Space.from_json(json.dumps(document))
        assert space.sample(5, np.random.default_rng(0)).shape == (5, space.d)
        space.present(space.sample(5, np.random.default_rng(0)))


@given(DOCUMENTS)
def test_any_document_gives_a_space_or_a_space_error(document):
    with contextlib.suppress(SpaceError):
        assert isinstance(Space.from_json(json.dumps(document)), Space)


# --- mixed columns --------------------------------------------------------------------------------------------------


@pytest.fixture
def people(rng):
    n = 800
    z = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n)
    return pd.DataFrame(
        {
            "age": np.clip(40 + 15 * z[:, 0], 18, 90).astype(int),
            "income": np.exp(10 + z[:, 1]),
            "owner": z[:, 0] + rng.normal(size=n) > 0,
            "city": rng.choice(["Bonn", "Nice", "Rome"], n, p=[0.6, 0.3, 0.1]),
            "grade": pd.Categorical.from_codes(np.digitize(z[:, 1], [-1, 1]), ["low", "mid", "high"], ordered=True),
            "children": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 4, n)),
            "plan": np.where(z[:, 0] > 1, None, rng.choice(["a", "b"], n)),
            "code": pd.array(rng.integers(0, 1000, n), dtype="Int64"),
            "zone": rng.integers(1, 5, n),
        }
    )


def test_every_kind_is_learned_and_drawn_in_the_layout_of_production(people, rng):
    space = Space.from_data(people, categories=["zone"])
    kinds = [column.kind for column in space.columns]
    assert kinds == ["integer", "float", "boolean", "category", "ordered", "integer", "category", "integer", "category"]
    rows = space.sample(4000, rng)
    drawn = space.present(rows)
    assert drawn.dtypes.astype(str).tolist() == people.dtypes.astype(str).tolist()
    assert drawn["grade"].cat.categories.tolist() == ["low", "mid", "high"]
    np.testing.assert_array_equal(space.read(drawn, "test"), rows)
    for name in ("city", "grade", "owner", "plan", "zone"):
        wanted = people[name].value_counts(normalize=True)
        np.testing.assert_allclose(drawn[name].value_counts(normalize=True).reindex(wanted.index), wanted, atol=0.04)
    for name in ("children", "plan"):
        assert drawn[name].isna().mean() == pytest.approx(people[name].isna().mean(), abs=0.03)
    assert drawn["age"].between(18, 90).all()


def test_dependence_crosses_kinds_and_gaps(people, rng):
    space = Space.from_data(people)
    drawn = space.present(space.sample(6000, rng))
    for frame in (people, drawn):
        by_grade = frame.groupby("grade", observed=True)["income"].median()
        assert by_grade["low"] < 0.6 * by_grade["mid"] < 0.4 * by_grade["high"]
        # Gaps come with age, as in the data.
        assert frame["age"][frame["plan"].isna()].mean() > frame["age"].mean() + 10
        assert frame["age"][frame["owner"]].mean() > frame["age"][~frame["owner"]].mean() + 5


def test_rare_levels_and_extreme_values_do_not_show(people):
    people.loc[0, "city"] = "Tiny"
    people.loc[1, "income"] = 1e9
    text = Space.from_data(people).to_json()
    assert "Tiny" not in text
    assert max(json.loads(text)["columns"][1]["quantiles"]) < 1e9 / 4
    assert "Tiny" in Space.from_data(people, floor=1).to_json()


def test_rules_hold_in_every_row(people, rng):
    rules = ["if city == 'Bonn' then children is not missing", "age <= code", "if owner == true then grade >= 'mid'"]
    space = Space.from_data(people, rules=rules)
    drawn = space.present(space.sample(2000, rng))
    assert drawn["children"][drawn["city"] == "Bonn"].notna().all()
    assert (drawn["age"] <= drawn["code"]).all()
    assert (drawn["grade"][drawn["owner"]] >= "mid").all()
    assert (drawn["city"] == "Bonn").any()
    assert Space.from_json(space.to_json()) == space


def test_contradictory_rules_are_found_after_a_bounded_number_of_rows(people, monkeypatch):
    drawn, draw = [], Space._draw
    monkeypatch.setattr(Space, "_draw", lambda space, n, rng: (drawn.append(n), draw(space, n, rng))[1])
    with pytest.raises(
        SpaceError, match=r"alone: 'age > 60' by \d.*'age < 30' by \d.*check that they do not contradict"
    ):
        Space.from_data(people, rules=["age > 60", "age < 30", "owner == true"])
    assert PATIENCE < sum(drawn) < 3 * PATIENCE


SCHEMA = """{"columns": [
  {"name": "age", "kind": "integer", "low": 18, "high": 20},
  {"name": "score", "kind": "float", "mean": 10, "std": 5, "low": 0},
  {"name": "member", "kind": "boolean", "share": 0.9},
  {"name": "grade", "kind": "ordered", "levels": ["C", "B", "A"]},
  {"name": "plan", "kind": "category", "levels": ["x", "y"], "shares": [0.25, 0.75], "missing": 0.5}
], "correlation": [[1, 0, 0, 0, 0], [0, 1, 0, 0.9, 0], [0, 0, 1, 0, 0], [0, 0.9, 0, 1, 0], [0, 0, 0, 0, 1]]}"""


def test_a_schema_written_by_hand(rng):
    space = Space.from_json(SCHEMA)
    drawn = space.present(space.sample(6000, rng))
    np.testing.assert_allclose(drawn["age"].value_counts(normalize=True)[[18, 19, 20]], 1 / 3, atol=0.03)
    assert drawn["score"].min() >= 0
    assert drawn["member"].mean() == pytest.approx(0.9, abs=0.02)
    assert drawn["score"][drawn["grade"] == "A"].mean() > drawn["score"][drawn["grade"] == "C"].mean() + 5
    assert drawn["plan"].isna().mean() == pytest.approx(0.5, abs=0.03)
    assert (drawn["plan"].dropna() == "y").mean() == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["x"] * 3}, "column age: expected numbers"),
        ({"age": ["18", "1_9", "20"]}, "column age: expected numbers, found not a number: '1_9'"),
        ({"age": ["18", "١٩", "20"]}, "column age: expected numbers, found not a number"),
        ({"age": [1, None, 2]}, "column age: expected a value in every row, found 1 missing, the first in row 1"),
        ({"member": ["true", "perhaps", "no"]}, "column member: expected true or false, found 'perhaps'"),
        ({"score": [1.0, np.inf, 2.0]}, "column score: expected finite numbers, found inf"),
    ],
)
def test_rows_that_do_not_fit_their_columns(change, message):
    space = Space.from_json(SCHEMA)
    frame = pd.DataFrame(
        {"age": [18, 19, 20], "score": 1.0, "member": True, "grade": "A", "plan": ["x", None, "y"], "other": 1}
    )
    assert space.read(frame, "here").shape == (3, 5)
    with pytest.raises(SpaceError) as caught:
        space.read(frame.assign(**change), "here")
    assert message in str(caught.value)
    with pytest.raises(SpaceError, match="all 5 columns of the space, found no 'grade' among those given: 'age'"):
        space.read(frame.drop(columns="grade"), "here")
    with pytest.warns(EctypeWarning, match="column grade has 3 rows with levels that its space does not have"):
        space.read(frame.assign(grade="Z"), "here")


def test_a_normal_column_with_bounds_is_normal_between_them(rng):
    column = {"name": "x", "kind": "float", "mean": 1, "std": 2, "low": 0, "high": 4, "missing": 0.25}
    whole = {**column, "name": "y", "kind": "integer", "missing": 0}
    rows = Space.from_json(json.dumps({"columns": [column, whole]})).sample(8000, rng)
    there = rows[~np.isnan(rows[:, 0]), 0]
    assert kstest(there, truncnorm(-0.5, 1.5, 1, 2).cdf).pvalue > 1e-3
    assert len(there) / len(rows) == pytest.approx(0.75, abs=0.02)
    assert set(rows[:, 1]) == {0, 1, 2, 3, 4}


def test_a_space_that_was_sampled_travels(table):
    space = Space.from_data(table)
    rows = space.sample(50, np.random.default_rng(1))
    for same in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space), Space.from_json(space.to_json())):
        np.testing.assert_array_equal(same.sample(50, np.random.default_rng(1)), rows)
