"""The finished copy: a classifier that takes raw rows and answers the original's labels.

It has the interface of a fitted scikit-learn classifier, but does not inherit from that library: importing it takes
longer than making a copy does, and a network that was loaded predicts without it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ectype.models.base import Model
from ectype.models.training_rows import TrainingRows
from ectype.space import Encoding, Space, Support
from ectype.types import Rows

if TYPE_CHECKING:
    from sklearn.utils import Tags


class FittedClassifier:
    """What scikit-learn asks of a classifier that comes fitted, beside its predictions; without that library."""

    def predict(self, rows: Rows) -> np.ndarray:
        """The labels."""
        raise NotImplementedError

    def fit(self, X: object = None, y: object = None) -> Self:
        """Do nothing: it comes fitted, and meta-estimators may call this."""
        return self

    def score(self, X: Rows, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The share of rows for which it predicts y."""
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return float(np.average(self.predict(X) == np.asarray(y), weights=weights))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self  # fitting changes nothing

    def __sklearn_tags__(self) -> Tags:
        from sklearn.base import BaseEstimator, ClassifierMixin

        return type("Copy", (ClassifierMixin, BaseEstimator), {})().__sklearn_tags__()


class CopyClassifier(FittedClassifier):
    """A fitted model, the labels it answers, and the space that says how raw columns are read and encoded.

    Columns that were excluded are not in the space. A data frame may have them or not; an array has all of them, at the
    positions `excluded`, or none.

    It comes fitted, from `copy_classifier` or `load`; it predicts without scikit-learn. `training_rows` says which rows
    taught it, where that is known: these certify nothing.
    """

    def __init__(
        self,
        model: Model,
        classes: np.ndarray,
        space: Space,
        excluded: tuple[int, ...] = (),
        training_rows: TrainingRows | None = None,
    ):
        self.model = model
        self.classes = classes
        self.space = space
        self.excluded = excluded
        self.training_rows = training_rows

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor."""
        names = ("model", "classes", "space", "excluded", "training_rows")
        return {name: getattr(self, name) for name in names}

    def with_training_rows(self, training_rows: TrainingRows | None) -> CopyClassifier:
        """The same copy with its training rows."""
        return CopyClassifier(self.model, self.classes, self.space, self.excluded, training_rows)

    def with_model(self, model: Model) -> CopyClassifier:
        """The same with another model of the same classes."""
        return CopyClassifier(model, self.classes, self.space, self.excluded, self.training_rows)

    def __repr__(self) -> str:
        labels = ", ".join(repr(label) for label in self.classes[:4].tolist())
        more = f" and {len(self.classes) - 4} more" if len(self.classes) > 4 else ""
        return f"CopyClassifier({self.model.kind} of {self.space.d} columns, answers {labels}{more})"

    @property
    def classes_(self) -> np.ndarray:
        """The original's labels, sorted, in the type it answers."""
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self.space.d

    @cached_property
    def encoding(self) -> Encoding:
        """From rows as a matrix to the model's inputs."""
        return Encoding(self.space)

    def encode(self, rows: Rows) -> np.ndarray:
        """Raw rows, as in production, as the model's inputs."""
        return self.encoding(self.space.read(self._seen(rows), "copy.predict"))

    def _seen(self, rows: Rows) -> Rows:
        """Rows without excluded columns; those of a data frame are taken by name anyway."""
        if not self.excluded or hasattr(rows, "columns"):
            return rows
        rows = np.asarray(rows)
        whole = rows.ndim == 2 and rows.shape[1] == self.space.d + len(self.excluded)
        return np.delete(rows, self.excluded, axis=1) if whole else rows

    def predict_proba(self, rows: Rows) -> np.ndarray:
        """The copy's class probabilities, in the order of `classes_`."""
        return self.model.probabilities(self.encode(rows))

    def predict(self, rows: Rows) -> np.ndarray:
        """The copy's labels."""
        return self.classes[self.predict_proba(rows).argmax(axis=1)]

    @cached_property
    def support(self) -> Support:
        """The values that its space has."""
        return Support.of(self.space)

    def outside(self, rows: Rows) -> np.ndarray:
        """Which rows are outside the space, and so unlike any that the original was asked about.

        No certificate covers the copy's answers to them.
        """
        return self.support.outside(self.space.read(self._seen(rows), "copy.outside"))

    def decide(self, X: np.ndarray) -> np.ndarray:
        """The copy's labels, as positions in `classes_`, for rows that are already encoded."""
        return self.model.probabilities(X).argmax(axis=1)
