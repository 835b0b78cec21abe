import numpy as np
import pytest

from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import drop_compressed, keep_all, keep_fresh
from ectype.algorithm.uncertainty import rho


@pytest.fixture
def halves(small):
    _, _, S = small
    return SampleSet(S.X[:40], S.y[:40]), SampleSet(S.X[40:], S.y[40:])


@pytest.mark.parametrize("quantile", [0.0, 0.3, 0.9, 1.0])
def test_dropping_keeps_exactly_rho_at_least_delta_under_the_previous_parameters(small, halves, quantile):
    network, theta, S = small
    values = rho(network.probabilities(theta, S.X), S.y)
    delta = float(np.sort(values)[int(quantile * (len(values) - 1))])  # a value that occurs: >= must keep it
    kept = drop_compressed(network, delta)(theta, *halves, 1)
    expected = values >= delta
    np.testing.assert_array_equal(kept.X, S.X[expected])
    np.testing.assert_array_equal(kept.y, S.y[expected])
    assert (rho(network.probabilities(theta, kept.X), kept.y) >= delta).all()


def test_dropping_can_leave_nothing(small, halves):
    network, theta, _ = small
    assert len(drop_compressed(network, 0.999)(theta, *halves, 1)) == 0


def test_pure_sequential_keeps_all_and_online_keeps_only_the_fresh(small, halves):
    _, theta, S = small
    np.testing.assert_array_equal(keep_all(theta, *halves, 1).X, S.X)
    assert keep_fresh(theta, *halves, 1) is halves[1]


def test_beyond_the_most_it_may_keep_the_most_uncertain_stay_and_some_of_the_others(small, halves):
    network, theta, S = small
    values = np.sort(rho(network.probabilities(theta, S.X), S.y))[::-1]
    for most in (1, 2, 7, len(S) - 1):
        kept = drop_compressed(network, 0.0, most=most)(theta, *halves, 1)
        found = np.sort(rho(network.probabilities(theta, kept.X), kept.y))[::-1]
        half = most - most // 2
        assert len(found) == most
        np.testing.assert_array_equal(found[:half], values[:half])
        if most > 3:
            assert found[-1] == values[-1]  # spread over the whole of the ranking
    assert len(drop_compressed(network, 0.0, most=len(S))(theta, *halves, 1)) == len(S)


def test_few_points_are_kept_whatever_their_uncertainty(small, halves):
    network, theta, S = small
    for free, kept in ((len(S), len(S)), (len(S) - 1, 0)):
        assert len(drop_compressed(network, 0.999, free=free)(theta, *halves, 1)) == kept
