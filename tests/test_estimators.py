"""The scikit-learn face, held to all of scikit-learn's own checks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import ectype as ec
from optional_packages import needs

pytestmark = pytest.mark.usefixtures("small_lessons")
TREE = DecisionTreeClassifier(random_state=0)
QUICK = {"layers": (16,), "certificate_n": 0, "random_state": 0}
CHECKED = [
    ec.SequentialCopy(TREE, budget=200, certificate_n=0, random_state=0),  # a blend; the others are networks
    ec.SequentialCopy(TREE, iterations=3, preset="fast", **QUICK),
    ec.SinglePassCopy(TREE, budget=300, preset="fast", **QUICK),
    ec.OnlineCopy(TREE, iterations=3, preset="fast", **QUICK),
]


@pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")  # some checks have one class only
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_an_unfitted_original_is_cloned_and_fitted(iris):
    X, y = iris
    copy = ec.SequentialCopy(SVC(), iterations=8, schedule=200, random_state=0).fit(X, y)
    assert not hasattr(copy.original, "support_")
    assert ec.metrics.fidelity(copy.original_.predict(X), copy.predict(X)) > 0.94
    assert copy.certificate_.lower > 0.85
    assert len(copy.history_) == 8


def test_a_frozen_original_is_only_queried_and_needs_no_y(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    original = SVC().fit(X, names)
    copy = ec.SinglePassCopy(FrozenEstimator(original), budget=1000, random_state=0).fit(X)
    assert ec.metrics.fidelity(original.predict(X), copy.predict(X)) > 0.94
    opened = ec.OnlineCopy(ec.Original(original.predict, original.classes_), iterations=3, **QUICK).fit(X)
    assert opened.classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_an_unfitted_original_needs_y(iris):
    with pytest.raises(ValueError, match="requires y to be passed"):
        ec.SequentialCopy(SVC()).fit(iris[0])


def test_frames_go_to_the_original_as_frames(iris):
    frame = pd.DataFrame(iris[0], columns=["a", "b", "c", "d"])
    copy = ec.SequentialCopy(SVC(), iterations=2, schedule=20, **QUICK).fit(frame, iris[1])
    assert copy.original_.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert copy.space_.names == ("a", "b", "c", "d")


def test_it_works_in_a_pipeline_and_a_search(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), ec.SinglePassCopy(TREE, budget=300, preset="fast", schedule=50, **QUICK))
    search = GridSearchCV(pipeline, {"singlepasscopy__budget": [100, 600]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6
    assert clone(search.best_estimator_) is not None


def test_same_random_state_same_copy(iris):
    runs = [ec.OnlineCopy(TREE, iterations=2, schedule=10, **QUICK).fit(*iris).predict_proba(iris[0]) for _ in range(2)]
    np.testing.assert_array_equal(*runs)


# --- data frames that are more than numbers ---------------------------------------------------------------------------

MIXED = {"preset": "fast", "budget": 300, "certificate_n": 0, "random_state": 0}


def decide(rows):
    return np.where((rows["age"] > 50) & (rows["city"] != "Rome"), "no", "ok")


@pytest.fixture(scope="module")
def people():
    """Words, gaps, dates, flags, and the kinds that pandas has of its own."""
    rng, n = np.random.default_rng(0), 400
    income = rng.normal(3000, 800, n)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, income),
            "city": rng.choice(["Rome", "Bonn", "Nice"], n),
            "member": rng.random(n) < 0.5,
            "plan": pd.Categorical(rng.choice(["a", "b"], n)),
            "trial": pd.array(rng.choice([True, False, None], n), dtype="boolean"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), "D"),
        }
    )


@pytest.fixture(scope="module")
def pipeline(people):
    words, numbers = OneHotEncoder(handle_unknown="ignore"), SimpleImputer()
    columns = make_column_transformer((words, ["city", "plan"]), (numbers, ["age", "income", "member"]))
    return make_pipeline(columns, DecisionTreeClassifier(max_depth=4)).fit(people, decide(people))


@pytest.mark.parametrize("kind", [ec.SequentialCopy, ec.SinglePassCopy, ec.OnlineCopy])
def test_a_frozen_pipeline_is_copied_on_the_frame_that_it_takes(people, pipeline, kind):
    """As `copy_classifier` does, and with the same copy."""
    copy = kind(FrozenEstimator(pipeline), **MIXED).fit(people)
    assert ec.metrics.fidelity(pipeline.predict(people), copy.predict(people)) > 0.9
    assert copy.predict_proba(people).shape == (400, 2)
    seed = int(np.random.RandomState(0).randint(2**31))
    settings = {key: value for key, value in MIXED.items() if key != "random_state"}
    same = ec.copy_classifier(pipeline, ec.Space.from_data(people), method=kind._method, seed=seed, **settings)
    np.testing.assert_array_equal(copy.predict_proba(people), same.copy.predict_proba(people))


def test_an_unfitted_pipeline_is_fitted_on_such_a_frame(people, pipeline):
    copy = ec.SequentialCopy(pipeline, **MIXED).fit(people, decide(people))
    assert copy.score(people, decide(people)) > 0.9
    assert copy.feature_names_in_.tolist() == list(people.columns)
    with pytest.raises(ValueError, match="requires y to be passed"):
        ec.SequentialCopy(pipeline).fit(people)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ec.SequentialCopy(pipeline).fit(people, decide(people)[:9])
    with pytest.raises(ValueError, match="a minimum of 2 is required"):
        ec.SequentialCopy(pipeline).fit(people[:1], ["ok"])


def test_frames_of_polars_are_frames(people):
    polars = needs("polars")
    frame = polars.from_pandas(people)
    copy = ec.SequentialCopy(decide, **MIXED).fit(frame)
    np.testing.assert_array_equal(copy.predict(frame), copy.predict(people))
    assert ec.metrics.fidelity(decide(people), copy.predict(frame)) > 0.9


def test_numbers_with_gaps_are_a_frame_too(people):
    numbers = people[["age", "income"]]
    copy = ec.SequentialCopy(lambda rows: rows["age"] > 50, **MIXED).fit(numbers)
    assert [column.missing > 0 for column in copy.space_.columns] == [False, True]
    assert ec.metrics.fidelity(numbers["age"] > 50, copy.predict(numbers)) > 0.9


def test_columns_are_checked_by_name(people):
    copy = ec.SequentialCopy(decide, **MIXED).fit(people)
    for others in (people.drop(columns="city"), people.assign(more=1), people[people.columns[::-1]]):
        with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
            copy.predict(others)
