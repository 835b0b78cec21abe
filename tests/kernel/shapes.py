"""Networks of many shapes, for the kernel and its reference."""

from itertools import pairwise

import numpy as np

# Widths around 16, the columns of a panel: below, at, and above it; single units; no hidden layer; many classes.
SHAPES = [
    (1, 1, 2), (1, 2), (7, 3), (2, 64, 32, 10, 2), (5, 16, 4), (16, 17, 15, 3), (33, 31, 100), (3, 1, 1, 5),
    (20, 48, 1), (4, 5, 6, 7, 8, 9, 10),
]  # fmt: skip


def case(widths, n=70, soft=False, seed=0):
    """Parameters, rows and labels for a network of these sizes."""
    rng = np.random.default_rng([seed, *widths])
    parts = []
    for a, b in pairwise(widths):
        parts += [rng.normal(scale=np.sqrt(1 / a), size=a * b), rng.normal(scale=0.3, size=b)]
    theta, X = np.concatenate(parts).astype(np.float32), rng.normal(size=(n, widths[0])).astype(np.float32)
    y = rng.integers(widths[-1], size=n).astype(np.int32)
    return theta, X, rng.dirichlet(np.ones(widths[-1]), size=n).astype(np.float32) if soft else y
