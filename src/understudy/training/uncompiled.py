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
    scale, least = (1 - FIRST_MOMENT) / np.sqrt(1 - SECOND_MOMENT), epsilon * batch / np.sqrt(1 - SECOND_MOMENT)
    # Arrays, not numbers, which every operation would have to make arrays of.
    keep_first, keep_second, least = (np.array(value, np.float32) for value in (FIRST_MOMENT, SECOND_MOMENT, least))
    g, step = gradient.g, np.empty_like(theta)
    X = np.concatenate([points.X, np.ones((len(points), 1), np.float32)], axis=1)
    with np.errstate(all="ignore"):  # steps that are too long end in a risk that is no number, which the caller sees
        for done in range(0, steps, BLOCK):
            i = np.arange(done, min(done + BLOCK, steps))
            batches = draw_rows(rng.integers(2**32, size=(2, len(i), batch), dtype=np.uint32), groups).astype(np.intp)
            sizes = step_sizes(rate, i[:, None] + 1.0, i[:, None] / steps, float(anneal))
            far, shrunk = ((scale * sizes).astype(np.float32), (1 - decay * sizes).astype(np.float32))
            for rows, length, share in zip(batches, far, shrunk, strict=True):
                gradient(X, points.y, rows)
                np.multiply(first, keep_first, out=first)
                np.add(first, g, out=first)
                np.square(g, out=g)
                np.multiply(second, keep_second, out=second)
                np.add(second, g, out=second)
                np.sqrt(second, out=step)
                np.add(step, least, out=step)
                np.divide(first, step, out=step)
                np.multiply(step, length, out=step)
                np.multiply(theta, share, out=theta)
                np.subtract(theta, step, out=theta)
    return theta


class Gradient:
    """The gradient of the cross-entropy, summed over a batch, with respect to a theta that may change in between.

    It is in `g` until the next call. A column is a row of the batch, so that whatever is done to the values of a layer
    is done to memory without gaps.
    """

    def __init__(self, network: MLP, theta: np.ndarray, batch: int) -> None:
        self.g = np.empty_like(theta)
        weights, slopes = _matrices(network, theta), _matrices(network, self.g)
        self._rows, self._codes = np.empty((batch, network.d + 1), np.float32), np.empty(batch, np.int32)
        # One row more than the layer before has outputs, which stays 1: its weights are the biases.
        inputs = [self._rows.T, *(np.ones((len(w), batch), np.float32) for w in weights[1:])]
        outputs = [np.empty((w.shape[1], batch), np.float32) for w in weights]
        layers = list(zip(inputs, weights, outputs, slopes, strict=True))
        self._up = [
            (w.T, x, z, np.zeros_like(z), above[:-1])
            for (x, w, z, _), above in zip(layers[:-1], inputs[1:], strict=True)
        ]
        self._top = weights[-1].T, inputs[-1], outputs[-1]
        self._down = [
            (x, z, z.T, slope, w[:-1], x[:-1], np.empty((len(w) - 1, batch), bool), below)
            for (x, w, z, slope), below in zip(layers[1:], outputs[:-1], strict=True)
        ][::-1]
        self._bottom = inputs[0], outputs[0].T, slopes[0]
        self._one_hot, self._wanted = np.eye(network.n_c, dtype=np.float32), np.empty_like(outputs[-1])
        self._sums, self._zero = np.empty((1, batch), np.float32), np.zeros((), np.float32)

    def __call__(self, X: np.ndarray, y: np.ndarray, rows: np.ndarray) -> None:
        """Of these rows of X, which has a column of ones behind the others, and y."""
        X.take(rows, axis=0, out=self._rows, mode="clip")
        y.take(rows, out=self._codes, mode="clip")
        self._one_hot.take(self._codes, axis=1, out=self._wanted, mode="clip")
        for w, x, z, nothing, above in self._up:
            np.dot(w, x, out=z)
            np.maximum(z, nothing, out=above)
        w, x, p = self._top
        np.dot(w, x, out=p)
        np.maximum.reduce(p, axis=0, out=self._sums, keepdims=True)
        np.subtract(p, self._sums, out=p)
        np.exp(p, out=p)
        np.add.reduce(p, axis=0, out=self._sums, keepdims=True)
        np.divide(p, self._sums, out=p)
        np.subtract(p, self._wanted, out=p)
        for x, z, turned, slope, w, reached, active, below in self._down:
            np.dot(x, turned, out=slope)
            np.dot(w, z, out=below)
            np.greater(reached, self._zero, out=active)
            np.multiply(below, active, out=below)
        x, turned, slope = self._bottom
        np.dot(x, turned, out=slope)


def _matrices(network: MLP, flat: np.ndarray) -> list[np.ndarray]:
    """The weights of every layer with its biases as the last row, as parts of the flat vector."""
    ends = np.cumsum([(a + 1) * b for a, b in network.shapes])
    return [flat[end - (a + 1) * b : end].reshape(a + 1, b) for (a, b), end in zip(network.shapes, ends, strict=True)]
