"""Scouts: quick models that find out where to ask, and are weighed by what they did not know."""

import numpy as np
import pytest

import ectype as ec
from ectype.algorithm.mlp import MLP, Network
from ectype.algorithm.sample_set import SampleSet
from ectype.methods.committee import fit_committee, reweight
from ectype.models.capacity import Capacity


@pytest.fixture
def ignorant():
    """A network that knows nothing."""
    return Network(MLP(6, (), 2), np.zeros(14, np.float32))


def answers(rng, n):
    X = rng.normal(size=(n, 6)).astype(np.float32)
    return SampleSet(X, (X.sum(axis=1) > 0).astype(np.int32))


def test_news_of_a_linear_original_give_the_linear_scout_most_power(rng, ignorant):
    before = fit_committee(ignorant, answers(rng, 200), 2, Capacity(), 0, many=True)
    assert np.ptp(before.powers) == 0
    network, trees, linear, smooth = reweight(before, before, answers(rng, 300)).powers
    assert linear > max(network, trees, smooth)


def test_news_of_another_number_of_classes_weigh_nobody(rng, ignorant):
    before = fit_committee(ignorant, answers(rng, 200), 2, Capacity(), 0, many=False)
    wider = fit_committee(
        Network(MLP(6, (), 3), np.zeros(21, np.float32)), answers(rng, 200), 3, Capacity(), 0, many=False
    )
    assert reweight(wider, before, answers(rng, 50)) is wider


def test_where_batches_are_many_there_are_trees_only(rng, ignorant):
    found = fit_committee(ignorant, answers(rng, 100), 2, Capacity(), 0, many=False).members
    assert [model.kind for model in found] == ["mlp", "trees"]


def test_a_certificate_changes_nothing_that_is_asked():
    asked = {0: [], 50: []}
    for n, rows in asked.items():

        def plane(X, rows=rows):
            rows.append(X.copy())
            return X.sum(axis=1) > 0

        ec.copy_classifier(plane, ec.Space.normal(3), budget=300, certificate_n=n, repeat=0, to="linear")
    without, beside = (np.concatenate(rows) for rows in asked.values())
    np.testing.assert_array_equal(np.unique(without, axis=0), np.unique(beside[-300:], axis=0))
