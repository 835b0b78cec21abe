"""Refreshing: changes are found and nothing else is, the copy follows its original, and nothing is paid for twice."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.algorithm.training import steps
from ectype.errors import DirectoryError, OriginalError, OutageError, SettingError, SpaceError
from ectype.ledger import Purpose
from ectype.queries import Queries, run_drift_test
from ectype.queries._drift_test import e_value
from ectype.refresh import Refresh
from ectype.refresh._flips import answers_flipped, mistakes, regions
from ectype.rng import Stream, stream
from problems import disc

pytestmark = pytest.mark.usefixtures("small_lessons")
SMALL = {"budget": 600, "certificate_n": 300, "schedule": steps(60)}


def moved(rows):
    return ((np.asarray(rows) - [0.4, 0.0]) ** 2).sum(axis=1) < 1


def counting(function, asked, most=10**9):
    """An original that counts how often it was asked about each row, and fails beyond so many."""

    def answer(rows):
        if asked.total() + len(rows) > most:
            raise OutageError("disc", "an answer", "nothing")
        asked.update(row.tobytes() for row in np.ascontiguousarray(rows))
        return function(rows)

    return ec.Original(answer, name="disc", request_rows=40)


def files(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_lessons):
    path = tmp_path_factory.mktemp("refresh") / "run"
    ec.copy_classifier(disc, ec.Space.normal(2), out=path, **SMALL)
    return path


@pytest.fixture(scope="module")
def followed(finished, tmp_path_factory):
    """A refresh after the original moved: its directory, its result, and how often each row was asked."""
    out, asked, before = tmp_path_factory.mktemp("refreshed") / "new", Counter(), files(finished)
    result = ec.refresh(finished, counting(moved, asked), out=out, budget=400, schedule=steps(60))
    assert files(finished) == before
    return out, result, asked


def noisy_check(noise, seed, change=0.0):
    rng = np.random.default_rng([seed, 1])
    space, threshold = ec.Space.uniform([0.0], [1.0]), 0.5

    def original(rows):
        return (rows[:, 0] > threshold) ^ (rng.random(len(rows)) < noise)

    rows = space.sample(2000, rng)
    answers = original(rows)
    threshold += change
    queries = Queries(ec.Original(original), space, {Purpose.CHECK: 1200, Purpose.REPEAT: 1200})
    return run_drift_test(queries, rows, answers, 300, 1200, rng)


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.01, 0.05, 0.3])
def test_an_unchanged_original_is_left_alone_whatever_its_noise(noise):
    checks = [noisy_check(noise, seed) for seed in range(200)]
    assert sum(found.changed for found in checks) <= (12 if noise else 0)  # 200 * 5 %, and a little luck
    if not noise:
        assert {len(found.places) for found in checks} == {300}
        assert 0.009 < checks[0].at_most < 0.01


def test_a_change_is_found_the_sooner_the_larger_it_is():
    small, large = ([noisy_check(0.0, seed, change) for seed in range(60)] for change in (0.01, 0.1))
    assert sum(found.changed for found in small) >= 50
    assert all(found.changed for found in large)
    assert max(len(found.places) for found in large) <= 150
    assert sum(noisy_check(0.01, seed, 0.05).changed for seed in range(60)) >= 52


def test_a_single_flip_is_a_change_only_of_what_always_answers_alike():
    assert e_value(1, 0) < 20
    found = noisy_check(0.0, 0)
    one = replace(found, flipped=1, stayed=1)
    assert not one.changed
    assert replace(one, deterministic=True).changed
    assert not replace(found, deterministic=True).changed
    assert one.at_most > found.at_most


def test_unchanged_costs_the_check_and_leaves_nothing_behind(finished, tmp_path):
    asked, before = Counter(), files(finished)
    for _ in range(2):  # tomorrow it is asked again
        result = ec.refresh(finished, counting(disc, asked), out=tmp_path / "new", check=200)
        assert result.refreshed["verdict"] == "unchanged"
        assert result.refreshed["check"]["asked"] == 200
        assert result.copy.predict([[0.0, 0.0]]).tolist() == [True]
    assert asked.total() == 400
    assert not (tmp_path / "new").exists()
    assert files(finished) == before


def test_the_copy_follows_its_original(followed, finished, rng):
    out, result, asked = followed
    rows = ec.Space.normal(2).sample(4000, rng)
    old, new = ec.load(finished), ec.load(out)
    assert old.family == new.family == "blend"
    assert (old.copy.predict(rows) == moved(rows)).mean() < 0.9
    assert (new.copy.predict(rows) == moved(rows)).mean() > 0.93
    assert (new.copy.predict(rows) == result.copy.predict(rows)).all()
    assert result.queries["training"] <= 400
    assert sum(result.queries.values()) == asked.total()
    assert new.queries == result.queries
    assert [record.queries for record in result.history] == sorted(record.queries for record in result.history)


def test_flips_are_what_they_are(followed, finished):
    out, result, _ = followed
    found = json.loads((out / "run.json").read_text())["refreshed"]
    assert found == result.refreshed
    assert len(found["sha256"]) == 64
    assert found["of"] == str(finished)
    kept, again = (ledger.read_answers(path / ledger.LEDGER) for path in (finished, out))
    rows, new = again["certificate"][0], again["certificate"][1].labels
    paired = found["answers"]["rows"]
    assert 200 < paired < 300  # without those of the check
    assert found["answers"]["flipped"] == (disc(rows[:paired]) != moved(rows[:paired])).sum()
    was = {row.tobytes() for row in kept["certificate"][0]}
    assert [row.tobytes() in was for row in rows] == [True] * paired + [False] * (len(rows) - paired)
    wrong, old = found["mistakes"], ec.load(finished).copy.predict(rows)
    assert wrong["before"] == (old != new).sum() > wrong["after"] == (result.copy.predict(rows) != new).sum()
    assert sum(one["rows"] for one in wrong["by_class"]) == wrong["rows"] == len(rows)
    assert result.certificate.n == len(rows)
    assert round(result.certificate.estimate * len(rows)) == len(rows) - wrong["after"]
    assert all(one["flipped"] <= one["rows"] for one in found["regions"])


def test_a_finished_refresh_is_loaded_and_can_be_refreshed_itself(followed, finished, tmp_path):
    out, result, _ = followed
    options = {"budget": 400, "schedule": steps(60)}
    asked = Counter()
    again = ec.refresh(finished, counting(moved, asked), out=out, **options)
    assert not asked
    assert again.refreshed == result.refreshed
    with pytest.raises(DirectoryError, match="budget 400 \\(now 300\\)"):
        ec.refresh(finished, counting(moved, asked), out=out, budget=300, schedule=steps(60))
    third = ec.refresh(out, disc, out=tmp_path / "third", check=100, schedule=steps(60))
    assert third.refreshed["whole"] == 600
    assert third.queries["training"] <= 210
    assert third.refreshed["mistakes"]["after"] < third.refreshed["mistakes"]["before"]


@pytest.mark.parametrize("after", [30, 250, 620])
def test_an_interrupted_refresh_goes_on_where_it_was(followed, finished, tmp_path, after):
    out, result, expected = followed
    asked = Counter()
    options = {"out": tmp_path / "new", "budget": 400, "schedule": steps(60)}
    with pytest.raises(OriginalError):
        ec.refresh(finished, counting(moved, asked, most=after), **options)
    resumed = ec.refresh(finished, counting(moved, asked), **options)
    assert asked == expected  # no row was paid for twice, but those that are asked again on purpose
    assert resumed.refreshed == result.refreshed
    digests = [files(folder)["copy.safetensors"] for folder in (out, tmp_path / "new")]
    assert digests[0] == digests[1]


def test_new_labels_widen_the_copy(tmp_path, rng):
    def three(rows):
        distance = (rows**2).sum(axis=1)
        return np.where(distance < 1, "in", np.where(distance < 4, "near", "far"))

    def two(rows):
        return np.where((rows**2).sum(axis=1) < 1, "in", "near")

    asked = Counter()

    def late(rows):  # a label that only comes when the copy is already under way
        asked["rows"] += len(rows)
        return np.where((rows[:, 0] > 1) & (asked["rows"] > 200), "rare", np.where(moved(rows), "in", "near"))

    path = tmp_path / "run"
    ec.copy_classifier(two, ec.Space.normal(2), out=path, **{**SMALL, "certificate_n": 0})
    result = ec.refresh(path, three, check=150, budget=450, schedule=steps(60))
    rows = ec.Space.normal(2).sample(2000, rng)
    assert result.copy.classes_.tolist() == ["far", "in", "near"]
    assert (result.copy.predict(rows) == three(rows)).mean() > 0.85
    wider = ec.refresh(path, late, out=tmp_path / "late", check=50, budget=350, schedule=steps(30))
    assert wider.copy.classes_.tolist() == ["in", "near", "rare"]
    with pytest.raises(SettingError, match="labels of one type"):
        ec.refresh(path, disc, out=tmp_path / "other", schedule=steps(60))


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("tree", {}),
        ("blend", {}),
        ("boosting", {}),
        ("mlp", {}),
        ("mlp", {"delta": 1e-300}),
        ("blend", {"max_kept": 200, "schedule": None}),  # what chooses and is handed out is a blend throughout
    ],
)
def test_a_copy_is_refreshed_to_one_of_its_family(family, options, tmp_path, rng):
    path = tmp_path / "run"
    before = ec.copy_classifier(disc, ec.Space.normal(2), out=path, to=family, **{**SMALL, **options})
    result = ec.refresh(path, moved, budget=300, check=100, schedule=steps(60))
    rows = ec.Space.normal(2).sample(2000, rng)
    assert (result.family, ec.load(tmp_path / "run-refreshed").family) == (family, family)
    assert (before.copy.predict(rows) == moved(rows)).mean() < 0.9
    assert (result.copy.predict(rows) == moved(rows)).mean() > 0.9
    assert result.certificate.lower > 0.85


def test_rows_that_stopped_a_run_do_not_certify_the_next(tmp_path):
    path = tmp_path / "run"
    ec.copy_classifier(disc, ec.Space.normal(2), out=path, target=0.8, **SMALL)
    result = ec.refresh(path, moved, budget=200, check=50, schedule=steps(60), target=0.6)
    old, new = (ledger.read_answers(folder / ledger.LEDGER) for folder in (path, tmp_path / "run-refreshed"))
    was = {row.tobytes() for row in old["certificate"][0]}
    assert not any(row.tobytes() in was for row in new["certificate"][0])
    assert result.refreshed["answers"]["rows"] == 0
    assert result.stopped == "target"


def test_what_cannot_be_refreshed_is_refused(finished, tmp_path):
    ec.load(finished).save(tmp_path / "saved")
    with pytest.raises(DirectoryError, match="expected a ledger, found nothing"):
        ec.refresh(tmp_path / "saved", disc)
    with pytest.raises(DirectoryError, match="finished run"):
        ec.refresh(tmp_path / "nothing", disc)
    with pytest.raises(OriginalError):
        ec.copy_classifier(
            ec.Original(lambda rows: 1 / 0 if len(rows) < 200 else disc(rows)),
            ec.Space.normal(2),
            out=tmp_path / "half",
            **SMALL,
        )
    with pytest.raises(DirectoryError, match="one that was interrupted"):
        ec.refresh(tmp_path / "half", disc)
    with pytest.raises(SpaceError, match="3 columns"):
        ec.refresh(finished, ec.Original(disc, d=3))
    with pytest.raises(SettingError, match="at least the 300 rows of the check, found 100"):
        ec.refresh(finished, disc, budget=100)
    frame = pd.DataFrame({"x0": [0.0], "x1": [1.0], "label": [True]})
    frame.to_csv(tmp_path / "answers.csv", index=False)
    with pytest.raises(SettingError, match="stored answers"):
        ec.refresh(finished, ec.open_original(str(tmp_path / "answers.csv")))
    assert not (finished.parent / "run-refreshed").exists()


def test_regions_name_where_the_flips_are(rng):
    frame = pd.DataFrame({"age": rng.integers(18, 80, 500), "plan": rng.choice(["basic", "plus", "pro"], 500)})
    space = ec.Space.from_data(frame)
    rows = space.sample(3000, rng)
    shown = space.present(rows)
    flipped = ((shown["age"] > 60) & (shown["plan"] == "pro")).to_numpy()
    (found,) = regions(space, rows, flipped, 0.95)
    found_on = stream(0, Stream.HALVES).permutation(len(rows)) % 2 == 0
    assert found["flipped"] == found["rows"] == flipped[~found_on].sum()
    assert "plan is pro" in found["where"]
    assert "age > 60" in found["where"]
    assert regions(space, rows, np.zeros(3000, bool), 0.95) == []
    assert regions(space, rows, rng.random(3000) < 0.01, 0.95) == []


def test_flips_and_mistakes_are_counted():
    old, new = np.array(["a", "a", "b", "b"]), np.array(["a", "b", "b", "a"])
    found = answers_flipped(old, new)
    assert (found["rows"], found["flipped"]) == (4, 2)
    assert {(one["old"], one["new"], one["n"]) for one in found["became"]} == {("a", "b", 1), ("b", "a", 1)}
    wrong = mistakes(new, before=old, after=np.array(["a", "b", "b", "b"]))
    assert (wrong["rows"], wrong["before"], wrong["after"]) == (4, 2, 1)
    assert wrong["by_class"][0] == {"label": "a", "rows": 2, "before": 1, "after": 1}


def command(folder, *arguments):
    return run_command("refresh", *arguments, cwd=folder)


def test_the_command(finished, tmp_path):
    (tmp_path / "models.py").write_text(
        "import numpy as np\n\n\ndef other(rows):\n    print('noise')\n    return (rows**2).sum(axis=1) < 1.5\n"
    )
    arguments = (finished, "models:other", "--check", "100", "--budget", "150", "--out", tmp_path / "new")
    said = command(tmp_path, *arguments, "--target", "0.9999", "--json")
    assert said.returncode == 1, said.stderr
    assert "at most 150 queries to check and train with" in said.stderr
    document = json.loads(said.stdout)
    assert (document["verdict"], document["certificate"]["n"]) == ("changed", 300)
    assert document["out"] == str(tmp_path / "new")
    assert "What changed in the original" in (tmp_path / "new" / "report.html").read_text()
    assert document["report"] == str(tmp_path / "new" / "report.html")
    missing = command(tmp_path, tmp_path / "none", "models:other")
    assert missing.returncode == 2
    assert "expected a file of a finished run, found nothing" in missing.stderr


@pytest.mark.parametrize("options", [("--certificate-n", "0"), ("--target", "0.8", "--certificate-n", "200")])
def test_the_page_of_a_copy_whose_held_out_rows_have_no_old_answers(tmp_path, options):
    (tmp_path / "models.py").write_text(
        "def left(rows):\n    return rows[:, 0] < 0\n\n\ndef low(rows):\n    return rows[:, 1] < 0\n"
    )
    first = ("copy", "models:left", "--space", "normal:2", "--budget", "200", "--preset", "fast", "--out", "run")
    assert run_command(*first, *options, cwd=tmp_path).returncode == 0
    said = command(tmp_path, "run", "models:low", "--check", "50")
    assert said.returncode == 0, said.stderr
    assert "What changed in the original" in (tmp_path / "run-refreshed" / "report.html").read_text()


def test_a_plan_says_what_it_will_ask(finished):
    refresh = Refresh.of(finished, ec.Original(disc), {})
    assert (refresh.check, refresh.budget, refresh.plan.asked.certificate_n) == (300, 300, 300)
    assert refresh.out == finished.parent / "run-refreshed"
    assert (refresh.plan.sizes, refresh.rounds) == ((45, 21, 30, 44, 65, 95), 6)


KILLED = """
import os
import signal

asked = 0


def other(rows):
    global asked
    asked += len(rows)
    if asked > int(os.environ.get("MOST_ROWS", "1000000")):
        os.kill(os.getpid(), signal.SIGKILL)
    return ((rows - [0.4, 0.0]) ** 2).sum(axis=1) < 1
"""


def test_a_command_that_is_killed_goes_on_to_the_same_bytes(finished, tmp_path):
    (tmp_path / "models.py").write_text(KILLED)

    def ended(out, **more):
        words = "-m", "ectype", "refresh", finished, "models:other", "--check", "100", "--budget", "200"
        command = [sys.executable, *words, "--out", tmp_path / out]
        return subprocess.run(command, cwd=tmp_path, env={**os.environ, **more}, capture_output=True).returncode

    assert ended("whole") == 0
    assert ended("killed", MOST_ROWS="520") == -signal.SIGKILL
    assert not (tmp_path / "killed" / "copy.json").exists()
    assert ended("killed") == 0
    for name in ("copy.safetensors", "copy.json"):
        assert files(tmp_path / "whole")[name] == files(tmp_path / "killed")[name]
    assert ec.load(tmp_path / "killed").family == "blend"
