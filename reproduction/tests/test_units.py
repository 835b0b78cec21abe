"""One unit: what its record holds, and that the same unit gives the same record."""

import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

import ectype as ec
from ectype.errors import SettingError
from ectype.metrics import convergence, efficiency
from ectype.workers._base import ONE_THREAD
from ectype_paper import load
from ectype_paper.units import DELTAS, METHODS, Unit, UnitTask, copy_arguments, paper_settings, run, subject

SETTINGS = paper_settings(iterations=3, epochs=20)


def task(method="sequential", delta=None, repetition=0, space="normal", settings=SETTINGS, digest=None):
    unit = Unit("iris", space, method, delta, repetition)
    return UnitTask(unit, settings, None, digest or load(None, "iris").digest)


@pytest.fixture(scope="module")
def records():
    return {method: run(task(method, 1e-3 if method == "sequential" else None)) for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
def test_a_record_is_json_and_complete(records, method):
    record = records[method]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    rounds = 1 if method == "one-shot" else 3
    for name in ("accuracies", "fidelities", "kept", "rhos", "test_rhos", "test_risks", "moved", "lambdas", "times"):
        assert len(record[name]) == rounds
    assert record["accuracy"] == pytest.approx(record["accuracies"][-1], abs=1e-5)
    assert record["fidelity"] == pytest.approx(record["fidelities"][-1], abs=1e-5)
    assert 0.3 < record["fidelity_fresh"] <= 1
    assert (record["queries"], record["family"], record["source"]) == (300, "random_forest", "built-in")
    assert record["seconds"] > 0
    assert record["versions"]["ectype"] == ec.__version__


def test_the_metrics_are_the_papers(records):
    assert (records["one-shot"]["conv"], records["one-shot"]["eff"]) == (None, None)
    assert records["pure"]["kept"] == [100, 200, 300]
    assert records["pure"]["eff"] == 0
    assert records["online"]["kept"] == [100, 100, 100]
    assert records["online"]["eff"] == 0.5
    for record in (records["sequential"], records["pure"], records["online"]):
        assert record["conv"] == pytest.approx(convergence(record["accuracies"]), abs=1e-5)
        assert record["eff"] == efficiency(record["kept"], 100)


def test_fidelity_is_agreement_with_the_original_and_accuracy_with_the_labels():
    problem = load(None, "iris")
    original = subject("iris", None, problem.digest).original
    record = run(task("pure", repetition=3))
    result = ec.copy_classifier(original, ec.Space.normal(4), **copy_arguments(SETTINGS, "pure", None, seed=3))
    found = result.copy.predict(problem.X_test)
    assert record["accuracy"] == np.mean(found == problem.y_test)
    assert record["fidelity"] == np.mean(found == original.predict(problem.X_test))
    assert record["original_accuracy"] == np.mean(original.predict(problem.X_test) == problem.y_test)


def test_the_repetition_seeds_the_run(records):
    again, other = run(task("sequential", 1e-3)), run(task("sequential", 1e-3, repetition=1))
    timeless = [{**found, "seconds": 0, "cpu": 0, "times": []} for found in (again, records["sequential"])]
    assert timeless[0] == timeless[1]
    assert other["rhos"] != again["rhos"]
    assert other["original_accuracy"] == again["original_accuracy"]  # not the split, and not the original


def test_the_risk_on_test_rows_lies_between_the_squares_that_it_is_the_mean_of(records):
    for record in records.values():
        for mean, squares, agreed in zip(record["test_rhos"], record["test_risks"], record["fidelities"], strict=True):
            assert mean**2 <= squares <= mean
            assert squares >= (1 - agreed) / 3 / 2  # a wrong answer has rho^2 of at least 1 / (2 n_c)


@pytest.mark.parametrize(("more", "lambdas"), [({"memory": "none"}, [0, 0, 0]), ({"memory": 0.05}, [0, 0.05, 0.05])])
def test_the_weight_of_the_memory_term_is_part_of_a_unit(more, lambdas):
    one = task("sequential", 1e-3)
    assert run(replace(one, unit=replace(one.unit, **more)))["lambdas"] == lambdas


def test_a_single_pass_of_fewer_points():
    one = task("one-shot")
    found = run(replace(one, unit=replace(one.unit, points=70)))
    assert (found["queries"], found["kept"]) == (70, [70])


def test_a_learned_space(records):
    assert run(task("pure", space="learned"))["rhos"] != records["pure"]["rhos"]


def test_other_data_than_the_driver_has_is_noticed():
    with pytest.raises(SettingError, match=r"iris: expected data with the hash 00000000.* same folder of problems"):
        run(task(digest="0" * 64))


def test_an_original_is_loaded_once_by_a_worker(monkeypatch):
    digest = load(None, "iris").digest
    subject("iris", None, digest)
    monkeypatch.setattr("ectype_paper.units.cached_original", None)
    assert subject("iris", None, digest).problem.name == "iris"


def test_tasks_travel():
    assert pickle.loads(pickle.dumps(task())) == task()
    assert str(task("sequential", 5e-8, 2).unit) == "iris normal sequential delta 5e-08 run 2"
    assert str(task("online").unit) == "iris normal online run 0"


def test_one_thread(monkeypatch):
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)  # put back after the test, also where there was none
    run(task("online"))
    assert {name: os.environ.get(name) for name in ONE_THREAD} == ONE_THREAD


def test_every_setting_of_a_copy_is_said():
    """A default that changes must not change the paper's numbers."""
    import inspect

    asked = set(inspect.signature(ec.copy_classifier).parameters) - {
        "original",
        "space",
        "classes",
        "out",
        "test",
        "rows",
        "rows_share",
        "answers",
    }
    limits = {"max_depth", "max_leaves", "max_bytes", "max_latency", "exclude", "increasing", "decreasing"}
    unsaid = asked - set(copy_arguments(paper_settings(), "sequential", 1e-6, 0)) - limits - {"confidence"}
    assert not unsaid, "say these in paper/settings.py"
    assert len(DELTAS) == 12
    settings = copy_arguments(paper_settings(), "sequential", 1e-6, 0)
    assert (settings["batch"], settings["iterations"], settings["schedule"].epochs) == (100, 30, 1000)
    assert not settings["schedule"].anneal
