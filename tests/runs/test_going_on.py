"""The same call with a larger budget goes on from the answers that are there."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import understudy as us
from cases import disc
from understudy.certificate.bounds import lower_bound
from understudy.errors import DirectoryError, OriginalError
from understudy.queries import ledger
from understudy.report.card import card
from understudy.runs.copying import job_of
from understudy.runs.directory import claim
from understudy.runs.going_on import ANY_TIME, ARGUMENTS, GOES_ON, REFUSED, between_calls, gone_on
from understudy.runs.plan import Plan
from understudy.runs.settings import Settings

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = us.Space.normal(2)
QUICK = {"certificate_n": 200, "repeat": 0, "retries": 1.0, "schedule": us.training.steps(100)}


class Counting:
    """An original that counts rows, and fails after some, if told to."""

    def __init__(self):
        self.asked, self.most = 0, 10**9

    def predict(self, rows):
        if self.asked + len(rows) > self.most:
            raise RuntimeError("gone")
        self.asked += len(rows)
        return disc(rows)


@pytest.fixture(scope="module")
def first(tmp_path_factory, small_lessons):
    """A finished run with 200 answers."""
    path = tmp_path_factory.mktemp("first") / "run"
    us.copy_classifier(Counting(), PLANE, budget=200, out=path, **QUICK)
    return path


@pytest.fixture
def run(first, tmp_path):
    shutil.copytree(first, tmp_path / "run")
    return tmp_path / "run"


def test_only_the_difference_is_asked_and_the_run_says_so(run):
    original = Counting()
    earlier = us.load(run)
    result = us.copy_classifier(original, PLANE, budget=600, out=run, **QUICK)
    assert original.asked == 400
    assert result.queries["training"] == 600
    assert result.settings["stages"] == [200]
    assert [one.queries for one in result.history[: len(earlier.history)]] == [one.queries for one in earlier.history]
    assert result.history[-1].queries == 600
    training = ledger.answers(run / ledger.NAME)["training"]
    assert len(np.unique(training[0], axis=0)) == 600
    assert us.copy_classifier(original, PLANE, budget=600, out=run, **QUICK).certificate == result.certificate
    assert original.asked == 400  # the same call again loads it
    assert "600 training queries, after 200" in card(run)
    with pytest.raises(DirectoryError, match=r"a run with budget 600 \(now 300\)"):
        us.copy_classifier(original, PLANE, budget=300, out=run, **QUICK)
    with pytest.raises(DirectoryError, match=r"to 'auto' \(now 'tree'\)"):
        us.copy_classifier(original, PLANE, budget=900, out=run, to="tree", **QUICK)
    us.copy_classifier(original, PLANE, budget=900, out=run, **QUICK)
    assert us.load(run).settings["stages"] == [200, 600]
    assert original.asked == 700


def test_the_bound_allows_for_earlier_looks_at_the_same_rows(run):
    result = us.copy_classifier(Counting(), PLANE, budget=250, out=run, **QUICK)
    proof = result.certificate
    assert proof.lower == lower_bound(round(proof.estimate * proof.n), proof.n, 1 - (1 - proof.confidence) / 2)


@pytest.mark.parametrize("most", [0, 60, 170, 350])
def test_a_run_that_fails_while_it_goes_on_ends_with_the_same_bytes(run, tmp_path, most):
    shutil.copytree(run, tmp_path / "whole")
    us.copy_classifier(Counting(), PLANE, budget=600, out=tmp_path / "whole", **QUICK)
    original = Counting()
    original.most = most
    with pytest.raises(OriginalError, match="gone"):
        us.copy_classifier(original, PLANE, budget=600, out=run, **QUICK)
    assert us.load(run).queries["training"] == 200  # the earlier copy is there until the new one is
    original.most = 10**9
    us.copy_classifier(original, PLANE, budget=600, out=run, **QUICK)
    assert original.asked == 400
    assert (run / "copy.safetensors").read_bytes() == (tmp_path / "whole" / "copy.safetensors").read_bytes()


def test_a_run_that_is_killed_while_it_is_saved_knows_its_stages(run):
    us.copy_classifier(Counting(), PLANE, budget=400, out=run, **QUICK)
    us.copy_classifier(Counting(), PLANE, budget=600, out=run, **QUICK)
    copy = (run / "copy.safetensors").read_bytes()
    (run / "run.json").unlink()
    original = Counting()
    assert us.copy_classifier(original, PLANE, budget=600, out=run, **QUICK).settings["stages"] == [200, 400]
    assert original.asked == 0
    assert (run / "copy.safetensors").read_bytes() == copy


def test_a_run_that_was_interrupted_goes_on_to_a_larger_budget(tmp_path):
    original = Counting()
    original.most = 300
    with pytest.raises(OriginalError):
        us.copy_classifier(original, PLANE, budget=200, out=tmp_path / "run", **QUICK)
    original.most = 10**9
    us.copy_classifier(original, PLANE, budget=500, out=tmp_path / "run", **QUICK)
    assert original.asked == 700


def test_another_target(run):
    original = Counting()
    result = us.copy_classifier(original, PLANE, budget=200, target=0.5, out=run, **QUICK)
    assert result.stopped == "target"
    assert original.asked == 0
    assert json.loads((run / "run.json").read_text())["settings"]["stages"] == [200]


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, (150, 69, 101, 148, 216, 316, 442, 638, 920)),
        ({"batch": 100}, (100,) * 30),
        ({"method": "one-shot"}, (1000, 2000)),
        ({"preset": "paper"}, (100,) * 30),
        ({"preset": "fast"}, (333,) * 9),
        ({"max_kept": 500}, (150, 69, 101, 148, 216, 316, 333, 333, 334, 333, 333, 334)),
        ({"batch": 100, "iterations": 30, "budget": None}, (100,) * 30),
    ],
)
def test_further_rounds(settings, sizes):
    plan = Plan.of(Settings(**{"budget": 3000, **settings})).after((1000,))
    assert plan.sizes == sizes
    assert plan.as_json()["stages"] == [1000]


# A value other than the usual one, for every setting; some need others beside them.
OTHERS = {
    "budget": 300,
    "target": 0.4,
    "retries": 2.0,
    "progress": False,
    "method": "pure",
    "batch": 50,
    "draw": "random",
    "rows_share": 0.5,
    "scores": True,
    "repeat": 0.5,
    "preset": "fast",
    "delta": 0.1,
    "max_kept": 150,
    "memory": "none",
    "penalty": "norm",
    "schedule": 7,
    "decay": 0.5,
    "seed": 3,
    "certificate_n": 20,
    "confidence": 0.5,
    "until_flat": True,
    "to": "tree",
    "layers": (5,),
    "max_depth": 3,
    "max_leaves": 4,
    "exclude": ("x0",),
    "increasing": ("x0",),
    "decreasing": ("x0",),
    "max_bytes": 10**6,
    "max_latency": 5.0,
    "iterations": 9,
}


def happens(path, name):
    """What happens where a setting or argument is another, in a directory where a run was begun."""
    rows = pd.DataFrame({"x0": [0.0, 1.0, 2.0], "x1": [0.0, 1.0, 3.0]})
    usual = {"batch": 40, "iterations": 5} if name == "iterations" else {"budget": 200}
    settings = us.Settings(**{**usual, **({name: OTHERS[name]} if name in OTHERS else {})})
    original = us.Original(disc, [False, True], name="another" if name == "original" else "disc")
    original.both = lambda rows: (disc(rows), np.eye(2)[disc(rows).astype(int)])
    given = {"rows": rows, "answers": rows.assign(label=False), "test": (rows, [True, True, False])}
    arguments = {name: given[name]} if name in given else {}
    space = us.Space.uniform(-1, 1, 2) if name == "space" else PLANE
    before = job_of(original.but(name="disc"), PLANE, Plan.of(us.Settings(**usual)))
    with ledger.Ledger(path / ledger.NAME, before.about, PLANE):
        pass
    classes = [True] if name == "classes" else None
    job = gone_on(job_of(original, space, Plan.of(settings), classes=classes, **arguments), path)
    try:
        claim(path, job.about)
    except DirectoryError:
        return REFUSED
    return GOES_ON if job.further else ANY_TIME


@pytest.mark.parametrize("name", between_calls())
def test_what_may_change_between_calls_is_what_the_code_says(name, tmp_path):
    assert name in (*OTHERS, *ARGUMENTS)
    assert happens(tmp_path, name) == between_calls()[name]


def test_the_documents_have_the_same_table():
    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", page.partition("| between calls")[2].partition("**Make")[0], re.M)
    found = {name: said for names, said in rows for name in re.findall(r"`(\w+)`", names)}
    assert found.keys() == between_calls().keys()
    for name, said in found.items():
        assert said.startswith(between_calls()[name])
