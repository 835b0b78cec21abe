"""A linear classifier: a weight for every input and class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ectype.algorithm.uncertainty import softmax
from ectype.types import Estimator


@dataclass(frozen=True)
class Linear:
    """Logits that are weighted sums of the inputs, in float64.

    >>> Linear(np.array([[0.0, 1.0]]), np.zeros(2)).probabilities(np.array([[-1.0], [1.0]])).argmax(axis=1)
    array([0, 1])
    """

    weights: np.ndarray
    biases: np.ndarray
    kind = "linear"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return len(self.biases)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row, independent of its batch: a matrix product may sum in another order."""
        rows, weights = np.ascontiguousarray(X, np.float64), np.ascontiguousarray(self.weights.T)
        return softmax(np.einsum("ij,kj->ik", rows, weights) + self.biases)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""
        return {}, {"weights": self.weights, "biases": self.biases}

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes."""
        weights, biases = arrays["weights"], arrays["biases"]
        if (
            weights.shape != (inputs, n_c)
            or biases.shape != (n_c,)
            or {weights.dtype, biases.dtype} != {np.dtype(float)}
        ):
            raise ValueError(f"weights of shape {weights.shape} for {inputs} inputs and {n_c} classes")
        return cls(weights, biases)


def of_logistic(fitted: Estimator, n_c: int) -> Linear:
    """Convert a scikit-learn logistic regression; with two classes it scores the second only."""
    weights, biases = np.zeros((fitted.n_features_in_, n_c)), np.zeros(n_c)
    places = fitted.classes_[1:] if len(fitted.classes_) == 2 else fitted.classes_
    missing = np.setdiff1d(np.arange(n_c), fitted.classes_)
    weights[:, places], biases[places] = fitted.coef_.T, fitted.intercept_
    biases[missing] = -np.inf
    return Linear(weights, biases)
