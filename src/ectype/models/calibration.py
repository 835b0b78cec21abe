"""Calibration: a copy's probabilities follow those of the blend, which held-out answers have calibrated.

A copy of another family may be far too sure, as a tree with pure leaves, or too doubtful, as a forest. One power of its
probabilities (temperature scaling; Guo, Pleiss, Sun and Weinberger, 2017) is fitted to what the blend says to rows that
taught neither. Which label a row gets does not change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ectype._kernel import LEAF
from ectype.algorithm.mlp import Network
from ectype.models.base import Model
from ectype.models.blend import FLOOR, Blend, fit_pool_weights
from ectype.models.linear import Linear
from ectype.models.trees import Trees, fixed_point

# A power of 0 would make all labels alike.
LEAST = 0.01


def calibrated(model: Model, X: np.ndarray, wanted: np.ndarray) -> Model:
    """The model with the power of its probabilities under which these, of encoded rows, are likeliest.

    >>> sure = Linear(np.array([[0.0, 9.0]]), np.zeros(2))
    >>> X, wanted = np.array([[-1.0], [1.0]] * 500), np.array([[0.8, 0.2], [0.2, 0.8]] * 500)
    >>> calibrated(sure, X, wanted).probabilities(X[:2]).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    power = max(float(fit_pool_weights([model.probabilities(X)], wanted)[0]), LEAST)
    if isinstance(model, Network):
        return _network(model, power)
    if isinstance(model, Linear):
        return Linear(model.weights * power, model.biases * power)
    if isinstance(model, Trees):
        return _trees(model, power)
    return model


def _network(model: Network, power: float) -> Network:
    theta = model.theta.copy()
    for part in model.mlp.layers(theta)[-1]:
        part *= np.float32(power)  # a view of theta
    return replace(model, theta=theta)


def _trees(model: Trees, power: float) -> Model:
    if model.link == "softmax":
        return fixed_point(replace(model, values=model.values * power, base=model.base * power))
    if len(model.roots) > 1:
        return Blend((model,), np.array([power]))  # the power of a sum is not the sum of powers
    shares = np.maximum(model.values, FLOOR) ** power
    shares /= shares.sum(axis=1, keepdims=True)
    return fixed_point(replace(model, values=np.where((model.feature == LEAF)[:, None], shares, 0.0)))
