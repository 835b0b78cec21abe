import contextlib
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ectype as ec
from ectype.errors import EctypeError, SettingError
from ectype.original.stored_answers import open_table, read_table

pytestmark = pytest.mark.usefixtures("small_lessons")

QUICK = {"budget": 300, "certificate_n": 200}


@pytest.fixture
def answers(tmp_path, rng):
    frame = pd.DataFrame({"a": rng.normal(size=500), "n": rng.integers(0, 9, 500), "b": rng.choice(["x", "y"], 500)})
    frame["label"] = np.where(frame["b"] == "x", frame["a"] > 0, frame["n"] > 4).astype(int)
    frame.to_csv(tmp_path / "answers.csv", index=False)
    return tmp_path / "answers.csv"


def test_stored_answers_are_the_only_queries_and_each_is_used_once(answers):
    table = ec.open_original(str(answers))
    assert (table.d, table.names, table.name) == (3, ("a", "n", "b"), "answers.csv")
    assert table.declared.classes.tolist() == [0, 1]
    space = ec.Space.from_data(table.stored[0])
    result = ec.copy_classifier(table, space, **QUICK)
    assert result.queries == {"training": 300, "certificate": 200, "repeat": 0}
    assert result.certificate.estimate > 0.85
    with pytest.raises(SettingError, match="stored answers for 501 queries, found a table of 500"):
        ec.copy_classifier(table, space, **{**QUICK, "certificate_n": 201})
    with pytest.raises(SettingError, match=r"draw: expected none for stored answers.*which would change nothing"):
        ec.copy_classifier(table, space, **QUICK, draw="balanced")


def test_a_run_from_stored_answers_is_kept_and_the_file_is_told_from_another(answers, tmp_path):
    table = ec.open_original(str(answers))
    space = ec.Space.from_data(table.stored[0])
    ec.copy_classifier(table, space, **QUICK, out=tmp_path / "run")
    frame = pd.read_csv(answers)
    frame.loc[0, "label"] = 1 - frame.loc[0, "label"]
    frame.to_csv(answers, index=False)
    with pytest.raises(EctypeError, match="another file of the original"):
        ec.copy_classifier(ec.open_original(str(answers)), space, **QUICK, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "a CSV file with a header"),
        ("a,label\n", {}, "rows with at least one input"),
        ("label\n1\n", {}, "rows with at least one input"),
        ("a,label\n1,\n2,0\n", {}, "an answer in every row, found none in row 0"),
        ("a,b\n1,2\n", {}, "a column 'label' with the answers, found columns ['a', 'b']; name it"),
        ("a,b\n1,2\n", {"label": "c"}, "a column 'c'"),
        (",label\n1,2\n", {}, "a name for every column, found 1 without"),
        ("a,label\n1,0\n2,1\n", {"classes": [0, 2]}, "a label among [0, 2], found 1"),
    ],
)
def test_tables_that_cannot_be_used(content, options, message, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(EctypeError) as caught:
        open_table(str(tmp_path / "t.csv"), **options)
    assert message in str(caught.value)


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(SettingError, match=r"none\.csv: expected a CSV file with a header, found .*No such file"):
        ec.open_original(str(tmp_path / "none.csv"))


TABLES = st.lists(st.lists(st.sampled_from(["1", "x", "", "1.5", "nan", '"', "true", "inf"]), max_size=4), max_size=9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=80) | TABLES.map(lambda rows: "\n".join(map(",".join, rows)).encode()))
def test_any_file_is_a_table_or_a_typed_error(tmp_path, content):
    path = tmp_path / f"{os.urandom(6).hex()}.csv"
    path.write_bytes(b"a,b,label\n" + content if len(content) % 2 else content)
    with contextlib.suppress(EctypeError):
        frame = read_table(str(path))
        ec.Space.from_data(frame, floor=1)
    with contextlib.suppress(EctypeError):
        open_table(str(path))
