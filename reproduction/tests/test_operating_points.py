"""Operational points from records made by hand: the rule of 0.95, what stands in, and ties."""

import pytest

from ectype.errors import SettingError
from ectype_paper.operating_points import operational_points


def record(method, delta=None, repetition=0, **measures):
    unit = {"problem": "wine", "space": "normal", "method": method, "delta": delta, "repetition": repetition}
    return {**unit, "memory": "automatic", "points": None, "fidelity": 0.9, "eff": None, "conv": None, **measures}


def one_shot(*accuracies):
    return [record("one-shot", repetition=k, accuracy=value) for k, value in enumerate(accuracies)]


def at(delta, accuracy, eff, conv, repetition=0, **others):
    return record("sequential", delta, repetition, accuracy=accuracy, eff=eff, conv=conv, **others)


def test_each_point_is_the_best_of_the_thresholds_that_are_accurate_enough():
    records = [
        *one_shot(0.9, 1.0),
        at(1e-4, 0.80, 0.99, 0.99),  # below 0.95 of 0.95: the best of all in the others, but left out
        at(1e-6, 0.92, 0.80, 0.90),
        at(1e-8, 0.94, 0.50, 0.95),
        at(1e-10, 0.98, 0.20, 0.93),
    ]
    points = operational_points(records)
    assert points.eligible
    assert (points.problem, points.single_accuracy.mean) == ("wine", pytest.approx(0.95))
    best = points.best_accuracy, points.best_efficiency, points.best_convergence
    assert [one.delta for one in best] == [1e-10, 1e-6, 1e-8]
    assert [one.delta for one in points.deltas] == [1e-4, 1e-6, 1e-8, 1e-10]


@pytest.mark.parametrize(("accuracy", "efficient"), [(0.4750001, 1e-4), (0.475, 1e-8), (0.47, 1e-8)])
def test_more_than_095_of_the_single_pass_is_asked_for(accuracy, efficient):
    points = operational_points([*one_shot(0.5), at(1e-4, accuracy, 0.9, 0.9), at(1e-8, 0.5, 0.2, 0.8)])
    assert points.best_efficiency.delta == efficient


def test_it_is_the_mean_over_repetitions_that_counts():
    records = [*one_shot(1.0, 0.9), at(1e-4, 0.5, 0.9, 0.9, fidelity=0.6), at(1e-4, 1.0, 0.7, 0.8, 1, fidelity=0.8)]
    records += [at(1e-8, 0.98, 0.2, 0.9), at(1e-8, 0.96, 0.4, 0.9, 1)]
    points = operational_points(records)
    assert points.best_efficiency.delta == 1e-8
    assert points.best_accuracy.accuracy.mean == pytest.approx(0.97)
    assert points.best_accuracy.accuracy.std == pytest.approx(0.01)
    assert points.deltas[0].eff.mean == pytest.approx(0.8)
    assert points.deltas[0].fidelity.values == (0.6, 0.8)


def test_where_none_is_accurate_enough_the_most_accurate_stands_for_all_three():
    points = operational_points([*one_shot(1.0), at(1e-4, 0.6, 0.9, 0.99), at(1e-8, 0.7, 0.2, 0.8)])
    assert not points.eligible
    best = points.best_accuracy, points.best_efficiency, points.best_convergence
    assert [one.delta for one in best] == [1e-8] * 3


def test_of_equally_good_thresholds_the_largest_is_taken():
    points = operational_points([*one_shot(1.0), at(1e-8, 1.0, 0.2, 1.0), at(1e-4, 1.0, 0.9, 1.0)])
    assert points.best_accuracy.delta == points.best_convergence.delta == 1e-4


def test_other_methods_memories_and_smaller_single_passes_are_left_out():
    others = [at(1e-4, 1.0, 1.0, 1.0, memory="none"), at(1e-4, 1.0, 1.0, 1.0, memory=0.05)]
    others += [record("pure", accuracy=1.0, eff=0.0, conv=1.0), record("one-shot", points=500, accuracy=0.1)]
    points = operational_points([*others, *one_shot(0.9), at(1e-6, 0.9, 0.7, 0.8)])
    assert [one.delta for one in points.deltas] == [1e-6]
    assert points.single_accuracy.values == (0.9,)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "one problem"),
        ([*one_shot(1.0), {**at(1e-6, 1, 1, 1), "problem": "iris"}], "one problem"),
        ([*one_shot(1.0), {**at(1e-6, 1, 1, 1), "space": "learned"}], "one problem"),
        ([at(1e-6, 1, 1, 1)], "single pass"),
        (one_shot(1.0), "sequential method"),
    ],
)
def test_what_is_missing_or_mixed_is_said(records, said):
    with pytest.raises(SettingError, match=said):
        operational_points(records)
