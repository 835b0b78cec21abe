"""Trees by the kernel: gradient boosting, extremely randomised trees, and the answers of either."""

from __future__ import annotations

import ctypes as ct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from understudy.engine.library import Boosting as BoostingJob
from understudy.engine.library import Forest, address, library
from understudy.engine.library import Planting as PlantingJob
from understudy.errors import KernelError

LEAF = -1
MOST_BINS = 256
# Rows that the edges of bins are quantiles of.
SURVEYED = 50_000
# Rows times inputs of one call: some tenths of a second, after which an interrupt is heard.
CALL = 2**24


class Grown(NamedTuple):
    """Trees as arrays, their nodes one after the other; children are counted from a tree's first node."""

    feature: np.ndarray
    """The input that a node tests; `LEAF` at a leaf."""
    threshold: np.ndarray
    """Rows with at most this go left."""
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    """For every node a number, or one for every class."""
    sizes: np.ndarray
    """The nodes of every tree."""


@dataclass(frozen=True)
class Boost:
    """How boosting is done, whatever it is fitted to."""

    rounds: int = 200
    leaves: int = 31
    depth: int = 0
    """The most levels; 0 for any number."""
    rate: float = 0.1
    l2: float = 1.0
    least: float = 1e-3
    """The least sum of hessians in a leaf."""
    share: float = 0.5
    """The share of inputs that a tree looks at, drawn at random for each."""
    bins: int = 255


def binned(X: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bin of every value, the edges between bins, and how many bins every input has.

    Edges are midway between values; of an input with more values than bins, between quantiles of them.

    >>> bins, edges, counts = binned(np.array([[1.0], [2.0], [4.0]], np.float32), 255)
    >>> bins.ravel().tolist(), edges[0, :2].tolist(), counts.tolist()
    ([0, 1, 2], [1.5, 3.0], [3])
    """
    X = np.ascontiguousarray(X, np.float32)
    n, d = X.shape
    edges, counts = np.full((d, MOST_BINS - 1), np.inf, np.float32), np.ones(d, np.int32)
    ordered = np.sort(X[:: -(-n // SURVEYED)].T, axis=1)
    for j, values in enumerate(ordered):
        found = _edges(values, most)
        edges[j, : len(found)], counts[j] = found, len(found) + 1
    bins = np.empty((n, d), np.uint8)
    library().bins_of(address(X), n, d, address(edges), address(counts), address(bins))
    return bins, edges, counts


def _edges(ordered: np.ndarray, most: int) -> np.ndarray:
    """Edges between the bins of an input, from its values in order."""
    new = np.flatnonzero(ordered[1:] != ordered[:-1])
    if len(new) >= most:
        wanted = np.arange(1, most) * (len(ordered) / most)
        new = new[np.unique(np.minimum(np.searchsorted(new, wanted), len(new) - 1))]
    low, high = ordered[new], ordered[new + 1]
    middle = low + (high - low) / 2
    return np.where(middle < high, middle, low)


class Boosting:
    """Gradient boosting under way: `run` adds rounds, `scores` are those of the rows it is fitted to.

    >>> X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> boosting = Boosting(X, (X[:, 0] > 0).astype(np.int32), 2, Boost(rounds=5))
    >>> boosting.run(5)
    >>> float((boosting.scores[:, 0] > 0).mean())
    0.5
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        n_c: int,
        how: Boost,
        *,
        base: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        directions: np.ndarray | None = None,
        seed: int = 0,
    ):
        _check(X, y, n_c)
        n, d = X.shape
        bins, edges, counts = binned(X, min(how.bins, MOST_BINS - 1))
        self.outputs = 1 if n_c == 2 else n_c
        nodes = how.rounds * self.outputs * (2 * how.leaves - 1)
        self.scores = np.zeros((n, self.outputs), np.float32)
        if base is not None:
            self.scores += base.astype(np.float32)
        self._grown = {
            "feature": np.full(nodes, LEAF, np.int32),
            "threshold": np.zeros(nodes, np.float32),
            "left": np.zeros(nodes, np.int32),
            "right": np.zeros(nodes, np.int32),
            "value": np.zeros(nodes, np.float32),
        }
        self._arrays = {
            "binned": bins,
            "edges": edges,
            "bins": counts,
            "y" if y.ndim == 1 else "targets": np.ascontiguousarray(y, np.int32 if y.ndim == 1 else np.float32),
            "weights": None if weights is None else np.ascontiguousarray(weights, np.float32),
            "directions": None if directions is None else np.ascontiguousarray(directions, np.int32),
            "scores": self.scores,
            **self._grown,
        }
        self._job = BoostingJob(
            **{name: address(array) for name, array in self._arrays.items()},
            n=n, d=d, classes=n_c, rounds=how.rounds, leaves=how.leaves, depth=how.depth,
            seed=seed & 0xFFFFFFFFFFFFFFFF, rate=how.rate, l2=how.l2, least=how.least, share=how.share,
        )  # fmt: skip
        self._kernel, self._at, self._how = library(), ct.addressof(self._job), how
        self._block = np.empty(self._kernel.boosting_size(self._at), np.uint8)
        self._piece = max(1, CALL // (n * d * self.outputs))

    def run(self, rounds: int) -> None:
        """Make so many rounds, if the plan has as many left; an interrupt is heard in between."""
        rounds = min(rounds, self._how.rounds - self._job.round)
        for done in range(0, rounds, self._piece):
            self._kernel.boosting_rounds(self._at, address(self._block), min(self._piece, rounds - done))

    @property
    def grown(self) -> Grown:
        """The trees so far: those of a round are of one class each, or of the second of two."""
        trees, room = self._job.round * self.outputs, 2 * self._how.leaves - 1
        inner = (self._grown["feature"][: trees * room] >= 0).reshape(trees, room).sum(axis=1)
        sizes = 2 * inner + 1
        kept = (np.arange(room) < sizes[:, None]).ravel()
        parts = [self._grown[name][: trees * room][kept] for name in ("feature", "threshold", "left", "right")]
        return Grown(*parts, self._grown["value"][: trees * room][kept][:, None], sizes)


def planted(
    X: np.ndarray,
    y: np.ndarray,
    n_c: int,
    trees: int,
    *,
    leaves: int = 2**31 - 1,
    depth: int = 0,
    directions: np.ndarray | None = None,
    seed: int = 0,
) -> Grown:
    """Extremely randomised trees: at every node the best of a few random splits, of as many inputs.

    >>> X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> float(planted(X, (X[:, 0] > 0).astype(np.int32), 2, trees=3).values.max())
    1.0
    """
    _check(X, y, n_c)
    X = np.ascontiguousarray(X, np.float32)
    n, d = X.shape
    room = 2 * min(leaves, n) - 1
    made = {
        "feature": np.empty(room, np.int32),
        "threshold": np.empty(room, np.float32),
        "left": np.empty(room, np.int32),
        "right": np.empty(room, np.int32),
        "value": np.empty((room, n_c), np.float32),
    }
    given = {
        "X": X,
        "y" if y.ndim == 1 else "targets": np.ascontiguousarray(y, np.int32 if y.ndim == 1 else np.float32),
        "directions": None if directions is None else np.ascontiguousarray(directions, np.int32),
    }
    job = PlantingJob(
        **{name: address(array) for name, array in {**given, **made}.items()},
        n=n, d=d, classes=n_c, tries=max(1, round(np.sqrt(d))), leaves=leaves, depth=depth,
        seed=seed & 0xFFFFFFFFFFFFFFFF,
    )  # fmt: skip
    kernel, at = library(), ct.addressof(job)
    block = np.empty(kernel.forest_size(at), np.uint8)
    grown: list[list[np.ndarray]] = []
    for tree in range(trees):
        size = kernel.forest_tree(at, address(block), tree, 0)
        grown.append([made[name][:size].copy() for name in made])
    columns = [np.concatenate(parts) for parts in zip(*grown, strict=True)]
    return Grown(*columns, np.array([len(tree[0]) for tree in grown]))


class Sums:
    """What trees say, added up. Nodes are counted over all trees, and a leaf is its own child."""

    def __init__(
        self,
        feature: np.ndarray,
        threshold: np.ndarray,
        children: np.ndarray,
        values: np.ndarray,
        roots: np.ndarray,
        outputs: np.ndarray,
        classes: int,
        inputs: int,
    ):
        self._classes, self._inputs = classes, inputs
        self._arrays = {
            "feature": np.ascontiguousarray(feature, np.int32),
            "threshold": np.ascontiguousarray(threshold, np.float32),
            "children": np.ascontiguousarray(children, np.int32),
            "values": np.ascontiguousarray(values, np.float64),
            "roots": np.ascontiguousarray(roots, np.int32),
            "outputs": np.ascontiguousarray(outputs, np.int32),
            "depths": _depths(children, roots),
        }
        self._forest = Forest(
            **{name: address(array) for name, array in self._arrays.items()},
            trees=len(roots), width=values.shape[1], classes=classes, d=inputs,
        )  # fmt: skip
        self._kernel, self._at = library(), ct.addressof(self._forest)

    def __call__(self, X: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Add to the scores of rows."""
        X = np.ascontiguousarray(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self._inputs:
            raise KernelError("rows", f"{self._inputs} inputs each", f"shape {X.shape}")
        self._kernel.trees_add(self._at, X.ctypes.data, len(X), scores.ctypes.data)
        return scores


def _depths(children: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """The levels below every root; children come after their parents."""
    pairs = children.reshape(-1, 2)
    own = np.arange(len(pairs))
    depth = np.zeros(len(pairs), np.int32)
    while True:
        inner = pairs[:, 0] != own
        deeper = np.where(inner, 1 + depth[pairs].max(axis=1), 0)
        if (deeper == depth).all():
            return np.ascontiguousarray(depth[roots], np.int32)
        depth = deeper.astype(np.int32)


def _check(X: np.ndarray, y: np.ndarray, n_c: int) -> None:
    n = len(X)
    if X.ndim != 2 or not 0 < n < 2**31 or not X.shape[1]:
        raise KernelError("X", "rows of at least one input", f"shape {X.shape}")
    if n_c < 2:
        raise KernelError("classes", "at least two", str(n_c))
    if y.ndim == 1 and not (y.shape == (n,) and bool((y >= 0).all() and (y < n_c).all())):
        raise KernelError("y", f"a code from 0 to below {n_c} for every row", f"shape {y.shape}")
    if y.ndim != 1 and y.shape != (n, n_c):
        raise KernelError("targets", f"shape {(n, n_c)}", f"shape {y.shape}")
