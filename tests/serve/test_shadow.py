"""The parallel run: the original is asked too, and its answers compared."""

import csv
import json
import threading
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from in_process_server import tensor

import ectype as ec
from ectype.certificate.bounds import lower_bound
from ectype.errors import OriginalError, OutageError, SettingError
from ectype.serve import ServeSettings
from ectype.serve._inference import InferenceModel
from ectype.serve._shadow import PAIRS, Shadow
from problems import loans

pytestmark = pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")


def offered(shadow, model, inputs):
    asked = model.question(json.dumps({"inputs": inputs}).encode())
    answer = model.answer(asked)
    shadow.offer(asked.rows, answer.codes)
    return [model.copy.classes[code] for code in answer.codes]


def settled(shadow):
    """What came of it, once nothing waits."""
    assert shadow.settled(20)
    return shadow.summary()


@contextmanager
def shadowing(original, copy, pause=5.0, **options):
    settings = ServeSettings(shadow=lambda: ec.Original(original, request_rows=8), **options)
    shadow = Shadow(copy, settings, pause)
    try:
        yield shadow, InferenceModel(copy, "m", "1", 500)
    finally:
        shadow.stop(5)


def matrix(rows):
    return [tensor("inputs", np.ravel(rows).tolist(), "FP64", list(np.shape(rows)))]


def test_disagreements_are_counted_and_written_down(plane, tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 2))
    theirs = np.where(rows[:, 0] > 0, "up", "left")
    path = tmp_path / "log.csv"
    with shadowing(lambda X: np.where(X[:, 0] > 0, "up", "left"), plane, shadow_log=path) as (shadow, model):
        for at in range(0, 50, 10):
            offered(shadow, model, matrix(rows[at : at + 10]))
        found = settled(shadow)
    ours = plane.predict(rows)
    differ = ours != theirs
    n = int(differ.sum())
    assert (found["rows"], found["disagreements"], found["failed"], found["dropped"]) == (50, n, 0, 0)
    assert found["fidelity"] == {"estimate": 1 - n / 50, "lower": lower_bound(50 - n, 50)}
    assert {(p["original"], p["copy"]): p["rows"] for p in found["pairs"]} == (
        pd.Series(list(zip(theirs[differ], ours[differ], strict=True))).value_counts().to_dict()
    )
    with open(path, newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["x0", "x1", "original", "copy"]
    assert [(float(a), float(b), o, c) for a, b, o, c in lines] == [
        (*row, o, c) for row, o, c, d in zip(rows.tolist(), theirs, ours, differ, strict=True) if d
    ]
    with shadowing(lambda X: ["up"] * len(X), plane, shadow_log=path) as (shadow, model):
        offered(shadow, model, matrix([[-1.0, 1.0]]))
        settled(shadow)
    assert path.read_text().splitlines()[-1] == "-1.0,1.0,up,down"
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(SettingError, match="x0"):
        Shadow(plane, ServeSettings(shadow=lambda: ec.Original(len), shadow_log=tmp_path / "other.csv"))


def test_the_original_is_asked_what_the_client_asked(lending):
    """Unknown levels and fractions of whole numbers included, each column in its type of production."""
    seen = []

    def original(frame):
        seen.append(frame)
        return ["grant"] * len(frame)

    frame = loans(3, 5)[0].assign(region=["north", "Atlantis", "south"], jobs=[1.0, np.nan, 2.0])
    cells = {name: [None if pd.isna(v) else v for v in frame[name].astype(object)] for name in frame}
    cells["age"][2] = 30.5
    kinds = {"age": "FP64", "owner": "BOOL", "region": "BYTES", "grade": "BYTES", "employer": "BYTES"}
    with shadowing(original, lending) as (shadow, model):
        offered(shadow, model, [tensor(name, cells[name], kinds.get(name, "FP64")) for name in frame])
        assert settled(shadow)["rows"] == 3
    (asked,) = seen
    assert asked["region"].tolist() == ["north", "Atlantis", "south"]
    assert asked["age"].tolist() == cells["age"]
    assert (
        asked["grade"].dtype == lending.space.present(lending.space.sample(1, np.random.default_rng(0)))["grade"].dtype
    )
    assert asked["jobs"].isna().tolist() == [False, True, False]


def test_rows_beyond_the_limit_are_dropped_and_nobody_waits(plane):
    asked, go_on = threading.Event(), threading.Event()

    def original(rows):
        asked.set()
        assert go_on.wait(20)
        return ["up"] * len(rows)

    with shadowing(original, plane, shadow_rows=20) as (shadow, model):
        offered(shadow, model, matrix(np.zeros((8, 2))))
        assert asked.wait(20)
        for _ in range(3):
            offered(shadow, model, matrix(np.zeros((8, 2))))  # the first still fits
        assert shadow.summary()["dropped"] == 16
        go_on.set()
        assert settled(shadow)["rows"] == 16


def test_a_row_that_the_original_refuses_takes_no_other_with_it(plane, caplog):
    def original(rows):
        if (rows[:, 0] == 3).any():
            raise OriginalError("original", "other rows", "a three")
        return ["up"] * len(rows)

    with shadowing(original, plane) as (shadow, model):
        offered(shadow, model, matrix([[float(j), 0.0] for j in range(8)]))
        found = settled(shadow)
    assert (found["rows"], found["failed"]) == (7, 1)
    assert "a three" in caplog.text


def test_an_original_that_was_out_is_opened_again(plane):
    states = iter([OutageError("original", "an answer", "nothing"), None])

    def opened():
        error = next(states)

        def predict(rows):
            if error:
                raise error
            return ["up"] * len(rows)

        return ec.Original(predict)

    shadow, model = Shadow(plane, ServeSettings(shadow=opened), pause=0.01), InferenceModel(plane, "m", "1", 500)
    offered(shadow, model, matrix([[1.0, 0.0]]))
    assert settled(shadow)["failed"] == 1
    offered(shadow, model, matrix([[1.0, 0.0]]))
    assert settled(shadow)["rows"] == 1
    shadow.stop(5)


def test_rows_answered_before_an_outage_count_as_compared(plane):
    def original(rows):
        if len(rows) > 4:
            raise OriginalError("original", "fewer rows", len(rows))
        if rows[0, 0] >= 4:
            raise OutageError("original", "an answer", "nothing")
        return ["up"] * len(rows)

    with shadowing(original, plane, pause=0.01) as (shadow, model):
        offered(shadow, model, matrix([[float(j), 0.0] for j in range(8)]))
        found = settled(shadow)
    assert (found["rows"], found["failed"]) == (4, 4)


def test_labels_without_end_do_not_fill_the_memory(plane):
    names = iter(range(10**6))
    with shadowing(lambda rows: [f"label {next(names)}" for _ in rows], plane) as (shadow, model):
        for _ in range(5):
            offered(shadow, model, matrix(np.zeros((400, 2))))
        found = settled(shadow)
    assert found["disagreements"] == found["rows"] == 2000
    assert len(found["pairs"]) == PAIRS + 1
