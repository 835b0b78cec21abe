import numpy as np
import pytest
from sklearn.svm import SVC

from ectype.toy_problems import TOYS


@pytest.mark.parametrize(("name", "reachable"), [("spirals", 0.999), ("moons", 0.98), ("yin-yang", 0.985)])
def test_toys_are_standardised_and_an_rbf_svm_learns_them(name, reachable):
    X, y = TOYS[name](10_000)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert 0.35 < y.mean() < 0.65
    assert SVC(C=1000, gamma=1).fit(X[:8000], y[:8000]).score(X[8000:], y[8000:]) >= reachable


@pytest.mark.parametrize("make", TOYS.values(), ids=TOYS)
def test_same_seed_same_points(make):
    np.testing.assert_array_equal(make(50, seed=3)[0], make(50, seed=3)[0])
    assert (make(50, seed=3)[0] != make(50, seed=4)[0]).any()
