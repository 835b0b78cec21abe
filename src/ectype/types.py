"""Type aliases: rows as users have them, labels, JSON. pandas is imported by type checkers only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Label: TypeAlias = bool | int | float | str
"""A class, as an original answers it."""

Classes: TypeAlias = Iterable[Label] | None
"""The labels that an original may answer; None if it declares them itself, or they are taken from its answers."""

Frame: TypeAlias = "pd.DataFrame"
Series: TypeAlias = "pd.Series"

Table: TypeAlias = "np.ndarray | Frame"
"""Rows as a classifier takes them in production."""

Plain: TypeAlias = "Table | Sequence[Sequence[Label]]"
"""Rows that pandas and NumPy can read."""

Rows: TypeAlias = "Plain | Polars"
"""Rows as a user may pass them."""

Json: TypeAlias = dict[str, Any]
"""A JSON object, of any content."""

Answered: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Rows of a space's matrix, or encoded, and the original's answers to them."""

Estimator: TypeAlias = Any
"""A scikit-learn estimator; that library has no types."""


class Polars(Protocol):
    """A data frame of Polars, or a lazy one, which is not imported for it."""

    def collect_schema(self) -> Any:
        """The names and types of its columns."""


class Classifier(Protocol):
    """An unfitted scikit-learn classifier."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and their labels."""

    def predict(self, X: Any) -> Any:
        """Labels for rows."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of its constructor."""


def is_classifier(to: object) -> TypeGuard[Classifier]:
    """Whether this is a classifier itself, rather than the name of a family, or a class.

    >>> is_classifier("tree")
    False
    """
    return all(hasattr(to, name) for name in ("fit", "predict", "get_params")) and not isinstance(to, type)
