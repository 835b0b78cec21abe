"""Exported files answer what the copy answers, on rows of every kind; what does not agree is not written."""

import json
import os
import sqlite3
from contextlib import chdir
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner
from sklearn.tree import DecisionTreeClassifier

import ectype as ec
from ectype._kernel import LEAF
from ectype.cli import cli
from ectype.cli.export import command
from ectype.conditions.partitions import raw_cuts, value_cuts
from ectype.errors import DirectoryError, EctypeWarning, ExportError, SettingError
from ectype.export import _verification as verification
from ectype.export._onnx import feeds, input_types, onnx_model
from ectype.export._skops import TRUSTED
from ectype.export._sql import sql_text
from ectype.export._sql_dialects import DIALECTS
from ectype.export._sql_verification import sql_answers
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import constant, fit
from ectype.models.rbf import RadialModel
from ectype.models.trees import of_forest
from ectype.runs.result import Record, Result
from ectype.space import Encoding
from make_copies import APART, EXACT, KINDS, PROBLEMS, WRITTEN, fresh, made


def session(copy, threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(onnx_model(copy).SerializeToString(), options)


def part(rows, start, stop):
    return rows.iloc[start:stop].reset_index(drop=True) if hasattr(rows, "iloc") else rows[start:stop]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("family", KINDS)
def test_onnx_answers_what_the_copy_answers(copies, family, name):
    copy = copies(family, name)
    rows, asked = fresh(copy, 3000), session(copy)
    labels, probabilities = asked.run(None, feeds(copy.space, rows))
    expected = copy.predict(rows)
    np.testing.assert_array_equal(labels, expected)
    assert len(set(expected)) > 1
    assert {type(label) for label in labels.tolist()} == {type(label) for label in copy.classes.tolist()}
    np.testing.assert_allclose(probabilities, copy.predict_proba(rows), atol=APART[family])
    for row in range(20):
        (label,), _ = asked.run(None, feeds(copy.space, part(rows, row, row + 1)))
        assert label == expected[row]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("family", WRITTEN)
def test_sql_and_rules_answer_what_the_copy_answers(copies, family, name, tmp_path):
    copy = copies(family, name)
    rows = fresh(copy, 3000)
    found = sql_answers(copy, sql_text(copy), rows)
    np.testing.assert_array_equal(np.array(found).astype(copy.classes.dtype), copy.predict(rows))
    written = ec.export(copy, tmp_path / "copy.rules")
    assert written.disagreements <= 1


def strange(copy):
    """Rows with levels and numbers that the space never draws."""
    rows = fresh(copy, 300, seed=2)
    rows["region"] = np.where(np.arange(300) % 3 == 0, "mars", rows["region"])
    rows["grade"] = np.where(np.arange(300) % 4 == 0, "E", rows["grade"].astype(object))
    rows["employer"] = np.where(np.arange(300) % 5 == 0, "other", rows["employer"])
    rows["income"] = np.where(np.arange(300) % 7 == 0, 1e300, rows["income"])
    rows["debt"] = np.where(np.arange(300) % 11 == 0, -1e12, rows["debt"])
    return rows


@pytest.mark.parametrize("family", KINDS)
def test_levels_and_numbers_that_the_space_never_draws(copies, family):
    copy = copies(family, "loans")
    rows = strange(copy)
    with pytest.warns(EctypeWarning, match="levels that its space does not have"):
        expected = copy.predict(rows)
    np.testing.assert_array_equal(session(copy).run(["label"], feeds(copy.space, rows))[0], expected)
    if family == "tree":
        assert sql_answers(copy, sql_text(copy), rows) == expected.tolist()


def test_inputs_have_the_types_of_their_columns(copies):
    assert list(input_types(copies("tree", "odd").space).values()) == [
        *(
            "DOUBLE",
            "INT64",
            "DOUBLE",
            "DOUBLE",
            "BOOL",
            "DOUBLE",
            "INT64",
            "INT64",
            "DOUBLE",
            "STRING",
            "STRING",
            "INT64",
        )
    ]
    assert input_types(ec.Space.normal(3)) == {"X": "DOUBLE"}
    named = [value.name for value in session(copies("tree", "odd")).get_outputs()]
    assert named == ["label_", "probabilities"]  # a column is called label


@pytest.mark.parametrize("levels", [["1", 1], ["", "a"], ["nan", "a"], ["a", "None"]])
def test_levels_that_words_cannot_tell_apart(levels):
    column = {"name": "c", "kind": "category", "levels": levels, "missing": 0.1}
    space = ec.Space.from_json(json.dumps({"columns": [column]}))
    with pytest.raises(SettingError, match="column c: expected levels that differ as words"):
        onnx_model(CopyClassifier(constant(0, 2), np.array([0, 1]), space))


# The second block of Python in the docs: how a data frame is given to the file.
SNIPPET = (
    (Path(__file__).parents[2] / "docs" / "reference" / "export.md")
    .read_text()
    .split("```python\n")[2]
    .partition("```")[0]
    .replace('frame = pd.read_csv("answers.csv")\n', "")
)


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA, ""])
@pytest.mark.parametrize("name", ["loans", "odd"])
def test_gaps_in_words_as_people_send_them(copies, name, gap, tmp_path):
    """pandas, the snippet of the docs itself, onnxruntime: NaN was a level that the space does not know."""
    copy = copies("tree", name)
    rows, sent = fresh(copy, 5000), fresh(copy, 5000)
    words = [column.name for column in copy.space.columns if input_types(copy.space).get(column.name) == "STRING"]
    gaps = sum(int(rows[word].isna().sum()) for word in words)
    assert gaps > 200
    for word in words:
        values = sent[word].astype(object)
        sent[word] = values.where(values.notna(), gap)
    (tmp_path / "table.onnx").write_bytes(onnx_model(copy).SerializeToString())
    found = {"frame": sent, "onnxruntime": onnxruntime}
    with chdir(tmp_path):
        exec(SNIPPET, found)
    np.testing.assert_array_equal(found["label"], copy.predict(rows))


def test_sums_of_leaves_are_the_same_in_any_order(copies, rng):
    """Leaves of several classes, in a forest large enough that the runtime adds up trees in several threads."""
    from sklearn.ensemble import ExtraTreesClassifier

    X, y = rng.normal(size=(400, 3)).astype(np.float32), rng.integers(0, 3, 400)
    forest = of_forest(ExtraTreesClassifier(128, max_depth=3, random_state=0).fit(X, y), 3)
    copy = CopyClassifier(forest, np.array([0, 1, 2]), ec.Space.normal(3))
    rows = rng.normal(size=(400, 3))
    expected = copy.predict_proba(rows)
    assert (np.sort(forest.values, axis=1)[:, -2] > 0).any()
    backwards = np.tile(forest.base, (400, 1))
    for root in forest.roots[::-1]:
        at = np.full(400, root)
        while (forest.feature[at] != LEAF).any():
            known = copy.encode(rows)[np.arange(400), np.maximum(forest.feature[at], 0)]
            below = np.where(known > forest.threshold[at], forest.right[at], forest.left[at])
            at = np.where(forest.feature[at] == LEAF, at, below)
        backwards += forest.values[at]
    np.testing.assert_array_equal(backwards, forest.scores(copy.encode(rows)))
    for threads in (1, 3):
        asked = session(copy, threads)
        for size in (1, 40, 400):
            found = [asked.run(None, {"X": rows[at : at + size]})[1] for at in range(0, 400, size)]
            np.testing.assert_array_equal(np.concatenate(found), expected)


def test_what_is_tested_here_is_there(copies):
    """The mixed tables have numbers, so that a network sees pieces of them, and blends have members of every kind."""
    for name in ("loans", "odd"):
        network, blend = copies("mlp", name).model, copies("blend", name).model
        assert network.pieces is not None
        assert network.activation == "mish"
        assert copies("plain", name).model.activation == "relu"
        assert isinstance(copies("radial", name).model, RadialModel)
        assert len(blend.members) > 1
    found = {member.kind for name in PROBLEMS for member in copies("blend", name).model.members}
    assert found == {"trees", "mlp", "radial"}


def test_a_copy_that_always_answers_the_same(tmp_path):
    copy = CopyClassifier(constant(1, 3), np.array(["a", "b", "c"]), ec.Space.normal(2))
    for kind in ("onnx", "skops", "rules", "sql"):
        assert ec.export(copy, tmp_path / f"copy.{kind}").disagreements == 0
    assert (tmp_path / "copy.rules").read_text() == "if in every row then b\n"


@pytest.mark.parametrize("family", [kind for kind in KINDS if kind != "plain"])
def test_classes_that_were_never_answered(family, rng, tmp_path):
    X = rng.normal(size=(300, 2)).astype(np.float32)
    copy = CopyClassifier(made(family, X, np.where(X[:, 0] > 0, 3, 1), 5), np.arange(5), ec.Space.normal(2))
    written = ec.export(copy, tmp_path / "copy.onnx")
    assert written.disagreements == 0 if family in EXACT else written.disagreements <= 1
    assert set(copy.predict(rng.normal(size=(1000, 2)))) == {1, 3}
    if family in WRITTEN:
        assert ec.export(copy, tmp_path / "copy.sql").disagreements <= 1


# --- raw thresholds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("center", "scale"), [(0.0, 1.0), (41.9, 13.7), (-1e9, 1e-3), (1e-200, 1e-190), (3e150, 2e149)]
)
def test_raw_thresholds_split_doubles_where_the_encoding_does(center, scale, rng):
    thresholds = np.concatenate([rng.normal(size=500), [0.0, -1e6, 9.9e5, 1e-30, -1e-30]]).astype(np.float32)
    cuts = raw_cuts(thresholds, center, scale)
    assert len(cuts) == len(thresholds)

    def encoded(x):
        return np.clip((x - center) / scale, -1e6, 1e6).astype(np.float32)

    assert (encoded(cuts) <= thresholds).all()
    assert (encoded(np.nextafter(cuts, np.inf)) > thresholds).all()


def test_thresholds_beyond_all_inputs_split_nothing():
    assert len(raw_cuts(np.array([1e6, 2e6, -2e6], np.float32), 0.0, 1.0)) == 0


def test_cuts_between_few_values(rng):
    values = np.array([0.3, -1.1, 7.0, 2.0, 0.1])
    cuts, ordered = value_cuts(values), np.sort(values)
    for cut, low, high in zip(cuts, ordered[:-1], ordered[1:], strict=True):
        nearest = [values[np.abs(x - values).argmin()] for x in (cut, np.nextafter(cut, np.inf))]
        assert nearest == [low, high]


def test_a_tree_at_its_own_thresholds():
    """Raw rows on both sides of every threshold, to the last bit, go where the tree sends them."""
    X = np.random.default_rng(0).normal(50, 7, size=(400, 2))
    space = ec.Space.from_data(X)
    model = fit("tree", Encoding(space)(X), (X[:, 0] * X[:, 1] > 2500).astype(int), 2)
    copy = CopyClassifier(model, np.array([0, 1]), space)
    inner = model.feature >= 0
    rows = []
    for j in range(2):
        at = model.threshold[inner & (model.feature == j)]
        for cut in raw_cuts(at, copy.encoding.center[j], copy.encoding.scale[j]):
            for x in (cut, np.nextafter(cut, np.inf)):
                row = X[:50].copy()
                row[:, j] = x
                rows.append(row)
    rows = np.concatenate(rows)
    np.testing.assert_array_equal(sql_answers(copy, sql_text(copy, DIALECTS["sqlite"]), rows), copy.predict(rows))
    np.testing.assert_array_equal(session(copy).run(["label"], {"X": rows})[0], copy.predict(rows))


# --- what people read -------------------------------------------------------------------------------------------------


def by_hand():
    content = {
        "columns": [
            {"name": "age", "kind": "integer", "low": 0, "high": 99},
            {"name": "income", "kind": "float", "low": 0, "high": 1000, "missing": 0.05},
            {"name": "city", "kind": "category", "levels": ["Bonn", "Nice", "Oslo"]},
        ]
    }
    space = ec.Space.from_json(json.dumps(content))
    rows = space.sample(2000, np.random.default_rng(0))
    y = np.where(rows[:, 2] == 1, rows[:, 0] > 40, np.isnan(rows[:, 1])).astype(int)
    return space, Encoding(space)(rows), y


def test_rules_of_a_tree_name_raw_columns_and_levels(tmp_path):
    space, X, y = by_hand()
    tree = of_forest(DecisionTreeClassifier(random_state=0).fit(X, y), 2)
    ec.export(CopyClassifier(tree, np.array(["no", "yes"]), space), tmp_path / "copy.txt")
    assert set((tmp_path / "copy.txt").read_text().splitlines()) == {
        "if city is not Nice and income is not missing then no",
        "if city is not Nice and income is missing then yes",
        "if city is Nice and age <= 40 then no",
        "if city is Nice and age > 40 then yes",
    }


def test_rules_of_a_linear_copy_say_what_each_column_adds(tmp_path):
    space, X, y = by_hand()
    ec.export(CopyClassifier(fit("linear", X, y, 2), np.array(["no", "yes"]), space), tmp_path / "copy.rules")
    text = (tmp_path / "copy.rules").read_text()
    for words in ("score of yes:", " * (age - 49.5)", " if city is Nice", " if income is missing"):
        assert words in text


def test_sql_answers_nothing_where_a_copy_would_refuse():
    space, X, y = by_hand()
    for family in WRITTEN:
        copy = CopyClassifier(fit(family, X, y, 2), np.array(["no", "yes"]), space)
        rows = pd.DataFrame({"age": [None, 50.0], "income": [3.0, None], "city": ["Nice", "Nice"]})
        assert sql_answers(copy, sql_text(copy), rows) == [None, "yes"]


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["spirals", "loans", "odd"])
@pytest.mark.parametrize("family", KINDS)
def test_a_skops_file_is_the_copy(copies, family, name, tmp_path):
    copy = copies(family, name)
    copy.predict(fresh(copy, 3))  # what it lays out to answer is not written
    ec.export(copy, tmp_path / "copy.skops")
    assert set(skops.io.get_untrusted_types(file=tmp_path / "copy.skops")) <= set(TRUSTED)
    again, rows = skops.io.load(tmp_path / "copy.skops", trusted=TRUSTED), fresh(copy, 500)
    np.testing.assert_array_equal(again.predict_proba(rows), copy.predict_proba(rows))
    assert again.space == copy.space


@pytest.mark.parametrize("name", ["spirals", "loans", "odd"])
def test_an_exported_file_can_be_copied_again(copies, name, tmp_path):
    copy = copies("tree", name)
    ec.export(copy, tmp_path / "copy.onnx")
    rows = fresh(copy, 200)
    if name == "odd":  # a level that is a number among words
        rows["both"] = [value if pd.isna(value) else str(value) for value in rows["both"]]
    found = ec.open_original(str(tmp_path / "copy.onnx"), decode="label", output=None).answer(rows)
    np.testing.assert_array_equal(found, copy.predict(fresh(copy, 200)))


def test_a_file_that_answers_otherwise_is_not_written(copies, tmp_path, monkeypatch):
    copy, other = copies("tree", "spirals"), copies("linear", "spirals")
    path = tmp_path / "copy.onnx"
    path.write_text("what was there")
    made = onnx_model(other).SerializeToString()
    monkeypatch.setattr(verification, "content", lambda *_: made)
    rows = fresh(copy, 10_000, seed=0)
    differ = int((copy.predict(rows) != other.predict(rows)).sum())
    with pytest.raises(ExportError, match=f"expected at most 0 of 10000 rows answered otherwise, found {differ};"):
        ec.export(copy, path)
    assert path.read_text() == "what was there"
    assert os.listdir(tmp_path) == ["copy.onnx"]


def test_columns_that_a_database_cannot_tell_apart(tmp_path):
    columns = [{"name": name, "kind": "float", "low": 0, "high": 1} for name in "aA"]
    space = ec.Space.from_json(json.dumps({"columns": columns}))
    copy = CopyClassifier(constant(0, 2), np.array([0, 1]), space)
    with pytest.raises(ExportError, match=r"sql: expected a statement that SQLite computes, found duplicate column"):
        ec.export(copy, tmp_path / "copy.sql")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("family", "path", "options", "error", "message"),
    [
        (
            "tree",
            "copy.pkl",
            {},
            SettingError,
            r"file: expected a file that ends in \.onnx, .* found 'copy\.pkl'; or say",
        ),
        ("tree", "copy", {}, SettingError, "file: expected"),
        ("tree", "copy.onnx", {"format": "pmml"}, SettingError, "format: expected one of 'onnx'"),
        ("mlp", "copy.rules", {}, SettingError, "the families tree or linear, for rules, found an mlp; make one"),
        ("forest", "copy.rules", {}, SettingError, "found a forest or boosting"),
        ("blend", "copy.rules", {}, SettingError, "the families tree or linear, for rules, found a blend"),
        ("radial", "copy.rules", {}, SettingError, "found radial functions"),
        ("tree", "copy.sql", {"dialect": "oracle"}, SettingError, "dialect: expected one of 'ansi', 'postgresql'"),
        ("tree", "copy.onnx", {"dialect": "mysql"}, SettingError, "dialect: expected a file of SQL, found 'mysql'"),
        ("mlp", "copy.sql", {"table": "a..b"}, SettingError, "table: expected the name of a table"),
        ("tree", "nowhere/copy.onnx", {}, DirectoryError, "expected a file that can be written"),
        ("tree", "", {"format": "onnx"}, DirectoryError, "a directory of that name is there"),
        ("tree", "copy.onnx", {"rows": 100}, SettingError, "rows: expected a whole number of at least 10000"),
    ],
)
def test_what_cannot_be_written(copies, family, path, options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        ec.export(copies(family, "spirals"), tmp_path / path, **options)
    assert os.listdir(tmp_path) == []


def test_only_copies_are_exported(tmp_path):
    with pytest.raises(SettingError, match="copy: expected the copy of a result"):
        ec.export(DecisionTreeClassifier(), tmp_path / "copy.onnx")
    with pytest.raises(SettingError, match="path: expected the name of a file"):
        ec.export(None, 3)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(copies, tmp_path):
    """A finished run of each of two families."""
    for family in ("tree", "forest"):
        copy = copies(family, "loans")
        history = [Record(0, 600, 600, 0, 0.0, 0.1, 0.1, None, 0.0, 1, 0.1)]
        settings = {"method": "one-shot", "original": "loans"}
        result = Result(copy, None, history, copy.space, settings, {"training": 600}, "budget", 1.0, 1.0)
        result.save(tmp_path / family)
    return tmp_path


def test_the_command_prints_the_comparison(run):
    out = CliRunner().invoke(command, [str(run / "tree"), str(run / "copy.onnx")])
    size = (run / "copy.onnx").stat().st_size
    said = f"onnx, {size:,} bytes; 0 of 10000 fresh rows answered otherwise than by the copy, at most 0 accepted; "
    assert out.output.startswith(f"{run / 'copy.onnx'}: {said}")
    assert out.output.endswith(f" s by onnxruntime {onnxruntime.__version__}\n")
    how = ["--format", "sql", "--dialect", "mysql", "--json"]
    out = CliRunner().invoke(cli, ["export", str(run / "tree"), str(run / "q"), *how])
    found = json.loads(out.stdout)
    assert found.pop("seconds") > 0
    assert found == {
        "path": str(run / "q"),
        "format": "sql",
        "rows": 10_000,
        "disagreements": 0,
        "tolerance": 0,
        "bytes": (run / "q").stat().st_size,
        "dialect": "mysql",
        "engine": f"SQLite {sqlite3.sqlite_version}, the same logic in its dialect: no mysql here",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "copy.onnx"], "a file of a finished run"),
        (["tree", "copy.doc"], "a file that ends in"),
        (["tree", "copy.onnx", "--format", "doc"], "format: expected one of"),
        (["forest", "copy.rules"], "families tree or linear"),
        (["tree", "copy.sql", "--dialect", "access"], "dialect: expected one of"),
    ],
)
def test_the_command_refuses_with_exit_code_2(run, arguments, message, capsys, monkeypatch):
    from ectype.cli import main

    monkeypatch.chdir(run)
    before = sorted(os.listdir(run))
    with pytest.raises(SystemExit) as ended:
        main(["export", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert sorted(os.listdir(run)) == before
