"""The scikit-learn interface: copies as estimators, for pipelines and searches."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from ectype.original import Original
from ectype.plan.settings import SharedSettings
from ectype.runs.api import copy_classifier
from ectype.space import Space, as_pandas, is_frame
from ectype.types import Estimator, Frame, Rows, Table


@dataclass(kw_only=True, eq=False, repr=False)
class _Copy(SharedSettings, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fit an original (or take a frozen one), learn the space from X, and copy it.

    original : an unfitted classifier (a random forest if none is given), a `FrozenEstimator`, an `Original`, or a
        function rows -> labels.
    space : where to draw queries from; learned from X if not given.
    random_state : what the seed of the run comes from.
    progress : whether to show how far it is; not by default, because a search makes many.
    The other parameters are those of `copy_classifier`.
    """

    _method: ClassVar[str]
    original: Estimator = field(default=None, kw_only=False)
    space: Space | None = None
    random_state: int | np.random.RandomState | None = None
    progress: bool = False  # as others of scikit-learn do: a search has many

    def fit(self, X: Rows, y: object = None) -> Self:
        """Copy the original, on the space given or learned from X.

        An unfitted original is cloned and fitted on X and y. A `FrozenEstimator`, an `ectype.Original` or a
        function rows -> labels is only queried, and y may be left out.

        X is a table of numbers, or a data frame with columns of any kind, and with gaps.
        """
        frozen = isinstance(self.original, (FrozenEstimator, Original)) or _is_function(self.original)
        rows: Table
        frame = _mixed(X)
        self._of_mixed = frame is not None
        if frame is not None:
            rows, y = self._checked(frame, y, needed=not frozen)
        elif y is None and frozen:
            rows = self._as_frame(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        else:
            numbers, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
            rows = self._as_frame(numbers)
        if y is not None:
            check_classification_targets(y)
        rng = check_random_state(self.random_state)
        self.original_ = self.original if frozen else self._unfitted(rng).fit(rows, y)
        self.space_ = Space.from_data(rows) if self.space is None else self.space
        settings = {part.name: getattr(self, part.name) for part in fields(SharedSettings)}
        seed = int(rng.randint(2**31))
        result = copy_classifier(self.original_, self.space_, method=self._method, seed=seed, **settings)
        self.copy_, self.history_, self.certificate_ = result.copy, result.history, result.certificate
        self.classes_ = self.copy_.classes_
        return self

    def _checked(self, frame: Frame, y: object, needed: bool) -> tuple[Frame, object]:
        """A frame with columns of any kind, and the labels of its rows, checked as scikit-learn does."""
        validate_data(self, frame, skip_check_array=True)
        if len(frame) < 2:
            raise ValueError(f"Found array with {len(frame)} sample(s) while a minimum of 2 is required.")
        if y is None:
            if needed:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            return frame, None
        y = column_or_1d(y, warn=True)
        check_consistent_length(frame, y)
        return frame, y

    def _as_frame(self, rows: np.ndarray) -> Table:
        """Rows with the column names of X, as the original would get them without us."""
        if not hasattr(self, "feature_names_in_"):
            return rows
        import pandas as pd

        return pd.DataFrame(rows, columns=self.feature_names_in_)

    def _unfitted(self, rng: np.random.RandomState) -> Estimator:
        if self.original is not None:
            return clone(self.original)
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(random_state=rng.randint(2**31))

    def predict_proba(self, X: Rows) -> np.ndarray:
        """The copy's class probabilities."""
        check_is_fitted(self)
        if not self._of_mixed:
            return self.copy_.predict_proba(validate_data(self, X, dtype=np.float64, reset=False))
        rows = as_pandas(X)
        validate_data(self, rows, skip_check_array=True, reset=False)
        return self.copy_.predict_proba(rows)

    def predict(self, X: Rows) -> np.ndarray:
        """The copy's labels."""
        codes = self.predict_proba(X).argmax(axis=1)
        return self.classes_[codes]


def _mixed(X: Rows) -> Frame | None:
    """A data frame that is more than numbers: words, dates, flags, gaps."""
    rows = as_pandas(X)
    if not is_frame(rows):
        return None
    plain = all(isinstance(kind, np.dtype) and kind.kind in "iuf" for kind in rows.dtypes)
    return None if plain and not rows.isna().any(axis=None) else rows


def _is_function(original: object) -> bool:
    return callable(original) and not hasattr(original, "fit")


@dataclass(kw_only=True, eq=False, repr=False)
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


@dataclass(kw_only=True, eq=False, repr=False)
class SinglePassCopy(_Copy):
    """One-shot single-pass: all queries at once, one round of training.

    >>> from sklearn.svm import SVC
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> frozen = FrozenEstimator(SVC().fit(X, X[:, 0] > 0))  # which is only asked
    >>> SinglePassCopy(frozen, budget=300, random_state=0).fit(X).predict([[-1.0, 0.0], [1.0, 0.0]]).tolist()
    [False, True]
    """

    _method = "one-shot"
    budget: int | None = 3000


@dataclass(kw_only=True, eq=False, repr=False)
class OnlineCopy(_Copy):
    """Online single-pass: every batch is trained on once and thrown away.

    >>> sign = lambda rows: rows[:, 0] > 0
    >>> copy = OnlineCopy(sign, preset="fast", random_state=0).fit(np.linspace(-1, 1, 50)[:, None])
    >>> copy.predict([[-0.5], [0.5]]).tolist()
    [False, True]
    """

    _method = "online"
