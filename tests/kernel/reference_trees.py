"""What trees and radial functions of the kernel compute, in float64 and as plainly as can be; nothing is shared."""

import numpy as np
from reference import one_hot, softmax


def trees_of(grown):
    """The nodes of each tree: arrays of the same names."""
    ends = np.cumsum(grown.sizes)
    fields = grown._asdict()
    sizes = fields.pop("sizes")
    for end, size in zip(ends, sizes, strict=True):
        yield {name: array[end - size : end] for name, array in fields.items()}


def leaf_of(tree, row):
    """The node where a row ends; what is not a number is not above any threshold."""
    at = 0
    while tree["feature"][at] >= 0:
        above = row[tree["feature"][at]] > tree["threshold"][at]
        at = tree["right"][at] if above else tree["left"][at]
    return at


def leaves_of(tree, X):
    """The same for many rows, level by level."""
    at = np.zeros(len(X), int)
    while (inner := tree["feature"][at] >= 0).any():
        rows = np.flatnonzero(inner)
        above = X[rows, tree["feature"][at[rows]]] > tree["threshold"][at[rows]]
        at[rows] = np.where(above, tree["right"][at[rows]], tree["left"][at[rows]])
    return at


def depth_of(tree, at=0):
    """The levels below a node."""
    if tree["feature"][at] < 0:
        return 0
    return 1 + max(depth_of(tree, tree["left"][at]), depth_of(tree, tree["right"][at]))


def chances(scores):
    """The probability of every output: of the second of two classes, or of each of more."""
    scores = np.asarray(scores, np.float64)
    return 1 / (1 + np.exp(-scores)) if scores.shape[1] == 1 else softmax(scores)


def slopes(scores, y, n_c, weights=None):
    """The gradient and the hessian of the loss, for every row and output."""
    p = chances(scores)
    wanted = one_hot(y, n_c)[:, -p.shape[1] :]
    w = np.ones((len(p), 1)) if weights is None else np.asarray(weights, np.float64)[:, None]
    return w * (p - wanted), w * p * (1 - p)


def loss(scores, y, n_c):
    """The mean of minus the logarithms of what the right class was given."""
    p = chances(scores)
    p = np.concatenate([1 - p, p], axis=1) if p.shape[1] == 1 else p
    return -(one_hot(y, n_c) * np.log(p)).sum() / len(p)


def gains(bins, counts, g, h, l2, least):
    """How much every split of a node would lower the loss, twice: by input, and by the last bin that goes left."""
    found = np.full((bins.shape[1], counts.max()), -np.inf)
    for j in range(bins.shape[1]):
        left_g, left_h = (np.cumsum(np.bincount(bins[:, j], of, counts[j])) for of in (g, h))
        right_g, right_h = g.sum() - left_g, h.sum() - left_h
        with np.errstate(all="ignore"):
            gain = left_g**2 / (left_h + l2) + right_g**2 / (right_h + l2) - g.sum() ** 2 / (h.sum() + l2)
        allowed = (left_h >= least) & (right_h >= least)
        allowed[-1] = False
        found[j, : counts[j]] = np.where(allowed, gain, -np.inf)
    return found


def radial(centres, weights, gamma, X):
    """Sums of exp(-gamma |row - centre|^2), weighted for every class; and the sums of the terms' sizes."""
    centres, X = np.asarray(centres, np.float64), np.asarray(X, np.float64)
    near = np.exp(-gamma * ((X[:, None] - centres) ** 2).sum(axis=2))
    return near @ weights, near @ np.abs(weights)
