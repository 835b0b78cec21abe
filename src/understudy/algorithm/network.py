"""The multi-layer perceptron, its parameters one flat vector.

One vector makes Adam and the memory term single fused operations, and a copy one array in a file. The functions take
NumPy and JAX arrays alike: JAX while training, NumPy everywhere else, so that a finished copy needs no JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import matmul
from typing import Any, Self

import numpy as np

from understudy.algorithm.uncertainty import softmax
from understudy.types import Array

PAPER_LAYERS = (64, 32, 10)
# Rows per pass outside of training: bounds the memory of a forward pass over any number of rows.
CHUNK = 2048


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
        widths = (self.d, *self.hidden, self.n_c)
        return tuple(pairwise(widths))

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

    def layers(self, theta: Array) -> list[tuple[Array, Array]]:
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
        """f_C(z, theta) for every row, in NumPy, a chunk of rows at a time."""
        layers = self.layers(theta)
        # Classes along the first axis: they are few, and operations on one of them run over contiguous rows.
        found = np.empty((self.n_c, len(X)), np.float32)
        for at in range(0, len(X), CHUNK):
            found[:, at : at + CHUNK] = scores(layers, X[at : at + CHUNK]).T
        return np.ascontiguousarray(softmax(found, axis=0).T)


@dataclass(frozen=True)
class Network:
    """A network with its parameters."""

    mlp: MLP
    theta: np.ndarray
    kind = "mlp"

    @property
    def n_c(self) -> int:
        """The number of classes."""
        return self.mlp.n_c

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """f_C(z) for every encoded row."""
        return self.mlp.probabilities(self.theta, X)

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The whole model as JSON values and arrays."""
        return {"hidden": list(self.mlp.hidden)}, {"theta": self.theta}

    @classmethod
    def of_state(cls, about: dict[str, Any], arrays: dict[str, np.ndarray], inputs: int, n_c: int) -> Self:
        """Rebuild the model that `state` describes."""
        mlp, theta = MLP(inputs, tuple(about["hidden"]), n_c), arrays["theta"]
        if theta.shape != (mlp.size,):
            raise ValueError(f"{theta.shape} parameters for a network of {mlp.size}")
        return cls(mlp, theta)


def forward(layers: list[tuple[Array, Array]], x: Array, product: Callable[[Array, Array], Array] = matmul) -> Array:
    """Class probabilities of rows x under these layers; `product` multiplies rows by weights."""
    return softmax(scores(layers, x, product))


def scores(layers: list[tuple[Array, Array]], x: Array, product: Callable[[Array, Array], Array] = matmul) -> Array:
    """The logits: the outputs of the last layer, before the softmax."""
    xp = x.__array_namespace__()
    for weights, biases in layers[:-1]:
        x = xp.maximum(product(x, weights) + biases, 0.0)
    weights, biases = layers[-1]
    return product(x, weights) + biases
