"""Radial functions: smooth boundaries from few answers."""

import numpy as np
import pytest

from ectype.models import rbf
from ectype.models.base import model_of


def test_they_learn_a_sphere(rng):
    X = rng.normal(size=(600, 5)).astype(np.float32)
    y = ((X**2).sum(axis=1) > 4.35).astype(np.int32)
    model = rbf.fit_radial(X[:300], y[:300], 2, rng)
    assert (model.probabilities(X[300:]).argmax(axis=1) == y[300:]).mean() > 0.85


def test_with_all_rows_as_centres_they_are_kernel_logistic_regression(rng, monkeypatch):
    monkeypatch.setattr(rbf, "STEPS", 2000)
    X, y = rng.normal(size=(80, 3)).astype(np.float32), rng.integers(3, size=80)
    model = rbf.fit_radial(X, y, 3, rng)
    rows, weights = X.astype(float), model.weights.astype(float)
    far = ((rows[:, None] - model.centres) ** 2).sum(axis=2)
    near = np.exp(-model.gamma * far)
    order = [int(np.abs(X - centre).sum(axis=1).argmin()) for centre in model.centres]
    among = near[order] + rbf.APART * np.eye(80)
    slope = near.T @ (model.probabilities(X) - np.eye(3)[y]) + rbf.RIDGE * among @ weights
    np.testing.assert_allclose(slope, 0, atol=2e-3)  # at the likeliest weights, with a ridge on them, it is level


def test_the_usual_steps_come_near_to_the_likeliest_weights(rng, monkeypatch):
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(np.int32)
    usual = rbf.fit_radial(X, y, 2, np.random.default_rng(0)).probabilities(X)
    monkeypatch.setattr(rbf, "STEPS", 2000)
    longer = rbf.fit_radial(X, y, 2, np.random.default_rng(0)).probabilities(X)
    assert (usual.argmax(axis=1) == longer.argmax(axis=1)).mean() > 0.98


def test_rows_beyond_the_most_centres_still_count(rng):
    X = rng.normal(size=(1000, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int32)
    model = rbf.fit_radial(X, y, 2, rng, most=50)
    assert len(model.centres) == 50
    assert (model.probabilities(X).argmax(axis=1) == y).mean() > 0.95


def test_a_model_is_its_state(rng):
    X, y = rng.normal(size=(50, 3)).astype(np.float32), rng.integers(2, size=50)
    model = rbf.fit_radial(X, y, 2, rng)
    about, arrays = model.state()
    again = model_of({"kind": "radial", **about}, arrays, 3, 2)
    np.testing.assert_array_equal(again.probabilities(X), model.probabilities(X))
    for inputs, n_c, parts in (
        (2, 2, arrays),
        (3, 3, arrays),
        (3, 2, {**arrays, "offset": arrays["offset"].astype(float)}),
    ):
        with pytest.raises(ValueError, match="centres"):
            model_of({"kind": "radial", **about}, parts, inputs, n_c)
