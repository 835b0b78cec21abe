"""An original in Python that is asked on workers: order, ledger and errors as without them."""

import os
import sqlite3
import sys

import numpy as np
import pytest

import ectype as ec
from ectype.errors import OriginalError, SettingError
from ectype.original.worker_pool import OriginalReference, with_workers
from ectype.workers._process_pool import ProcessPool
from optional_packages import needs

MODULE = """
import os
import numpy as np
import pandas as pd
from sklearn.naive_bayes import GaussianNB

pids = set()

def quadrant(rows):
    return np.where(np.asarray(rows)[:, 0] > 0, np.where(np.asarray(rows)[:, 1] > 0, "upper right", "right"), "left")

def who(rows):
    return np.full(len(rows), os.getpid())

def frail(rows):
    if (np.asarray(rows)[:, 0] > 2.5).any():
        os._exit(1)
    return np.asarray(rows)[:, 0] > 0

def refuses(rows):
    raise ValueError("no such rows")

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
bayes = GaussianNB().fit(X, (X ** 2).sum(axis=1) < 1)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("heavy")
    (folder / "heavymodels.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


@pytest.fixture(scope="module")
def opened(module):
    """Originals by name, that the same two workers answer for."""
    with ProcessPool(2) as workers:

        def open_one(name):
            named = OriginalReference(f"heavymodels:{name}", None, (), tuple(filter(None, sys.path)))
            crew = with_workers(ec.open_original(named.spec), named, workers)
            crew.predict.__self__._started = True
            return crew

        yield open_one


def requests(folder):
    """What the ledger holds, without times."""
    with sqlite3.connect(f"file:{folder}/ledger.sqlite?mode=ro", uri=True) as ledger:
        asked = ledger.execute("SELECT id, purpose, n, rows FROM requests ORDER BY id").fetchall()
        return asked, ledger.execute("SELECT request, codes FROM answers ORDER BY rowid").fetchall()


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_ledger_and_copy_are_those_of_one_process(opened, tmp_path, engine):
    settings = {"budget": 200, "certificate_n": 100, "preset": "fast"}
    space = ec.Space.normal(2)
    ec.copy_classifier(ec.open_original("heavymodels:quadrant"), space, **settings, out=tmp_path / "alone")
    if engine == "dask":
        needs("distributed")
        original = ec.open_original("heavymodels:quadrant", engine="dask", workers=2)
    else:
        original = opened("quadrant")
    ec.copy_classifier(original, space, **settings, out=tmp_path / "with_workers")
    if engine == "dask":
        original.predict.__self__._engine.__exit__()
    assert requests(tmp_path / "with_workers") == requests(tmp_path / "alone")
    for name in ("copy.safetensors", "copy.json"):
        assert (tmp_path / "with_workers" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_workers_answer_in_order_and_this_process_does_not(opened):
    rows, alone = np.random.default_rng(0).normal(size=(101, 2)), ec.open_original("heavymodels:quadrant")
    np.testing.assert_array_equal(opened("quadrant").answer(rows), alone.answer(rows))
    assert len(opened("quadrant").answer(rows[:1])) == 1
    answers = opened("who").answer(rows)
    assert len(set(answers.tolist())) == 2
    assert os.getpid() not in answers


def test_scores_come_from_workers_too(opened):
    rows = np.random.default_rng(1).normal(size=(50, 2))
    found = opened("bayes").with_scores().query(rows)
    expected = ec.open_original("heavymodels:bayes").with_scores().query(rows)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


def test_a_worker_that_dies_is_an_error_and_is_replaced(opened):
    original, rows = opened("frail"), np.zeros((20, 2))
    with pytest.raises(OriginalError, match="expected a worker that answers, found one that has died"):
        original.answer(np.vstack([rows, [[3.0, 0.0]]]))
    assert not original.answer(rows).any()


def test_what_it_raises_is_told(opened):
    with pytest.raises(OriginalError, match="ValueError: no such rows"):
        opened("refuses").answer(np.zeros((3, 2)))


def test_options_that_do_not_fit(module):
    with pytest.raises(SettingError, match="engine: expected local or dask, since workers is given, found none"):
        ec.open_original("heavymodels:quadrant", workers=2)
    with pytest.raises(SettingError, match="engine: expected one of 'local', 'dask', found 'ray'"):
        ec.open_original("heavymodels:quadrant", engine="ray")
    with pytest.raises(SettingError, match=r"engine: expected .*cmd"):
        ec.open_original("cmd:true", engine="local")
