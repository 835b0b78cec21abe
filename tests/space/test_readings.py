"""What the columns of a table are taken for: said with the reason, the rows it covers, and what to say instead."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from commands import run_command
from ectype.errors import EctypeWarning, SettingError, SpaceError
from ectype.original.stored_answers import read_table
from ectype.space import Space

N = 100
COVERS = "the space covers 20.0% of these rows, since values of fewer than 5 rows are left out: 'note' 20.0%"


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "zip": ["01067", "10115"] * 50,
            "c": [5, 1, 2, 3, 4] * 20,
            "age": rng.integers(18, 90, N),
            "height": rng.normal(size=N),
            "plan": ["basic", "plus"] * 50,
            "when": ["2024-01-01", "2024-02-01"] * 50,
            "flag": [True, False] * 50,
        }
    )


@pytest.fixture
def noted(table):
    return table.assign(note=[f"text {i}" for i in range(80)] + ["a"] * 10 + ["b"] * 10)


def test_each_column_says_what_it_was_taken_for_and_why(table):
    table["size"] = pd.Categorical(["s", "m"] * 50, ["s", "m"], ordered=True)
    found = {one.name: (one.kind, one.why, one.covered, one.spelled()) for one in Space.from_data(table).readings}
    assert found == {
        "zip": ("category", "digits that name something", 1.0, "numbers=['zip']"),
        "c": ("integer", "5 whole numbers", 1.0, "categories=['c']"),
        "age": ("integer", "whole numbers", 1.0, "categories=['age']"),
        "height": ("float", "numbers", 1.0, ""),
        "plan": ("category", "words", 1.0, "ordered={'plan': [...]}"),
        "when": ("date", "dates in ISO 8601", 1.0, "categories=['when']"),
        "flag": ("boolean", "true or false", 1.0, ""),
        "size": ("ordered", "its type", 1.0, ""),
    }
    assert [one.kind for one in Space.from_data(table[["height"]].to_numpy()).readings] == ["float"]


@pytest.mark.parametrize(
    ("said", "kind", "levels"),
    [
        ({"numbers": ["zip"]}, "integer", {1067, 10115}),
        ({"categories": ["c"]}, "category", {1, 2, 3, 4, 5}),
        ({"ordered": {"plan": ["plus", "basic"]}}, "ordered", {"plus", "basic"}),
        ({"categories": ["when"]}, "category", {"2024-01-01", "2024-02-01"}),
        ({"categories": ["flag"]}, "boolean", {True, False}),
    ],
)
def test_what_is_said_of_a_column_is_done(table, said, kind, levels):
    """What `change it` says, and a column of whole numbers whose first is the last of five levels."""
    space = Space.from_data(table, **said)
    ((name,),) = said.values()
    column = next(column for column in space.columns if column.name == name)
    assert column.kind == kind
    assert {one.name: one.why for one in space.readings}[name] == "you said so"
    shown = space.present(space.sample(200, np.random.default_rng(0)))
    assert set(shown[name]) == levels
    np.testing.assert_array_equal(space.read(table, "rows"), space.read(table.astype({"c": "Int64"}), "rows"))


def test_a_category_of_whole_numbers_keeps_its_type_with_gaps_too(table):
    for dtype in ("int64", "Int64", "float64", "object", "category", "uint8"):
        values = table["c"].where(np.arange(N) % 10 > 0) if dtype in ("Int64", "float64") else table["c"]
        frame = table.assign(c=values.astype(dtype))
        space = Space.from_data(frame, categories=["c"])
        assert space.columns[1].kind == "category"
        assert set(space.columns[1].levels) == {1, 2, 3, 4, 5}
        shown = space.present(space.sample(50, np.random.default_rng(0)))
        assert str(shown["c"].dtype) == dtype
        assert (space.read(shown, "rows")[:, 1] >= 0).sum() + shown["c"].isna().sum() == 50


def test_rows_that_a_space_does_not_cover_are_a_warning(noted):
    with pytest.warns(EctypeWarning, match=COVERS) as caught:
        space = Space.from_data(noted)
    assert [one.filename for one in caught] == [__file__]
    reading = space.readings[-1]
    assert (reading.name, reading.covered, reading.spelled()) == ("note", 0.2, "frame.drop(columns=['note'])")
    assert " note " in str(space)
    assert "20.0%" in str(space)
    again = Space.from_json(space.to_json())  # which holds no such thing of the rows
    assert (again, again.readings) == (space, ())
    assert "20.0%" not in str(again)
    assert Space.from_data(noted, floor=1).readings[-1].covered == 1.0


def test_columns_that_cover_enough_alone_may_not_together(table):
    many = pd.DataFrame({f"c{j}": ["a"] * N for j in range(4)})
    for j in range(4):
        many.loc[j, f"c{j}"] = "rare"
    assert all(one.covered == 0.99 for one in _learned_quietly(many).readings)
    with pytest.warns(EctypeWarning, match=r"covers 96\.0% of these rows, .*: 'c0' 99\.00%, 'c1' 99\.00%"):
        Space.from_data(many)
    Space.from_data(many[["c0"]])  # 99 % are enough


def _learned_quietly(frame):
    with pytest.warns(EctypeWarning):
        return Space.from_data(frame)


def test_rare_numbers_of_a_column_with_few_values_are_counted():
    with pytest.warns(EctypeWarning, match=r"covers 96\.0% of these rows"):
        space = Space.from_data(pd.DataFrame({"n": [1, 2] * 48 + [3, 4, 5, 6]}))
    assert space.readings[0].covered == 0.96


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"categories": "c"}, r"categories: expected a list of columns, found 'c'; categories=\['c'\]"),
        ({"categories": ["C"]}, r"expected columns among \[.*\], found \['C'\]; check their spelling"),
        ({"numbers": ["plan"]}, "column plan: expected numbers, or words for them"),
        ({"ordered": {"plan": ["plus"]}}, "column plan: expected levels among plus, found basic; name all of them"),
        ({"categories": ["height"]}, "column height: expected levels that are words or whole numbers.*make them words"),
    ],
)
def test_what_cannot_be_said_of_a_column(table, said, message):
    with pytest.raises(SpaceError, match=message):
        Space.from_data(table, **said)


def test_nothing_can_be_said_of_columns_without_names(table):
    with pytest.raises(SpaceError, match="a data frame, to choose columns by name, found an array"):
        Space.from_data(table[["c"]].to_numpy(), categories=["c"])


# --- files ----------------------------------------------------------------------------------------------------------


def written(folder, text, name="rows.csv"):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (["01067", "10115"], ["01067", "10115"]),
        (["0049301234567", "4930"], ["0049301234567", "4930"]),
        (["+0049", "1"], ["+0049", "1"]),
        (["007.5", "1"], ["007.5", "1"]),
        (["9007199254740993", "1"], ["9007199254740993", "1"]),  # no float is this number
        (["4111111111111111", "1"], [4111111111111111, 1]),
        (["18446744073709551617", "1"], ["18446744073709551617", "1"]),
        (["9007199254740993", ""], ["9007199254740993", np.nan]),
        (["007", "NA"], ["007", np.nan]),
        (["0", "10"], [0, 10]),
        (["0.5", "-0.5"], [0.5, -0.5]),
        (["1e3", "2"], [1000.0, 2.0]),
    ],
)
def test_numbers_that_name_something_stay_words(values, kept, tmp_path):
    for name in ("rows.csv", "rows.csv.gz"):
        found = read_table(written(tmp_path, "\n".join(["x,v", *(f"1,{value}" for value in values)]), name))
        pd.testing.assert_series_equal(found["v"], pd.Series(kept, name="v"), check_dtype=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a\n1,2\n", "expected columns with names of their own, found 'a' more than once; rename them"),
        (
            "a,b\n0,1,2\n1,3,4\n",
            "expected rows of 2 fields, as its header has, found more fields; give every column a name",
        ),
        ("a;b\n1;2\n", "expected columns separated by commas, found one column called 'a;b'; write commas in place of"),
        ("a\tb\n1\t2\n", "columns separated by commas"),
    ],
)
def test_files_in_which_a_column_would_be_lost_are_refused(text, message, tmp_path):
    with pytest.raises(SettingError, match=message):
        read_table(written(tmp_path, text))


def test_the_command_ends_with_a_table_of_what_it_took_columns_for(noted, tmp_path):
    noted.rename(columns={"c": "the c"}).to_csv(tmp_path / "rows.csv", index=False)
    out = run_command("space", "rows.csv", "--out", "space.json", cwd=tmp_path)
    assert out.returncode == 0
    assert COVERS in out.stderr
    last = [line.strip() for line in out.stdout.rsplit("─\n", 1)[1].splitlines()]
    assert [line.split()[0] for line in last] == ["zip", "the", "age", "height", "plan", "when", "flag", "note"]
    for line, words in zip(
        last,
        ["digits that name something", "5 whole", "whole numbers", "numbers", "words", "ISO 8601", "true or", "20.0%"],
        strict=True,
    ):
        assert words in line
    assert last[0].endswith("--number zip")
    assert last[1].endswith("--category 'the c'")
    assert last[-1].endswith("--drop note")
    told = run_command(
        *("space", "rows.csv", "--out", "space.json", "--json", "--category", "the c"),
        *("--number", "zip", "--drop", "note"),
        cwd=tmp_path,
    )
    assert told.returncode == 0
    read = {one["name"]: (one["kind"], one["why"], one["instead"]) for one in json.loads(told.stdout)["readings"]}
    assert read["zip"] == ("integer", "you said so", "")
    assert read["the c"] == ("category", "you said so", "")
    assert read["plan"] == ("category", "words", "--ordered plan=A,B,C")


def test_whole_numbers_have_an_order_on_the_command_too(table, tmp_path):
    table.to_csv(tmp_path / "rows.csv", index=False)
    out = run_command("space", "rows.csv", "--out", "space.json", "--ordered", "c=5,4,3,2,1", cwd=tmp_path)
    assert out.returncode == 0
    column = next(column for column in Space.load(tmp_path / "space.json").columns if column.name == "c")
    assert (column.kind, column.levels) == ("ordered", (5, 4, 3, 2, 1))
