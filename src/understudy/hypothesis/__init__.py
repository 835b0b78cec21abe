"""What a copy may be: a network, a linear model, or trees; each a few arrays that predict in NumPy alone.

Whatever fits them, a fitted model is one of these, so that saving, exporting and serving know nothing of families.
"""

from __future__ import annotations

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


def model_of(about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Model:
    """A model from what `state` gave."""
    from understudy.hypothesis.linear import Linear
    from understudy.hypothesis.mlp import Network
    from understudy.hypothesis.trees import Trees

    kinds: dict[str, type[Model]] = {"mlp": Network, "linear": Linear, "trees": Trees}
    if about["kind"] not in kinds:
        raise ValueError(f"a model of kind {about['kind']!r}")
    return kinds[about["kind"]].of_state(about, arrays, inputs, n_c)
