"""The paper's toy problems in the plane, standardised like all of its data.

>>> sorted(TOYS)
['moons', 'spirals', 'yin-yang']
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Problem = tuple[np.ndarray, np.ndarray]


def spirals(n: int = 10_000, seed: int = 0, turns: float = 2.0, noise: float = 0.01) -> Problem:
    """Two interleaved arms, each winding twice around the centre.

    >>> X, y = spirals(1000)
    >>> X.shape, np.bincount(y).tolist()
    ((1000, 2), [500, 500])
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    # The root gives even density along the arm, whose turns get longer outwards; the arms do not meet in the centre.
    along = 0.1 + 0.9 * np.sqrt(rng.uniform(size=n))
    angle = 2 * np.pi * turns * along + np.pi * y
    X = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _standard(X + rng.normal(scale=noise, size=X.shape)), y


def moons(n: int = 10_000, seed: int = 0, noise: float = 0.15) -> Problem:
    """Two half circles that reach into each other."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = np.pi * rng.uniform(size=n)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    X = np.where(y[:, None] == 0, upper, lower)
    return _standard(X + rng.normal(scale=noise, size=X.shape)), y


def yin_yang(n: int = 10_000, seed: int = 0) -> Problem:
    """A disc parted by two half circles, each part with an eye of the other's colour."""
    rng = np.random.default_rng(seed)
    radius, angle = np.sqrt(rng.uniform(size=n)), 2 * np.pi * rng.uniform(size=n)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    above, below = np.hypot(X[:, 0], X[:, 1] - 0.5), np.hypot(X[:, 0], X[:, 1] + 0.5)
    light = (X[:, 0] > 0) & (above > 0.5) | (below <= 0.5)
    eye = (above < 0.15) | (below < 0.15)
    return _standard(X), (light ^ eye).astype(int)


def _standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / X.std(axis=0)


TOYS: dict[str, Callable[..., Problem]] = {"spirals": spirals, "moons": moons, "yin-yang": yin_yang}
