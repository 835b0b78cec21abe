"""Answers of the kernel, against a reference in float64."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import reference
from shapes import SHAPES, case

from ectype._kernel import NetworkInference
from ectype._kernel._inference import ROWS
from ectype.errors import KernelError


@pytest.mark.parametrize("widths", SHAPES, ids=str)
@pytest.mark.parametrize("activation", ["relu", "mish"])
def test_answers_are_right_for_any_shape(widths, activation, instructions):
    theta, X, _ = case(widths, n=200)
    found = NetworkInference(widths, theta, activation)(X)
    assert found.dtype == np.float32
    # Scores are sums rounded to 24 bits a few times; an error of a score is a relative error of a probability.
    scores = np.abs(reference.forward(widths, theta, X, activation)[2]).max()
    np.testing.assert_allclose(found, reference.probabilities(widths, theta, X, activation), rtol=1e-6 * (2 + scores))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=2e-6)


@pytest.mark.parametrize("activation", ["relu", "mish"])
def test_a_row_alone_is_answered_like_the_same_row_among_others(activation, instructions):
    theta, X, _ = case((7, 33, 20, 3), n=1000)
    X[::7, 0], X[1::7, 1] = np.nan, np.inf  # neighbours that are none do not show
    answers = NetworkInference((7, 33, 20, 3), theta, activation)
    together = answers(X)
    assert together.tobytes() == np.concatenate([answers(row[None]) for row in X]).tobytes()
    for n in (2, 15, 16, 17, ROWS - 1, ROWS, ROWS + 1, 999):
        assert answers(X[-n:]).tobytes() == together[-n:].tobytes()
    assert np.isnan(together[::7]).all()
    assert np.isfinite(together[2:7]).all()


def test_what_is_not_a_number_stays_so_whatever_its_bits(instructions):
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0x7FC001FF, 0xFFFFFFFF, 0x7FFFFF80, 0x7F800001], np.uint32)
    X = bits.view(np.float32)[:, None]
    for activation in ("relu", "mish"):
        assert np.isnan(NetworkInference((1, 3, 2), case((1, 3, 2))[0], activation)(X)).all()


def test_large_scores_do_not_overflow():
    found = NetworkInference((1, 3), np.array([1, 0, -1, 0, 0, 0], np.float32))(
        np.array([[1e30], [-1e30], [90]], np.float32)
    )
    np.testing.assert_allclose(found, [[1, 0, 0], [0, 0, 1], [1, 0, 0]], atol=1e-30)
    assert (found > 0).all()  # rho needs what is far below the rounding of 1
    assert (found < 1.5).all()


def test_several_threads_ask_at_once():
    theta, X, _ = case((7, 33, 20, 3), n=5000)
    answers = NetworkInference((7, 33, 20, 3), theta)
    expected = NetworkInference((7, 33, 20, 3), theta)(X)
    parts = np.array_split(np.arange(5000), 200)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda rows: answers(X[rows]), parts))
    assert np.concatenate(found).tobytes() == expected.tobytes()


def test_no_rows_have_no_answers():
    assert NetworkInference((2, 3), np.zeros(9))(np.zeros((0, 2))).shape == (0, 3)


def test_rows_of_other_types_and_orders_are_read_as_they_are():
    theta, X, _ = case((7, 5, 3), n=90)
    answers = NetworkInference((7, 5, 3), theta)
    expected = answers(X).tobytes()
    for same in (X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[::-1][::-1]):
        assert answers(same).tobytes() == expected


def test_answers_travel_after_they_were_asked():
    theta, X, _ = case((7, 5, 3), n=9)
    answers = NetworkInference((7, 5, 3), theta, "mish")
    expected = answers(X).tobytes()
    for same in (pickle.loads(pickle.dumps(answers)), copy.deepcopy(answers)):
        assert same(X).tobytes() == expected


@pytest.mark.parametrize(
    ("name", "widths", "theta", "activation"),
    [
        ("widths", (), np.zeros(0), "relu"),
        ("widths", (3,), np.zeros(0), "relu"),
        ("widths", (3, 0, 2), np.zeros(2), "relu"),
        ("widths", (3, *[1] * 16, 2), np.zeros(38), "relu"),
        ("theta", (3, 2), np.zeros(7), "relu"),
        ("theta", (3, 2), np.zeros((8, 1)), "relu"),
        ("activation", (3, 2), np.zeros(8), "tanh"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(monkeypatch, name, widths, theta, activation):
    monkeypatch.setattr("ectype._kernel._inference.library", lambda: pytest.fail("a pointer would have been passed"))
    with pytest.raises(KernelError, match=f"^{name}: "):
        NetworkInference(widths, theta, activation)


@pytest.mark.parametrize("shape", [(4,), (4, 2), (4, 4), (4, 3, 1)])
def test_rows_that_do_not_fit_are_refused(shape):
    with pytest.raises(KernelError, match=r"^rows: expected 3 inputs each"):
        NetworkInference((3, 2), np.zeros(8))(np.zeros(shape))
