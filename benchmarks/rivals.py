"""What benchmarks/engine.py measures: the same training in our engine and in others, each on one thread.

The loss is the mean of rho^2 and the optimiser Adam at 5e-4, everywhere but in scikit-learn: it has no squared loss for
classifiers, and takes its log loss, over the single output it has for two classes. PyTorch takes its default Adam,
which is not its fused one. Ours and JAX's have balanced batches and the memory term, and ours the risk of the round.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # libraries size their thread pools when they load, so none may load before the process is pinned
    import numpy as np

N_C = 2
RATE = 5e-4
MEMORY = 0.1
Run = Callable[[int], object]
"""Trains for so many epochs."""


class Shape(NamedTuple):
    """A network, the batches it is trained on, and how many of them an epoch has."""

    d: int
    hidden: tuple[int, ...] = (64, 32, 10)
    batch: int = 32
    steps: int = 100

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.d, *self.hidden, N_C)

    @property
    def points(self) -> int:
        return self.steps * self.batch

    @property
    def flops(self) -> int:
        """Of a step, two for each product, forward and back; the first layer needs no gradient of its input."""
        others = sum(a * b for a, b in pairwise(self.widths[1:]))
        return 2 * self.batch * (2 * self.d * self.hidden[0] + 3 * others)

    def problem(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and codes, sorted by class."""
        import numpy as np

        X = np.random.default_rng(self.d).normal(size=(self.points, self.d)).astype(np.float32)
        y = (X.sum(axis=1) > 0).astype(np.int32)
        order = np.argsort(y, kind="stable")
        return X[order], y[order]

    def theta(self) -> np.ndarray:
        import numpy as np

        from ectype.algorithm.mlp import MLP

        return MLP(self.d, self.hidden, N_C).initial(np.random.default_rng(0))


def ours(shape: Shape) -> Run:
    from ectype.algorithm.mlp import MLP
    from ectype.algorithm.sample_set import SampleSet
    from ectype.algorithm.training import Trainer, plain

    theta, samples, network = shape.theta(), SampleSet(*shape.problem()), MLP(shape.d, shape.hidden, N_C)
    return lambda epochs: Trainer(network, plain(epochs), batch=shape.batch, rate=RATE)(theta, samples, MEMORY, 1)


def jax(shape: Shape) -> Run:
    import_module("jax")
    import numpy as np

    from jax_loop import loop

    X, y = shape.problem()
    counts = np.bincount(y).astype(np.uint32)
    starts = np.array([0, counts[0]], np.int32)
    round_of, theta = loop(shape.widths, shape.batch, RATE, MEMORY), shape.theta()

    def run(epochs: int) -> None:
        round_of(theta, X, y, starts, counts, np.int32(epochs * shape.steps), np.uint32(1)).block_until_ready()

    return run


def sklearn(shape: Shape) -> Run:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    X, y = shape.problem()

    def run(epochs: int) -> None:
        # Patience as long as the training: it always runs all its epochs, then warns that it did.
        length = {"max_iter": epochs, "n_iter_no_change": epochs, "tol": 0.0}
        settings = {"alpha": 0.0, "batch_size": shape.batch, "learning_rate_init": RATE, "random_state": 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            MLPClassifier(shape.hidden, **settings, **length).fit(X, y)

    return run


def torch(shape: Shape) -> Run:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    layers = [layer for a, b in pairwise(shape.widths) for layer in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers[:-1], nn.Softmax(dim=1))
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    loss = nn.MSELoss()
    X, y = shape.problem()
    inputs, targets = torch.from_numpy(X), torch.from_numpy(one_hot(y))

    def run(epochs: int) -> None:
        for _ in range(epochs * shape.steps):
            rows = torch.randint(shape.points, (shape.batch,))
            adam.zero_grad()
            loss(model(inputs[rows]), targets[rows]).backward()
            adam.step()

    return run


def keras(shape: Shape) -> Run:
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    threading = import_module("tensorflow").config.threading
    if not threading.get_intra_op_parallelism_threads():  # refused once it has begun
        threading.set_intra_op_parallelism_threads(1)
        threading.set_inter_op_parallelism_threads(1)
    import keras

    dense = [keras.layers.Dense(width, activation="relu") for width in shape.hidden]
    out = keras.layers.Dense(N_C, activation="softmax")
    model = keras.Sequential([keras.Input((shape.d,)), *dense, out])
    model.compile(keras.optimizers.Adam(RATE), loss="mse")
    X, y = shape.problem()
    targets = one_hot(y)
    return lambda epochs: model.fit(X, targets, batch_size=shape.batch, epochs=epochs, verbose=0)


def one_hot(y: np.ndarray) -> np.ndarray:
    return (y[:, None] == range(N_C)).astype("float32")


# How to build each, and its packages.
PEERS: dict[str, tuple[Callable[[Shape], Run], str]] = {
    "jax": (jax, "jax"),
    "sklearn": (sklearn, "scikit-learn"),
    "torch": (torch, "torch"),
    "keras": (keras, "keras tensorflow-cpu"),
}
