"""What a copy may be: a network, a linear model, or trees; each a few arrays that predict in NumPy alone.
Beside them there is whatever classifier of scikit-learn's a user asks for.

Whatever fits them, a fitted model is one of these, so that saving, exporting and serving know nothing of families.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np


class Model(Protocol):
    """A fitted model: from encoded rows to class probabilities."""

    @property
    def kind(self) -> str:
        """How it computes: the name it is saved under."""

    @property
    def n_c(self) -> int:
        """How many classes it tells apart."""

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of it, as JSON values and arrays."""

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """The model that `state` was taken of, for so many inputs and classes; anything else is a ValueError."""


# Bytes of a written model beside the numbers in it, at most.
HEADER = 1024


def size_of(model: Model) -> int:
    """What it takes to write a model down, in bytes."""
    return HEADER + sum(array.nbytes for array in model.state()[1].values())


def model_of(
    about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int, types: Sequence[str] = ()
) -> Model:
    """A model from what `state` gave; `types` are those of a classifier that the user trusts beyond scikit-learn's."""
    from understudy.algorithm.network import Network
    from understudy.models.fitted import Fitted
    from understudy.models.linear import Linear
    from understudy.models.trees import Trees

    if about["kind"] == Fitted.kind:
        return Fitted.of_state(about, arrays, inputs, n_c, types)
    kinds: dict[str, type[Model]] = {"mlp": Network, "linear": Linear, "trees": Trees}
    if about["kind"] not in kinds:
        raise ValueError(f"a model of kind {about['kind']!r}")
    return kinds[about["kind"]].of_state(about, arrays, inputs, n_c)
