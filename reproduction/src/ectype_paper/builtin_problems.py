"""Problems that need no download: those of scikit-learn, and those with a public definition, generated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

Table = tuple[np.ndarray, np.ndarray]
Board = tuple[int, ...]
# The cells of a board, in the order and with the numbers that the public collection gives them.
X_MARK, BLANK, O_MARK = 0, 1, 2
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def twonorm(n: int = 7400, seed: int = 0, d: int = 20) -> Table:
    """Breiman's twonorm: two round normal clouds around a and -a in every column, a = 2 / sqrt(d)."""
    rng = np.random.default_rng([seed, 1])
    y = rng.integers(0, 2, n)
    centre = 2 / np.sqrt(d) * np.where(y == 0, 1, -1)
    return centre[:, None] + rng.normal(size=(n, d)), y


def ringnorm(n: int = 7400, seed: int = 0, d: int = 20) -> Table:
    """Breiman's ringnorm: a normal cloud of variance 4 around 0, and one of variance 1 around a = 2 / sqrt(d)."""
    rng = np.random.default_rng([seed, 2])
    y = rng.integers(0, 2, n)
    centre, spread = np.where(y == 0, 0, 2 / np.sqrt(d)), np.where(y == 0, 2, 1)
    return centre[:, None] + spread[:, None] * rng.normal(size=(n, d)), y


def waveform(n: int = 5000, seed: int = 0, noise: int = 0) -> Table:
    """Breiman's waveform: a random mixture of two of three triangular waves, plus noise, in 21 columns.

    `noise` adds columns that say nothing.

    >>> X, y = waveform(300)
    >>> X.shape, np.unique(y).tolist()
    ((300, 21), [0, 1, 2])
    """
    rng = np.random.default_rng([seed, 3, noise])
    at = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(at - np.array([[11], [15], [7]])), 0)
    y = rng.integers(0, 3, n)
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    share = rng.uniform(size=(n, 1))
    X = share * waves[first] + (1 - share) * waves[second] + rng.normal(size=(n, 21))
    return np.hstack([X, rng.normal(size=(n, noise))]), y


def waveform_noise(n: int = 5000, seed: int = 0) -> Table:
    """Breiman's waveform with 19 columns of noise."""
    return waveform(n, seed, noise=19)


def tic_tac_toe() -> Table:
    """Every board on which a game that x began may end, and whether x won.

    >>> X, y = tic_tac_toe()
    >>> X.shape, int(y.sum())
    ((958, 9), 626)
    """
    ends: set[Board] = set()
    boards: set[Board] = {(BLANK,) * 9}
    for mover in (X_MARK, O_MARK) * 5:
        over = {board for board in boards if _won(board, X_MARK) or _won(board, O_MARK) or BLANK not in board}
        ends |= over
        boards = {after for board in boards - over for after in _moves(board, mover)}
    ordered = sorted(ends)
    return np.array(ordered, float), np.array([_won(board, X_MARK) for board in ordered], int)


def _moves(board: Board, mover: int) -> Iterator[Board]:
    """The boards that one move leads to."""
    for cell in (at for at in range(9) if board[at] == BLANK):
        yield (*board[:cell], mover, *board[cell + 1 :])


def _won(board: Board, mark: int) -> bool:
    return any(board[a] == board[b] == board[c] == mark for a, b, c in LINES)


def _bundled(loader: str) -> Callable[[], Table]:
    """A problem that comes with scikit-learn."""

    def table() -> Table:
        from sklearn import datasets

        return getattr(datasets, loader)(return_X_y=True)

    return table


BUILT_IN: dict[str, Callable[[], Table]] = {
    "breast-cancer-wisc-diag": _bundled("load_breast_cancer"),
    "iris": _bundled("load_iris"),
    "ringnorm": ringnorm,
    "tic-tac-toe": tic_tac_toe,
    "twonorm": twonorm,
    "waveform": waveform,
    "waveform-noise": waveform_noise,
    "wine": _bundled("load_wine"),
}
