"""The kinds of model a copy may be: a network, a linear model, trees, radial functions or a blend of these, each a few
arrays, or a scikit-learn classifier that the user asks for.

Every family is converted to one of these when it is fitted, so that saving, exporting and serving know no families.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from ectype.space import CLIP_DEVIATIONS


class Model(Protocol):
    """A fitted model: from encoded rows to class probabilities."""

    @property
    def kind(self) -> str:
        """The kind of model: the name it is saved under."""

    @property
    def n_c(self) -> int:
        """The number of classes."""

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes, for so many inputs and classes; ValueError if it does not fit."""


# Scores before any input is seen; where one is -inf, the class is ruled out.
RULING_OUT = ("base", "biases")
# The most bytes of a saved model beside its arrays.
HEADER = 1024


def size_of(model: Model) -> int:
    """The bytes that a saved model takes."""
    return HEADER + sum(array.nbytes for array in model.state()[1].values())


def model_of(
    about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int, types: Sequence[str] = ()
) -> Model:
    """Rebuild a model from its `state`; `types` are classes from outside scikit-learn that the user trusts."""
    from ectype.algorithm.mlp import Network
    from ectype.models.blend import Blend
    from ectype.models.linear import Linear
    from ectype.models.rbf import RadialModel
    from ectype.models.sklearn_model import SklearnModel
    from ectype.models.trees import Trees

    if about["kind"] == SklearnModel.kind:
        return SklearnModel.of_state(about, arrays, inputs, n_c, types)
    kinds: dict[str, type[Model]] = {
        "mlp": Network,
        "linear": Linear,
        "trees": Trees,
        "radial": RadialModel,
        "blend": Blend,
    }
    if about["kind"] not in kinds:
        raise ValueError(f"a model of kind {about['kind']!r}")
    _refuse_not_finite(arrays)
    return kinds[about["kind"]].of_state(about, arrays, inputs, n_c)


def _refuse_not_finite(arrays: dict[str, np.ndarray]) -> None:
    """ValueError for numbers that are infinite or none; a class that a model rules out has a score of -inf."""
    for name, array in arrays.items():
        numbers = array[array != -np.inf] if name.rpartition(".")[2] in RULING_OUT else array
        if array.dtype.kind not in "iuf" or not np.isfinite(numbers).all() or (array.size and not numbers.size):
            raise ValueError(f"{name} with numbers that are infinite or none")


def check_answers(model: Model, inputs: int) -> None:
    """ValueError for a model that fails, or overflows, on rows whose inputs are all alike: small, or as far as can be.

    A classifier that is none of our own kinds is asked about small ones only.
    """
    values = (0.0, 1.0) if model.kind == "estimator" else (0.0, 1.0, CLIP_DEVIATIONS, -CLIP_DEVIATIONS)
    rows = np.repeat(np.array(values, np.float32)[:, None], inputs, axis=1)
    with np.errstate(all="ignore"):
        found = model.probabilities(rows)
    if found.shape != (len(rows), model.n_c) or not np.isfinite(found).all():
        raise ValueError("a model whose probabilities are infinite or none")
