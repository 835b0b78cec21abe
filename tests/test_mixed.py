"""A pipeline on a table with every kind of column, copied and measured on rows that nobody labelled."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import understudy as us


def loans(n, seed):
    """Applications with an integer, floats, a flag, ordered and unordered categories, gaps in two of them."""
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal(np.zeros(4), 0.4 + 0.6 * np.eye(4), n)
    income = np.exp(10.3 + 0.6 * z[:, 1])
    debt = np.where(rng.random(n) < 0.3, 0.0, income * np.exp(-1 + 0.8 * z[:, 2]))
    owner = rng.random(n) < 1 / (1 + np.exp(-(z[:, 0] + 0.5 * z[:, 1])))
    region = rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1])
    grade = np.digitize(z[:, 3] + 0.3 * z[:, 1], [-1, 0, 1])
    jobs = np.where(rng.random(n) < 0.1, np.nan, rng.poisson(2, n))
    frame = pd.DataFrame(
        {
            "age": np.clip(np.round(42 + 14 * z[:, 0]), 18, 90).astype(int),
            "income": income.round(2),
            "debt": debt.round(2),
            "owner": owner,
            "region": region,
            "grade": pd.Categorical.from_codes(grade, ["D", "C", "B", "A"], ordered=True),
            "jobs": jobs,
            "employer": np.where(rng.random(n) < 0.15, None, rng.choice(["public", "private", "self"], n)),
        }
    )
    score = 1.2 * z[:, 1] - 1.5 * debt / income + 0.8 * owner + 0.5 * grade - 0.3 * np.nan_to_num(jobs, nan=4.0)
    score += np.where(region == "west", -1, 0) + 0.02 * (frame["age"] - 40) + 0.3 * rng.logistic(size=n)
    return frame, np.where(score > 0.2, "grant", "refuse")


@pytest.fixture(scope="module")
def pipeline():
    numbers, words = ["age", "income", "debt", "jobs"], ["region", "grade", "employer"]
    prepare = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            ("words", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), words),
            ("flags", "passthrough", ["owner"]),
        ]
    )
    return make_pipeline(prepare, GradientBoostingClassifier(random_state=0)).fit(*loans(4000, 0))


@pytest.mark.parametrize("method", ["one-shot", "sequential"])
def test_a_pipeline_on_every_kind_of_column(pipeline, method, tmp_path):
    unlabelled, real = loans(3000, 1)[0], loans(4000, 2)[0]
    space = us.Space.from_data(unlabelled)
    kinds = [column.kind for column in space.columns]
    assert kinds == ["integer", "float", "float", "boolean", "category", "ordered", "integer", "category"]
    result = us.copy_classifier(pipeline, space, method=method, budget=5000, out=tmp_path / "run")
    fidelity = us.metrics.fidelity(pipeline.predict(real), result.copy.predict(real))
    assert fidelity >= 0.95
    assert fidelity == pytest.approx(result.certificate.estimate, abs=0.02)
    again = us.load(tmp_path / "run")
    np.testing.assert_array_equal(again.copy.predict(real), result.copy.predict(real))
