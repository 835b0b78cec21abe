import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ectype as ec
from ectype.algorithm.mlp import MLP, Network
from ectype.errors import EctypeWarning, OriginalError
from ectype.methods import committee as committees
from ectype.methods.acquisition import SHARE, Candidates, balanced, boundary, margin
from ectype.methods.committee import LATEST, next_committee
from ectype.methods.prior import Prior
from ectype.methods.training_points import LabelledBatch, TrainingAnswers
from ectype.original import Answers, Labels
from ectype.plan.resolve import RANDOM_FIRST as FIRST
from ectype.plan.resolve import resolve
from ectype.plan.settings import DRAWS
from ectype.space import Encoding, SeenRows

# A cell of every kind, and a rule between two of them.
MIXED = ec.Space.from_json("""{"columns": [
  {"name": "x", "kind": "float", "low": -1, "high": 1},
  {"name": "y", "kind": "float", "low": -1, "high": 1, "missing": 0.2},
  {"name": "count", "kind": "integer", "low": 0, "high": 30},
  {"name": "grade", "kind": "float", "values": [0.5, 1.5, 4.0]},
  {"name": "flag", "kind": "boolean"},
  {"name": "colour", "kind": "category", "levels": ["red", "green", "blue", "white"]}
], "rules": ["x <= y"]}""")


def scene(network, theta, rows, space=None):
    """What a policy sees where these are the candidates, by default of a space in which rows are their own encoding."""
    space = space or ec.Space.normal(rows.shape[1])
    encode = Encoding(space)
    rng = np.random.default_rng(0)
    return Candidates(Network(network, theta), space, encode, rows, encode(rows), SeenRows(), rng)


def positions(chosen, rows):
    """Which candidates these rows are."""
    return [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in chosen]


def test_classes_get_equal_parts_where_there_are_enough(rng):
    network = MLP(2, (), 3)  # scores are x0, x1 and 0
    theta = np.array([8, 0, 0, 0, 8, 0, 0, 0, 0], dtype=np.float32)
    centers = np.repeat([[9.0, 0.0], [0.0, 9.0], [-9.0, -9.0]], [900, 40, 60], axis=0)
    X = (centers + rng.normal(size=centers.shape)).astype(np.float32)
    chosen = positions(balanced(scene(network, theta, X), 90), X)
    assert len(set(chosen)) == 90
    taken_for = network.probabilities(theta, X[chosen]).argmax(axis=1)
    assert np.bincount(taken_for, minlength=3).tolist() == [30, 30, 30]
    few = positions(balanced(scene(network, theta, X[:905]), 90), X)  # five of the second class, none of the third
    assert len(few) == 90
    assert set(range(900, 905)) <= set(few)


def test_a_class_that_nothing_is_taken_for_gets_what_is_least_unlike_it():
    network = MLP(1, (), 3)
    theta = np.array([-4, 0, 2, 9, 0, -9], dtype=np.float32)  # the third grows with x, but never wins
    X = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
    assert set(range(90, 100)) <= set(positions(balanced(scene(network, theta, X), 30), X))


@pytest.mark.usefixtures("small_lesson")
def test_balanced_drawing_finds_more_of_a_rare_class_than_random_drawing():
    """In all: before the class is seen, which rows a copy takes to be like it is a matter of luck."""
    found = {}

    def predict(rows):
        labels = np.where(rows[:, 0] > 3.2, "rare", np.where(rows[:, 0] > 0, "up", "down"))
        found[draw] = found.get(draw, 0) + int((labels == "rare").sum())
        return labels

    original = ec.Original(predict, classes=["down", "rare", "up"])
    options = {"budget": 1500, "certificate_n": 0, "repeat": 0}
    quick = {"random": {}, "balanced": {"schedule": ec.training.steps(400)}}
    with warnings.catch_warnings(action="ignore", category=EctypeWarning):
        for draw, seed in product(("random", "balanced"), range(9)):
            result = ec.copy_classifier(original, ec.Space.normal(2), draw=draw, seed=seed, **options, **quick[draw])
            assert result.queries["training"] == 1500
    assert found["balanced"] >= 4 * max(found["random"], 1)


def test_a_class_that_is_not_among_the_first_answers_is_told_of():
    original = ec.Original(lambda rows: np.where(rows[:, 0] > 0, "up", "down"), classes=["down", "rare", "up"])
    with pytest.warns(EctypeWarning, match="none of the first 240 answers was 'rare'.*--draw balanced looks"):
        ec.copy_classifier(original, ec.Space.normal(2), budget=100, certificate_n=200, schedule=1)


def test_most_of_a_batch_is_where_the_copy_wavers():
    network = MLP(1, (), 2)
    theta = np.array([-4, 4, 0, 0], dtype=np.float32)  # undecided at 0
    X = np.linspace(-1, 1, 501, dtype=np.float32)[:, None]
    chosen = positions(margin(scene(network, theta, X), 50), X)
    assert len(set(chosen)) == 50
    at_random = 50 - round(SHARE * 50)
    assert chosen[:at_random] == list(range(at_random))
    assert np.abs(X[chosen[at_random:]]).max() < 0.1


@pytest.mark.parametrize("policy", [margin, boundary])
def test_a_copy_of_one_class_wavers_nowhere(policy):
    rows = np.arange(9.0)[:, None]
    found = policy(scene(MLP(1, (), 1), np.zeros(2, np.float32), rows), 3)
    assert found.tolist() == [[0.0], [1.0], [2.0]]


def committee(answers, network, theta, batch=400):
    """What network and trees say together, after these rows and answers."""
    rows, labels = answers
    plan = resolve(ec.Settings(draw="committee", batch=batch, iterations=2))
    answers = TrainingAnswers(None).plus(LabelledBatch(rows.astype(np.float32), Answers(np.asarray(labels))))
    return next_committee(plan, Prior(), Network(network, theta), answers, Labels(labels), None)


def test_a_committee_asks_where_the_copy_and_the_answers_part(rng):
    network, theta = MLP(1, (), 2), np.array([-40, 40, 0, 0], dtype=np.float32)  # sure of itself, parted at 0
    known = rng.uniform(-1, 1, (400, 1))
    votes = committee((known, known[:, 0] > 0.5), network, theta)  # but the original parts at 0.5
    X = rng.uniform(-1, 1, (1000, 1))
    asks = replace(scene(network, theta, X), copy=votes)
    found = margin(asks, 100)[100 - round(SHARE * 100) :]
    assert ((found > -0.02) & (found < 0.52)).mean() > 0.95
    assert (found == margin(asks, 100)[100 - round(SHARE * 100) :]).all()
    alone = margin(scene(network, theta, X), 100)[100 - round(SHARE * 100) :]
    assert np.abs(alone).max() < 0.2  # the copy alone would never have asked there


def test_a_committee_of_one_class_wavers_nowhere():
    network, rows = MLP(1, (), 1), np.arange(9.0)[:, None]
    votes = committee((rows, np.zeros(9)), network, np.zeros(2, np.float32))
    asks = replace(scene(network, np.zeros(2, np.float32), rows), copy=votes)
    assert margin(asks, 3).tolist() == [[0.0], [1.0], [2.0]]


def test_rows_between_candidates_lie_on_the_boundary_of_the_copy(rng):
    network, theta = MLP(2, (), 2), np.array([-4, 4, -2, 2, 0, 0], dtype=np.float32)
    few = rng.normal(size=(60, 2))  # too few for any to lie on the boundary
    found = boundary(scene(network, theta, few), 50)
    assert found.shape == (50, 2)
    away = np.abs(2 * found[:, 0] + found[:, 1])
    assert away[: round(SHARE * 50)].max() < 0.01 < np.sort(np.abs(2 * few[:, 0] + few[:, 1]))[5]


def test_rows_between_candidates_are_rows_of_their_space(rng):
    rows = MIXED.sample(500, rng)
    encode = Encoding(MIXED)
    network = MLP(encode.width, (8,), 3)
    of_space = scene(network, network.initial(rng), rows, MIXED)
    found = boundary(of_space, 100)
    made = np.array([row for row in found if not (np.isclose(row, rows, equal_nan=True)).all(axis=1).any()])
    assert len(made) > 20
    assert MIXED.keeps_rules(found).all()
    for j, column in enumerate(MIXED.columns):
        seen = set(rows[:, j][~np.isnan(rows[:, j])].tolist())
        if column.name in ("x", "y"):
            assert np.nanmin(found[:, j]) >= -1
            assert np.nanmax(found[:, j]) <= 1
        else:
            assert set(found[:, j].tolist()) <= seen
    of_space.seen.add(found)
    again = boundary(of_space, 100)[: round(SHARE * 100)]
    assert not {row.tobytes() for row in again} & {row.tobytes() for row in made}


@pytest.mark.parametrize("draw", DRAWS)
def test_every_policy_asks_about_rows_that_may_be(draw):
    asked = []

    def answer(frame):
        asked.append(MIXED.read(frame, "rows"))
        return np.where(frame["x"] > 0, frame["colour"].isin(["red", "blue"]), frame["count"] > 12)

    settings = {"batch": 50, "budget": FIRST + 150, "certificate_n": 0, "repeat": 0}
    settings |= {} if draw == "random" else {"schedule": 20}
    ec.copy_classifier(ec.Original(answer, classes=[False, True]), MIXED, draw=draw, **settings)
    rows = np.concatenate(asked)
    assert len(rows) == FIRST + 150
    assert MIXED.keeps_rules(rows).all()
    assert not np.isnan(rows[:, [0, 2, 3, 4, 5]]).any()
    assert set(rows[:, 5]) == {0.0, 1.0, 2.0, 3.0}


@pytest.mark.parametrize("draw", ["committee", "boundary"])
def test_a_run_that_is_resumed_chooses_the_same_rows(draw, tmp_path):
    left = [FIRST + 150]

    def answer(rows):
        left[0] -= len(rows)
        if left[0] < 0:
            raise RuntimeError("gone")
        return (rows**2).sum(axis=1) < 1

    options = {"budget": FIRST + 300, "certificate_n": 0, "repeat": 0, "schedule": 20, "draw": draw, "batch": 50}
    disc = ec.Original(answer, classes=[False, True], name="disc")
    with pytest.raises(OriginalError):
        ec.copy_classifier(disc, ec.Space.normal(2), out=tmp_path / "run", **options)
    left[0] = 10**6
    ec.copy_classifier(disc, ec.Space.normal(2), out=tmp_path / "run", **options)
    ec.copy_classifier(disc, ec.Space.normal(2), out=tmp_path / "whole", **options)
    resumed, whole = ((tmp_path / name / "copy.safetensors").read_bytes() for name in ("run", "whole"))
    assert resumed == whole


@pytest.mark.usefixtures("small_lesson")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch": 400}, [400, 800, 1200, 1600, 2000, 2000, 2000]),  # the last for the record of the last round
        ({}, [420, 614, 897, 1311, 1916, 2800]),  # batches that grow are few
    ],
)
def test_committees_look_back_on_a_bounded_number_of_answers_unless_batches_grow(options, expected, monkeypatch):
    seen = []
    sent = committees.fit_committee
    monkeypatch.setattr(committees, "fit_committee", lambda *args: seen.append(len(args[1])) or sent(*args))
    options = {"budget": LATEST + 800, "certificate_n": 50, "repeat": 0, "schedule": 1, "to": "linear", **options}
    ec.copy_classifier(lambda rows: rows[:, 0] > 0, ec.Space.normal(1), draw="committee", **options)
    assert seen == expected


def test_rows_are_asked_about_once_while_a_space_has_others():
    asked = []

    def parity(rows):
        asked.extend(map(tuple, rows.tolist()))
        return rows.sum(axis=1) % 2 == 0

    grid = ec.Space.from_data(np.random.default_rng(0).integers(0, 30, (4000, 2)).astype(float))
    ec.copy_classifier(parity, grid, batch=50, budget=FIRST + 300, certificate_n=0, repeat=0)
    late = asked[FIRST:]
    assert len(set(late)) == len(late) == 300
    assert not set(late) & set(asked[:FIRST][:50])  # nor what the first batch asked


@pytest.mark.usefixtures("small_lesson")
@pytest.mark.parametrize(("options", "seeds"), [({"delta": 1e-300}, range(1)), ({}, range(3))])
def test_drawing_where_the_copy_wavers_needs_fewer_queries(options, seeds):
    disc = ec.Original(lambda rows: (rows**2).sum(axis=1) < 1)
    options = {"budget": 800, "certificate_n": 4000, "repeat": 0, **options}
    errors = dict.fromkeys(("random", "margin", "committee", "boundary"), 0.0)
    for draw, seed in product(errors, seeds):
        result = ec.copy_classifier(disc, ec.Space.normal(2), draw=draw, seed=seed, **options)
        errors[draw] += 1 - result.certificate.estimate
    assert max(errors["margin"], errors["committee"], errors["boundary"]) < 0.8 * errors["random"]
