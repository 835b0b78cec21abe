"""A training round in NumPy, for runs so short that JAX would compile longer than it trains.

The steps are those of the compiled round: Adam on batches, with the backpropagation of the cross-entropy written out. A
step is some forty small array operations, so overhead per call dominates: all of them write to preallocated arrays,
none converts a type, and the weights and biases of a layer are one matrix, a view of the flat vector.
"""

from __future__ import annotations

import numpy as np

from understudy.algorithm.network import MLP
from understudy.algorithm.samples import Samples
from understudy.algorithm.training.batches import BLOCK, Groups, Shuffled
from understudy.algorithm.training.schedule import FIRST_MOMENT, SECOND_MOMENT, Schedule, step_sizes


def train(
    network: MLP, theta: np.ndarray, points: Samples, groups: Groups,
    *, steps: int, schedule: Schedule, batch: int, rate: float, epsilon: float, decay: float, rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """The parameters after so many steps of this schedule from theta."""
    theta, rows = theta.copy(), Shuffled(rng, groups)
    # Both moments in one array, for one addition. The factors 1 - beta and 1 / batch are left out of them: they are in
    # `scale` and `least`.
    moments, news = np.zeros((2, len(theta)), np.float32), np.empty((2, len(theta)), np.float32)
    (first, second), (g, squares), step = moments, news, np.empty_like(theta)
    gradient = Gradient(network, theta, g, batch)
    scale, least = (1 - FIRST_MOMENT) / np.sqrt(1 - SECOND_MOMENT), epsilon * batch / np.sqrt(1 - SECOND_MOMENT)
    # Arrays, not Python numbers, which every operation would convert.
    keep_first, keep_second, least = (np.array(value, np.float32) for value in (FIRST_MOMENT, SECOND_MOMENT, least))
    X = with_ones(points.X)
    with np.errstate(all="ignore"):  # training that diverges ends in a risk that is not finite; the caller checks
        for done in range(0, steps, BLOCK):
            i = np.arange(done, min(done + BLOCK, steps))
            sizes = step_sizes(rate, i[:, None] + 1.0, i[:, None] / steps, schedule)
            far, shrunk = ((scale * sizes).astype(np.float32), (1 - decay * sizes).astype(np.float32))
            drawn = rows.draw(len(i) * batch).reshape(len(i), batch)
            batches = X.take(drawn, axis=0), one_hot(points.y.take(drawn), network.n_c)
            for x, y, length, share in zip(*batches, far, shrunk, strict=True):
                gradient(x, y)
                np.square(g, out=squares)
                np.multiply(first, keep_first, out=first)
                np.multiply(second, keep_second, out=second)
                np.add(moments, news, out=moments)
                np.sqrt(second, out=step)
                np.add(step, least, out=step)
                np.divide(first, step, out=step)
                np.multiply(step, length, out=step)
                np.multiply(theta, share, out=theta)
                np.subtract(theta, step, out=theta)
    return theta


def with_ones(X: np.ndarray) -> np.ndarray:
    """Rows with a constant 1 appended: its weights are the biases."""
    return np.concatenate([X, np.ones((len(X), 1), np.float32)], axis=1)


def one_hot(codes: np.ndarray, n_c: int) -> np.ndarray:
    """Codes, one-hot along a new last dimension."""
    found = np.zeros((codes.size, n_c), np.float32)
    found[np.arange(codes.size), codes.ravel()] = 1.0
    return found.reshape(*codes.shape, n_c)


class Gradient:
    """Writes to `g` the gradient of the cross-entropy, summed over a batch, with respect to a theta that may change.

    Activations are stored transposed, a column for each row of the batch, so that operations on a layer run over
    contiguous memory.
    """

    def __init__(self, network: MLP, theta: np.ndarray, g: np.ndarray, batch: int) -> None:
        weights, slopes = _matrices(network, theta), _matrices(network, g)
        # One row more than the layer before has outputs: it stays 1, for the biases.
        inputs = [np.ones((len(w), batch), np.float32) for w in weights[1:]]
        outputs = [np.empty((w.shape[1], batch), np.float32) for w in weights]
        self._first = weights[0].T, outputs[0], outputs[0].T, slopes[0]
        self._up = [
            (z, np.zeros_like(z), x[:-1], x, w.T, above)
            for z, x, w, above in zip(outputs[:-1], inputs, weights[1:], outputs[1:], strict=True)
        ]
        # The derivative of the ReLU as an integer mask: the bits of a positive float are an integer of at least 1, the
        # bits of 0 are 0. Multiplying the bits of a gradient by 1 or 0 keeps it or clears it.
        self._down = [
            (x, z.T, slope, w[:-1], z, below, _bits(x[:-1]), *np.ones((2, *below.shape), np.int32), _bits(below))
            for x, z, slope, w, below in zip(inputs, outputs[1:], slopes[1:], weights[1:], outputs[:-1], strict=True)
        ][::-1]
        self._p, self._sums = outputs[-1], np.empty((1, batch), np.float32)

    def __call__(self, x: np.ndarray, y: np.ndarray) -> None:
        """Of these rows, which have a 1 behind their values, and their answers, one-hot."""
        p, sums, (first_w, first_z, first_turned, first_slope) = self._p, self._sums, self._first
        first_w.dot(x.T, first_z)
        for z, nothing, reached, inputs, w, above in self._up:
            np.maximum(z, nothing, out=reached)
            w.dot(inputs, above)
        np.maximum.reduce(p, axis=0, out=sums, keepdims=True)
        np.subtract(p, sums, out=p)
        np.exp(p, out=p)
        np.add.reduce(p, axis=0, out=sums, keepdims=True)
        np.divide(p, sums, out=p)
        np.subtract(p, y.T, out=p)
        for inputs, turned, slope, w, z, below, reached, ones, let_through, below_bits in self._down:
            inputs.dot(turned, slope)
            w.dot(z, below)
            np.minimum(reached, ones, out=let_through)
            np.multiply(below_bits, let_through, out=below_bits)
        x.T.dot(first_turned, first_slope)


def _bits(numbers: np.ndarray) -> np.ndarray:
    """The same memory, viewed as integers."""
    return numbers.view(np.int32)


def _matrices(network: MLP, flat: np.ndarray) -> list[np.ndarray]:
    """The weights of every layer with its biases as the last row, as views of the flat vector."""
    ends = np.cumsum([(a + 1) * b for a, b in network.shapes])
    return [flat[end - (a + 1) * b : end].reshape(a + 1, b) for (a, b), end in zip(network.shapes, ends, strict=True)]
