"""Copies of every family: who taught them, how they were chosen, and that they are saved, loaded and certified."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

import ectype as ec
from ectype.algorithm.sample_set import SampleSet
from ectype.certificate.bounds import lower_bound
from ectype.errors import SettingError
from ectype.models.blend_fitting import BLEND, FAMILIES
from ectype.models.capacity import Capacity
from ectype.models.distillation import CALIBRATING, NO_TEACHER, FitContext, choose, outcomes, teachers
from ectype.models.families import Family, FamilyLimits, boosting
from problems import disc

PLANE = ec.Space.normal(2)
QUICK = {"budget": 400, "schedule": ec.training.steps(100), "repeat": 0}


@pytest.fixture(scope="module")
def workshop():
    X = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    return FitContext(
        paid=SampleSet(X, disc(X).astype(np.int32)),
        n_c=2,
        free=lambda n: np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32),
        limits=FamilyLimits(effort=Capacity(share=0.2, free_rows=1000)),
        seed=0,
    )


def held_out(n=500):
    X = np.random.default_rng(2).normal(size=(n, 2)).astype(np.float32)
    return SampleSet(X, disc(X).astype(np.int32))


def agrees(model, points):
    return (model.probabilities(points.X).argmax(axis=1) == points.y).mean()


def test_every_family_but_the_blend_may_be_taught_by_it(workshop):
    found = [*workshop.candidates("tree", held_out()), *workshop.candidates(BLEND, held_out())]
    assert [(one.family, one.teacher) for one in found] == [("tree", NO_TEACHER), ("tree", BLEND), (BLEND, NO_TEACHER)]
    assert [teachers(family) for family in ("mlp", BLEND)] == [(NO_TEACHER, BLEND), (NO_TEACHER,)]
    for one in found:
        assert one.fidelity == pytest.approx(agrees(one.model, held_out()))
    # A tree of 300 answers has corners; one that was also told what the blend thinks of 1000 rows has fewer.
    alone, taught, blend = (one.fidelity for one in found)
    assert alone < taught < blend


def test_a_student_learns_what_the_blend_thinks_of_unlabelled_rows(workshop):
    def contrary(X, y, n_c, limits, seed):
        """A teacher that is wrong everywhere."""
        return boosting(X, 1 - y, n_c, limits, seed)

    wrong = replace(workshop, families={**FAMILIES, BLEND: Family(contrary, 0)})
    X, p = wrong.lesson
    assert len(X) == 1000 + CALIBRATING  # as many as the effort allows, and some to calibrate
    assert ((p.argmax(axis=1) == 1) != disc(X)).mean() > 0.9
    rows = held_out()
    assert agrees(wrong.taught("tree"), rows) < 0.3 < 0.9 < agrees(wrong.alone("tree"), rows)
    best, _ = choose(["tree"], wrong, rows)
    assert best.teacher == NO_TEACHER
    fewer = replace(wrong, limits=FamilyLimits(effort=Capacity(share=0.2, free_rows=0)))
    assert agrees(fewer.taught("tree"), rows) > 0.9  # nothing to learn from: the answers alone


def test_a_blend_and_its_lesson_may_be_lent(workshop):
    asked = []
    lender = replace(workshop, free=lambda n: asked.append(n) or workshop.free(n))
    sizes = [replace(lender, limits=replace(lender.limits, max_leaves=leaves), lent=lender) for leaves in (3, 9)]
    for one in sizes:
        one.taught("tree")
        assert one.teacher is lender.teacher
    assert asked == [1000 + CALIBRATING]


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
    assert {one.teacher for one in tried} == {NO_TEACHER, BLEND}
    decided = best.model.probabilities(workshop.paid.X).argmax(axis=1)
    np.testing.assert_array_equal(decided, workshop.paid.y)  # an unlimited tree knows every point it was fitted to


@pytest.mark.usefixtures("small_lesson")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_copied_certified_saved_and_loaded(tmp_path, family):
    result = ec.copy_classifier(disc, PLANE, to=family, out=tmp_path / "run", **QUICK)
    assert result.family == family
    assert {(one["family"], one["teacher"]) for one in result.tried} == (
        {(family, NO_TEACHER), (family, BLEND)} if family != BLEND else set()  # there was no choice
    )
    if result.tried:
        assert result.certificate.estimate == pytest.approx(max(one["fidelity"] for one in result.tried))
    assert result.certificate.estimate > (0.55 if family == "linear" else 0.9)
    again = ec.load(tmp_path / "run")
    rows = np.random.default_rng(5).normal(size=(1000, 2))
    np.testing.assert_array_equal(again.copy.predict(rows), result.copy.predict(rows))
    assert (again.tried, again.family) == (result.tried, family)
    assert again.copy.predict(rows).dtype == bool


@pytest.mark.usefixtures("small_lesson")
def test_a_bound_allows_for_every_copy_that_might_have_been_chosen():
    result = ec.copy_classifier(disc, PLANE, to="auto", max_bytes=10**9, **QUICK)
    proof = result.certificate
    agreed = round(proof.estimate * proof.n)
    assert outcomes(FAMILIES) == 2 * len(FAMILIES) - 1  # with and without a teacher, which the blend has not
    assert proof.lower == lower_bound(agreed, proof.n, 1 - 0.05 / outcomes(FAMILIES))
    assert proof.lower < lower_bound(agreed, proof.n)
    assert proof.confidence == 0.95
    assert len(result.tried) == outcomes(FAMILIES)
    assert {one["family"] for one in result.tried} == {*FAMILIES}
    assert result.family == result.tried[0]["family"]
    assert result.tried[0]["fidelity"] == max(one["fidelity"] for one in result.tried)


@pytest.mark.usefixtures("small_lesson")
def test_without_limits_the_blend_is_the_only_candidate_and_its_bound_needs_no_correction():
    result = ec.copy_classifier(disc, PLANE, **QUICK)
    assert result.settings["to"] == "auto"
    assert (result.family, result.tried) == (BLEND, [])
    proof = result.certificate
    assert proof.lower == lower_bound(round(proof.estimate * proof.n), proof.n)


@pytest.mark.usefixtures("small_lesson")
@pytest.mark.parametrize(("target", "stopped"), [(0.6, "target"), (0.9999, "budget")])
def test_a_target_is_reached_or_not(target, stopped):
    result = ec.copy_classifier(disc, PLANE, to="tree", target=target, **QUICK)
    assert result.stopped == stopped
    assert (result.certificate.lower >= target) == (stopped == "target")


def test_originals_made_of_trees_are_copied_by_trees_and_smooth_ones_by_distillation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    space = ec.Space.normal(4)
    smooth = ec.copy_classifier(SVC().fit(X, y), space, to="tree", budget=1000, repeat=0)
    found = {one["teacher"]: one["fidelity"] for one in smooth.tried}
    assert found[BLEND] > found[NO_TEACHER] + 0.01
    assert smooth.certificate.estimate == found[BLEND]
    forest = RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, y)
    gains = []
    for seed in range(3):  # of a single one, chance moves both by as much as they differ
        blend = ec.copy_classifier(forest, space, budget=1000, repeat=0, seed=seed)
        network = ec.copy_classifier(forest, space, budget=1000, repeat=0, seed=seed, preset="fast")
        gains.append(blend.certificate.estimate - network.certificate.estimate)
    assert np.mean(gains) > 0.01
    powers = dict.fromkeys(("trees", "mlp", "radial"), 0.0)
    for member, power in zip(blend.copy.model.members, blend.copy.model.powers, strict=True):
        powers[member.kind] += power
    assert powers["trees"] > powers["mlp"] + powers["radial"]


@pytest.mark.usefixtures("small_lesson")
def test_a_run_of_another_family_resumes_to_the_same_copy(tmp_path):
    whole = ec.copy_classifier(disc, PLANE, to="boosting", **QUICK)
    steps = ec.copy_steps(disc, PLANE, ec.Settings(to="boosting", **QUICK), out=tmp_path / "run")
    next(steps)
    steps.close()
    again = ec.copy_classifier(disc, PLANE, to="boosting", out=tmp_path / "run", **QUICK)
    for name, array in whole.copy.model.state()[1].items():
        np.testing.assert_array_equal(array, again.copy.model.state()[1][name])


def test_settings_of_trees_are_checked():
    with pytest.raises(SettingError, match="max_depth: expected a whole number of at least 1, found 0"):
        ec.copy_classifier(disc, PLANE, to="tree", max_depth=0)
    with pytest.raises(SettingError, match="to: expected one of"):
        ec.copy_classifier(disc, PLANE, to="svm")
