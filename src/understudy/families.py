"""The families a copy may belong to beside networks: fitted by scikit-learn to all points at once, kept as arrays.

They have no warm start. They are fitted once, when a network has chosen what to ask: to every point that was paid for,
and, by relay, to rows that cost nothing because a better copy labels them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.hypothesis import Model
from understudy.hypothesis.linear import of_logistic
from understudy.hypothesis.trees import LEAF, Tree, of_boosting, of_forest, together


@dataclass(frozen=True)
class Limits:
    """What the user allows trees to grow to."""

    max_depth: int | None = None
    max_leaves: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Family:
    """How a family is fitted, what becomes of it, and how many free rows it can make use of."""

    estimator: Callable[[Limits, int], Any]
    model: Callable[[Any, int], Model]
    relayed: int


def _linear(limits: Limits, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=10.0, max_iter=1000)


def _tree(limits: Limits, seed: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=limits.max_depth, max_leaf_nodes=limits.max_leaves, random_state=seed)


def _forest(limits: Limits, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(100, max_depth=limits.max_depth, max_leaf_nodes=limits.max_leaves, random_state=seed)


def _boosting(limits: Limits, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    leaves = {"max_leaf_nodes": 31 if limits.max_leaves is None else limits.max_leaves}
    return HistGradientBoostingClassifier(
        max_iter=200, max_depth=limits.max_depth, early_stopping=False, random_state=seed, **leaves
    )


FITTED = {
    "linear": Family(_linear, of_logistic, 20_000),
    "tree": Family(_tree, of_forest, 60_000),
    "forest": Family(_forest, of_forest, 20_000),
    "boosting": Family(_boosting, of_boosting, 20_000),
}


def fit(family: str, X: np.ndarray, y: np.ndarray, n_c: int, limits: Limits = NO_LIMITS, seed: int = 0) -> Model:
    """A model of the family, fitted to encoded rows and the codes of their labels."""
    only = np.unique(y)
    if len(only) == 1:
        return constant(int(only[0]), n_c)
    from threadpoolctl import threadpool_limits

    chosen = FITTED[family]
    with threadpool_limits(1, "openmp"):  # rows are few: threads would wait for each other longer than they work
        return chosen.model(chosen.estimator(limits, seed).fit(X, y), n_c)


def constant(code: int, n_c: int) -> Model:
    """The model that always gives the same answer: a tree that is all leaf."""
    none = np.zeros(1, int)
    leaf = Tree(np.array([LEAF]), none.astype(float), none, none, np.eye(n_c)[[code]])
    return together([leaf], np.zeros(n_c), "shares")
