"""A round of training in NumPy: for runs so short that compiling a program would take longer than they do.

The steps are those of the compiled round: Adam on batches, here with the gradient of the cross-entropy written out. A
step is some forty small array operations, so what counts is how little each does beside its work: all of them write to
arrays that were there before, and the weights and biases of a layer are one matrix, as they lie in the flat vector.
"""

from __future__ import annotations

import numpy as np

from understudy.hypothesis.mlp import MLP
from understudy.samples import Samples
from understudy.training.batches import BLOCK, Groups, draw_rows
from understudy.training.schedule import FIRST_MOMENT, SECOND_MOMENT, step_sizes


def train(
    network: MLP, theta: np.ndarray, points: Samples, groups: Groups,
    *, steps: int, batch: int, rate: float, anneal: bool, epsilon: float, decay: float, rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Where so many steps lead from theta."""
    theta = theta.copy()
    gradient = Gradient(network, theta, batch)
    # Without the factors of the moments' definitions: the step size has them, and the mean over the batch.
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    scale = (1 - FIRST_MOMENT) / np.sqrt(1 - SECOND_MOMENT)
    least = epsilon * batch / np.sqrt(1 - SECOND_MOMENT)
    g, step = gradient.g, np.empty_like(theta)
    X = np.concatenate([points.X, np.ones((len(points), 1), np.float32)], axis=1)
    with np.errstate(all="ignore"):  # steps that are too long end in a risk that is no number, which the caller sees
        for done in range(0, steps, BLOCK):
            i = np.arange(done, min(done + BLOCK, steps))
            batches = draw_rows(rng.integers(2**32, size=(2, len(i), batch), dtype=np.uint32), groups)
            sizes = step_sizes(rate, i + 1.0, i / steps, float(anneal))
            for rows, far, shrunk in zip(batches, (scale * sizes).tolist(), (1 - decay * sizes).tolist(), strict=True):
                gradient(X, points.y, rows)
                np.multiply(first, FIRST_MOMENT, out=first)
                np.add(first, g, out=first)
                np.square(g, out=g)
                np.multiply(second, SECOND_MOMENT, out=second)
                np.add(second, g, out=second)
                np.sqrt(second, out=step)
                np.add(step, least, out=step)
                np.divide(first, step, out=step)
                np.multiply(step, far, out=step)
                np.multiply(theta, shrunk, out=theta)
                np.subtract(theta, step, out=theta)
    return theta


class Gradient:
    """The gradient of the cross-entropy, summed over a batch, with respect to a theta that may change in between.

    It is in `g` until the next call.
    """

    def __init__(self, network: MLP, theta: np.ndarray, batch: int) -> None:
        self.g = np.empty_like(theta)
        weights, slopes = _matrices(network, theta), _matrices(network, self.g)
        # A column more than the layer has inputs, which stays 1: its weights are the biases.
        inputs = [np.ones((batch, len(w)), np.float32) for w in weights]
        outputs = [np.empty((batch, w.shape[1]), np.float32) for w in weights]
        layers = list(zip(inputs, weights, outputs, slopes, strict=True))
        self._up = [(x, w, z, above[:, :-1]) for (x, w, z, _), above in zip(layers, inputs[1:], strict=False)]
        self._top = inputs[-1], weights[-1], outputs[-1]
        self._down = [
            (x.T, z, slope, w[:-1].T, x[:, :-1], np.empty((batch, len(w) - 1), bool), below)
            for below, (x, w, z, slope) in zip(outputs, layers[1:], strict=False)
        ][::-1]
        self._bottom = inputs[0].T, outputs[0], slopes[0]
        self._x, self._codes = inputs[0], np.empty(batch, np.int32)
        self._one_hot, self._wanted = np.eye(network.n_c, dtype=np.float32), np.empty_like(outputs[-1])
        self._of_row = np.empty((batch, 1), np.float32)

    def __call__(self, X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> None:
        """Of these rows of X, which has a column of ones behind the others, and y."""
        X.take(rows, axis=0, out=self._x, mode="clip")
        y.take(rows, out=self._codes, mode="clip")
        self._one_hot.take(self._codes, axis=0, out=self._wanted, mode="clip")
        for x, w, z, above in self._up:
            np.dot(x, w, out=z)
            np.maximum(z, 0.0, out=above)
        x, w, p = self._top
        np.dot(x, w, out=p)
        np.maximum.reduce(p, axis=1, out=self._of_row, keepdims=True)
        np.subtract(p, self._of_row, out=p)
        np.exp(p, out=p)
        np.add.reduce(p, axis=1, out=self._of_row, keepdims=True)
        np.divide(p, self._of_row, out=p)
        np.subtract(p, self._wanted, out=p)
        for transposed, z, slope, back, x, active, below in self._down:
            np.dot(transposed, z, out=slope)
            np.dot(z, back, out=below)
            np.greater(x, 0.0, out=active)
            np.multiply(below, active, out=below)
        transposed, z, slope = self._bottom
        np.dot(transposed, z, out=slope)


def _matrices(network: MLP, flat: np.ndarray) -> list[np.ndarray]:
    """The weights of every layer with its biases as the last row, as parts of the flat vector."""
    ends = np.cumsum([(a + 1) * b for a, b in network.shapes])
    return [flat[end - (a + 1) * b : end].reshape(a + 1, b) for (a, b), end in zip(network.shapes, ends, strict=True)]
