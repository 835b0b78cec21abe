"""The families other than networks: fitted by scikit-learn to all points at once.

They have no warm start. They are fitted once, after a network has chosen what to ask: to every paid point and, by
distillation, to unlabelled rows that a teacher labels. Families with a name become arrays; any other scikit-learn
classifier is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.errors import SettingError
from understudy.models.base import HEADER, Model
from understudy.models.fitted import Fitted
from understudy.models.linear import of_logistic
from understudy.models.trees import LEAF, Tree, of_boosting, of_forest, together
from understudy.types import Classifier, Estimator

# The fewest leaves of a tree in an ensemble: a tighter limit on bytes means fewer trees, not smaller ones.
FEW_LEAVES = 16
FOREST, ROUNDS, LEAVES = 100, 200, 31


@dataclass(frozen=True)
class Limits:
    """The limits that the user sets to a model."""

    max_depth: int | None = None
    max_leaves: int | None = None
    max_bytes: int | None = None
    directions: tuple[int, ...] = ()
    """Monotonicity of every input: 1 if the last class may only get likelier as it grows, -1 if less likely, else 0."""
    hidden: tuple[int, ...] = ()
    """Inputs that the model may not use."""
    rounds: int = ROUNDS
    """Boosting rounds, if `max_bytes` has room for them."""

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


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Family:
    """How a family is fitted, how it becomes a model, and how many unlabelled rows a student learns from."""

    fitted: Callable[[np.ndarray, np.ndarray, Limits, int, int], Estimator]
    """From encoded rows, codes, limits, a seed and the number of classes."""
    model: Callable[[Estimator, int], Model]
    relayed: int


def _linear(X: np.ndarray, y: np.ndarray, limits: Limits, seed: int, n_c: int) -> Estimator:
    from sklearn.linear_model import LogisticRegression

    directions = 0 if limits.monotone is None else limits.monotone
    while True:  # drop the inputs whose weights have the wrong sign, and fit again until none is left
        fitted = LogisticRegression(C=10.0, max_iter=1000).fit(X, y)
        wrong = (directions * fitted.coef_ < 0).any(axis=0)
        if not wrong.any():
            return fitted
        X = np.where(wrong, 0, X)


def _tree(X: np.ndarray, y: np.ndarray, limits: Limits, seed: int, n_c: int) -> Estimator:
    from sklearn.tree import DecisionTreeClassifier

    leaves = limits.leaves(1, _node(n_c))
    return DecisionTreeClassifier(
        max_depth=limits.max_depth, max_leaf_nodes=leaves, random_state=seed, monotonic_cst=limits.monotone
    ).fit(X, y)


def _forest(X: np.ndarray, y: np.ndarray, limits: Limits, seed: int, n_c: int) -> Estimator:
    from sklearn.ensemble import ExtraTreesClassifier

    trees = limits.trees(FOREST, FEW_LEAVES, _node(n_c))
    leaves = limits.leaves(trees, _node(n_c))
    return ExtraTreesClassifier(
        trees, max_depth=limits.max_depth, max_leaf_nodes=leaves, random_state=seed, monotonic_cst=limits.monotone
    ).fit(X, y)


def _boosting(X: np.ndarray, y: np.ndarray, limits: Limits, seed: int, n_c: int) -> Estimator:
    from sklearn.ensemble import HistGradientBoostingClassifier

    present = len(np.unique(y))
    each = 1 if present == 2 else present  # trees in a round
    rounds = max(1, limits.trees(limits.rounds * each, FEW_LEAVES, _node(1)) // each)
    leaves = min(LEAVES, limits.leaves(rounds * each, _node(1)) or LEAVES)
    return HistGradientBoostingClassifier(
        max_iter=rounds,
        max_depth=limits.max_depth,
        max_leaf_nodes=leaves,
        max_features=0.5,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
        monotonic_cst=limits.monotone,
    ).fit(X, y)


def _node(values: int) -> int:
    """Bytes of a tree node: its input, threshold, two children, and so many values."""
    return 16 + 8 * values


FITTED = {
    "linear": Family(_linear, of_logistic, 20_000),
    "tree": Family(_tree, of_forest, 60_000),
    "forest": Family(_forest, of_forest, 20_000),
    "boosting": Family(_boosting, of_boosting, 20_000),
}
# Unlabelled rows for a classifier of the user's: some take quadratic time.
RELAYED = 5000


def of_estimator(estimator: Classifier) -> Family:
    """The family of an unfitted scikit-learn classifier, of which a clone is fitted."""

    def fitted(X: np.ndarray, y: np.ndarray, limits: Limits, seed: int, n_c: int) -> Estimator:
        from sklearn.base import clone

        try:
            return clone(estimator).fit(X, y)
        except Exception as error:  # a class of the user's may raise anything
            found = f"{type(error).__name__}: {error}"
            raise SettingError(
                "to", f"a classifier that can be fitted to rows of {X.shape[1]} inputs", found
            ) from error

    return Family(fitted, _kept, RELAYED)


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
    return Fitted(fitted, n_c)


def fit(
    family: str | Family, X: np.ndarray, y: np.ndarray, n_c: int, limits: Limits = NO_LIMITS, seed: int = 0
) -> Model:
    """A model of the family, fitted to encoded rows and the codes of their labels."""
    limits.check(n_c)
    only = np.unique(y)
    if len(only) == 1:
        return constant(int(only[0]), n_c)
    from threadpoolctl import threadpool_limits

    chosen = FITTED[family] if isinstance(family, str) else family
    with threadpool_limits(1, "openmp"):  # rows are few: threads would wait for each other more than they work
        return chosen.model(chosen.fitted(limits.blinded(X), y, limits, seed, n_c), n_c)


def constant(code: int, n_c: int) -> Model:
    """A constant model: a tree that is a single leaf."""
    none = np.zeros(1, int)
    leaf = Tree(np.array([LEAF]), none.astype(float), none, none, np.eye(n_c)[[code]])
    return together([leaf], np.zeros(n_c), "shares")
