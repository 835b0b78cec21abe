"""`ectype certify` as people call it."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype.queries import Queries, unused_rows

pytestmark = pytest.mark.usefixtures("small_lessons")

COMMAND = [sys.executable, "-m", "ectype"]
ORIGINALS = """
import numpy as np

def taken(rows):
    print("asked", len(rows))
    return np.where((rows["size"] > 0) & (rows["kind"] != "c\\x1b[31m"), "y[bold]es", "no")

def coin(rows):
    return np.random.default_rng().uniform(size=len(rows)) < 0.5

def broken(rows):
    raise RuntimeError("out of order")
"""


def call(*arguments, cwd):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


@pytest.fixture
def here(folder):
    """The command in this process: its exit code, what it prints, and what it says."""
    return lambda *arguments: run_command("certify", *arguments, cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certify")
    (folder / "mine.py").write_text(ORIGINALS)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=400), "kind": rng.choice(["a", "b", "c\x1b[31m"], 400)})
    frame.assign(id=range(400)).to_csv(folder / "rows.csv", index=False)
    labels = np.where((frame["size"] > 0) & (frame["kind"] != "c\x1b[31m"), "y[bold]es", "no")
    frame.assign(label=labels).to_csv(folder / "answers.csv", index=False)
    quick = {"budget": 100, "schedule": 4, "certificate_n": 200, "repeat": 0}
    table = ec.open_original(str(folder / "answers.csv"))
    space = ec.Space.from_data(frame)
    ec.copy_classifier(table, space, out=folder / "stored", budget=100, certificate_n=200)
    taken = ec.Original(lambda rows: np.where(rows["size"] > 0, "y[bold]es", "no"), name="taken")
    ec.copy_classifier(taken, space, **quick).save(folder / "run")
    return folder


def test_it_prints_bounds_and_where_they_differ_and_writes_nothing_but_what_it_asked(folder):
    before = sorted(os.listdir(folder / "run"))
    out = run_command("certify", "run", "mine:taken", "--data", "rows.csv", "--n", 1000, cwd=folder)
    assert out.returncode == 0, out.stderr
    assert "mine:taken will be asked 1400 queries" in out.stderr
    assert sum(map(int, re.findall(r"^asked (\d+)$", out.stderr, re.M))) == 1400
    for words in (
        "fresh rows of the space",
        "the original says 'y[bold]es'",
        "near the boundary",
        "away from it",
        "rows of rows.csv",
        "with 95% confidence, for each line by itself",
        "the population that they are a random sample of",
        "original 'no', copy 'y[bold]es'",
        "kind is c\\x1b[31m",
        "for example:",
    ):
        assert words in out.stdout, words
    assert "\x1b" not in out.stdout
    assert sorted(os.listdir(folder / "run")) == sorted([*before, "asked.sqlite", "asked.sqlite-head"])


def test_json_is_one_document_and_the_confidence_counts(here):
    code, out, _ = here("run", "mine:taken", "--data", "rows.csv", "--n", 500, "--json", "--confidence", 0.9)
    assert code == 0
    document = json.loads(out)
    assert document["queries"] == {"certificate": 500, "data": 400}
    proof = document["certificate"]
    assert (proof["confidence"], proof["n"], proof["on_data"]["n"]) == (0.9, 500, 400)
    assert 0.5 < proof["lower"] < proof["estimate"] < 0.95
    assert [entry["label"] for entry in proof["per_class"]] == ["no", "y[bold]es"]
    assert "no" in {flip["original"] for flip in proof["differences"]["flips"]}  # where the kind is another than it was
    assert proof["on_data"]["differences"]["rules"][0]["lower"] > 0.5


def test_a_design_is_chosen_and_a_width_is_planned(here):
    code, out, _ = here("run", "mine:taken", "--n", 300, "--design", "plain", "--width", 0.02, "--json")
    document = json.loads(out)
    assert code == 0
    assert "strata" not in document["certificate"]
    assert document["plan"]["width"] == 0.02
    assert document["plan"]["rows"]["plain"] > 300
    assert document["plan"]["further"]["plain"] == document["plan"]["rows"]["plain"] - 300
    _, text, _ = here("run", "mine:taken", "--n", 300, "--design", "plain", "--width", 0.02)
    assert f"it would take about {document['plan']['rows']['stratified']} rows" in " ".join(text.split())


def test_stored_answers_are_those_that_the_copy_was_not_made_from(here):
    _, out, _ = here("stored", "answers.csv", "--json")
    assert json.loads(out)["queries"] == {"certificate": 100, "data": 0}  # 400, less 100 and 200


def test_stored_answers_left_over_are_no_rows_of_the_run(folder):
    table = ec.open_original(str(folder / "answers.csv"))
    space = ec.Space.from_data(table.stored[0])
    used = Queries(table, space, {"training": 300}, seed=5)
    rows, _ = next(used.fresh("training", 300, np.random.default_rng(0)))
    left = unused_rows(table, 5, 300)
    sizes = set(left.stored[0]["size"])
    assert len(sizes) == 100
    assert not sizes & set(rows[:, 0])
    assert len(table.stored[1]) == 400
    with pytest.raises(ec.errors.SettingError, match="stored answers that the copy was not made from, found none left"):
        unused_rows(table, 5, 400)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere", "mine:taken"], 2, "a file of a finished run"),
        (["stored", "answers.csv", "--n", "101"], 2, "stored answers for 101 queries, found a table of 100"),
        (["run", "mine:taken", "--n", "0"], 2, "n: expected a whole number of at least 1"),
        (["run", "mine:taken", "--design", "best"], 2, "design: expected one of 'stratified', 'plain'"),
        (["run", "mine:taken", "--width", "2"], 2, "width: expected a number between 0 and 1"),
        (["stored", "answers.csv", "--design", "stratified"], 2, "design: expected a copy with probabilities"),
        (["run", "mine:taken", "--confidence", "1"], 2, "confidence: expected a number between 0 and 1"),
        (["run", "mine:taken", "--data", "none.csv"], 2, "a CSV file with a header"),
        (["run", "mine:broken", "--n", "10"], 3, "out of order"),
    ],
)
def test_bad_input(here, arguments, code, words):
    ended, out, said = here(*arguments)
    assert ended == code, said
    assert words in said
    assert not out


def test_a_target_beyond_the_originals_noise_ends_early_with_exit_code_1(folder):
    out = call("copy", "mine:coin", "--space", "normal:2", "--out", "coin", "--target", 0.9, "--json", cwd=folder)
    assert out.returncode == 1
    assert "target: expected at most 0." in out.stderr
    assert "lower the target, or leave it out" in out.stderr
    assert not out.stdout
    assert os.listdir(folder / "coin") == ["ledger.sqlite"]
