import warnings
from itertools import product

import numpy as np
import pytest

import understudy as us
from understudy.drawing import FIRST, SHARE, balanced, margin
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


def test_balanced_drawing_finds_more_of_a_rare_class_than_random_drawing():
    """In all: before the class is seen, which rows a copy takes to be like it is a matter of luck."""
    found = {}

    def predict(rows):
        labels = np.where(rows[:, 0] > 3.2, "rare", np.where(rows[:, 0] > 0, "up", "down"))
        found[draw] = found.get(draw, 0) + int((labels == "rare").sum())
        return labels

    original = us.Original(predict, classes=["down", "rare", "up"])
    options = {"budget": 1500, "certificate_n": 0, "repeat": 0, "schedule": 60}
    with warnings.catch_warnings(action="ignore", category=UnderstudyWarning):
        for draw, seed in product(("random", "balanced"), range(14)):
            result = us.copy_classifier(original, us.Space.normal(2), draw=draw, seed=seed, **options)
            assert result.queries["training"] == 1500
    assert found["balanced"] >= 4 * max(found["random"], 1)


def test_a_class_that_is_not_among_the_first_answers_is_told_of():
    original = us.Original(lambda rows: np.where(rows[:, 0] > 0, "up", "down"), classes=["down", "rare", "up"])
    with pytest.warns(UnderstudyWarning, match="none of the first 300 answers was 'rare'.*--draw balanced looks"):
        us.copy_classifier(original, us.Space.normal(2), budget=100, certificate_n=200, schedule=1)


def test_most_of_a_batch_is_where_the_copy_wavers():
    network = MLP(1, (), 2)
    theta = np.array([-4, 4, 0, 0], dtype=np.float32)  # undecided at 0
    X = np.linspace(-1, 1, 501, dtype=np.float32)[:, None]
    chosen = margin(network, theta, X, 50)
    assert len(set(chosen.tolist())) == 50
    at_random = 50 - round(SHARE * 50)
    assert chosen[:at_random].tolist() == list(range(at_random))
    assert np.abs(X[chosen[at_random:]]).max() < 0.1


def test_a_copy_of_one_class_wavers_nowhere():
    assert margin(MLP(1, (), 1), np.zeros(2, np.float32), np.zeros((9, 1), np.float32), 3).tolist() == [0, 1, 2]


def test_rows_are_asked_about_once_while_a_space_has_others():
    asked = []

    def parity(rows):
        asked.extend(map(tuple, rows.tolist()))
        return rows.sum(axis=1) % 2 == 0

    grid = us.Space.from_data(np.random.default_rng(0).integers(0, 30, (4000, 2)).astype(float))
    us.copy_classifier(parity, grid, batch=50, budget=FIRST + 300, certificate_n=0, repeat=0)
    late = asked[FIRST:]
    assert len(set(late)) == len(late) == 300
    assert not set(late) & set(asked[:FIRST][:50])  # nor what the first batch asked


def test_drawing_where_the_copy_wavers_needs_fewer_queries():
    disc = us.Original(lambda rows: (rows**2).sum(axis=1) < 1)
    found = {
        draw: us.copy_classifier(disc, us.Space.normal(2), method="pure", budget=800, certificate_n=4000, draw=draw)
        for draw in ("random", "margin")
    }
    errors = {draw: 1 - result.certificate.estimate for draw, result in found.items()}
    assert errors["margin"] < 0.8 * errors["random"]
