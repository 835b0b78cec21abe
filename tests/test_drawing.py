import numpy as np
import pytest

import understudy as us
from understudy.drawing import balanced
from understudy.errors import UnderstudyWarning
from understudy.hypothesis.mlp import MLP


def test_classes_get_equal_parts_where_there_are_enough(rng):
    network = MLP(2, (), 3)  # scores are x0, x1 and 0
    theta = np.array([8, 0, 0, 0, 8, 0, 0, 0, 0], dtype=np.float32)
    centers = np.repeat([[9.0, 0.0], [0.0, 9.0], [-9.0, -9.0]], [900, 40, 60], axis=0)
    X = (centers + rng.normal(size=centers.shape)).astype(np.float32)
    chosen = balanced(network, theta, X, 90)
    assert len(set(chosen.tolist())) == 90
    taken_for = network.probabilities(theta, X[chosen]).argmax(axis=1)
    assert np.bincount(taken_for, minlength=3).tolist() == [30, 30, 30]
    few = balanced(network, theta, X[:905], 90)  # five of the second class, none of the third
    assert len(few) == 90
    assert set(range(900, 905)) <= set(few.tolist())


def test_a_class_that_nothing_is_taken_for_gets_what_is_least_unlike_it():
    network = MLP(1, (), 3)
    theta = np.array([-4, 0, 2, 9, 0, -9], dtype=np.float32)  # the third grows with x, but never wins
    X = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
    assert set(range(90, 100)) <= set(balanced(network, theta, X, 30).tolist())


def test_balanced_drawing_finds_a_class_that_random_drawing_misses():
    found = {}

    def predict(rows):
        labels = np.where(rows[:, 0] > 3.2, "rare", np.where(rows[:, 0] > 0, "up", "down"))
        found[draw] = found.get(draw, 0) + int((labels == "rare").sum())
        return labels

    original = us.Original(predict, classes=["down", "rare", "up"])
    for draw in ("random", "balanced"):
        with pytest.warns(UnderstudyWarning, match="none of the first 300 answers was 'rare'.*--draw balanced looks"):
            result = us.copy_classifier(
                original, us.Space.normal(2), budget=1500, certificate_n=200, schedule=60, draw=draw, seed=1
            )
        assert result.queries["training"] == 1500
    assert found["balanced"] >= 4 * max(found["random"], 1)
