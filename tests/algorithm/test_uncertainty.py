import numpy as np
import pytest

from ectype.algorithm.uncertainty import empirical_risk, rho, rho_squared, softmax


def test_rho_is_the_normalised_distance_to_the_one_hot_answer(rng):
    p = softmax(rng.normal(size=(50, 4)))
    y = rng.integers(0, 4, 50)
    by_definition = np.linalg.norm(p - np.eye(4)[y], axis=1) / np.sqrt(4)
    np.testing.assert_allclose(rho(p, y), by_definition, rtol=1e-12)


@pytest.mark.parametrize("exponent", [4, 6, 8, 10, 12])
def test_rho_survives_float32_far_below_its_epsilon(exponent):
    gap = exponent * np.log(10)
    exact = rho(softmax(np.array([[gap, 0.0]])), np.array([0]))
    single = rho(softmax(np.array([[gap, 0.0]], np.float32)), np.array([0], np.int32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=1e-5)
    assert exact[0] == pytest.approx(10.0**-exponent, rel=0.01)


def test_risk_is_the_mean_square(rng):
    p, y = softmax(rng.normal(size=(30, 2))), rng.integers(0, 2, 30)
    assert empirical_risk(p, y) == pytest.approx(np.mean(rho(p, y) ** 2))
    assert empirical_risk(p, y) == pytest.approx(np.mean(rho_squared(p, y)))


def test_risk_of_nothing_is_zero():
    assert empirical_risk(np.zeros((0, 2)), np.zeros(0, int)) == 0


def test_one_class_leaves_no_uncertainty():
    assert rho(softmax(np.array([[3.0], [-2.0]])), np.array([0, 0])).tolist() == [0, 0]
