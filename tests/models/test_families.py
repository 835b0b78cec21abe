"""Families beside networks: as arrays they answer exactly what scikit-learn answered, and nothing else is believed."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from understudy.models.base import model_of
from understudy.models.families import FITTED, Limits, constant, fit
from understudy.models.trees import LEAF, Trees, round_down

PROBLEMS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def problem(name):
    X, y = PROBLEMS[name](return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y


@pytest.mark.parametrize("family", FITTED)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_model_answers_what_scikit_learn_answers(family, name, rng):
    X, y = problem(name)
    fresh = rng.normal(size=(3000, X.shape[1])).astype(np.float32)
    fitted = FITTED[family].fitted(X, y, Limits(), 0, len(set(y)))
    model = FITTED[family].model(fitted, len(set(y)))
    np.testing.assert_allclose(model.probabilities(fresh), fitted.predict_proba(fresh), atol=1e-5)
    np.testing.assert_array_equal(model.probabilities(fresh).argmax(axis=1), fitted.predict(fresh))
    for n in (1, 2, 33):  # however many rows it is asked about
        np.testing.assert_array_equal(model.probabilities(fresh[:n]), model.probabilities(fresh)[:n])


@pytest.mark.parametrize("family", FITTED)
def test_classes_that_were_never_seen_have_no_chance(family):
    X, y = problem("iris")
    seen = y != 1
    for keep, codes in ((seen, np.where(y == 0, 1, 3)), (y == 2, np.full(len(y), 2))):
        found = fit(family, X[keep], codes[keep], 5).probabilities(X)
        assert found.shape == (len(X), 5)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert set(np.flatnonzero(found.max(axis=0) > 0)) == set(codes[keep])


@pytest.mark.parametrize("family", FITTED)
def test_a_model_is_its_state(family):
    X, y = problem("wine")
    model = fit(family, X, y, 3)
    about, arrays = model.state()
    again = model_of({"kind": model.kind, **about}, arrays, X.shape[1], 3)
    np.testing.assert_array_equal(again.probabilities(X), model.probabilities(X))
    for inputs, n_c in ((2, 3), (X.shape[1], 7)):
        with pytest.raises(ValueError, match=r"trees (whose|with)|weights of shape"):
            model_of({"kind": model.kind, **about}, arrays, inputs, n_c)


def test_limits_are_kept():
    X, y = problem("breast cancer")
    assert (fit("tree", X, y, 2, Limits(max_leaves=3)).feature == LEAF).sum() == 3
    stump = fit("tree", X, y, 2, Limits(max_depth=1))
    assert len(stump.feature) == 3
    assert len(fit("boosting", X, y, 2, Limits(max_leaves=2)).feature) <= 200 * 3


def test_thresholds_send_every_float32_where_they_sent_it(rng):
    exact = rng.normal(size=1000)
    rounded = round_down(exact)
    assert rounded.dtype == np.float32
    for near in (rounded, np.nextafter(rounded, np.float32(np.inf)), np.nextafter(rounded, np.float32(-np.inf))):
        np.testing.assert_array_equal(near <= rounded, near.astype(float) <= exact)


@pytest.mark.parametrize(
    "damage",
    [
        {"left": [0, 0, 0]},  # a circle
        {"right": [3, 0, 0]},  # a node that is not there
        {"feature": [7, LEAF, LEAF]},  # an input that is not there
        {"roots": [-1]},
        {"outputs": [1]},
        {"roots": []},
        {"threshold": [0.0]},
    ],
)
def test_trees_that_lead_nowhere_are_refused(damage):
    stump = {
        "feature": [0, LEAF, LEAF],
        "threshold": [0.5, 0, 0],
        "left": [1, 0, 0],
        "right": [2, 0, 0],
        "values": [[0, 0], [1, 0], [0, 1]],
        "roots": [0],
        "outputs": [0],
        "base": [0, 0],
    }
    about = {"kind": "trees", "link": "shares"}
    whole = {name: np.array(numbers) for name, numbers in stump.items()}
    assert model_of(about, whole, 1, 2).probabilities(np.array([[0.0], [1.0]])).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="trees"):
        model_of(about, {**whole, **{name: np.array(numbers) for name, numbers in damage.items()}}, 1, 2)
    with pytest.raises(ValueError, match="nowhere"):
        model_of({**about, "link": "guess"}, whole, 1, 2)
    with pytest.raises(ValueError, match="of kind 'pickle'"):
        model_of({"kind": "pickle"}, whole, 1, 2)


def test_what_always_answers_alike():
    assert isinstance(constant(1, 3), Trees)
    assert constant(1, 3).probabilities(np.zeros((4, 2))).argmax(axis=1).tolist() == [1, 1, 1, 1]
