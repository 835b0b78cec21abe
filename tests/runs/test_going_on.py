"""The same call with a larger budget goes on from the answers that are there."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.certificate.bounds import lower_bound
from ectype.errors import DirectoryError, OriginalError
from ectype.plan.plan import Plan
from ectype.plan.presets import PRESETS
from ectype.plan.settings import Settings
from ectype.report import card
from ectype.runs.api import build_job
from ectype.runs.directory import claim
from ectype.runs.extend import ANY_TIME, ARGUMENTS, GOES_ON, REFUSED, extended, in_directory, resume_rules
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
QUICK = {"certificate_n": 200, "repeat": 0, "retries": 1.0, "schedule": ec.training.steps(100)}


COUNTED = """
def disc(rows):
    with open("asked", "a") as lines:
        lines.writelines(row.tobytes().hex() + "\\n" for row in rows)
    return (rows**2).sum(axis=1) < 1
"""


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
    ec.copy_classifier(Counting(), PLANE, budget=200, out=path, **QUICK)
    return path


@pytest.fixture
def run(first, tmp_path):
    shutil.copytree(first, tmp_path / "run")
    return tmp_path / "run"


def test_only_the_difference_is_asked_and_the_run_says_so(run):
    original = Counting()
    earlier = ec.load(run)
    result = ec.copy_classifier(original, PLANE, budget=600, out=run, **QUICK)
    assert original.asked == 400
    assert result.queries["training"] == 600
    assert result.settings["stages"] == [200]
    assert [one.queries for one in result.history[: len(earlier.history)]] == [one.queries for one in earlier.history]
    assert result.history[-1].queries == 600
    training = ledger.read_answers(run / ledger.LEDGER)["training"]
    assert len(np.unique(training[0], axis=0)) == 600
    assert ec.copy_classifier(original, PLANE, budget=600, out=run, **QUICK).certificate == result.certificate
    assert original.asked == 400  # the same call again loads it
    assert "600 training queries, after 200" in card(run)
    with pytest.raises(DirectoryError, match=r"a run with budget 600 \(now 300\)"):
        ec.copy_classifier(original, PLANE, budget=300, out=run, **QUICK)
    with pytest.raises(DirectoryError, match=r"to 'auto' \(now 'tree'\)"):
        ec.copy_classifier(original, PLANE, budget=900, out=run, to="tree", **QUICK)
    ec.copy_classifier(original, PLANE, budget=900, out=run, **QUICK)
    assert ec.load(run).settings["stages"] == [200, 600]
    assert original.asked == 700


def test_the_bound_allows_for_earlier_looks_at_the_same_rows(run):
    result = ec.copy_classifier(Counting(), PLANE, budget=250, out=run, **QUICK)
    proof = result.certificate
    assert proof.lower == lower_bound(round(proof.estimate * proof.n), proof.n, 1 - (1 - proof.confidence) / 2)


@pytest.mark.parametrize("most", [0, 60, 170, 350])
def test_a_run_that_fails_while_it_goes_on_ends_with_the_same_bytes(run, tmp_path, most):
    shutil.copytree(run, tmp_path / "whole")
    ec.copy_classifier(Counting(), PLANE, budget=600, out=tmp_path / "whole", **QUICK)
    original = Counting()
    original.most = most
    with pytest.raises(OriginalError, match="gone"):
        ec.copy_classifier(original, PLANE, budget=600, out=run, **QUICK)
    assert ec.load(run).queries["training"] == 200  # the earlier copy is there until the new one is
    original.most = 10**9
    ec.copy_classifier(original, PLANE, budget=600, out=run, **QUICK)
    assert original.asked == 400
    assert (run / "copy.safetensors").read_bytes() == (tmp_path / "whole" / "copy.safetensors").read_bytes()


def test_a_run_that_is_killed_while_it_is_saved_knows_its_stages(run):
    ec.copy_classifier(Counting(), PLANE, budget=400, out=run, **QUICK)
    ec.copy_classifier(Counting(), PLANE, budget=600, out=run, **QUICK)
    copy = (run / "copy.safetensors").read_bytes()
    (run / "run.json").unlink()
    original = Counting()
    assert ec.copy_classifier(original, PLANE, budget=600, out=run, **QUICK).settings["stages"] == [200, 400]
    assert original.asked == 0
    assert (run / "copy.safetensors").read_bytes() == copy


def test_a_run_that_was_interrupted_goes_on_to_a_larger_budget(tmp_path):
    original = Counting()
    original.most = 300
    with pytest.raises(OriginalError):
        ec.copy_classifier(original, PLANE, budget=200, out=tmp_path / "run", **QUICK)
    original.most = 10**9
    ec.copy_classifier(original, PLANE, budget=500, out=tmp_path / "run", **QUICK)
    assert original.asked == 700


def test_another_target(run):
    original = Counting()
    result = ec.copy_classifier(original, PLANE, budget=200, target=0.5, out=run, **QUICK)
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
        ({"preset": "fast"}, (*(333,) * 9, 3)),
        ({"method": "online", "batch": 90}, (90,) * 33),
        ({"max_kept": 500}, (150, 69, 101, 148, 216, 316, 333, 333, 334, 333, 333, 334)),
        ({"batch": 100, "iterations": 30, "budget": None}, (100,) * 30),
    ],
)
def test_further_rounds(settings, sizes):
    plan = Plan.of(Settings(**{"budget": 3000, **settings})).after((1000,))
    assert plan.sizes == sizes
    assert plan.as_json()["stages"] == [1000]


def begun(path, **settings):
    """A job in a directory, where the run is begun, and nothing is asked yet."""
    job = in_directory(
        build_job(ec.Original(disc, [False, True], name="disc"), PLANE, Plan.of(Settings(**settings))), path
    )
    with ledger.Ledger(path / ledger.LEDGER, job.about, PLANE):
        return job


WAYS = [{"method": method, "preset": preset} for method in ("sequential", "one-shot", "online") for preset in PRESETS]
WAYS += [{"method": "pure", "preset": "paper"}, {"delta": 0.1}, {"max_kept": 300}, {"batch": 70}, {"to": "mlp"}]
WAYS += [{"preset": "fast", "to": "tree"}, {"until_flat": True}, {"batch": 60, "max_kept": 150}]


@pytest.mark.parametrize("budgets", [(600, 800), (600, 610, 700, 703, 5000), (1000, 1001, 1400), (310, 311, 420)])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
def test_more_budget_is_spent_or_what_is_left_over_is_less_than_a_batch(way, budgets, tmp_path):
    before = begun(tmp_path, budget=budgets[0], **way).plan
    for budget in budgets[1:]:
        job = begun(tmp_path, budget=budget, **way)
        plan, more = job.plan, job.plan.queries > before.queries
        assert plan.sizes[: len(before.sizes)] == before.sizes  # what was asked before is not asked again
        assert plan.queries + plan.left_over == budget
        assert plan.left_over < (plan.batch if way.get("method") == "online" or not plan.stages else 1)
        assert job.further == more
        if more:
            assert plan.stages == (*before.stages, before.queries)
        else:  # the same command, where rounds are as large as these
            assert plan.sizes == before.sizes
        again = begun(tmp_path, budget=budget, **way)
        assert (again.plan.sizes, again.further) == (plan.sizes, False)
        before = plan


def test_a_result_says_what_was_left_over(tmp_path):
    asked = {"batch": 40, "budget": 130, "preset": "fast", "certificate_n": 0, "out": tmp_path / "run"}
    for _ in range(2):  # made, and loaded
        result = ec.copy_classifier(disc, PLANE, **asked)
        said = " ".join(str(result).split())
        assert "120 to learn from, 3 asked again, and 10 of the budget left over, less than a batch." in said
    assert "left over" not in str(ec.load(tmp_path / "run"))


def test_another_batch_is_refused_after_a_run_went_on_too(tmp_path):
    original, settings = ec.Original(lambda rows: rows[:, 0] > 0, name="sign"), {"preset": "fast", "certificate_n": 50}
    for budget in (60, 120):
        ec.copy_classifier(original, ec.Space.normal(1), budget=budget, batch=20, out=tmp_path / "run", **settings)
    with pytest.raises(DirectoryError, match="a run with batches of 60, found one with batches of 20"):
        ec.copy_classifier(original, ec.Space.normal(1), budget=120, batch=60, out=tmp_path / "run", **settings)


@pytest.mark.parametrize("way", [{"batch": 40}, {"preset": "fast"}, {"method": "online"}], ids=str)
def test_more_iterations_are_batches_of_the_same_size(way, tmp_path):
    first = begun(tmp_path, iterations=2, budget=600, **way).plan
    job = begun(tmp_path, iterations=5, budget=900, **way)
    assert job.further
    assert job.plan.queries == min(5 * first.batch, 900)
    assert job.plan.sizes[:-1] == (first.batch,) * (len(job.plan.sizes) - 1)


def test_a_run_does_not_go_on_in_batches_of_another_size(tmp_path):
    begun(tmp_path, batch=40, budget=200)
    with pytest.raises(DirectoryError, match="a run with batches of 50, found one with batches of 40; leave the batch"):
        begun(tmp_path, batch=50, budget=400)


def test_the_command_goes_on_with_the_preset_fast_and_says_what_is_left_over(tmp_path):
    (tmp_path / "mine.py").write_text(COUNTED)
    copy = ("copy", "mine:disc", "--space", "normal:2", "--preset", "fast", "--certificate-n", "50", "--out", "run")
    asked = {}
    for budget in (600, 602, 800, 850, 1000):
        done = run_command(*copy, "--budget", budget, "--json", cwd=tmp_path)
        assert done.returncode == 0
        asked[budget] = json.loads(done.stdout)["queries"]["training"], done.stderr
    assert [n for n, _ in asked.values()] == [600, 600, 800, 850, 1000]
    assert "2 of the budget of 602 are left over: they are no whole batch" in asked[602][1]
    assert "run holds this run, and nothing is asked: 600 training queries were made" in asked[602][1]
    assert "it goes on from a run with 800 training queries" in asked[850][1]
    assert not any("left over" in asked[budget][1] for budget in (800, 850, 1000))
    rows = (tmp_path / "asked").read_text().split()
    again = json.loads(done.stdout)["queries"]["repeat"]
    assert len(rows) == 1000 + 50 + again
    assert len(set(rows)) == 1000 + 50


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
# What some of them need beside them, to have an effect.
BESIDE = {"iterations": {"batch": 40, "iterations": 5}, "method": {"budget": 200, "preset": "paper"}}
BESIDE |= {name: {"budget": 200, "delta": 0.2} for name in ("memory", "penalty")}


def happens(path, name):
    """What happens where a setting or argument is another, in a directory where a run was begun."""
    rows = pd.DataFrame({"x0": [0.0, 1.0, 2.0], "x1": [0.0, 1.0, 3.0]})
    usual = BESIDE.get(name, {"budget": 200})
    settings = ec.Settings(**{**usual, **({name: OTHERS[name]} if name in OTHERS else {})})
    original = ec.Original(disc, [False, True], name="another" if name == "original" else "disc")
    original.both = lambda rows: (disc(rows), np.eye(2)[disc(rows).astype(int)])
    given = {"rows": rows, "answers": rows.assign(label=False), "test": (rows, [True, True, False])}
    always = {"rows": rows} if name == "rows_share" else {}
    arguments = {name: given[name]} if name in given else always
    space = ec.Space.uniform(-1, 1, 2) if name == "space" else PLANE
    before = build_job(original.but(name="disc"), PLANE, Plan.of(ec.Settings(**usual)), **always)
    with ledger.Ledger(path / ledger.LEDGER, before.about, PLANE):
        pass
    classes = [True] if name == "classes" else None
    job = extended(build_job(original, space, Plan.of(settings), classes=classes, **arguments), path)
    try:
        claim(path, job.about)
    except DirectoryError:
        return REFUSED
    return GOES_ON if job.further else ANY_TIME


@pytest.mark.parametrize("name", resume_rules())
def test_what_may_change_between_calls_is_what_the_code_says(name, tmp_path):
    assert name in (*OTHERS, *ARGUMENTS)
    assert happens(tmp_path, name) == resume_rules()[name]


def test_the_documents_have_the_same_table():
    page = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|$", page.partition("| between calls")[2].partition("**Make")[0], re.M)
    found = {name: said for names, said in rows for name in re.findall(r"`(\w+)`", names)}
    assert found.keys() == resume_rules().keys()
    for name, said in found.items():
        assert said.startswith(resume_rules()[name])
