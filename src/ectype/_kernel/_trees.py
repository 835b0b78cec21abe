"""Trees by the kernel: gradient boosting, extremely randomised trees, and inference of either."""

from __future__ import annotations

import ctypes as ct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ectype._kernel._ffi import BoostingStruct, ExtraTreesStruct, ForestStruct, address, block, expect, flat, library
from ectype.errors import KernelError

LEAF = -1
MOST_BINS = 256
# Rows that the edges of bins are quantiles of.
SURVEYED = 50_000
# Rows that sums of whole numbers have room for.
MOST_ROWS = 2**30
# Nodes of all trees: numbers of twice as many fit into 32 bits.
MOST_NODES = 2**30
# Numbers in any array: far more than there is memory for, and few enough to count.
MOST = 2**40
# What a target may be at most: a little above one, where probabilities were rounded.
MOST_TARGET = 1.001
# The work of one call, some hundredths of a second, after which an interrupt is heard: rows times inputs that are put
# into bins or added up, rows that are split at random, and levels that rows walk down.
BINNING, BOOSTING, EXTRA_TREES, WALKING = 2**22, 2**24, 2**22, 2**21
# Rows that the kernel lays side by side to ask trees about them, at most.
ABREAST = 64


class TreeArrays(NamedTuple):
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
class BoostingSettings:
    """The hyperparameters of gradient boosting."""

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


def bin_columns(X: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bin of every value, the edges between bins, and how many bins every input has.

    Edges are midway between values; of an input with more values than bins, between quantiles of them.

    >>> bins, edges, counts = bin_columns(np.array([[1.0], [2.0], [4.0]], np.float32), 255)
    >>> bins.ravel().tolist(), edges[0, :2].tolist(), counts.tolist()
    ([0, 1, 2], [1.5, 3.0], [3])
    """
    _check_rows(X)
    expect("bins", 2 <= most <= MOST_BINS, f"from 2 to {MOST_BINS}", most)
    return _bin_columns(flat(X, np.float32), most)


def _bin_columns(X: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, d = X.shape
    edges, counts = np.full((d, MOST_BINS - 1), np.inf, np.float32), np.ones(d, np.int32)
    ordered = np.sort(X[:: -(-n // SURVEYED)].T, axis=1)
    for j, values in enumerate(ordered):
        found = _edges(values, most)
        edges[j, : len(found)], counts[j] = found, len(found) + 1
    bins = np.empty((n, d), np.uint8)
    kernel, piece = library(), max(1, BINNING // d)
    for at in range(0, n, piece):
        part, out = X[at : at + piece], bins[at : at + piece]
        kernel.bins_of(address(part), len(part), d, address(edges), address(out))
    return bins, edges, counts


def _edges(ordered: np.ndarray, most: int) -> np.ndarray:
    """Edges between the bins of an input, from its values in order."""
    new = np.flatnonzero(ordered[1:] != ordered[:-1])
    if len(new) >= most:
        wanted = np.arange(1, most) * (len(ordered) / most)
        new = new[np.unique(np.minimum(np.searchsorted(new, wanted), len(new) - 1))]
    low, high = ordered[new], ordered[new + 1]
    with np.errstate(over="ignore"):  # beyond all numbers is not below the upper one
        middle = low + (high - low) / 2
    return np.where(middle < high, middle, low)


class Boosting:
    """Gradient boosting (Friedman 2001), a few rounds at a time: `run` adds rounds, `scores` are those of its rows.

    >>> X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> boosting = Boosting(X, (X[:, 0] > 0).astype(np.int32), 2, BoostingSettings(rounds=5))
    >>> boosting.run(5)
    >>> float((boosting.scores[:, 0] > 0).mean())
    0.5
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        n_c: int,
        how: BoostingSettings,
        *,
        base: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        directions: np.ndarray | None = None,
        seed: int = 0,
    ):
        n, d = _check(X, y, n_c, directions)
        self.outputs = 1 if n_c == 2 else n_c
        # A tree has no more leaves than rows.
        leaves = min(how.leaves, max(n, 2))
        nodes = how.rounds * self.outputs * (2 * leaves - 1)
        _check_plan(how, nodes)
        expect("rows", n < MOST_ROWS and n * self.outputs < MOST, f"below {MOST_ROWS}", n)
        self.scores = np.zeros((n, self.outputs), np.float32)
        if base is not None:
            self.scores += _check_base(base, self.scores.shape)
        if weights is not None:
            with np.errstate(over="ignore"):
                weights = flat(weights, np.float32)
            fit = weights.shape == (n,) and bool(((weights >= 0) & (weights < np.inf)).all())
            expect("weights", fit, f"{n} finite numbers, none below zero", f"shape {weights.shape}")
        bins, edges, counts = _bin_columns(flat(X, np.float32), min(how.bins, MOST_BINS - 1))
        expect("leaves", leaves * int(counts.sum()) < MOST, "trees that can be grown in memory", leaves)
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
            **_wanted(y, directions),
            "weights": weights,
            "scores": self.scores,
            **self._grown,
        }
        self._job = BoostingStruct(
            **{name: address(array) for name, array in self._arrays.items()},
            n=n, d=d, classes=n_c, leaves=leaves, depth=how.depth,
            seed=seed & 0xFFFFFFFFFFFFFFFF, rate=how.rate, l2=how.l2, least=how.least, share=how.share,
        )  # fmt: skip
        self._kernel, self._at, self._how, self._room = library(), ct.addressof(self._job), how, 2 * leaves - 1
        self._block = block(self._kernel.boosting_size(self._at))
        self._work = BOOSTING

    def run(self, rounds: int) -> None:
        """Make so many rounds, if the plan has as many left; an interrupt is heard in between."""
        wanted = min(self._job.trees // self.outputs + rounds, self._how.rounds) * self.outputs
        while self._job.trees < wanted:
            self._kernel.boosting_grow(self._at, address(self._block), wanted, self._work)

    @property
    def grown(self) -> TreeArrays:
        """The trees so far: those of a round are of one class each, or of the second of two."""
        trees, room = self._job.trees, self._room
        inner = (self._grown["feature"][: trees * room] >= 0).reshape(trees, room).sum(axis=1)
        sizes = 2 * inner + 1
        kept = (np.arange(room) < sizes[:, None]).ravel()
        feature, threshold, left, right, value = (part[: trees * room][kept] for part in self._grown.values())
        return TreeArrays(feature, threshold, left, right, value[:, None], sizes)


def fit_extra_trees(
    X: np.ndarray,
    y: np.ndarray,
    n_c: int,
    trees: int,
    *,
    leaves: int = 2**31 - 1,
    depth: int = 0,
    directions: np.ndarray | None = None,
    seed: int = 0,
) -> TreeArrays:
    """Extremely randomised trees: at every node the best of a few random splits, of as many inputs.

    >>> X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> float(fit_extra_trees(X, (X[:, 0] > 0).astype(np.int32), 2, trees=3).values.max())
    1.0
    """
    expect("trees", trees >= 1, "at least one", trees)
    builder = ExtraTreesBuilder(X, y, n_c, leaves=leaves, depth=depth, directions=directions, seed=seed)
    grown = [builder.tree(number) for number in range(trees)]
    feature, threshold, left, right, values = (np.concatenate(parts) for parts in zip(*grown, strict=True))
    return TreeArrays(feature, threshold, left, right, values, np.array([len(tree[0]) for tree in grown]))


class ExtraTreesBuilder:
    """Builds extremely randomised trees one at a time (Geurts, Ernst and Wehenkel 2006)."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        n_c: int,
        *,
        leaves: int,
        depth: int,
        directions: np.ndarray | None,
        seed: int,
    ):
        n, d = _check(X, y, n_c, directions)
        expect("leaves", leaves >= 1, "at least one", leaves)
        expect("depth", 0 <= depth < 2**31, "not below zero", depth)
        leaves = min(leaves, n)
        room = 2 * leaves - 1
        expect("leaves", room <= MOST_NODES and room * n_c < MOST, f"at most {MOST_NODES} nodes", room)
        self._made = {
            "feature": np.empty(room, np.int32),
            "threshold": np.empty(room, np.float32),
            "left": np.empty(room, np.int32),
            "right": np.empty(room, np.int32),
            "value": np.empty((room, n_c), np.float32),
        }
        self._arrays = {"X": flat(X, np.float32), **_wanted(y, directions), **self._made}
        self._job = ExtraTreesStruct(
            **{name: address(array) for name, array in self._arrays.items()},
            n=n, d=d, classes=n_c, tries=max(1, round(np.sqrt(d))), leaves=leaves, depth=depth,
            seed=seed & 0xFFFFFFFFFFFFFFFF,
        )  # fmt: skip
        self._kernel, self._at = library(), ct.addressof(self._job)
        self._block = block(self._kernel.forest_size(self._at))

    def tree(self, number: int) -> list[np.ndarray]:
        """The nodes of a tree; its number and the seed tell what is drawn. An interrupt is heard in between."""
        self._kernel.forest_begin(self._at, address(self._block), number)
        while not (size := self._kernel.forest_grow(self._at, address(self._block), EXTRA_TREES)):
            pass
        return [array[:size].copy() for array in self._made.values()]


class TreeEnsemble:
    """The sum of the trees' values. Nodes are counted over all trees, after their parents; a leaf is its own child.

    >>> stump = {"feature": [0, 0, 0], "threshold": [0.5, 0, 0], "children": [1, 2, 1, 1, 2, 2], "roots": [0]}
    >>> arrays = {name: np.array(part) for name, part in {**stump, "outputs": [1]}.items()}
    >>> trees = TreeEnsemble(**arrays, values=np.array([[0.0], [3.0], [4.0]]), classes=2, inputs=1)
    >>> trees(np.array([[1.0], [0.0]]), np.zeros((2, 2))).tolist()
    [[0.0, 4.0], [0.0, 3.0]]
    """

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
            "feature": flat(feature, np.int32),
            "threshold": flat(threshold, np.float32),
            "children": flat(children, np.int32),
            "values": flat(values, np.float64),
            "roots": flat(roots, np.int32),
            "outputs": flat(outputs, np.int32),
        }
        levels = self._checked()
        self._arrays["depths"] = levels[self._arrays["roots"]]
        self._forest = ForestStruct(
            **{name: address(array) for name, array in self._arrays.items()},
            trees=len(roots), width=values.shape[1], classes=classes, d=inputs,
        )  # fmt: skip
        self._kernel, self._at = library(), ct.addressof(self._forest)
        self._block = block(self._kernel.trees_size(self._at))
        self._kernel.trees_lay_out(self._at, address(self._block))
        self._piece = max(1, WALKING // max(1, int((self._arrays["depths"] + np.int64(1)).sum())))

    def _checked(self) -> np.ndarray:
        """Make sure that all paths lead from roots to leaves, by inputs that are there; the levels below every node."""
        feature, threshold, children, values, roots, outputs = self._arrays.values()
        n = len(feature)
        expect("nodes", feature.shape == threshold.shape == (n,) and n <= MOST_NODES, "an input and a threshold each")
        expect("children", children.shape in ((2 * n,), (n, 2)), f"two for each of {n} nodes", children.shape)
        expect("values", values.ndim == 2 and len(values) == n, f"a row for each of {n} nodes", values.shape)
        expect("roots", roots.ndim == 1 and roots.shape == outputs.shape, "one for every tree", roots.shape)
        expect("roots", bool(((roots >= 0) & (roots < n)).all()), "nodes that are there")
        last = self._classes - values.shape[1]
        expect("outputs", bool(((outputs >= 0) & (outputs <= last)).all()), f"from 0 to {last}")
        expect("inputs", self._inputs >= 1, "at least one", self._inputs)
        leaf = (children.reshape(n, 2) == np.arange(n)[:, None]).all(axis=1)
        feature = self._arrays["feature"] = np.where(leaf, np.int32(0), feature)
        expect("nodes", bool(((feature >= 0) & (feature < self._inputs)).all()), f"inputs below {self._inputs}")
        levels = np.empty(n, np.int32)
        sound = library().trees_levels(address(children), n, address(levels))
        expect("children", bool(sound), "nodes after their parents; or a leaf, twice itself")
        return levels

    def __call__(self, X: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Add to the scores of rows; an interrupt is heard in between, after which some rows have theirs."""
        X = flat(X, np.float32)
        if X.ndim != 2 or X.shape[1] != self._inputs:
            raise KernelError("rows", f"{self._inputs} inputs each", f"shape {X.shape}")
        if scores.shape != (len(X), self._classes):
            raise KernelError("scores", f"shape {(len(X), self._classes)}", f"shape {scores.shape}")
        if scores.dtype != np.float64 or not scores.flags.carray:
            raise KernelError("scores", "float64, row after row, that may be written to", f"{scores.dtype}")
        columns = block(4 * ABREAST * self._inputs)
        for at in range(0, len(X), self._piece):
            part = X[at : at + self._piece]
            self._kernel.trees_add(self._at, address(part), len(part), address(scores[at:]), address(columns))
        return scores

    def __reduce__(self) -> tuple[type[TreeEnsemble], tuple[object, ...]]:
        arrays = (array for name, array in self._arrays.items() if name != "depths")
        return TreeEnsemble, (*arrays, self._classes, self._inputs)  # addresses belong to a process


def _check_rows(X: np.ndarray) -> None:
    expect("X", X.ndim == 2 and 0 < len(X) < 2**31 and X.shape[1] > 0, "rows of at least one input", f"shape {X.shape}")
    expect("X", X.shape[1] < 2**22, f"fewer than {2**22} inputs", X.shape[1])
    with np.errstate(over="ignore"):
        expect("X", bool(np.isfinite(np.asarray(X, np.float32)).all()), "numbers", "some that are infinite or none")


def _check(X: np.ndarray, y: np.ndarray, n_c: int, directions: np.ndarray | None) -> tuple[int, int]:
    """Make sure that rows, what is wanted of them, and directions fit together; how many rows and inputs there are."""
    _check_rows(X)
    n, d = X.shape
    expect("classes", 2 <= n_c < 2**31, "at least two", n_c)
    if y.ndim == 1:
        fit = y.shape == (n,) and bool(((y >= 0) & (y < n_c)).all())
        expect("y", fit, f"a code from 0 to below {n_c} for every row", f"shape {y.shape}")
    else:
        expect("targets", y.shape == (n, n_c), f"shape {(n, n_c)}", f"shape {y.shape}")
        expect("targets", bool(((y >= 0) & (y <= MOST_TARGET)).all()), "probabilities")
    if directions is not None:
        ways = np.asarray(directions)
        expect("directions", ways.shape == (d,) and bool(np.isin(ways, (-1, 0, 1)).all()), f"-1, 0 or 1 for {d} inputs")
    return n, d


def _check_plan(how: BoostingSettings, nodes: int) -> None:
    expect("rounds", how.rounds >= 0, "not below zero", how.rounds)
    expect("leaves", how.leaves >= 2, "at least two", how.leaves)
    expect("rounds", nodes <= MOST_NODES, f"trees of at most {MOST_NODES} nodes", nodes)
    expect("depth", 0 <= how.depth < 2**31, "not below zero", how.depth)
    expect("bins", how.bins >= 2, "at least two", how.bins)
    expect("rate", bool(np.isfinite(how.rate)), "a number", how.rate)
    for name in ("l2", "least"):
        expect(name, 0 <= getattr(how, name) < np.inf, "a number not below zero", getattr(how, name))
    expect("share", 0 < how.share <= 1, "above 0, up to 1", how.share)


def _check_base(base: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Scores to begin with, for every row or for all of them."""
    fit = base.shape in (shape, shape[1:], (1, shape[1]), (shape[0], 1), (1, 1), ())
    expect("base", fit, f"shape {shape} or {shape[1:]}", f"shape {base.shape}")
    with np.errstate(over="ignore"):
        found = base.astype(np.float32)
    expect("base", bool(np.isfinite(found).all()), "numbers", "some that are infinite or none")
    return found


def _wanted(y: np.ndarray, directions: np.ndarray | None) -> dict[str, np.ndarray | None]:
    """Codes or targets, and directions, as the kernel reads them."""
    return {
        "y" if y.ndim == 1 else "targets": flat(y, np.int32 if y.ndim == 1 else np.float32),
        "directions": None if directions is None else flat(directions, np.int32),
    }
