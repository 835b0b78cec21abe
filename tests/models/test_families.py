"""Families as arrays: those of scikit-learn answer exactly what it answered, and nothing else is believed."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ectype._kernel import LEAF
from ectype.models.base import model_of, size_of
from ectype.models.blend import BLEND, FAMILIES
from ectype.models.capacity import Capacity
from ectype.models.families import SINGLE_FAMILIES, FamilyLimits, constant, fit, of_estimator
from ectype.models.trees import Trees, round_down

QUICK = FamilyLimits(effort=Capacity(share=0.2))
PROBLEMS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def problem(name):
    X, y = PROBLEMS[name](return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y


def agrees(model, X, y):
    return (model.probabilities(X).argmax(axis=1) == y).mean()


# What is converted from scikit-learn: families, and classifiers of the user's that become arrays.
CONVERTED = {
    "linear": LogisticRegression(C=10.0, max_iter=1000),
    "tree": DecisionTreeClassifier(random_state=0),
    "RandomForestClassifier": RandomForestClassifier(30, random_state=0),
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier(max_iter=30, early_stopping=False),
}


@pytest.mark.parametrize("family", CONVERTED)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_model_answers_what_scikit_learn_answers(family, name, rng):
    X, y = problem(name)
    fresh = rng.normal(size=(3000, X.shape[1])).astype(np.float32)
    fitted = CONVERTED[family].fit(X, y)
    model = fit(family if family in SINGLE_FAMILIES else of_estimator(CONVERTED[family]), X, y, len(set(y)))
    assert model.kind in ("linear", "trees")
    np.testing.assert_allclose(model.probabilities(fresh), fitted.predict_proba(fresh), atol=1e-5)
    np.testing.assert_array_equal(model.probabilities(fresh).argmax(axis=1), fitted.predict(fresh))


@pytest.mark.parametrize("family", SINGLE_FAMILIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_model_learns_and_answers_a_row_alone_as_among_others(family, name, rng):
    X, y = problem(name)
    out = np.arange(len(X)) % 3 == 0
    model = fit(family, X[~out], y[~out], len(set(y)))
    # Three points below a forest of scikit-learn's, at most; a tree alone is worse than that.
    peer = RandomForestClassifier(100, random_state=0).fit(X[~out], y[~out])
    assert agrees(model, X[out], y[out]) > peer.score(X[out], y[out]) - (0.1 if family == "tree" else 0.03)
    fresh = rng.normal(size=(300, X.shape[1])).astype(np.float32)
    for n in (1, 2, 33):  # however many rows it is asked about
        np.testing.assert_array_equal(model.probabilities(fresh[:n]), model.probabilities(fresh)[:n])


@pytest.mark.parametrize("family", FAMILIES)
def test_classes_that_were_never_seen_have_no_chance(family):
    X, y = problem("iris")
    seen = y != 1
    for keep, codes in ((seen, np.where(y == 0, 1, 3)), (y == 2, np.full(len(y), 2))):
        found = fit(FAMILIES[family], X[keep], codes[keep].astype(np.int32), 5, QUICK).probabilities(X)
        assert found.shape == (len(X), 5)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
        assert set(found.argmax(axis=1)) == set(codes[keep])
        # Functions that are smooth give all classes some probability, and these little.
        never = np.delete(found, np.unique(codes[keep]), axis=1)
        assert never.max() == 0 if family not in ("mlp", BLEND) else never.max() < 0.1


@pytest.mark.parametrize("family", SINGLE_FAMILIES)
def test_a_model_is_its_state(family):
    X, y = problem("wine")
    model = fit(family, X, y, 3, QUICK)
    about, arrays = model.state()
    again = model_of({"kind": model.kind, **about}, arrays, X.shape[1], 3)
    np.testing.assert_array_equal(again.probabilities(X), model.probabilities(X))
    for inputs, n_c in ((2, 3), (X.shape[1], 7)):
        with pytest.raises(ValueError, match=r"trees (whose|with)|weights of shape|parameters for|pieces"):
            model_of({"kind": model.kind, **about}, arrays, inputs, n_c)


def test_a_network_has_pieces_where_they_help_and_limits_leave_room():
    X, y = problem("wine")
    usual = fit("mlp", X, y, 3, QUICK)
    assert usual.pieces is not None
    assert usual.activation == "mish"
    assert usual.mlp.hidden == Capacity().network(*X.shape).hidden
    assert fit("mlp", X, y, 3, replace(QUICK, layers=(5, 3))).mlp.hidden == (5, 3)
    flags = (X > 0).astype(np.float32)  # two values are a piece themselves
    assert fit("mlp", flags, y, 3, QUICK).pieces is None
    tight = [fit("mlp", X, y, 3, replace(QUICK, max_bytes=most)) for most in (20_000, 4_000, 2_000)]
    assert [size_of(model) <= most for model, most in zip(tight, (20_000, 4_000, 2_000), strict=True)] == [True] * 3
    assert [model.pieces is None for model in tight] == [True] * 3
    assert size_of(tight[0]) > size_of(tight[1]) > size_of(tight[2])


def test_limits_are_kept():
    X, y = problem("breast cancer")
    assert (fit("tree", X, y, 2, FamilyLimits(max_leaves=3)).feature == LEAF).sum() == 3
    roomy = fit("tree", X, y, 2, FamilyLimits(max_bytes=10**15))  # more than there is memory for
    assert (roomy.feature == LEAF).sum() == (fit("tree", X, y, 2).feature == LEAF).sum()
    stump = fit("tree", X, y, 2, FamilyLimits(max_depth=1))
    assert len(stump.feature) == 3
    assert len(fit("boosting", X, y, 2, FamilyLimits(max_leaves=2)).feature) <= 200 * 3
    assert depth(fit("boosting", X, y, 2, FamilyLimits(max_depth=2))) == 2
    forest = fit("forest", X, y, 2, FamilyLimits(max_leaves=5, max_depth=3))
    assert depth(forest) == 3
    assert max(np.diff([*forest.roots, len(forest.feature)])) <= 2 * 5 - 1


def depth(trees):
    """How far down the lowest leaf is."""
    level = np.zeros(len(trees.feature), int)
    for node in np.flatnonzero(trees.feature != LEAF):  # children come after their node
        level[[trees.left[node], trees.right[node]]] = level[node] + 1
    return level.max()


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
