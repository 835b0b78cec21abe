"""Piecewise-linear inputs: the kernel makes them on its way, and nobody sees a difference."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import reference
from shapes import case

from ectype._kernel import KernelTraining, NetworkInference, PiecewiseLinear, TrainingMethod, quantile_pieces
from ectype.errors import KernelError

# Columns and pieces around 16, the columns of a panel: below, at, and above it, alone and together.
COUNTS = [(1, 0), (1, 1), (1, 15), (1, 16), (3, 14), (15, 1), (15, 40), (16, 1), (16, 16), (17, 3), (33, 100)]


def some_pieces(columns, n, seed=0):
    """Pieces of any columns, in any order, that may overlap."""
    rng = np.random.default_rng([seed, columns, n])
    low = rng.normal(size=n)
    return PiecewiseLinear(columns, rng.integers(0, columns, n), low, low + rng.exponential(size=n) + 0.01)


def problem(columns, n, hidden=(20,), soft=False):
    """A network that sees pieces, rows of the columns alone, and labels."""
    pieces = some_pieces(columns, n)
    widths = (pieces.width, *hidden, 3)
    theta, X, y = case(widths, n=150, soft=soft)
    return widths, theta, X[:, :columns], y, pieces


# --- what a piece is --------------------------------------------------------------------------------------------------


def test_a_piece_rises_from_zero_to_one_between_its_ends(rng):
    pieces = some_pieces(5, 30)
    X = rng.normal(size=(200, 5)).astype(np.float32) * 3
    found = pieces(X)
    assert found.dtype == np.float32
    assert found.shape == (200, pieces.width) == (200, 35)
    np.testing.assert_array_equal(found[:, :5], X)
    low, high = pieces.low.astype(np.float64), pieces.high.astype(np.float64)
    expected = np.clip((X[:, pieces.column] - low) / (high - low), 0, 1)
    np.testing.assert_allclose(found[:, 5:], expected, atol=2e-5)  # short pieces are steep
    assert ((found[:, 5:] == 0).any(axis=0) & (found[:, 5:] == 1).any(axis=0)).all()
    assert pieces(X.astype(np.float64)).tobytes() == found.tobytes()


def test_quantiles_are_the_ends_of_pieces(rng):
    X = np.stack([rng.permutation(101), rng.permutation(101) ** 2], axis=1).astype(np.float32)
    pieces = quantile_pieces(X, 4)
    assert pieces.columns == 2
    np.testing.assert_array_equal(pieces.column, [0, 0, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(pieces.low, [0, 25, 50, 75, 0, 625, 2500, 5625])
    np.testing.assert_array_equal(pieces.high, [25, 50, 75, 100, 625, 2500, 5625, 10000])
    # Pieces of a column follow each other: together they say where in the order a number is.
    np.testing.assert_allclose(pieces(X)[:, 2:6].sum(axis=1), X[:, 0] / 25, rtol=1e-6)


def test_columns_with_few_values_have_few_pieces_or_none(rng):
    n = 1000
    X = np.zeros((n, 5), np.float32)
    X[:, 1] = 3.25  # constant
    X[:, 2] = rng.integers(0, 2, n)  # two values
    X[:, 3] = np.where(rng.random(n) < 0.95, 0, rng.normal(size=n))  # nearly all the same
    X[:, 4] = rng.integers(0, 3, n)  # three
    pieces = quantile_pieces(X, 8)
    counts = np.bincount(pieces.column, minlength=5)
    np.testing.assert_array_equal(counts[[0, 1, 2, 4]], [0, 0, 0, 2])
    of_ties = pieces.column == 3
    np.testing.assert_array_equal(pieces.low[of_ties], [X[:, 3].min(), 0])
    np.testing.assert_array_equal(pieces.high[of_ties], [0, X[:, 3].max()])
    assert (pieces.low < pieces.high).all()
    assert quantile_pieces(X[:, :3], 8).width == 3
    assert quantile_pieces(X, 1).width == 5  # one piece says what the column does
    assert quantile_pieces(X[:1], 8).width == 5


def test_numbers_that_float32_cannot_tell_apart_or_hold_the_difference_of():
    close = 1 + np.arange(64)[:, None] * 1e-9  # one number in float32, or two
    assert len(np.unique(close.astype(np.float32))) == 2
    assert quantile_pieces(close, 8).width == 1
    tiny = np.arange(64, dtype=np.float32)[:, None] * np.float32(1e-45)
    assert quantile_pieces(tiny, 8).width == 1
    huge = np.array([[-3e38], [-1e38], [0], [1e38], [3e38]], np.float32)
    assert np.isfinite(quantile_pieces(huge, 4)(huge)).all()


# --- by the kernel ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "n"), COUNTS)
@pytest.mark.parametrize("activation", ["relu", "mish"])
def test_answers_are_those_of_a_network_that_is_given_pieces(columns, n, activation, instructions):
    widths, theta, X, _, pieces = problem(columns, n)
    found = NetworkInference(widths, theta, activation, pieces)(X)
    assert found.tobytes() == NetworkInference(widths, theta, activation)(pieces(X)).tobytes()
    scores = np.abs(reference.forward(widths, theta, pieces(X), activation)[2]).max()
    expected = reference.probabilities(widths, theta, pieces(X), activation)
    np.testing.assert_allclose(found, expected, rtol=1e-6 * (2 + scores))
    assert not np.allclose(found, NetworkInference(widths, theta, activation)(np.pad(X, ((0, 0), (0, n))))) or not n


def test_a_row_alone_is_answered_like_the_same_row_among_others(instructions):
    widths, theta, X, _, pieces = problem(7, 50)
    X[::7, 0], X[1::7, 1], X[2::7, 2] = np.nan, np.inf, -np.inf
    answers = NetworkInference(widths, theta, pieces=pieces)
    together = answers(X)
    assert together.tobytes() == np.concatenate([answers(row[None]) for row in X]).tobytes()
    expected = NetworkInference(widths, theta)(pieces(X))
    np.testing.assert_array_equal(np.isnan(together), np.isnan(expected))
    assert np.isnan(together[::7]).all()
    known = np.isfinite(expected)
    assert together[known].tobytes() == expected[known].tobytes()


@pytest.mark.parametrize(("columns", "n"), COUNTS)
@pytest.mark.parametrize("order", ["drawn", "shuffled"])
def test_training_is_that_of_rows_with_pieces(columns, n, order, instructions):
    widths, theta, X, y, pieces = problem(columns, n, hidden=(20, 17))
    method = TrainingMethod(33, 5e-3, "rho", order, penalty="bounded", lam=0.05, decay=0.01, anneal=0.5, warm=5)
    on_its_way = KernelTraining(widths, theta, X, y, method, steps=40, pieces=pieces, seed=3)
    before = KernelTraining(widths, theta, pieces(X), y, method, steps=40, seed=3)
    for training in (on_its_way, before):
        training.run(40)
    assert on_its_way.theta.tobytes() == before.theta.tobytes()
    assert on_its_way.theta.tobytes() != theta.tobytes()


def test_soft_targets_and_weights_go_with_pieces(rng):
    widths, theta, X, y, pieces = problem(5, 30, soft=True)
    weights = rng.uniform(0, 2, len(X))
    method = TrainingMethod(33, 5e-3, "cross-entropy", activation="mish")
    both = [
        KernelTraining(widths, theta, rows, y, method, steps=40, weights=weights, **more)
        for rows, more in ((X, {"pieces": pieces}), (pieces(X), {}))
    ]
    for training in both:
        training.run(40)
    assert both[0].theta.tobytes() == both[1].theta.tobytes()


def test_pieces_learn_what_a_threshold_is(rng):
    """A step at an odd place, from few steps of training: what pieces are for."""
    X = rng.uniform(-1, 1, size=(2000, 1)).astype(np.float32)
    y = ((X[:, 0] > 0.2) & (X[:, 0] < 0.35) | (X[:, 0] < -0.7)).astype(np.int32)
    right = {}
    for bins in (1, 24):
        pieces = quantile_pieces(X, bins)
        widths = (pieces.width, 16, 2)
        method = TrainingMethod(64, 5e-3, "cross-entropy")
        training = KernelTraining(widths, case(widths)[0] * np.float32(0.3), X, y, method, steps=300, pieces=pieces)
        training.run(300)
        right[bins] = (NetworkInference(widths, training.theta, pieces=pieces)(X).argmax(axis=1) == y).mean()
    assert right[24] > 0.95
    assert right[24] > right[1] + 0.05


# --- as objects -------------------------------------------------------------------------------------------------------


def test_pieces_and_their_answers_travel():
    widths, theta, X, _, pieces = problem(7, 50)
    answers = NetworkInference(widths, theta, "mish", pieces)
    expected, shown = answers(X).tobytes(), pieces(X).tobytes()
    for travel in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        same = travel(pieces)
        assert same(X).tobytes() == shown
        assert same.address != pieces.address
        assert NetworkInference(widths, theta, "mish", same)(X).tobytes() == expected
        assert travel(answers)(X).tobytes() == expected
    moved = pickle.loads(pickle.dumps(answers))
    del answers, pieces, same  # nothing of the first is needed
    assert moved(X).tobytes() == expected


def test_pieces_keep_what_they_were_made_of():
    column, low, high = np.array([0], np.int32), np.array([0.0], np.float32), np.array([1.0], np.float32)
    pieces = PiecewiseLinear(1, column, low, high)
    answers = NetworkInference((2, 2), case((2, 2))[0], pieces=pieces)
    expected = answers(np.array([[0.5]]))
    column[0], low[0], high[0] = 2**30, 5, 6
    assert answers(np.array([[0.5]])).tobytes() == expected.tobytes()


def test_several_threads_make_answers_of_the_same_pieces():
    widths, theta, X, _, pieces = problem(7, 50)
    expected = NetworkInference(widths, theta, pieces=pieces)(X).tobytes()
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: NetworkInference(widths, theta, pieces=copy.copy(pieces))(X).tobytes(), range(100))
    assert {*found} == {expected}


# --- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "column", "low", "high"),
    [
        (2, [2], [0], [1]),
        (2, [-1], [0], [1]),
        (2, [0, 1], [0], [1]),
        (2, [0], [0, 1], [1]),
        (2, [0], [0], [1, 2]),
        (2, [[0]], [[0]], [[1]]),
        (2, 0, 0, 1),
        (2, [0], [1], [1]),
        (2, [0], [2], [1]),
        (2, [0], [0], [1e-45]),
        (2, [0], [np.nan], [1]),
        (2, [0], [0], [np.nan]),
        (2, [0], [-np.inf], [1]),
        (2, [0], [np.inf], [np.inf]),
        (0, [], [], []),
        (-3, [], [], []),
    ],
)
def test_pieces_that_are_none_are_refused(columns, column, low, high):
    with pytest.raises(
        KernelError, match=f"^pieces: expected a column of {columns}, a start and a greater end for each"
    ):
        PiecewiseLinear(columns, *(np.array(part) for part in (column, low, high)))


@pytest.mark.parametrize(
    ("name", "X", "bins"),
    [
        ("X", np.zeros((0, 2)), 3),
        ("X", np.zeros((3, 0)), 3),
        ("X", np.zeros(3), 3),
        *(("X", np.array([[0.0], [wrong], [1.0]]), 3) for wrong in (np.nan, np.inf, -np.inf, 1e39)),
        ("bins", np.zeros((3, 2)), 0),
        ("bins", np.zeros((3, 2)), -5),
    ],
)
def test_columns_without_quantiles_are_refused(name, X, bins):
    with pytest.raises(KernelError, match=f"^{name}: "):
        quantile_pieces(X, bins)


def test_pieces_that_do_not_fit_the_network_or_the_rows_are_refused(monkeypatch):
    widths, theta, X, y, pieces = problem(5, 30)
    for place in ("_inference", "_training"):
        monkeypatch.setattr(f"ectype._kernel.{place}.library", lambda: pytest.fail("a pointer would have been passed"))
    fewer, wider = some_pieces(5, 29), PiecewiseLinear(6, pieces.column, pieces.low, pieces.high)
    for other in (fewer, wider):
        with pytest.raises(KernelError, match=r"^pieces: "):
            NetworkInference(widths, theta, pieces=other)
        with pytest.raises(KernelError, match=r"^pieces: "):
            KernelTraining(widths, theta, X, y, TrainingMethod(), steps=1, pieces=other)
    for rows in (X[:, 1:], pieces(X)):
        with pytest.raises(KernelError, match=r"^X: "):
            KernelTraining(widths, theta, rows, y, TrainingMethod(), steps=1, pieces=pieces)
    monkeypatch.undo()
    answers = NetworkInference(widths, theta, pieces=pieces)
    for rows in (X[:, 1:], pieces(X)):
        with pytest.raises(KernelError, match=r"^rows: expected 5 inputs each"):
            answers(rows)


def test_a_training_outlives_the_names_of_its_pieces():
    widths, theta, X, y, pieces = problem(5, 30)
    method = replace(TrainingMethod(), batch=16)
    first = KernelTraining(widths, theta, X, y, method, steps=30, pieces=pieces)
    second = KernelTraining(widths, theta, X, y, method, steps=30, pieces=some_pieces(5, 30))
    for training in (first, second):
        training.run(30)
    assert first.theta.tobytes() == second.theta.tobytes()
