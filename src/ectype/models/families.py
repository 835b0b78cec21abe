"""The families: what a copy may be, and how each is fitted to encoded rows and their labels.

Families with a name become arrays; any other scikit-learn classifier is kept as it is. Blends are in
`ectype.models.blend`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ectype._kernel import (
    LEAF,
    Boosting,
    BoostingSettings,
    KernelTraining,
    TrainingMethod,
    fit_extra_trees,
    quantile_pieces,
)
from ectype.algorithm.mlp import MLP, Network
from ectype.errors import SettingError
from ectype.models.base import HEADER, Model
from ectype.models.capacity import Capacity, NetworkConfig
from ectype.models.linear import of_logistic
from ectype.models.sklearn_model import SklearnModel
from ectype.models.trees import Tree, Trees, concatenate_trees, of_boosting, of_forest, of_grown
from ectype.rng import Stream, stream
from ectype.types import Classifier, Estimator

# The fewest leaves of a tree in an ensemble: a tighter limit on bytes means fewer trees, not smaller ones.
FEW_LEAVES = 16
FOREST = 100
# Networks that are tried where the usual one is too large: hidden layers, without pieces.
SMALLER = ((64, 32, 10), (32, 16), (16, 8), (8,), (4,))


@dataclass(frozen=True)
class FamilyLimits:
    """The limits that the user sets to a model."""

    max_depth: int | None = None
    max_leaves: int | None = None
    max_bytes: int | None = None
    directions: tuple[int, ...] = ()
    """Monotonicity of every input: 1 if the last class may only get likelier as it grows, -1 if less likely, else 0."""
    hidden: tuple[int, ...] = ()
    """Inputs that the model may not use."""
    layers: tuple[int, ...] = ()
    """The hidden layers of a network, where the user says so."""
    effort: Capacity = field(default_factory=Capacity)

    def check(self, n_c: int) -> None:
        """Refuse monotonicity with more than two classes."""
        if any(self.directions) and n_c > 2:
            hint = "leave out increasing and decreasing"
            raise SettingError("increasing", "an original that tells two classes apart", f"{n_c} classes", hint)

    def leaves(self, trees: int, node: int) -> int | None:
        """The most leaves of a tree, for so many trees whose nodes take so many bytes."""
        room = [] if self.max_bytes is None else [self._nodes(node) // trees // 2]
        least = min([*room, *([] if self.max_leaves is None else [self.max_leaves])], default=None)
        return None if least is None else max(2, least)

    def trees(self, most: int, leaves: int, node: int) -> int:
        """How many trees with so many leaves fit into `max_bytes`, up to `most`."""
        return most if self.max_bytes is None else min(most, max(1, self._nodes(node) // (2 * leaves)))

    def _nodes(self, node: int) -> int:
        return ((self.max_bytes or 0) - HEADER) // node

    @property
    def monotone(self) -> np.ndarray | None:
        """The directions as scikit-learn's `monotonic_cst`."""
        return np.array(self.directions) if any(self.directions) else None

    def blinded(self, X: np.ndarray) -> np.ndarray:
        """Rows with the hidden inputs set to 0."""
        if not self.hidden:
            return X
        X = X.copy()
        X[:, list(self.hidden)] = 0
        return X


NO_LIMITS = FamilyLimits()


Labels = np.ndarray
"""Codes, or for families that learn from them, a probability for every class."""


Make = Callable[[np.ndarray, Labels, int, FamilyLimits, int], Model]


@dataclass(frozen=True)
class Family:
    """How a family is fitted, and how many unlabelled rows a student of it learns from."""

    make: Make
    """From encoded rows, labels, the number of classes, limits, and a seed."""
    student_rows: int
    soft: bool = False
    """Whether it learns from probabilities."""


# A smooth activation: copies of smooth boundaries gain most by it.
ACTIVATION = "mish"


def network(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Network:
    """A network that sees pieces of its inputs, unless the user's limits are too tight for that."""
    return train_network(X, y, n_c, _within(limits, X, n_c), seed)


def plain_network(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Network:
    """A network that sees its inputs alone."""
    return train_network(X, y, n_c, limits.effort.plain(limits.effort.labels(len(X)), X.shape[1]), seed)


def linear_network(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Network:
    """A network without hidden layers, which is a linear model."""
    return train_network(X, y, n_c, limits.effort.linear(len(X)), seed)


def train_network(
    X: np.ndarray, y: Labels, n_c: int, how: NetworkConfig, seed: int, start: Network | None = None
) -> Network:
    """A network trained from scratch, or from where another one is."""
    start = start or _untrained(X, n_c, how, seed)
    mlp, pieces = start.mlp, start.pieces
    method = TrainingMethod(how.batch, how.rate, "cross-entropy", "shuffled", ACTIVATION, decay=how.decay, anneal=1.0)
    training = KernelTraining(mlp.widths, start.theta, X, y, method, steps=how.steps, pieces=pieces, seed=seed)
    training.run(how.steps)
    return Network(mlp, training.theta, pieces, ACTIVATION)


def _untrained(X: np.ndarray, n_c: int, how: NetworkConfig, seed: int) -> Network:
    """A network with random parameters."""
    pieces = quantile_pieces(X, how.bins) if how.bins else None
    pieces = pieces if pieces is not None and len(pieces.column) else None
    mlp = MLP(X.shape[1] if pieces is None else pieces.width, how.hidden, n_c)
    return Network(mlp, mlp.initial(stream(seed, Stream.BESIDE)), pieces, ACTIVATION)


def _within(limits: FamilyLimits, X: np.ndarray, n_c: int) -> NetworkConfig:
    """The usual network, or the largest one that keeps to the limit on bytes."""
    usual = limits.effort.network(limits.effort.labels(len(X)), X.shape[1])
    if limits.layers:
        usual = replace(usual, hidden=limits.layers)
    sizes = [usual, replace(usual, bins=0), *(replace(usual, bins=0, hidden=hidden) for hidden in SMALLER)]
    if limits.max_bytes is None:
        return usual
    allowed = (how for how in (sizes[:2] if limits.layers else sizes) if _bytes(how, X, n_c) <= limits.max_bytes)
    return next(allowed, sizes[-1])


def _bytes(how: NetworkConfig, X: np.ndarray, n_c: int) -> int:
    pieces = how.bins * X.shape[1]
    return HEADER + 4 * MLP(X.shape[1] + pieces, how.hidden, n_c).size + 12 * pieces


def _linear(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    from sklearn.linear_model import LogisticRegression

    directions = 0 if limits.monotone is None else limits.monotone
    while True:  # drop the inputs whose weights have the wrong sign, and fit again until none is left
        fitted = LogisticRegression(C=10.0, max_iter=1000).fit(X, y)
        wrong = (directions * fitted.coef_ < 0).any(axis=0)
        if not wrong.any():
            return of_logistic(fitted, n_c)
        X = np.where(wrong, 0, X)


def _tree(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
    from sklearn.tree import DecisionTreeClassifier

    leaves = limits.leaves(1, _node(n_c))
    leaves = None if leaves is None else min(leaves, len(X))  # scikit-learn makes room for as many at once
    tree = DecisionTreeClassifier(
        max_depth=limits.max_depth, max_leaf_nodes=leaves, random_state=seed, monotonic_cst=limits.monotone
    )
    return of_forest(tree.fit(X, y), n_c)


def forest(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Trees:
    """Extremely randomised trees (Geurts, Ernst and Wehenkel, 2006): random thresholds, and no bootstrap."""
    trees = limits.trees(FOREST, FEW_LEAVES, _node(n_c))
    grown = fit_extra_trees(
        X, y, n_c, trees,
        leaves=limits.leaves(trees, _node(n_c)) or 2**31 - 1,
        depth=limits.max_depth or 0, directions=limits.monotone, seed=seed,
    )  # fmt: skip
    shares = grown._replace(values=grown.values.astype(float) / trees)
    return of_grown(shares, np.zeros(trees, int), np.zeros(n_c), "shares")


def boosting(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Trees:
    """Gradient-boosted trees (Friedman, 2001)."""
    return fit_boosting(X, y, n_c, limits, seed, limits.effort.boosting(limits.effort.labels(len(X)), X.shape[1], n_c))


def fit_boosting(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int, how: BoostingSettings) -> Trees:
    """Gradient-boosted trees of this size, if the limits have room for it; classes without a label have no chance."""
    wanted = np.bincount(y, minlength=n_c) if y.ndim == 1 else y.sum(axis=0)
    known = np.flatnonzero(wanted > 0)
    places = known[1:] if len(known) == 2 else known  # of two classes, the second is scored
    each = len(places)  # trees in a round
    rounds = max(1, limits.trees(how.rounds * each, FEW_LEAVES, _node(1)) // each)
    leaves = min(how.leaves, limits.leaves(rounds * each, _node(1)) or how.leaves)
    how = replace(how, rounds=rounds, leaves=leaves, depth=limits.max_depth or 0)
    base = np.full(n_c, -np.inf)
    base[known] = np.log(wanted[known] / wanted[known].sum())
    if len(known) == 2:
        base[known] -= base[known[0]]
    labels = np.searchsorted(known, y) if y.ndim == 1 else y[:, known]
    directions = limits.monotone
    growing = Boosting(X, labels, len(known), how, base=base[places], directions=directions, seed=seed)
    growing.run(rounds)
    return of_grown(growing.grown, np.tile(places, rounds), base, "softmax")


def _node(values: int) -> int:
    """Bytes of a tree node: its input, threshold, two children, and so many values."""
    return 16 + 8 * values


SINGLE_FAMILIES = {
    "mlp": Family(network, 20_000, soft=True),
    "linear": Family(_linear, 20_000),
    "tree": Family(_tree, 60_000),
    "forest": Family(forest, 20_000, soft=True),
    "boosting": Family(boosting, 20_000, soft=True),
}
# Unlabelled rows for a classifier of the user's: some take quadratic time.
STUDENT_ROWS = 5000


def of_estimator(estimator: Classifier) -> Family:
    """The family of an unfitted scikit-learn classifier, of which a clone is fitted."""

    def make(X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits, seed: int) -> Model:
        from sklearn.base import clone
        from threadpoolctl import threadpool_limits

        try:
            with threadpool_limits(1, "openmp"):  # rows are few: threads would wait for each other more than they work
                return _kept(clone(estimator).fit(X, y), n_c)
        except Exception as error:  # a class of the user's may raise anything
            found = f"{type(error).__name__}: {error}"
            raise SettingError(
                "to", f"a classifier that can be fitted to rows of {X.shape[1]} inputs", found
            ) from error

    return Family(make, STUDENT_ROWS)


def _kept(fitted: Estimator, n_c: int) -> Model:
    """A fitted classifier as arrays, if its class is one that we reproduce bit for bit; else as it is."""
    known = type(fitted).__module__.startswith("sklearn.")
    name = type(fitted).__name__
    if known and name in ("DecisionTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier"):
        return of_forest(fitted, n_c)
    if known and name == "HistGradientBoostingClassifier" and fitted.is_categorical_ is None:
        return of_boosting(fitted, n_c)
    if known and name == "LogisticRegression" and fitted.solver != "liblinear":  # liblinear is one-vs-rest
        return of_logistic(fitted, n_c)
    return SklearnModel(fitted, n_c)


def fit(
    family: str | Family, X: np.ndarray, y: Labels, n_c: int, limits: FamilyLimits = NO_LIMITS, seed: int = 0
) -> Model:
    """A model of the family, fitted to encoded rows and their labels."""
    family = SINGLE_FAMILIES[family] if isinstance(family, str) else family
    limits.check(n_c)
    codes = y if y.ndim == 1 else y.argmax(axis=1)
    only = np.unique(codes)
    if len(only) == 1:
        return constant(int(only[0]), n_c)
    return family.make(limits.blinded(X), y if family.soft else codes, n_c, limits, seed)


def constant(code: int, n_c: int) -> Model:
    """A constant model: a tree that is a single leaf."""
    none = np.zeros(1, int)
    leaf = Tree(np.array([LEAF]), none.astype(float), none, none, np.eye(n_c)[[code]])
    return concatenate_trees([leaf], np.zeros(n_c), "shares")
