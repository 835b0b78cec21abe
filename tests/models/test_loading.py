"""Models are rebuilt only from numbers: none that are infinite or none, and nodes that make up trees."""

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from sklearn.svm import SVC

from ectype._kernel import LEAF
from ectype.algorithm.mlp import MLP, Network
from ectype.models.base import check_answers, model_of
from ectype.models.linear import Linear
from ectype.models.sklearn_model import SklearnModel
from make_copies import KINDS, made
from problems import problem


@pytest.fixture(scope="module", params=KINDS)
def state(request):
    """The state of a model of every family."""
    X, y, classes = problem("moons")
    model = made(request.param, np.asarray(X, np.float32), y, len(classes))
    about, arrays = model.state()
    return {"kind": model.kind, **about}, arrays, X.shape[1], len(classes)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_infinite_or_none_are_refused_in_every_array(state, wrong):
    about, arrays, inputs, n_c = state
    tried = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]
    assert tried
    for name in tried:
        array = arrays[name].copy()
        array[...] = wrong
        with pytest.raises(ValueError, match=f"{name} with numbers that are infinite or none"):
            model_of(about, {**arrays, name: array}, inputs, n_c)


def nothing_in(model, name):
    array = np.array(getattr(model, name), float)
    array[...] = np.nan
    setattr(model, name, array)


def nothing_in_its_tree(model, part):
    found = list(model._tree.__getstate__())
    found[part] = np.full_like(found[part], np.nan)
    model._tree.__setstate__(tuple(found))


def nothing_at_its_edges(model):
    model[0].bin_edges_[0] = np.full_like(model[0].bin_edges_[0], np.nan)


@pytest.mark.parametrize(
    ("make", "spoil"),
    [
        (lambda: KNeighborsClassifier(3, algorithm="brute"), lambda model: nothing_in(model, "_fit_X")),
        (lambda: KNeighborsClassifier(3, algorithm="kd_tree"), lambda model: nothing_in_its_tree(model, 0)),
        (lambda: KNeighborsClassifier(3, algorithm="ball_tree"), lambda model: nothing_in_its_tree(model, 3)),
        (lambda: SVC(probability=True), lambda model: nothing_in(model, "_probA")),
        (lambda: SVC(probability=True), lambda model: nothing_in(model, "_gamma")),
        (lambda: make_pipeline(StandardScaler(), KNeighborsClassifier()), lambda model: nothing_in(model[0], "scale_")),
        (lambda: make_pipeline(KBinsDiscretizer(3), LogisticRegression()), nothing_at_its_edges),
    ],
    ids=["rows", "search tree", "bounds", "sigmoid", "kernel", "scale", "bins"],
)
@pytest.mark.filterwarnings("ignore")
def test_estimators_that_answer_by_numbers_that_are_none_are_refused(make, spoil):
    """Without an error of scikit-learn's: to every row in the same way."""
    X, y, classes = problem("moons")
    model = make().fit(X, y)
    about, whole = SklearnModel(model, len(classes)).state()
    about = {"kind": "estimator", **about}
    check_answers(model_of(about, whole, X.shape[1], len(classes)), X.shape[1])
    spoil(model)
    spoiled = np.frombuffer(skops.io.dumps(model), np.uint8)
    with pytest.raises(ValueError, match="numbers"):
        model_of(about, {"skops": spoiled}, X.shape[1], len(classes))


def test_what_a_family_makes_answers_in_numbers(state):
    about, arrays, inputs, n_c = state
    check_answers(model_of(about, arrays, inputs, n_c), inputs)


def test_a_class_may_be_ruled_out_but_not_all_of_them():
    about, weights = {"kind": "linear"}, np.ones((1, 3))
    ruled_out = {"weights": weights, "biases": np.array([0.0, -np.inf, 0.0])}
    found = model_of(about, ruled_out, 1, 3)
    check_answers(found, 1)
    assert found.probabilities(np.ones((1, 1))).round(3).tolist() == [[0.5, 0.0, 0.5]]
    with pytest.raises(ValueError, match="biases with numbers that are infinite or none"):
        model_of(about, {"weights": weights, "biases": np.full(3, -np.inf)}, 1, 3)


@pytest.mark.parametrize(
    "model",
    [
        Linear(np.full((2, 2), 1e308), np.zeros(2)),
        Network(MLP(2, (3,), 2), np.full(17, 3e38, np.float32)),
    ],
    ids=["linear", "network"],
)
def test_finite_numbers_that_overflow_are_refused(model):
    with pytest.raises(ValueError, match="a model whose probabilities are infinite or none"):
        check_answers(model, 2)


def chain(nodes, roots):
    """Nodes in a chain: the left child of each is the next, the right one a leaf of its own."""
    inner = nodes // 2
    at = np.arange(nodes)
    below = at < inner
    return {
        "feature": np.where(below, 0, LEAF).astype(np.int32),
        "threshold": np.where(below, at, 0).astype(np.float32),
        "left": np.where(below, at + 1, 0).astype(np.int32),
        "right": np.where(below, at + inner + 1, 0).astype(np.int32),
        "values": np.where(at[:, None] % 2 == [0, 1], 1.0, 0.0),
        "roots": np.arange(roots, dtype=np.int32),
        "outputs": np.zeros(roots, np.int32),
        "base": np.zeros(2),
    }


TREES = {"kind": "trees", "link": "shares"}


def test_trees_that_share_their_nodes_are_refused():
    """20,000 trees that are parts of one chain would be walked down 400 million times for a row."""
    with pytest.raises(ValueError, match="trees with nodes that lead nowhere"):
        model_of(TREES, chain(60_001, 20_000), 1, 2)


def test_a_tree_of_any_depth_is_one():
    tree = model_of(TREES, chain(60_001, 1), 1, 2)
    check_answers(tree, 1)
    assert tree.probabilities(np.array([[-1.0], [0.5]], np.float32)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("name", "at", "to"),
    [
        ("right", 0, 1),  # both children are one
        ("right", 1, 3),  # the child of another
        ("left", 2, 2),  # its own child
        ("left", 0, 9),  # beyond all nodes
        ("values", 6, -1.0),  # less than nothing
        ("values", 6, 0.0),  # no share of anything
    ],
)
def test_what_is_no_tree_is_refused(name, at, to):
    arrays = chain(7, 1)
    model_of(TREES, arrays, 1, 2)
    arrays[name][at] = to
    with pytest.raises(ValueError, match=r"trees (with nodes that lead nowhere|whose values add up to no probab)"):
        model_of(TREES, arrays, 1, 2)
