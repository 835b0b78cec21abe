"""The finished copy: a fitted scikit-learn classifier that takes raw rows and answers the original's labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from understudy.errors import SpaceError
from understudy.hypothesis.mlp import MLP
from understudy.space import as_matrix


class CopyClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network, its parameters, how raw columns are scaled for it, and the labels it answers.

    It comes fitted, from `copy_classifier` or `load`; it predicts in NumPy and needs no JAX.
    """

    def __init__(
        self,
        network: MLP,
        theta: np.ndarray,
        classes: np.ndarray,
        center: np.ndarray,
        scale: np.ndarray,
        names: tuple[str, ...] | None = None,
    ):
        self.network = network
        self.theta = theta
        self.classes = classes
        self.center = center
        self.scale = scale
        self.names = names

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing: a copy comes fitted, and meta-estimators may call this."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """The original's labels, sorted, in the type it answers."""
        return self.classes

    @property
    def n_features_in_(self) -> int:
        """How many columns a row has."""
        return self.network.d

    def encode(self, rows: Any) -> np.ndarray:
        """Rows as the network sees them."""
        named = self.names is not None and hasattr(rows, "columns")
        table, _ = as_matrix(rows, "copy.predict", self.names if named else None)
        if table.shape[1] != self.network.d:
            raise SpaceError("copy.predict", f"rows of {self.network.d} columns", f"{table.shape[1]}")
        return encode(table, self.center, self.scale)

    def predict_proba(self, rows: Any) -> np.ndarray:
        """The copy's class probabilities, in the order of `classes_`."""
        return self.network.probabilities(self.theta, self.encode(rows))

    def predict_codes(self, rows: Any) -> np.ndarray:
        """The positions of the copy's labels in `classes_`."""
        return self.predict_proba(rows).argmax(axis=1)

    def predict(self, rows: Any) -> np.ndarray:
        """The copy's labels."""
        return self.classes[self.predict_codes(rows)]


def encode(rows: np.ndarray, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Raw rows as standardised float32, which is what networks train well on.

    Clipped a million deviations out, where the network is linear anyway: float32 would overflow further out.
    """
    return np.clip((rows - center) / scale, -1e6, 1e6).astype(np.float32)
