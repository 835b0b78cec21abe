"""The scikit-learn face: copies as estimators that fit into pipelines and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from understudy.algorithm.network import PAPER_LAYERS
from understudy.original import Original
from understudy.runs.copying import copy_classifier
from understudy.space import Space


class _Copy(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fit an original (or take a frozen one), learn the space from X, and copy it.

    original : an unfitted classifier (a random forest if none is given), a `FrozenEstimator`, an `Original`, or a
        function rows -> labels.
    space : where to draw queries from; learned from X if not given.
    The other parameters are those of `copy_classifier`.
    """

    _method: ClassVar[str]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Copy the original on the space that X shows.

        An unfitted original is cloned and fitted on X and y. A `FrozenEstimator`, an `understudy.Original` or a
        function rows -> labels is only queried, and y may be left out.
        """
        frozen = isinstance(self.original, (FrozenEstimator, Original)) or _is_function(self.original)
        if y is None and frozen:
            rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        else:
            rows, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
            check_classification_targets(y)
        rng = check_random_state(self.random_state)
        rows = self._as_frame(rows)
        self.original_ = self.original if frozen else self._unfitted(rng).fit(rows, y)
        self.space_ = Space.from_data(rows) if self.space is None else self.space
        settings = {key: value for key, value in self.get_params(deep=False).items() if key not in _OURS}
        result = copy_classifier(
            self.original_, self.space_, method=self._method, seed=int(rng.randint(2**31)), **settings
        )
        self.copy_, self.history_, self.certificate_ = result.copy, result.history, result.certificate
        self.classes_ = self.copy_.classes_
        return self

    def _as_frame(self, rows: np.ndarray) -> Any:
        """Rows under the names X had, so that the original sees what it would see without us."""
        if not hasattr(self, "feature_names_in_"):
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=self.feature_names_in_)

    def _unfitted(self, rng: np.random.RandomState) -> Any:
        if self.original is not None:
            return clone(self.original)
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(random_state=rng.randint(2**31))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The copy's class probabilities."""
        check_is_fitted(self)
        return self.copy_.predict_proba(validate_data(self, X, dtype=np.float64, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """The copy's labels."""
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]


def _is_function(original: Any) -> bool:
    return callable(original) and not hasattr(original, "fit")


# Parameters that are the estimators' own; every other one goes to `copy_classifier` under its own name.
_OURS = ("original", "space", "random_state")


class SequentialCopy(_Copy):
    """The sequential approach (Algorithm 5).

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> copy = SequentialCopy(DecisionTreeClassifier(), iterations=3, schedule=100, random_state=0).fit(X, y)
    >>> copy.score(X, copy.original_.predict(X)) > 0.9
    True
    """

    _method = "sequential"

    def __init__(
        self,
        original: Any = None,
        *,
        space: Space | None = None,
        batch: int | None = None,
        iterations: int | None = None,
        budget: int | None = None,
        target: float | None = None,
        until_flat: bool = False,
        preset: str = "default",
        delta: float | None = None,
        max_kept: int | None = None,
        memory: str | float | None = None,
        penalty: str | None = None,
        layers: Sequence[int] = PAPER_LAYERS,
        schedule: Any = None,
        decay: float | None = None,
        to: Any = "mlp",
        certificate_n: int = 2000,
        random_state: Any = None,
    ):
        self.original = original
        self.space = space
        self.batch = batch
        self.iterations = iterations
        self.budget = budget
        self.target = target
        self.until_flat = until_flat
        self.preset = preset
        self.delta = delta
        self.max_kept = max_kept
        self.memory = memory
        self.penalty = penalty
        self.layers = layers
        self.schedule = schedule
        self.decay = decay
        self.to = to
        self.certificate_n = certificate_n
        self.random_state = random_state


class SinglePassCopy(_Copy):
    """One-shot single-pass: all queries at once, one round of training."""

    _method = "one-shot"

    def __init__(
        self,
        original: Any = None,
        *,
        space: Space | None = None,
        budget: int = 3000,
        preset: str = "default",
        layers: Sequence[int] = PAPER_LAYERS,
        schedule: Any = None,
        decay: float | None = None,
        to: Any = "mlp",
        certificate_n: int = 2000,
        random_state: Any = None,
    ):
        self.original = original
        self.space = space
        self.budget = budget
        self.preset = preset
        self.layers = layers
        self.schedule = schedule
        self.decay = decay
        self.to = to
        self.certificate_n = certificate_n
        self.random_state = random_state


class OnlineCopy(_Copy):
    """Online single-pass: every batch is trained on once and thrown away."""

    _method = "online"

    def __init__(
        self,
        original: Any = None,
        *,
        space: Space | None = None,
        batch: int | None = None,
        iterations: int | None = None,
        budget: int | None = None,
        target: float | None = None,
        preset: str = "default",
        layers: Sequence[int] = PAPER_LAYERS,
        schedule: Any = None,
        decay: float | None = None,
        to: Any = "mlp",
        certificate_n: int = 2000,
        random_state: Any = None,
    ):
        self.original = original
        self.space = space
        self.batch = batch
        self.iterations = iterations
        self.budget = budget
        self.target = target
        self.preset = preset
        self.layers = layers
        self.schedule = schedule
        self.decay = decay
        self.to = to
        self.certificate_n = certificate_n
        self.random_state = random_state
