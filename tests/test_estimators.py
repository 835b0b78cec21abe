"""The scikit-learn face, held to all of scikit-learn's own checks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import understudy as us

pytestmark = pytest.mark.usefixtures("small_lessons")
TREE = DecisionTreeClassifier(random_state=0)
QUICK = {"layers": (16,), "certificate_n": 0, "random_state": 0}
CHECKED = [
    us.SequentialCopy(TREE, budget=200, certificate_n=0, random_state=0),  # a blend; the others are networks
    us.SequentialCopy(TREE, iterations=3, preset="fast", **QUICK),
    us.SinglePassCopy(TREE, budget=300, preset="fast", **QUICK),
    us.OnlineCopy(TREE, iterations=3, preset="fast", **QUICK),
]


@pytest.mark.filterwarnings("ignore::understudy.errors.UnderstudyWarning")  # some checks have one class only
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_an_unfitted_original_is_cloned_and_fitted(iris):
    X, y = iris
    copy = us.SequentialCopy(SVC(), iterations=8, schedule=200, random_state=0).fit(X, y)
    assert not hasattr(copy.original, "support_")
    assert us.metrics.fidelity(copy.original_.predict(X), copy.predict(X)) > 0.94
    assert copy.certificate_.lower > 0.85
    assert len(copy.history_) == 8


def test_a_frozen_original_is_only_queried_and_needs_no_y(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    original = SVC().fit(X, names)
    copy = us.SinglePassCopy(FrozenEstimator(original), budget=1000, random_state=0).fit(X)
    assert us.metrics.fidelity(original.predict(X), copy.predict(X)) > 0.94
    opened = us.OnlineCopy(us.Original(original.predict, original.classes_), iterations=3, **QUICK).fit(X)
    assert opened.classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_an_unfitted_original_needs_y(iris):
    with pytest.raises(ValueError, match="requires y to be passed"):
        us.SequentialCopy(SVC()).fit(iris[0])


def test_frames_go_to_the_original_as_frames(iris):
    frame = pd.DataFrame(iris[0], columns=["a", "b", "c", "d"])
    copy = us.SequentialCopy(SVC(), iterations=2, schedule=20, **QUICK).fit(frame, iris[1])
    assert copy.original_.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert copy.space_.names == ("a", "b", "c", "d")


def test_it_works_in_a_pipeline_and_a_search(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), us.SinglePassCopy(TREE, budget=300, preset="fast", schedule=50, **QUICK))
    search = GridSearchCV(pipeline, {"singlepasscopy__budget": [100, 600]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6
    assert clone(search.best_estimator_) is not None


def test_same_random_state_same_copy(iris):
    runs = [us.OnlineCopy(TREE, iterations=2, schedule=10, **QUICK).fit(*iris).predict_proba(iris[0]) for _ in range(2)]
    np.testing.assert_array_equal(*runs)
