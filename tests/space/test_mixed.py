"""A pipeline on a table with every kind of column, copied and measured on rows that nobody labelled."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ectype as ec
from problems import loans


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
    space = ec.Space.from_data(unlabelled)
    kinds = [column.kind for column in space.columns]
    assert kinds == ["integer", "float", "float", "boolean", "category", "ordered", "integer", "category"]
    result = ec.copy_classifier(pipeline, space, method=method, budget=5000, out=tmp_path / "run")
    fidelity = ec.metrics.fidelity(pipeline.predict(real), result.copy.predict(real))
    assert fidelity >= 0.95
    assert fidelity == pytest.approx(result.certificate.estimate, abs=0.02)
    again = ec.load(tmp_path / "run")
    np.testing.assert_array_equal(again.copy.predict(real), result.copy.predict(real))
