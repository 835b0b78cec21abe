"""Fitted originals, kept by content; nothing is unpickled but what the cache itself wrote."""

import hashlib
import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from ectype_paper import load, original_cache
from ectype_paper.original_cache import cached_original, content_key, default_folder


@pytest.fixture
def fits(monkeypatch):
    """How often an original was fitted."""
    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    original = original_cache.original
    monkeypatch.setattr(original_cache, "original", counted)
    return calls


@pytest.fixture
def problem():
    return load(None, "iris")


class Harm:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_an_original_is_fitted_once_and_answers_the_same(tmp_path, problem, fits):
    one, two = (cached_original(problem, "linear_svm", tmp_path / "cache") for _ in range(2))
    assert len(fits) == 1
    rows = np.random.default_rng(0).normal(size=(500, 4))
    np.testing.assert_array_equal(one.predict(rows), two.predict(rows))
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("family", ["rbf_svm", "random_forest"])
def test_every_family_has_its_own(tmp_path, problem, fits, family):
    cached_original(problem, "linear_svm", tmp_path)
    assert type(cached_original(problem, family, tmp_path)) is not type(
        cached_original(problem, "linear_svm", tmp_path)
    )
    assert len(fits) == 2


def test_the_key_is_of_all_that_matters_and_of_nothing_else(problem, monkeypatch):
    key = content_key(problem)
    assert key == content_key(replace(problem, X_test=problem.X_test[:1], source="folder"))
    assert key == content_key(problem, "random_forest")  # iris in Table 3
    others = [
        content_key(replace(problem, X_train=problem.X_train + 1e-9)),
        content_key(replace(problem, y_train=problem.y_train[::-1])),
        content_key(problem, "rbf_svm"),
    ]
    monkeypatch.setitem(original_cache.FAMILIES["random_forest"].grid, "max_depth", [3])
    others.append(content_key(problem))
    monkeypatch.setattr(original_cache, "_versions", lambda: {"numpy": "0.0"})
    others.append(content_key(problem))
    assert len({key, *others}) == 6


def test_a_changed_file_is_never_loaded_and_fitted_again(tmp_path, problem, fits):
    cached_original(problem, "linear_svm", tmp_path)
    (path,) = tmp_path.glob("*.joblib")
    for content in (pickle.dumps(Harm(tmp_path / "harmed")), b"", path.read_bytes()[:-1]):
        path.write_bytes(content)
        assert cached_original(problem, "linear_svm", tmp_path).predict(problem.X_test).shape == (30,)
    assert not (tmp_path / "harmed").exists()
    assert len(fits) == 4
    assert hashlib.sha256(path.read_bytes()).hexdigest() == path.with_suffix(".sha256").read_text().strip()


def test_a_hash_that_is_missing_or_strange_means_fitting_again(tmp_path, problem, fits):
    cached_original(problem, "linear_svm", tmp_path)
    (path,) = tmp_path.glob("*.sha256")
    path.unlink()
    cached_original(problem, "linear_svm", tmp_path)
    path.write_bytes(b"\xff\xfe")
    cached_original(problem, "linear_svm", tmp_path)
    assert len(fits) == 3


def test_a_directory_that_others_may_write_to_is_not_used(tmp_path, problem, fits):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    for _ in range(2):
        cached_original(problem, "linear_svm", shared)
    assert len(fits) == 2
    assert not list(shared.iterdir())


def test_without_room_there_is_no_cache_and_no_error(tmp_path, problem, fits):
    (tmp_path / "file").write_text("in the way")
    for _ in range(2):
        cached_original(problem, "linear_svm", tmp_path / "file" / "cache")
    assert len(fits) == 2


def test_where_it_is(tmp_path, monkeypatch):
    monkeypatch.delenv("ECTYPE_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "ectype" / "originals"
    monkeypatch.setenv("ECTYPE_NO_CACHE", "1")
    assert default_folder() is None
