"""A scikit-learn classifier that is none of our own kinds: kept as it is, and saved by skops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ectype.types import Estimator


@dataclass(frozen=True)
class SklearnModel:
    """A fitted classifier whose classes are codes. Without `predict_proba`, its prediction has probability 1."""

    estimator: Estimator
    n_c: int
    kind = "estimator"

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        found = np.zeros((len(X), self.n_c))
        if not len(X):
            return found
        if hasattr(self.estimator, "predict_proba"):
            found[:, self.estimator.classes_.astype(int)] = self.estimator.predict_proba(X)
        else:
            found[np.arange(len(X)), self.estimator.predict(X).astype(int)] = 1
        return found

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model: the bytes of a skops file as an array."""
        import skops.io

        return {}, {"skops": np.frombuffer(skops.io.dumps(self.estimator), np.uint8)}

    @classmethod
    def of_state(
        cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int, types: Sequence[str] = ()
    ) -> Self:
        """Rebuild the model that `state` describes; it may hold scikit-learn's types, and those that the user names."""
        from ectype.original.sklearn_files import ModelBytes, skops_object
        from ectype.original.skops_trust import check_copy

        estimator = skops_object(ModelBytes("copy", arrays["skops"].tobytes(), ""), types)
        check_copy(estimator)
        codes = np.asarray(estimator.classes_)
        if estimator.n_features_in_ != inputs or not np.isin(codes, np.arange(n_c)).all():
            raise ValueError(f"a classifier of {estimator.n_features_in_} inputs for {inputs}, with classes {codes}")
        return cls(estimator, n_c)
