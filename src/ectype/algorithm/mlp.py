"""The multi-layer perceptron, its parameters one flat vector.

One vector makes a copy one array in a file. The engine trains it and answers with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ectype._kernel import ACTIVATIONS, NetworkInference, PiecewiseLinear
from ectype.errors import KernelError

PAPER_LAYERS = (64, 32, 10)
# The arrays of a network's pieces.
PIECES = ("column", "low", "high")


@dataclass(frozen=True)
class MLP:
    """d inputs, ReLU layers of the given sizes, n_c softmax outputs.

    >>> MLP(2, (64, 32, 10), 2).size
    2624
    """

    d: int
    hidden: tuple[int, ...]
    n_c: int

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of every layer."""
        return tuple(pairwise(self.widths))

    @property
    def widths(self) -> tuple[int, ...]:
        """The sizes of inputs, hidden layers and outputs."""
        return (self.d, *self.hidden, self.n_c)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(a * b + b for a, b in self.shapes)

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Random parameters: He initialisation of the weights, small random biases.

        Biases are not zero: with few inputs, units whose hinges all pass through the centre leave the copy with regions
        that it gets confidently wrong, where the gradient of rho^2 vanishes.
        """
        parts = []
        for a, b in self.shapes:
            parts += [rng.normal(scale=np.sqrt(2 / a), size=a * b), rng.uniform(-1, 1, b) / np.sqrt(a)]
        return np.concatenate(parts).astype(np.float32)

    def layers(self, theta: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights and biases of every layer, sliced from the flat vector."""
        layers, at = [], 0
        for a, b in self.shapes:
            layers.append((theta[at : at + a * b].reshape(a, b), theta[at + a * b : at + a * b + b]))
            at += a * b + b
        return layers

    def widened(self, theta: np.ndarray, places: np.ndarray, n_c: int) -> tuple[MLP, np.ndarray]:
        """The same network with n_c outputs: the old ones at `places`, the others with weights and biases of 0."""
        *hidden, (weights, biases) = self.layers(theta)
        wider = np.zeros((len(weights), n_c), np.float32), np.zeros(n_c, np.float32)
        wider[0][:, places], wider[1][places] = weights, biases
        parts = [part.ravel() for layer in (*hidden, wider) for part in layer]
        return MLP(self.d, self.hidden, n_c), np.concatenate(parts)

    def probabilities(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """f_C(z, theta) for every row."""
        return NetworkInference(self.widths, theta)(X)


@dataclass(frozen=True)
class Network:
    """A network with its parameters; it may see pieces of its inputs beside these themselves."""

    mlp: MLP
    theta: np.ndarray
    pieces: PiecewiseLinear | None = None
    activation: str = "relu"
    kind = "mlp"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return self.mlp.n_c

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        return self._answers(X)

    @cached_property
    def _answers(self) -> NetworkInference:
        """The network as the engine has it, laid out once."""
        return NetworkInference(self.mlp.widths, self.theta, self.activation, self.pieces)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""
        arrays = {"theta": self.theta}
        if self.pieces is not None:
            arrays |= {name: getattr(self.pieces, name) for name in PIECES}
        return {"hidden": list(self.mlp.hidden), "activation": self.activation}, arrays

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes."""
        try:
            pieces = PiecewiseLinear(inputs, *(arrays[name] for name in PIECES)) if PIECES[0] in arrays else None
        except KernelError as error:
            raise ValueError(str(error)) from error
        mlp, theta = MLP(inputs if pieces is None else pieces.width, tuple(about["hidden"]), n_c), arrays["theta"]
        if theta.shape != (mlp.size,) or theta.dtype != np.float32:
            raise ValueError(f"{theta.dtype} {theta.shape} parameters for a network of {mlp.size} in float32")
        activation = about.get("activation", "relu")  # which earlier versions do not name
        if activation not in ACTIVATIONS:
            raise ValueError(f"an activation {activation!r}")
        return cls(mlp, theta, pieces, activation)
