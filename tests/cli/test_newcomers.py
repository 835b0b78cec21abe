"""The errors that newcomers hit: each says where, what was expected, what was found, and what to do."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import ectype as ec
from commands import run_command
from ectype.errors import DirectoryError, EctypeError, EctypeWarning, OriginalError, SettingError, SpaceError
from ectype.original.stored_answers import read_table

MODULE = """
import numpy as np

def decide(rows):
    return np.where((rows["age"] > 40) & (rows["city"] != "Rome"), "grant", "refuse")
"""
QUICK = {"budget": 60, "certificate_n": 60, "preset": "fast", "repeat": 0}


def people(n=300):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 90, n), "city": rng.choice(["Bonn", "Nice", "Rome"], n)})


def decide(rows):
    return np.where((rows["age"] > 40) & (rows["city"] != "Rome"), "grant", "refuse")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE)
    people().assign(decision=decide(people())).to_csv(tmp_path / "rows.csv", index=False)
    ec.Space.from_data(people()).save(tmp_path / "space.json")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "copy mine:decide --space rows.csv --out run",
            "rows.csv: expected a space.json, found a table of rows; describe its rows first: "
            "ectype space rows.csv --out space.json",
        ),
        (
            "copy mine:decide --space rows.parquet --out run",
            "ectype space rows.parquet --out space.json",
        ),
        (
            "copy mine:decide --space rows.xlsx --out run",
            "save it as CSV or Parquet, then describe its rows first: ectype space rows.csv --out space.json",
        ),
        (
            "space rows.xlsx --out new.json",
            "rows.xlsx: expected a CSV or Parquet file, found a spreadsheet; save it as CSV: python -c "
            "\"import pandas; pandas.read_excel('rows.xlsx').to_csv('rows.csv', index=False)\"",
        ),
        (
            "copy mine:decide --space space.json --rows space.json --out run",
            "space.json: expected a CSV or Parquet file of rows, found JSON; give rows; a space.json goes with --space",
        ),
        (
            "space rows.csv --out new.json --rule age>city",
            "rule 'age>city': expected columns that can be compared, found age and city, which are of different kinds",
        ),
        ("space rows.csv --out new.json --rule age=40", "rule 'age=40': expected ==, found ="),
        (
            "copy answers.csv --out run",
            "answers.csv: expected a CSV file with a header, found [Errno 2] No such file or directory: 'answers.csv'",
        ),
        ("copy rows.csv --out run", "rows.csv: expected a column 'label' with the answers"),
        ("copy mine:decides --space space.json --out run", "something called decides in mine, found nothing"),
        (
            "space rows.csv --out new.json --drop age,city",
            "found ['age,city']; check their spelling; each column",
        ),
    ],
)
def test_what_the_command_says(folder, command, message):
    out = run_command(*command.split(), cwd=folder)
    assert out.returncode == 2
    assert message in out.stderr
    assert "Number(" not in out.stderr
    assert "Traceback" not in out.stderr
    assert not (folder / "run").exists()


def test_every_space_reminds_of_labels(folder):
    """Nobody can tell by a name: `decision` is one here, and `y` may be a coordinate."""
    people().assign(y=np.arange(300)).to_csv(folder / "y.csv", index=False)
    for rows in ("rows.csv", "y.csv"):
        out = run_command("space", rows, "--out", "new.json", cwd=folder)
        assert (out.returncode, out.stderr) == (0, "")
        assert "No column of it should be what the original answers: --drop leaves one out." in out.stdout


def test_a_frame_without_a_column():
    copy = ec.copy_classifier(decide, ec.Space.from_data(people()), **QUICK).copy
    message = (
        "copy.predict: expected all 2 columns of the space, found no 'city' among those given: 'age', 'City'; is it"
    )
    with pytest.raises(SpaceError, match=f"{message} 'City' for 'city'"):
        copy.predict(people().rename(columns={"city": "City"}))
    with pytest.raises(SpaceError, match="found no 'age', 'city' among those given: 'zone'; give it all columns"):
        copy.predict(pd.DataFrame({"zone": [1]}))


def test_a_label_left_in_the_space_is_named():
    numbers = people()[["age"]].assign(seats=np.arange(300) % 5)
    tree = DecisionTreeClassifier(max_depth=2).fit(numbers, numbers["age"] > 40)
    more, found = numbers.assign(owner=True, **{"the label": 1}), "takes, found also 'owner', 'the label'; leave out"
    with pytest.raises(SpaceError, match=rf"the 2 columns that .* {found} .*: --drop owner --drop 'the label', or"):
        ec.copy_classifier(tree, ec.Space.from_data(more), **QUICK)
    with pytest.raises(
        SpaceError, match=r"takes, found none called 'seats'; describe the space .* takes them: age, seats"
    ):
        ec.copy_classifier(tree, ec.Space.from_data(numbers[["age"]]), **QUICK)
    with pytest.raises(SpaceError, match="in its order, found another order; describe them in its own: age, seats"):
        ec.copy_classifier(tree, ec.Space.from_data(numbers[["seats", "age"]]), **QUICK)


def told(words):
    return rf"a column tells the original's label in nearly all of the first \d+ rows: {words}\. If that is the label"


def test_an_original_that_was_fitted_on_its_label_is_noticed():
    space = ec.Space.from_data(people().assign(granted=(decide(people()) == "grant").astype(int)))
    with pytest.warns(EctypeWarning, match=told(r"'granted' \(in 100\.0%\)")):
        ec.copy_classifier(lambda rows: rows["granted"], space, **QUICK)
    ec.copy_classifier(lambda rows: np.where(rows["granted"] == 1, "grant", "refuse"), space, **QUICK)  # as it may be


def test_a_label_of_any_name_is_named_and_what_is_merely_called_so_is_not():
    """A tree that was fitted with the label, `cut`, among its columns; with `y`, and flags of the labels' own words."""
    rng = np.random.default_rng(0)
    y, n = rng.normal(size=1000), 1000
    cut = np.array(["fair", "good", "ideal"])[np.digitize(y + 0.3 * rng.normal(size=n), [-0.5, 0.5])]
    before = np.where(rng.random(n) < 0.4, rng.choice(["fair", "good", "ideal"], n), cut)
    frame = pd.DataFrame({"y": y, "cut": cut, "before": before, "class": rng.choice(["yes", "no"], n)})

    def priced(rows, columns):
        def coded(table):
            return pd.get_dummies(table[columns]).reindex(columns=known, fill_value=False)

        known = pd.get_dummies(frame[columns]).columns
        return DecisionTreeClassifier(max_depth=4).fit(coded(frame), cut).predict(coded(rows))

    space = ec.Space.from_data(frame)
    classes = ["fair", "good", "ideal"]
    with pytest.warns(EctypeWarning, match=told(r"'cut' \(in 100\.0%\)")):
        ec.copy_classifier(lambda rows: priced(rows, ["y", "cut"]), space, classes=classes, **QUICK)
    ec.copy_classifier(lambda rows: priced(rows, ["y", "before"]), space, classes=classes, **QUICK)


def test_yes_and_no_are_no_sign_of_a_label():
    rng = np.random.default_rng(0)
    frame = people().assign(owner=rng.choice(["yes", "no"], 300), y=rng.choice(["yes", "no"], 300))
    original = lambda rows: np.where((rows["owner"] == "yes") & (rows["age"] > 40), "yes", "no")  # noqa: E731
    ec.copy_classifier(original, ec.Space.from_data(frame), classes=["no", "yes"], **QUICK)


@pytest.mark.parametrize("share", [0.0, 0.03])
def test_a_column_of_stored_answers_that_tells_the_label_is_named(share, tmp_path):
    """With codes of its own, and with some noise."""
    label = decide(people())
    code = np.where((label == "grant") ^ (np.random.default_rng(0).random(300) < share), 7, 3)
    people().assign(code=code, label=label).to_csv(tmp_path / "answers.csv", index=False)
    stored = ec.open_original(str(tmp_path / "answers.csv"))
    with pytest.warns(EctypeWarning, match=told(r"'code' \(in (100\.0|9\d\.\d+)%\)")):
        ec.copy_classifier(stored, ec.Space.from_data(stored.stored[0]), budget=60, certificate_n=60, preset="fast")


def test_another_run_in_the_same_directory_is_told_in_words(tmp_path):
    ec.copy_classifier(decide, ec.Space.from_data(people()), **QUICK, out=tmp_path / "run")
    other = ec.Space.from_data(people(200))
    with pytest.raises(DirectoryError) as caught:
        ec.copy_classifier(decide, other, **{**QUICK, "budget": 40}, out=tmp_path / "run", rows=people())
    message = str(caught.value)
    assert "found a run with budget 60 (now 39), other rows of your own, another space; choose another" in message
    assert "{" not in message
    assert len(message) < 300


def test_mistakes_of_the_first_hour(tmp_path):
    space = ec.Space.from_data(people())
    for call, kind, message in (
        (lambda: ec.copy_classifier(decide, people()), SpaceError, "space: expected a Space, found DataFrame; e.g."),
        (lambda: ec.copy_classifier(DecisionTreeClassifier(), space, **QUICK), EctypeError, "fitted"),
        (lambda: ec.copy_classifier(decide, space, rows=people()[["age"]]), SpaceError, "rows: expected all 2 columns"),
        (lambda: ec.copy_classifier(decide, ec.Space.normal(2), **QUICK), OriginalError, "check that"),
        (lambda: ec.Space.from_data(people(), rules="age > 4"), SpaceError, "a list of rules, found 'age > 4'"),
        (lambda: ec.Space.load(tmp_path / "rows.csv"), SpaceError, "describe its rows first"),
        (lambda: ec.Space.from_data("rows.csv"), SpaceError, "read the file first, as by pandas.read_csv"),
        (lambda: ec.Space.from_data(people().to_numpy()), SpaceError, "give a data frame if some columns hold words"),
        (lambda: space.read(people().iloc[0], "rows"), SpaceError, "a single row is a table too: frame.iloc[[0]]"),
        (lambda: ec.copy_classifier("mine:decide", space), SettingError, "ec.open_original('mine:decide')"),
        (lambda: ec.copy_classifier(decide, space, budgets=9), TypeError, "takes no 'budgets'; is it 'budget'?"),
        (lambda: ec.load(tmp_path), DirectoryError, "expected a file of a finished run"),
        (lambda: ec.Space.from_json(json.dumps({"columns": [{"kind": "float"}]})), SpaceError, "column 0: expected"),
        (lambda: read_table(str(tmp_path / "rows.ods")), SettingError, "a spreadsheet"),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert message in str(caught.value)
        assert len(str(caught.value)) < 400
