"""A ledger to look into: what was asked by round and over time; directories that are checked, merged and compacted."""

import json
import os
import shutil

import numpy as np
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype._common.manifest import Key
from ectype.errors import DirectoryError, IntegrityError, PriorAnswersError
from ectype.ledger import LEDGER, Ledger, read_timeline, verify_ledger
from ectype.queries import merge_answers
from ectype.runs.compact import compact
from problems import ask_through, disc

pytestmark = pytest.mark.usefixtures("small_lessons")
PLANE = ec.Space.normal(2)
QUICK = {"budget": 200, "certificate_n": 100, "schedule": ec.training.steps(100)}


def asked(path, function=disc, space=PLANE, name="disc", seed=0):
    ec.copy_classifier(ec.Original(function, name=name), space, out=path, seed=seed, **QUICK)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_lessons):
    return asked(tmp_path_factory.mktemp("care") / "run")


@pytest.fixture
def run(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def damage(path, row):
    """Flip a bit of a row."""
    content = bytearray(path.read_bytes())
    content[content.find(row.tobytes())] ^= 1
    path.write_bytes(content)


def test_rounds_are_those_of_the_history_and_bins_hold_everything(finished):
    found, result = read_timeline(finished / LEDGER), ec.load(finished)
    queries = np.diff([0, *(one.queries for one in result.history)])
    assert [one["rows"] for one in found.rounds] == queries.tolist()
    assert found.bin == "minute"
    assert sum(one.rows for one in found.bins) == ledger.summarise_ledger(finished / LEDGER).asked == 306
    assert sum(one.answered for one in found.bins) == 306


def test_time_is_told_in_days_where_it_was_long(tmp_path, monkeypatch):
    now = [1.7e9]
    monkeypatch.setattr("ectype.ledger._batch.time.time", lambda: now[0])
    with Ledger(tmp_path / LEDGER, {}, PLANE) as book:
        for day in range(5):
            now[0] = 1.7e9 + 86400 * day
            ask_through(book, ec.Original(disc), PLANE, PLANE.sample(3 + day, np.random.default_rng(day)), "traffic")
    found = read_timeline(tmp_path / LEDGER)
    assert (found.bin, [one.rows for one in found.bins]) == ("day", [3, 4, 5, 6, 7])
    assert found.bins[0].start == "2023-11-14T00:00:00+00:00"
    assert found.rounds == []


def test_the_command_shows_all_of_it(run, tmp_path):
    shown = run_command("ledger", "run", "--price", "2", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "round 0" in shown.stdout
    assert "UTC, a minute" in shown.stdout
    found = json.loads(run_command("ledger", "--json", "run", "--price", "2", cwd=tmp_path).stdout)
    assert found["cost_by_purpose"] == {"certificate": 200.0, "repeat": 12.0, "training": 400.0}
    assert found == json.loads(run_command("ledger", "show", "run", "--price", "2", "--json", cwd=tmp_path).stdout)
    assert [one["round"] for one in found["rounds"]] == [*range(len(found["rounds"]))]


def test_verify_finds_damage(run, tmp_path):
    found = json.loads(run_command("ledger", "verify", "run", "--json", cwd=tmp_path).stdout)
    assert (found["checked"], found["rows"], found["anchors"]) == (True, 306, ["run.json"])
    assert "all agree, as run.json says" in run_command("ledger", "verify", "run", cwd=tmp_path).stdout
    damage(run / LEDGER, ledger.read_answers(run / LEDGER)["training"][0][0])
    with pytest.raises(IntegrityError, match="table requests"):
        verify_ledger(run / LEDGER)
    assert run_command("ledger", "verify", "run", cwd=tmp_path).returncode == 2


def test_a_compacted_run_has_the_same_answers_and_is_as_well_checked(run):
    before, copy = ledger.read_answers(run / LEDGER), (run / "copy.safetensors").read_bytes()
    summed = ledger.summarise_ledger(run / LEDGER)
    found = compact(run)
    assert found.after < found.before
    assert found.after == os.path.getsize(run / LEDGER)
    assert found.rounds == len(ec.load(run).history) - 1
    assert ledger.summarise_ledger(run / LEDGER) == summed
    after = ledger.read_answers(run / LEDGER)
    assert before.keys() == after.keys()
    for purpose, (rows, said) in before.items():
        np.testing.assert_array_equal(rows, after[purpose][0])
        np.testing.assert_array_equal(said.labels, after[purpose][1].labels)
    assert verify_ledger(run / LEDGER).anchors == ["run.json"]
    (run / "run.json").unlink()  # the copy is made again, without a query

    def never(rows):
        raise AssertionError("asked")

    asked(run, never)
    assert (run / "copy.safetensors").read_bytes() == copy
    damage(run / LEDGER, before["training"][0][0])
    with pytest.raises(IntegrityError):
        verify_ledger(run / LEDGER)


def test_a_signed_run_is_signed_again(run, monkeypatch):
    result = ec.load(run)
    monkeypatch.setenv("ECTYPE_SIGNING_KEY", "k" * 64)
    (run / "run.json").unlink()
    result.save(run, Key.needed())
    assert run_command("ledger", "compact", run).returncode == 0
    assert ec.load(run).signature == "checked, and valid"
    monkeypatch.delenv("ECTYPE_SIGNING_KEY")
    assert run_command("ledger", "compact", run).returncode == 2


def test_a_run_that_was_killed_is_not_compacted(run):
    (run / f"{LEDGER}-head").write_text("")
    with pytest.raises(DirectoryError, match="at work, or was killed"):
        compact(run)


def test_merged_answers_are_given_to_a_run(run, tmp_path):
    other = asked(tmp_path / "other", seed=1)
    done = run_command("ledger", "merge", run, other, "--out", tmp_path / "all", "--json")
    assert json.loads(done.stdout) == {"out": str(tmp_path / "all"), "answers": 612, "left_out": {}}
    assert verify_ledger(tmp_path / "all" / LEDGER).rows == 612
    assert ledger.summarise_ledger(tmp_path / "all" / LEDGER).by_purpose == {
        "certificate": 200,
        "repeat": 12,
        "training": 400,
    }
    result = ec.copy_classifier(ec.Original(disc, name="disc"), PLANE, answers=tmp_path / "all", **QUICK)
    assert result.given["used"] == 600
    assert result.history[0].queries == 0  # drawn rows, so that none more is drawn at random


def test_what_does_not_go_together_is_refused_and_nothing_is_written(run, tmp_path):
    with pytest.raises(DirectoryError, match="original: expected what"):
        merge_answers([run, asked(tmp_path / "another", name="another")], tmp_path / "all")
    with pytest.raises(PriorAnswersError, match=r"one answer to every row, found x0=.*, x1=.* is (True|False) and "):
        merge_answers([run, asked(tmp_path / "opposite", lambda rows: ~disc(rows))], tmp_path / "all")
    with pytest.raises(DirectoryError, match="a new or empty directory"):
        merge_answers([run], run)
    assert not (tmp_path / "all").exists()


def test_rows_outside_of_the_first_space_are_left_out(run, tmp_path):
    small = asked(tmp_path / "small", space=ec.Space.uniform(-1, 1, 2))
    found = merge_answers([small, run], tmp_path / "all")
    assert found.left_out["values"] > 100
    assert found.answers + found.left_out["values"] == 612
