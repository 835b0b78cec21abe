"""The six families of originals in the paper: a small grid each, chosen from by 3-fold cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from ectype._common import validation
from ectype.errors import SettingError
from ectype.toy_problems import TOYS
from ectype_paper.problems import Problem
from ectype_paper.published import table3

FOLDS = 3
# The grid search of a larger problem looks at this many of its rows; the chosen estimator is then fitted to all.
GRID_ROWS = 8000


class Estimator(Protocol):
    """What is used of a classifier of scikit-learn's, or of one that is made like those."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Learn from rows and their labels."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The labels of rows."""

    def get_params(self) -> dict[str, Any]:
        """What it was made with."""

    def set_params(self, **parameters: object) -> Self:
        """Change what it was made with."""


class OriginalFamily(NamedTuple):
    """An estimator before it is fitted, and the grid its parameters are chosen from."""

    estimator: Callable[[], Estimator]
    grid: dict[str, list[Any]]


def _adaboost() -> Estimator:
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier(random_state=0)


def _ann() -> Estimator:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((50,), learning_rate_init=0.01, max_iter=500, random_state=0)


def _random_forest() -> Estimator:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=0, n_jobs=1)


def _linear_svm() -> Estimator:
    from sklearn.svm import LinearSVC

    # Not the dual: it does not converge on problems with more rows than columns, which these are.
    return LinearSVC(dual=False, random_state=0)


def _rbf_svm() -> Estimator:
    from sklearn.svm import SVC

    return SVC(kernel="rbf")


def _xgboost() -> Estimator:
    try:
        from xgboost import XGBClassifier
    except ImportError as error:
        hint = "pip install xgboost-cpu, or choose another family"
        raise SettingError("family", "xgboost to be installed", str(error), hint) from error

    return XGBClassifier(n_estimators=100, learning_rate=0.1, random_state=0, n_jobs=1)


FAMILIES = {
    "adaboost": OriginalFamily(_adaboost, {"n_estimators": [50, 200], "learning_rate": [0.1, 1.0]}),
    "ann": OriginalFamily(_ann, {"alpha": [0.0001, 0.1, 1.0]}),
    "random_forest": OriginalFamily(_random_forest, {"max_depth": [4, 8, None]}),
    "linear_svm": OriginalFamily(_linear_svm, {"C": [0.01, 0.1, 1.0, 10.0]}),
    "rbf_svm": OriginalFamily(_rbf_svm, {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01]}),
    "xgboost": OriginalFamily(_xgboost, {"max_depth": [3, 6]}),
    # The toy problems' own: the others' grid leaves 1.4 % of spirals wrong, and the paper's original has none.
    "toy_rbf_svm": OriginalFamily(_rbf_svm, {"C": [1000.0], "gamma": [1.0]}),
}

# Which family the original of each problem belongs to: Table 3 of the paper.
FAMILY_OF = {name: str(row["original"]) for name, row in table3().items()}
_KNOWN = {**FAMILY_OF, **dict.fromkeys(TOYS, "toy_rbf_svm")}


def original(problem: Problem, family: str | None = None) -> Estimator:
    """An estimator of this family (Table 3's for the problem, if not given), fitted to the training part."""
    chosen = family_of(problem, family)
    estimator = FAMILIES[chosen].estimator()
    estimator.set_params(**_best(estimator, FAMILIES[chosen].grid, problem))
    return estimator.fit(problem.X_train, problem.y_train)


def family_of(problem: Problem, family: str | None = None) -> str:
    """The family named, or Table 3's for the problem, or that of the toy problems."""
    if family is None and problem.name not in _KNOWN:
        raise SettingError("problem", "one of the paper's Table 3", repr(problem.name), "name a family")
    return validation.choice("family", family or _KNOWN[problem.name], tuple(FAMILIES))


def _best(estimator: Estimator, grid: dict[str, list[Any]], problem: Problem) -> dict[str, Any]:
    """The parameters of the highest accuracy in cross-validation; the first of the grid where a class is too small."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    rows = np.random.default_rng(0).permutation(len(problem.y_train))[:GRID_ROWS]
    X, y = problem.X_train[rows], problem.y_train[rows]
    if np.bincount(y, minlength=problem.n_classes).min() < FOLDS:  # some fold would not know the class at all
        return {name: values[0] for name, values in grid.items()}
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(estimator, grid, cv=folds, refit=False, n_jobs=1, error_score="raise")
    return search.fit(X, y).best_params_
