"""Copies of other families: who taught them, how they were chosen, and that they are saved, loaded and certified."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

import understudy as us
from cases import disc
from understudy.algorithm.network import MLP, Network
from understudy.algorithm.samples import Samples
from understudy.certificate.bounds import lower_bound
from understudy.errors import SettingError
from understudy.models.distillation import NOBODY, TEACHERS, Relay, Workshop, choose, outcomes
from understudy.models.families import Limits
from understudy.runs.settings import FAMILIES

PLANE = us.Space.normal(2)
OTHERS = [family for family in FAMILIES if family != "mlp"]
QUICK = {"budget": 400, "schedule": us.training.steps(100), "repeat": 0}


@pytest.fixture(scope="module")
def workshop():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)).astype(np.float32)
    network = MLP(2, (8,), 2)
    return Workshop(
        paid=Samples(X, disc(X).astype(np.int32)),
        network=Network(network, 20 * network.initial(rng)),  # sure of itself, and wrong
        free=lambda n: np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32),
        train=lambda points: Network(network, network.initial(rng)),
        another=lambda points, k: Network(network, 20 * network.initial(np.random.default_rng(k))),
        limits=Limits(),
        seed=0,
    )


def held_out(n=500):
    X = np.random.default_rng(2).normal(size=(n, 2)).astype(np.float32)
    return Samples(X, disc(X).astype(np.int32))


def test_the_best_teacher_on_held_out_rows_teaches(workshop):
    relay = Relay(workshop, held_out(), ["tree", "boosting"])
    found = [*relay.candidates("tree", workshop), *relay.candidates("boosting", workshop)]
    # The network knows nothing here, so that boosting knows best, and has nothing to learn from itself.
    assert [(one.family, one.teacher) for one in found] == [
        ("tree", NOBODY),
        ("tree", "boosting"),
        ("boosting", NOBODY),
    ]
    for one in found:
        decided = one.model.probabilities(held_out().X).argmax(axis=1)
        assert one.fidelity == pytest.approx((decided == held_out().y).mean())


def test_the_most_faithful_is_chosen_or_the_smallest_that_reaches_the_target(workshop):
    families = ["linear", "tree"]
    best, tried = choose(families, workshop, held_out())
    assert best.fidelity == max(one.fidelity for one in tried)
    enough, _ = choose(families, workshop, held_out(), lambda fidelity: fidelity > 0.5)
    assert enough.size == min(one.size for one in tried if one.fidelity > 0.5)
    assert enough.size < best.size
    assert choose(families, workshop, held_out(), lambda fidelity: False)[0].fidelity == best.fidelity


def test_without_held_out_rows_some_paid_points_are_kept_back_and_then_used(workshop):
    best, tried = choose(["tree"], workshop, held_out(0))
    assert {one.teacher for one in tried} <= {NOBODY, *TEACHERS}
    decided = best.model.probabilities(workshop.paid.X).argmax(axis=1)
    np.testing.assert_array_equal(decided, workshop.paid.y)  # an unlimited tree knows every point it was fitted to


@pytest.mark.parametrize("family", OTHERS)
def test_every_family_is_copied_certified_saved_and_loaded(tmp_path, family):
    result = us.copy_classifier(disc, PLANE, to=family, out=tmp_path / "run", **QUICK)
    assert {one["family"] for one in result.tried} == {family}
    assert result.certificate.estimate == pytest.approx(max(one["fidelity"] for one in result.tried))
    assert result.certificate.estimate > (0.55 if family == "linear" else 0.9)
    again = us.load(tmp_path / "run")
    rows = np.random.default_rng(5).normal(size=(1000, 2))
    np.testing.assert_array_equal(again.copy.predict(rows), result.copy.predict(rows))
    assert again.tried == result.tried
    assert again.copy.predict(rows).dtype == bool


@pytest.mark.usefixtures("small_lesson")
def test_a_bound_allows_for_every_copy_that_might_have_been_chosen():
    result = us.copy_classifier(disc, PLANE, to="auto", **QUICK)
    proof = result.certificate
    agreed = round(proof.estimate * proof.n)
    assert proof.lower == lower_bound(agreed, proof.n, 1 - 0.05 / outcomes(FAMILIES))
    assert proof.lower < lower_bound(agreed, proof.n)
    assert proof.confidence == 0.95
    assert {one["family"] for one in result.tried} == {*FAMILIES}
    assert result.family == result.tried[0]["family"]
    assert result.tried[0]["fidelity"] == max(one["fidelity"] for one in result.tried)


@pytest.mark.usefixtures("small_lesson")
@pytest.mark.parametrize(("target", "stopped"), [(0.6, "target"), (0.9999, "budget")])
def test_a_target_is_reached_or_not(target, stopped):
    result = us.copy_classifier(disc, PLANE, to="tree", target=target, **QUICK)
    assert result.stopped == stopped
    assert (result.certificate.lower >= target) == (stopped == "target")


def test_originals_made_of_trees_are_copied_by_trees_and_smooth_ones_by_relay():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    space = us.Space.normal(4)
    smooth = us.copy_classifier(SVC().fit(X, y), space, to="tree", budget=1000, repeat=0)
    found = {one["teacher"]: one["fidelity"] for one in smooth.tried}
    relayed, direct = max(found.values()), found[NOBODY]
    assert relayed > direct + 0.01
    forest = RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, y)
    gains = []
    for seed in range(4):  # of a single one, chance moves both by as much as they differ
        kinds = us.copy_classifier(forest, space, to="auto", budget=1000, repeat=0, seed=seed)
        best = max(kinds.tried, key=lambda one: one["fidelity"])
        assert best["family"] in ("boosting", "tree", "forest")
        gains.append(kinds.certificate.estimate - kinds.history[-1].fidelity)
    assert np.mean(gains) > 0.01


@pytest.mark.usefixtures("small_lesson")
def test_a_run_of_another_family_resumes_to_the_same_copy(tmp_path):
    whole = us.copy_classifier(disc, PLANE, to="boosting", **QUICK)
    steps = us.copy_steps(disc, PLANE, us.Settings(to="boosting", **QUICK), out=tmp_path / "run")
    next(steps)
    steps.close()
    again = us.copy_classifier(disc, PLANE, to="boosting", out=tmp_path / "run", **QUICK)
    for name, array in whole.copy.model.state()[1].items():
        np.testing.assert_array_equal(array, again.copy.model.state()[1][name])


def test_settings_of_trees_are_checked():
    with pytest.raises(SettingError, match="max_depth: expected a whole number of at least 1, found 0"):
        us.copy_classifier(disc, PLANE, to="tree", max_depth=0)
    with pytest.raises(SettingError, match="to: expected one of"):
        us.copy_classifier(disc, PLANE, to="svm")
