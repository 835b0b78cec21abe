"""Radial basis functions of the kernel, against a reference in float64."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from interrupts import interrupted
from reference_trees import radial

from ectype._kernel import RbfKernel
from ectype.errors import KernelError


def case(n=300, d=5, classes=3, rows=70, seed=0):
    """Centres, their weights, and rows."""
    rng = np.random.default_rng([seed, n, d, classes])
    return (
        part.astype(np.float32)
        for part in (rng.normal(size=(n, d)), rng.normal(size=(n, classes)), rng.normal(size=(rows, d)))
    )


@pytest.mark.parametrize("n", [1, 15, 255, 256, 257, 1000])
@pytest.mark.parametrize(("d", "classes"), [(1, 1), (5, 3), (40, 10)])
@pytest.mark.parametrize("gamma", [0.0, 1e-3, 0.2, 5.0])
def test_sums_are_right_for_any_number_of_centres(n, d, classes, gamma):
    centres, weights, X = case(n, d, classes)
    found = RbfKernel(centres, weights, gamma)(X)
    assert found.dtype == np.float32
    expected, size = radial(centres, weights, gamma, X)
    # An error of the exponent, up to 87, is a relative error of a term; terms are added up in float32. Below exp(-87)
    # nothing is nearer to zero.
    np.testing.assert_array_less(np.abs(found - expected), 1e-5 * size + n * 1e-36)


def test_a_row_alone_has_the_sums_of_the_same_row_among_others():
    centres, weights, X = case(n=777, rows=200)
    X[::7, 0], X[1::7, 1] = np.nan, np.inf  # neighbours that are none do not show
    sums = RbfKernel(centres, weights, 0.3)
    together = sums(X)
    assert together.tobytes() == np.concatenate([sums(row[None]) for row in X]).tobytes()
    sums._piece = 3
    assert sums(X).tobytes() == together.tobytes()
    assert np.isnan(together[::7]).all()
    assert np.isfinite(together[1::7][[0, 2]]).all()
    assert np.abs(together[1]).max() < 1e-30  # far from everything
    assert np.isfinite(together[2:7]).all()


def test_a_centre_that_is_hit_counts_in_full():
    centres, weights, _ = case(n=3)
    far = centres * np.float32(1000)
    np.testing.assert_allclose(RbfKernel(far, weights, 1.0)(far), weights, rtol=1e-6)


def test_what_is_far_away_counts_nothing_however_far():
    centres, weights, _ = case(n=3)
    X = np.array([[1e3] * 5, [1e18] * 5, [3e38] * 5], np.float32)
    found = RbfKernel(centres, weights, 1.0)(X)
    assert (np.abs(found) < 1e-36).all()


def test_no_rows_have_no_sums():
    assert RbfKernel(np.zeros((3, 2)), np.zeros((3, 4)), 1.0)(np.zeros((0, 2))).shape == (0, 4)


def test_rows_of_other_types_and_orders_are_read_as_they_are():
    centres, weights, X = case()
    expected = RbfKernel(centres, weights, 0.3)(X).tobytes()
    unaligned = np.ndarray(X.shape, np.float32, bytearray(b"x" + X.tobytes()), 1)
    for same in (X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], unaligned):
        assert RbfKernel(np.asfortranarray(centres), weights.astype(np.float64), 0.3)(same).tobytes() == expected


def test_radial_functions_travel_and_several_threads_ask_at_once():
    centres, weights, X = case(rows=500)
    sums = RbfKernel(centres, weights, 0.3)
    expected = sums(X).tobytes()
    for same in (pickle.loads(pickle.dumps(sums)), copy.deepcopy(sums)):
        assert same(X).tobytes() == expected
    with ThreadPoolExecutor(8) as pool:
        assert {part.tobytes() for part in pool.map(lambda _: sums(X), range(20))} == {expected}


def test_an_interrupt_is_heard_in_between():
    centres, weights, X = case(n=3000, d=20)
    rows = np.repeat(np.pad(X, ((0, 0), (0, 15)))[:, :20], 2000, axis=0)  # this takes seconds
    assert interrupted(lambda: RbfKernel(centres, weights, 0.3)(rows)) < 0.4


@pytest.mark.parametrize(
    ("name", "centres", "weights", "gamma"),
    [
        ("centres", np.zeros((0, 2)), np.zeros((0, 3)), 1.0),
        ("centres", np.zeros((4, 0)), np.zeros((4, 3)), 1.0),
        ("centres", np.zeros(4), np.zeros((4, 3)), 1.0),
        ("weights", np.zeros((4, 2)), np.zeros((5, 3)), 1.0),
        ("weights", np.zeros((4, 2)), np.zeros((3, 3)), 1.0),
        ("weights", np.zeros((4, 2)), np.zeros(4), 1.0),
        ("weights", np.zeros((4, 2)), np.zeros((4, 0)), 1.0),
        *(("gamma", np.zeros((4, 2)), np.zeros((4, 3)), wrong) for wrong in (np.nan, np.inf, -1.0, 1e39)),
    ],
)
def test_centres_and_weights_that_do_not_fit_are_refused(name, centres, weights, gamma):
    with pytest.raises(KernelError, match=f"^{name}: "):
        RbfKernel(centres, weights, gamma)


@pytest.mark.parametrize("shape", [(4,), (4, 2), (4, 4), (4, 3, 1)])
def test_rows_that_do_not_fit_are_refused(shape):
    with pytest.raises(KernelError, match=r"^rows: expected 3 inputs each"):
        RbfKernel(np.zeros((2, 3)), np.zeros((2, 2)), 1.0)(np.zeros(shape))
