"""Temperature scaling: one power of all probabilities (Guo, Pleiss, Sun and Weinberger, On calibration of modern neural
networks, 2017), the inverse of a temperature. It makes them surer or more doubtful, and changes no label.

A copy's probabilities follow those of the blend, which held-out answers have calibrated: a copy of another family may
be far too sure, as a tree with pure leaves, or too doubtful, as a forest. Its power is fitted to what the blend says of
rows that taught neither.

An original's scores are sharpened before models learn from them, if it is never sure. A copy has to find where the
highest probability changes hands. Scores that are about even everywhere say most about what happens away from there,
and models would spend themselves on that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ectype._kernel import LEAF
from ectype.algorithm.mlp import Network
from ectype.algorithm.uncertainty import softmax
from ectype.models.base import Model
from ectype.models.blend import FLOOR, Blend, fit_pool_weights
from ectype.models.linear import Linear
from ectype.models.trees import Trees, fixed_point

# The least power of a model's probabilities: a power of 0 would make all labels alike.
LEAST_POWER = 0.01
# The mean of the highest probabilities, from which on scores are learned as they are.
SURE = 0.75
# Powers beyond this make labels of scores; and how often the interval of powers is halved.
MOST, HALVINGS = 64.0, 30
# What no probability counts as less than.
LEAST = 1e-12


# --- a copy's probabilities -----------------------------------------------------------------------------------------


def calibrate(model: Model, X: np.ndarray, wanted: np.ndarray) -> Model:
    """The model with the power of its probabilities under which these, of encoded rows, are likeliest.

    >>> sure = Linear(np.array([[0.0, 9.0]]), np.zeros(2))
    >>> X, wanted = np.array([[-1.0], [1.0]] * 500), np.array([[0.8, 0.2], [0.2, 0.8]] * 500)
    >>> calibrate(sure, X, wanted).probabilities(X[:2]).round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    power = max(float(fit_pool_weights([model.probabilities(X)], wanted)[0]), LEAST_POWER)
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


# --- an original's scores ---------------------------------------------------------------------------------------------


def fit_temperature(p: np.ndarray) -> float:
    """The power of these probabilities under which the highest are 0.75 in the mean; 1 if they are that much already.

    >>> fit_temperature(np.array([[0.9, 0.1]])), round(fit_temperature(np.array([[0.6, 0.4]])), 2)
    (1.0, 2.71)
    """
    low, high = 1.0, MOST
    if _surety(p) >= SURE:
        return low
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _surety(temper(p, middle)) < SURE else (low, middle)
    return high


def temper(p: np.ndarray, power: float) -> np.ndarray:
    """Probabilities to a power, which sum to one again.

    >>> temper(np.array([[0.75, 0.25]], np.float32), 2.0).tolist()
    [[0.8999999761581421, 0.10000000149011612]]
    """
    return p if power == 1.0 else softmax(power * np.log(np.maximum(p, LEAST, dtype=np.float64))).astype(p.dtype)


def _surety(p: np.ndarray) -> float:
    return float(p.max(axis=1).mean())
