"""Problems that need no download: their sizes, and what is known about them in theory."""

from pathlib import Path

import numpy as np
import pytest

from ectype.toy_problems import TOYS
from ectype_paper import FAMILY_OF, load, names
from ectype_paper.builtin_problems import BUILT_IN, ringnorm, tic_tac_toe, twonorm, waveform, waveform_noise

UCI = Path(__file__).parents[2].parent / "shared" / "uci"
SIZES = {
    "breast-cancer-wisc-diag": (569, 30, 2),
    "iris": (150, 4, 3),
    "ringnorm": (7400, 20, 2),
    "tic-tac-toe": (958, 9, 2),
    "twonorm": (7400, 20, 2),
    "waveform": (5000, 21, 3),
    "waveform-noise": (5000, 40, 3),
    "wine": (178, 13, 3),
}


def test_all_have_the_sizes_that_the_paper_gives_and_are_among_its_problems():
    assert {name: (*X.shape, len(np.unique(y))) for name, (X, y) in tables()} == SIZES
    assert set(SIZES) <= set(FAMILY_OF)
    assert set(names()) == set(SIZES) | set(TOYS)


def tables():
    return ((name, make()) for name, make in BUILT_IN.items())


@pytest.mark.parametrize("name", sorted(SIZES))
def test_all_load_prepared_and_the_same_every_time(name):
    one, two = load(None, name), load(None, name)
    assert one.digest == two.digest
    assert len(one.y_test) == pytest.approx(0.2 * SIZES[name][0], abs=2)
    np.testing.assert_allclose(one.X_train.mean(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("make", [twonorm, ringnorm, waveform, waveform_noise])
def test_classes_are_equally_likely(make):
    _, y = make()
    np.testing.assert_allclose(np.bincount(y) / len(y), 1 / len(np.unique(y)), atol=0.02)


def test_twonorm_has_the_bayes_error_of_its_definition():
    X, y = twonorm(200_000)
    assert np.mean((X.sum(axis=1) < 0) != y) == pytest.approx(0.0228, abs=0.001)  # Phi(-2)


def test_ringnorm_has_the_moments_and_the_bayes_error_of_its_definition():
    X, y = ringnorm(200_000)
    a = 2 / np.sqrt(20)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(X[y == 0].var(axis=0), 4, rtol=0.05)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), a, atol=0.05)
    np.testing.assert_allclose(X[y == 1].var(axis=0), 1, rtol=0.05)
    nearer = ((X - a) ** 2).sum(axis=1) / 2 < (X**2).sum(axis=1) / 8 + 20 * np.log(2)
    assert np.mean(nearer != y) == pytest.approx(0.013, abs=0.002)  # Breiman gives 1.3 %


def test_waveforms_are_mixtures_of_two_of_three_triangles():
    X, y = waveform(60_000)
    triangle = np.maximum(6 - np.abs(np.arange(1, 22) - 11), 0)
    shifted = [triangle, np.roll(triangle, 4), np.roll(triangle, -4)]
    for label, (one, two) in enumerate([(0, 1), (0, 2), (1, 2)]):
        np.testing.assert_allclose(X[y == label].mean(axis=0), (shifted[one] + shifted[two]) / 2, atol=0.1)
    noise, labels = waveform_noise(20_000)
    np.testing.assert_allclose(noise[:, 21:].mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(noise[:, 21:].std(axis=0), 1, atol=0.05)
    assert all(abs(np.corrcoef(noise[:, 30], labels == label)[0, 1]) < 0.03 for label in range(3))


def test_tic_tac_toe_has_every_end_of_a_game_once():
    X, y = tic_tac_toe()
    assert np.bincount(y).tolist() == [332, 626]
    assert len(np.unique(X, axis=0)) == 958
    x, o = (X == 0).sum(axis=1), (X == 2).sum(axis=1)
    assert set((x - o).tolist()) == {0, 1}  # x begins
    assert (x[y == 1] > o[y == 1]).all()
    assert (X[y == 0] != 1).all(axis=1).sum() == 16  # drawn: o never has the last move


@pytest.mark.skipif(not UCI.is_dir(), reason="the folder of the paper's problems is not beside the project")
def test_tic_tac_toe_is_the_collections():
    def boards(problem):
        X = np.vstack([problem.X_train, problem.X_test])
        codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in X.T])
        return {(*row, label) for row, label in zip(codes.tolist(), [*problem.y_train, *problem.y_test], strict=True)}

    assert boards(load(UCI, "tic-tac-toe")) == boards(load(None, "tic-tac-toe"))
