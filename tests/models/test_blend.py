"""Blends: members weighed by answers they have not seen; better than any of them, calibrated, and one model to all."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification

from ectype.models.base import model_of, size_of
from ectype.models.blend import (
    BLEND,
    CROSSED,
    FAMILIES,
    Blend,
    fit_blend,
    fit_out_of_sample,
    fit_pool_weights,
    held_out_size,
    log_pool,
    member_families,
)
from ectype.models.capacity import Capacity
from ectype.models.families import SINGLE_FAMILIES, Family, FamilyLimits, boosting, fit
from ectype.models.linear import Linear

QUICK = FamilyLimits(effort=Capacity(share=0.3))


def problem(n, classes=3, seed=0, columns=8):
    """Rows with the labels of clusters, then fresh rows."""
    X, y = make_classification(
        n + 4000, columns, n_informative=columns - 2, n_classes=classes, n_clusters_per_class=3, random_state=seed
    )
    X = X.astype(np.float32)
    return X[:n], y[:n].astype(np.int32), X[n:], y[n:]


def agrees(model, X, y):
    return (model.probabilities(X).argmax(axis=1) == y).mean()


def test_powers_are_those_of_the_likeliest_product(rng):
    y = rng.integers(3, size=500)
    knows = np.full((500, 3), 0.1)
    knows[np.arange(500), np.where(rng.random(500) < 0.8, y, rng.integers(3, size=500))] = 0.8
    guesses = rng.dirichlet(np.ones(3), 500)
    powers = fit_pool_weights([knows, guesses], y)
    assert powers[0] > 0.8
    assert powers[1] < 0.1
    # No other powers make the answers likelier, but for the pull to equal ones.
    at = np.arange(500), y

    def loss(p):
        return -np.log(log_pool([knows, guesses], p)[at]).sum() + 5.0 * ((p - 0.6) ** 2).sum()

    for step in ([0.01, 0], [-0.01, 0], [0, 0.01]):
        assert loss(powers) <= loss(np.maximum(powers + step, 0))


def test_opinions_that_rule_a_class_out_count_for_a_little():
    sure, other = np.array([[1.0, 0.0]]), np.array([[0.4, 0.6]])
    found = log_pool([sure, other], np.array([1.0, 1.0]))
    assert 0.99 < found[0, 0] < 1


@pytest.mark.parametrize("n", [150, 700, CROSSED + 500])
def test_a_blend_is_at_least_as_good_as_its_best_member(n):
    X, y, fresh, truth = problem(n)
    blend = fit_blend(X, y, 3, FamilyLimits(), seed=0)
    alone = {
        name: agrees(fit(member, X, y, 3, FamilyLimits()), fresh, truth) for name, member in member_families(n).items()
    }
    assert agrees(blend, fresh, truth) > max(alone.values()) - 0.01
    assert agrees(blend, fresh, truth) > np.mean(list(alone.values())) + 0.01


def test_probabilities_are_calibrated():
    X, y, fresh, truth = problem(3000)
    blend, trees = fit_blend(X, y, 3, FamilyLimits(), seed=0), boosting(X, y, 3, FamilyLimits(), 0)

    def overconfident(model):
        p = model.probabilities(fresh)
        return p.max(axis=1).mean() - (p.argmax(axis=1) == truth).mean()

    assert abs(overconfident(blend)) < 0.03 < overconfident(trees)


def test_members_without_weight_are_left_out(monkeypatch):
    X, y, *_ = problem(400)

    def guess(X, y, n_c, limits, seed):
        return Linear(np.random.default_rng(seed).normal(size=(X.shape[1], n_c)), np.zeros(n_c))

    makers = member_families(400)
    members = {"guess": Family(guess, 0, soft=True), **makers}
    monkeypatch.setattr("ectype.models.blend.member_families", lambda answers, scored: members)
    blend = fit_blend(X, y, 3, QUICK, seed=0)
    assert "linear" not in {member.kind for member in blend.members}
    assert len(blend.members) > 1


def test_a_blend_is_its_state_and_survives_nothing_else(rng):
    X, y = load_wine(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    model = fit_blend(X, y.astype(np.int32), 3, QUICK, seed=0)
    about, arrays = model.state()
    again = model_of({"kind": model.kind, **about}, arrays, X.shape[1], 3)
    np.testing.assert_array_equal(again.probabilities(X), model.probabilities(X))
    for n in (1, 2, 33):  # however many rows it is asked about
        np.testing.assert_array_equal(model.probabilities(X[:n]), model.probabilities(X)[:n])
    assert size_of(model) > sum(array.nbytes for array in arrays.values())
    wrong = [
        ({**about, "members": about["members"][:1]}, arrays),
        ({**about, "members": []}, arrays),
        ({**about, "members": [{"kind": "blend", "members": []}]}, arrays),
        (about, {**arrays, "powers": -np.abs(arrays["powers"])}),
        (about, {**arrays, "powers": np.full_like(arrays["powers"], np.nan)}),
    ]
    for said, parts in wrong:
        with pytest.raises(ValueError, match=r"powers|member|kind|parameters|trees"):
            model_of({"kind": "blend", **said}, parts, X.shape[1], 3)


def test_the_same_seed_gives_the_same_blend():
    X, y, fresh, _ = problem(200)
    first, second, other = (fit_blend(X, y, 3, QUICK, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.probabilities(fresh), second.probabilities(fresh))
    assert (first.probabilities(fresh) != other.probabilities(fresh)).any()


def test_a_blend_learns_from_probabilities():
    X, y, fresh, truth = problem(400)
    soft = np.full((400, 3), 0.1, np.float32)
    soft[np.arange(400), y] = 0.8
    blend = fit(FAMILIES[BLEND], X, soft, 3, QUICK)
    assert agrees(blend, fresh, truth) > 0.6
    assert blend.probabilities(X).max(axis=1).mean() < 0.9  # it was told to doubt


def test_few_answers_of_few_classes_still_make_a_blend():
    X, y, fresh, _ = problem(12, classes=2)
    assert fit(FAMILIES[BLEND], X, y, 4, QUICK).probabilities(fresh).shape == (4000, 4)
    rare = np.where(np.arange(12) == 0, 3, y).astype(np.int32)  # a class with one answer, in one fold only
    np.testing.assert_allclose(fit(FAMILIES[BLEND], X, rare, 4, QUICK).probabilities(fresh).sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 12, 60])
def test_a_class_that_one_fold_alone_has_is_learned_all_the_same(n):
    X, _, fresh, _ = problem(n, classes=2)
    y = (np.arange(n) == 1).astype(np.int32)  # without that fold, there is one class only
    assert fit(FAMILIES[BLEND], X, y, 2, QUICK).probabilities(fresh).argmax(axis=1).mean() < 0.5


@pytest.mark.parametrize("n", [CROSSED, CROSSED + 3, CROSSED + 6])
def test_members_are_fitted_again_to_all_answers(n, monkeypatch):
    X, y, *_ = problem(n)
    seen = []

    def counted(X, y, n_c, limits, seed):
        seen.append(len(X))
        return boosting(X, y, n_c, limits, seed)

    monkeypatch.setattr(
        "ectype.models.blend.member_families", lambda answers, scored: {"one": Family(counted, 0, soft=True)}
    )
    fit_blend(X, y, 3, QUICK, seed=0)
    assert seen == [n - held_out_size(n), n]


def test_a_doubtful_member_makes_a_doubtful_blend():
    member = Linear(np.array([[0.0, 4.0]]), np.zeros(2))
    X = np.array([[1.0]])
    doubtful, sure = (Blend((member,), np.array([power])).probabilities(X)[0, 1] for power in (0.2, 1.0))
    assert doubtful < sure


def test_every_family_has_a_name():
    assert set(FAMILIES) == {*SINGLE_FAMILIES, BLEND}


def test_with_many_answers_there_is_a_member_for_planes_and_one_for_sums_of_thresholds(rng):
    X = rng.normal(size=(CROSSED + 2000, 12)).astype(np.float32)
    plane, steps = X @ rng.normal(size=12) > 0, np.sign(X - 0.3) @ rng.normal(size=12) > 0
    members, n = member_families(CROSSED), CROSSED
    for name, truth in (("linear", plane), ("stumps", steps)):
        models = {
            key: fit(members[key], X[:n], truth[:n].astype(np.int32), 2, FamilyLimits()) for key in (name, "boosting")
        }
        alone = {key: agrees(model, X[n:], truth[n:]) for key, model in models.items()}
        assert alone[name] > alone["boosting"] + 0.02, alone
        assert alone[name] > 0.95, alone


@pytest.mark.parametrize("n", [400, CROSSED])
def test_rows_that_are_alike_are_held_out_together(n):
    X, y, *_ = problem(n)
    X, y = np.concatenate([X, X[:100], X[:100]]), np.concatenate([y, y[:100], y[:100]])
    seen = []

    class Remembers:
        def __init__(self, rows):
            self.rows = {row.tobytes() for row in rows}

        def probabilities(self, rows):
            seen.append(sum(row.tobytes() in self.rows for row in rows))
            return np.full((len(rows), 3), 1 / 3)

    family = Family(lambda rows, *_: Remembers(rows), 0, soft=True)
    _, held, _ = fit_out_of_sample({"one": family}, X, y, 3, QUICK, seed=0)
    assert len(seen) == (4 if n < CROSSED else 1)
    assert not any(seen)
    assert (held[:100] == held[n : n + 100]).all()
