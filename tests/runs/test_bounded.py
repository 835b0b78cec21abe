"""Runs under a bound on memory: what is kept, what is learned from points that are gone, and how they resume."""

import json
from dataclasses import replace

import numpy as np
import pytest

import ectype as ec
from ectype.algorithm.sample_set import SampleSet
from ectype.methods import registry
from ectype.methods.bounded import bounded as bounded_rounds
from ectype.methods.bounded import keep_unsure
from ectype.models import self_distillation
from ectype.models.capacity import Capacity
from ectype.models.self_distillation import BlendState, Curriculum, rehearse
from ectype.plan.batch_schedule import FRESH, LEAST, growing_to
from ectype.plan.resolve import resolve
from ectype.plan.settings import Settings
from ectype.runs.api import build_job, copy_steps, finish, run_job

PLANE = ec.Space.normal(2)
QUICK = {"certificate_n": 0, "repeat": 0}


def rings(rows):
    return np.digitize((rows**2).sum(axis=1), [0.7, 2.5])


def agreed(result, original=rings, space=PLANE):
    rows = space.sample(4000, np.random.default_rng(9))
    return float((result.copy.predict(rows) == original(rows)).mean())


@pytest.fixture(scope="module")
def bounded():
    return ec.copy_classifier(rings, PLANE, budget=900, max_kept=150, **QUICK)


# --- how much is asked, and kept ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "most"), [(3000, 500), (3000, 2999), (30_000, 5000), (100, 40), (41, 40), (977, 333)]
)
def test_batches_grow_but_never_beyond_what_may_be_kept(budget, most):
    sizes = growing_to(budget, most)
    assert sum(sizes) == budget
    assert min(sizes) > 0
    assert sizes[0] <= most
    assert max(sizes[1:]) <= FRESH * most + 1


@pytest.mark.parametrize("budget", [600, 3000, 30_000])
def test_a_sixth_kept_saves_seven_tenths_of_the_points(budget):
    sizes = growing_to(budget, budget // 6)
    kept = np.minimum(np.cumsum(sizes), budget // 6)
    assert ec.metrics.efficiency(kept, sizes) >= 0.7


def test_the_bound_holds_in_every_round_and_eff_says_what_it_saves(bounded):
    kept, queries = ([getattr(record, name) for record in bounded.history] for name in ("kept", "queries"))
    assert queries[-1] == 900
    assert max(kept) == bounded.kept == 150
    assert all(
        record.dropped == before + new - record.kept
        for record, before, new in zip(bounded.history, [0, *kept], np.diff([0, *queries]), strict=False)
    )
    assert bounded.eff == pytest.approx(1 - sum(kept) / sum(queries))
    assert bounded.eff > 0.7
    assert bounded.summary()["eff"] == round(bounded.eff, 4)
    assert json.dumps(bounded.summary())
    assert ec.copy_classifier(rings, PLANE, budget=900, preset="fast", **QUICK).eff == 0


def test_no_more_answers_are_held_than_those_kept_and_a_batch(monkeypatch):
    plan, batches = resolve(Settings(budget=900, max_kept=150, **QUICK)), []

    def watched(plan, prior, asker):
        ask = asker.ask
        asker.ask = lambda t, chooser: batches.append(ask(t, chooser)) or batches[-1]
        before = 0
        for found in bounded_rounds(plan, prior, asker):
            assert found.answers is None
            assert found.points is found.step.S
            fresh = len(batches[-1])
            assert fresh == plan.ask.sizes[found.t] <= 150
            assert before + fresh <= 300
            before = len(found.step.S)
            yield found

    monkeypatch.setitem(registry.METHODS, "bounded", watched)
    finish(run_job(build_job(rings, PLANE, plan)))
    assert len(batches) == plan.ask.rounds


def test_a_bound_with_room_for_all_points_is_none():
    whole, roomy = (ec.copy_classifier(rings, PLANE, budget=200, max_kept=most, **QUICK) for most in (None, 200))
    assert [record.queries for record in whole.history] == [record.queries for record in roomy.history]
    rows = PLANE.sample(50, np.random.default_rng(0))
    np.testing.assert_array_equal(whole.copy.predict_proba(rows), roomy.copy.predict_proba(rows))


def test_the_batch_may_be_given():
    result = ec.copy_classifier(rings, PLANE, budget=400, batch=100, max_kept=150, **QUICK)
    assert [record.kept for record in result.history] == [100, 150, 150, 150]
    assert result.family == "blend"


def test_half_of_the_kept_points_are_the_most_uncertain(rng):
    class Sure:
        n_c = 2

        def probabilities(self, X):
            return np.stack([0.5 + X[:, 0] / 2, 0.5 - X[:, 0] / 2], axis=1)

    pool = SampleSet(np.linspace(0, 1, 100, dtype=np.float32)[:, None], np.arange(100, dtype=np.int32))
    kept = keep_unsure(Sure(), pool, 21, rng)
    assert kept.y[:11].tolist() == list(range(11))
    assert len(set(kept.y.tolist())) == 21
    assert kept.y[11:].mean() > 35  # the others are spread
    assert keep_unsure(Sure(), pool, 100, rng) is pool


# --- what is learned ------------------------------------------------------------------------------------------------


def test_more_queries_under_a_bound_make_no_worse_a_copy(bounded):
    fewer = ec.copy_classifier(rings, PLANE, budget=300, max_kept=150, **QUICK)
    more = ec.copy_classifier(rings, PLANE, budget=2400, max_kept=150, **QUICK)
    found = [agreed(result) for result in (fewer, bounded, more)]
    assert found[0] - 0.003 < found[1] < found[2] + 0.003
    assert found[2] > 0.97


def test_what_is_gone_is_rehearsed():
    """Points of one half of the plane first, of the other half later: the first half is not forgotten."""
    rng = np.random.default_rng(0)

    def points(n, left):
        X = rng.normal(size=(n, 2)).astype(np.float32)
        X[:, 0] = np.where(left, -1, 1) * np.abs(X[:, 0])
        return SampleSet(X, rings(X).astype(np.int32))

    course, none = Curriculum(1200, 3, 3, Capacity(), 0), np.empty((0, 2), np.float32)
    rows = rng.normal(size=(2000, 2)).astype(np.float32)
    nothing = SampleSet(none, np.empty(0, np.int32))
    first = rehearse(BlendState(), course, 0, nothing, points(400, left=True), none)
    test = points(2000, left=True)
    wrong = {}
    for name, shown in (("rehearsed", rows), ("forgotten", none)):
        after = first
        for t in (1, 2):
            after = rehearse(after, course, t, nothing, points(400, left=False), shown)
        wrong[name] = float((after.blend.probabilities(test.X).argmax(axis=1) != test.y).mean())
    assert wrong["rehearsed"] < 0.06
    assert wrong["rehearsed"] < 0.7 * wrong["forgotten"]


def test_members_are_weighed_by_points_that_they_have_not_seen(monkeypatch):
    shown = []
    usual = self_distillation.fit
    monkeypatch.setattr(
        self_distillation,
        "fit",
        lambda family, X, *more, **named: (
            shown.append({row.tobytes() for row in X}),
            usual(family, X, *more, **named),
        )[1],
    )
    X = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    nothing = SampleSet(X[:0], np.empty(0, np.int32))
    fresh = SampleSet(X, rings(X).astype(np.int32))
    learned = rehearse(BlendState(), Curriculum(1000, 2, 3, Capacity(), 0), 0, nothing, fresh, X[:0])
    ((_, codes),) = learned.trials
    unseen = {row.tobytes() for row in X} - shown[0]
    assert len(unseen) == len(codes) == 50
    assert all(seen == shown[0] for seen in shown)


@pytest.mark.parametrize("family", ["mlp", "tree"])
def test_other_families_are_taught_by_the_blend_that_remembers(family):
    settings = {"budget": 900, "to": family, "certificate_n": 1000, "repeat": 0}
    result = ec.copy_classifier(rings, PLANE, max_kept=150, **settings)
    assert result.family == family
    assert result.tried[0]["teacher"] == "blend"
    assert max(record.kept for record in result.history) == 150
    assert agreed(result) > 0.93


def test_a_late_label_under_a_bound():
    def rare(rows):
        return np.where(rows[:, 0] > 1.9, "rare", np.where((rows**2).sum(axis=1) < 1, "in", "out"))

    result = ec.copy_classifier(rare, PLANE, budget=900, max_kept=150, batch=30, seed=1, **QUICK)
    assert result.copy.classes_.tolist() == ["in", "out", "rare"]
    assert agreed(result, rare) > 0.93


def test_one_answer_only():
    with pytest.warns(ec.errors.EctypeWarning, match="to every one of the first"):
        result = ec.copy_classifier(lambda rows: np.zeros(len(rows), int), PLANE, budget=300, max_kept=60, **QUICK)
    assert agreed(result, lambda rows: np.zeros(len(rows), int)) == 1


# --- resuming -------------------------------------------------------------------------------------------------------


def test_an_interrupted_run_ends_in_the_same_bytes(tmp_path):
    asked, settings = [], Settings(budget=600, max_kept=120, certificate_n=200, repeat=0)

    def counting(rows):
        asked.append(len(rows))
        return rings(rows)

    original = ec.Original(counting, classes=[0, 1, 2], name="rings")
    whole = finish(copy_steps(original, PLANE, settings, out=tmp_path / "whole"))
    assert sum(asked) == 800
    asked.clear()
    steps = copy_steps(original, PLANE, settings, out=tmp_path / "run")
    for _ in range(4):
        next(steps)
    steps.close()
    again = finish(copy_steps(original, PLANE, settings, out=tmp_path / "run"))
    assert sum(asked) == 800  # no answer was paid for twice
    assert [replace(record, seconds=0) for record in again.history] == [
        replace(record, seconds=0) for record in whole.history
    ]
    files = [tmp_path / name / "copy.safetensors" for name in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert ec.load(tmp_path / "run").eff == whole.eff


def test_too_small_a_bound_is_refused_before_anything_is_asked():
    asked = []
    with pytest.raises(ec.errors.SettingError, match=f"max_kept: expected at least one batch of {LEAST} queries"):
        ec.copy_classifier(lambda rows: asked.append(rows), PLANE, budget=300, max_kept=LEAST - 1)
    assert not asked
