"""Scores of an original that is never sure."""

import numpy as np
import pytest

import ectype as ec
from ectype.models.temperature import SURE, fit_temperature, temper

RNG = np.random.default_rng(0)
SPACE = ec.Space.normal(6)
WEIGHTS = RNG.normal(size=(6, 3))


class Doubtful:
    """Three classes by waves of two directions; the lower the temper, the nearer to even are its probabilities."""

    classes_ = np.array(["low", "middle", "high"])

    def __init__(self, temper):
        self.temper = temper

    def predict_proba(self, rows):
        hidden = np.sin(0.7 * np.asarray(rows) @ WEIGHTS)
        odds = np.exp(self.temper * hidden)
        return odds / odds.sum(axis=1, keepdims=True)

    def predict(self, rows):
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


@pytest.mark.parametrize("n_c", [2, 5])
def test_scores_are_raised_until_they_are_sure_enough_and_no_further(n_c):
    p = RNG.dirichlet(np.full(n_c, 20.0), size=200).astype(np.float32)
    power = fit_temperature(p)
    sharp = temper(p, power)
    assert sharp.max(axis=1).mean() == pytest.approx(SURE, abs=1e-4)
    assert sharp.dtype == p.dtype
    assert np.allclose(sharp.sum(axis=1), 1)
    assert (sharp.argmax(axis=1) == p.argmax(axis=1)).all()
    assert fit_temperature(sharp) == pytest.approx(1.0, abs=0.01)


def test_even_scores_stay_even_and_sure_ones_as_they_are():
    even = np.full((4, 3), 1 / 3, np.float32)
    assert np.allclose(temper(even, fit_temperature(even)), even)
    sure = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    assert temper(sure, fit_temperature(sure)) is sure


def test_a_copy_has_the_originals_probabilities_however_it_learned_them():
    original = Doubtful(0.4)
    result = ec.copy_classifier(original, SPACE, budget=800, scores=True, certificate_n=0, repeat=0)
    rows = SPACE.sample(3000, np.random.default_rng(9))
    said, wanted = result.copy.predict_proba(rows), original.predict_proba(rows)
    order = [list(result.copy.classes_).index(label) for label in original.classes_]
    assert wanted.max(axis=1).mean() < SURE - 0.2
    assert abs(said.max(axis=1).mean() - wanted.max(axis=1).mean()) < 0.02
    assert np.abs(said[:, order] - wanted).mean() < 0.04


def test_how_sure_an_original_is_hardly_matters_to_the_labels_of_its_copy():
    rows = SPACE.sample(5000, np.random.default_rng(9))
    found = {}
    for sureness in (0.1, 4.0):
        original = Doubtful(sureness)
        copy = ec.copy_classifier(original, SPACE, budget=800, scores=True, certificate_n=0, repeat=0).copy
        found[sureness] = (copy.predict(rows) == original.predict(rows)).mean()
    assert found[0.1] > found[4.0] - 0.02
