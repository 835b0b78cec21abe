"""Test data of the user's, to measure a copy's accuracy and agreement by iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ectype.algorithm.uncertainty import rho_squared
from ectype.errors import SettingError
from ectype.metrics import accuracy, fidelity
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Labels, label_array
from ectype.space import Space


@dataclass(frozen=True)
class EvaluationData:
    """Test data: encoded rows, their true labels, and the original's answers to them where they were given."""

    X: np.ndarray
    labels: np.ndarray
    answers: np.ndarray | None

    @classmethod
    def of(cls, test: Any, space: Space, encode: Callable[[np.ndarray], np.ndarray]) -> EvaluationData:
        """Read a user's test data."""
        if not isinstance(test, (tuple, list)) or len(test) not in (2, 3):
            raise SettingError("test", "a pair of rows and labels", repr(test)[:80])
        rows = space.read(test[0], "test")
        try:
            labels = [label_array(part) for part in test[1:]]
        except (TypeError, ValueError) as error:
            raise SettingError("test", "one label per row", str(error)) from error
        shapes = {part.shape for part in labels}
        if shapes != {(len(rows),)} or len(rows) == 0:
            found = f"rows of shape {rows.shape}, labels of shape {', '.join(map(str, shapes))}"
            raise SettingError("test", f"rows of {space.d} columns, and one label per row", found)
        return cls(encode(rows), labels[0], labels[1] if len(labels) > 1 else None)

    def measured(self, copy: CopyClassifier, labels: Labels) -> dict[str, float]:
        """The test metrics of a record: against the true labels, and the original's answers if there are any."""
        probabilities = copy.model.probabilities(self.X)
        decided = copy.classes[probabilities.argmax(axis=1)]
        found: dict[str, float] = {"accuracy": accuracy(self.labels, decided)}
        if self.answers is not None:
            codes = labels.find(self.answers)
            # For a label that the copy does not know, rho^2 is as for one with probability 0: at its maximum.
            squares = np.where(codes < 0, 2 / len(labels), rho_squared(probabilities, codes))
            found["agreement"] = fidelity(self.answers, decided)
            found["test_rho"], found["test_risk"] = float(np.sqrt(squares).mean()), float(squares.mean())
        return found
