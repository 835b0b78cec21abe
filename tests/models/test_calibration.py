"""Probabilities that mean something: every family's, measured on rows that nothing was fitted to."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import ectype as ec
from ectype.certificate.bounds import expected_calibration_error
from ectype.models.base import model_of
from ectype.models.blend import log_pool
from ectype.models.families import SINGLE_FAMILIES, fit
from ectype.models.temperature import calibrate

pytestmark = pytest.mark.usefixtures("small_lessons")
X, Y = make_classification(1200, 8, n_informative=5, n_classes=3, random_state=1)
SPACE = ec.Space.from_data(X)


@pytest.fixture(scope="module")
def original():
    return RandomForestClassifier(30, random_state=0).fit(X, Y)


@pytest.mark.parametrize("family", ["auto", *SINGLE_FAMILIES])
def test_a_copy_is_as_sure_as_it_is_right(original, family):
    result = ec.copy_classifier(original, SPACE, to=family, budget=800, certificate_n=2000, repeat=0)
    most = 0.08 if family == "linear" else 0.05  # which is right and wrong in places that it cannot tell apart
    assert result.certificate.ece < most
    rows = SPACE.sample(20_000, np.random.default_rng(5))
    chances = result.copy.predict_proba(rows)
    agree = result.copy.predict(rows) == original.predict(rows)
    assert expected_calibration_error(chances.max(axis=1), agree) < most
    assert abs(chances.max(axis=1).mean() - agree.mean()) < most


@pytest.mark.parametrize("family", SINGLE_FAMILIES)
def test_labels_stay_and_what_is_calibrated_can_be_kept(family):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 4)).astype(np.float32)
    y = (rows[:, 0] + 0.5 * rng.normal(size=600) > 0).astype(np.int32) + (rows[:, 1] > 1)
    model = fit(family, rows, y.astype(np.int32), 3)
    rows = rng.normal(size=(600, 4)).astype(np.float32)  # which it was not fitted to
    before = model.probabilities(rows)
    doubtful = log_pool([before], np.array([0.4]))
    found = calibrate(model, rows, doubtful)
    after = found.probabilities(rows)
    clear = np.sort(before, axis=1)[:, -1] - np.sort(before, axis=1)[:, -2] > 1e-3
    assert (before.argmax(axis=1) == after.argmax(axis=1))[clear].all()
    np.testing.assert_allclose(after, doubtful, atol=0.05)
    assert np.abs(before - doubtful).max() > 0.1 or family == "tree"  # whose leaves are pure
    about, arrays = found.state()
    again = model_of({"kind": found.kind, **about}, arrays, 4, 3)
    np.testing.assert_array_equal(again.probabilities(rows), after)


def test_the_error_is_the_mean_gap_over_bins():
    sure = np.array([0.55] * 100 + [0.95] * 100)
    assert expected_calibration_error(sure, np.arange(200) % 100 < 75) == pytest.approx((0.2 + 0.2) / 2)
