"""Training a network by the kernel: Adam on batches, with a memory term, weight decay and a schedule of step sizes."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ectype._kernel._ffi import TrainingStruct, address, expect, flat, library
from ectype._kernel._piecewise_linear import PiecewiseLinear

ACTIVATIONS, LOSSES, ORDERS = ("relu", "mish"), ("cross-entropy", "rho"), ("drawn", "shuffled")
PENALTIES = ("none", "bounded", "norm")
_NAMED = {"activation": ACTIVATIONS, "loss": LOSSES, "order": ORDERS, "penalty": PENALTIES}
MOST_LAYERS = 16
# How much of its moments Adam keeps from one step to the next.
FIRST_MOMENT, SECOND_MOMENT = 0.9, 0.999
# Multiplications of one call: some hundredths of a second, after which an interrupt is heard.
CALL = 2**29


class RowGroups(NamedTuple):
    """Groups of rows: where each starts, how many rows it has, and how often it is drawn.

    `places` names groups, each as often as it should be drawn in comparison with the others.
    """

    starts: np.ndarray
    counts: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, counts: np.ndarray) -> RowGroups:
        """Groups of these sizes that follow each other, all drawn equally often; those without rows are left out.

        >>> RowGroups.of(np.array([3, 0, 2]))
        RowGroups(starts=array([0, 3]), counts=array([3, 2]), places=array([0, 1]))
        """
        present = counts > 0
        return cls((np.cumsum(counts) - counts)[present], counts[present], np.arange(int(present.sum())))

    def beside(self, start: int, count: int, weight: float, places: int) -> RowGroups:
        """These, and one more from `start` on, drawn `weight` times as often as all of them, in so many places."""
        n = len(self.starts)
        old = np.arange(max(n, round(places / (1 + weight)))) % n
        new = np.full(places - len(old), n)
        return RowGroups(np.append(self.starts, start), np.append(self.counts, count), np.concatenate([old, new]))


@dataclass(frozen=True)
class TrainingMethod:
    """How a network is trained, whatever it is trained on."""

    batch: int = 32
    rate: float = 5e-4
    loss: str = "rho"
    order: str = "drawn"
    """Rows drawn with replacement, or shuffled: each once before any comes again."""
    activation: str = "relu"
    penalty: str = "none"
    lam: float = 0.0
    """The weight of the penalty."""
    epsilon: float = 1e-8
    decay: float = 0.0
    """How much weights shrink in a step, as a multiple of its size."""
    anneal: float = 0.0
    """The share of all steps, the last ones, over which the step size falls to zero by a cosine."""
    warm: int = 0
    """The steps of a stage over which it rises."""


class KernelTraining:
    """A training under way: `run` takes steps, `theta` is where they led.

    >>> X = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> theta = np.random.default_rng(0).normal(size=22).astype(np.float32)
    >>> y = (X[:, 0] > 0).astype(np.int32)
    >>> training = KernelTraining((1, 5, 2), theta, X, y, TrainingMethod(rate=0.01), steps=200)
    >>> training.run(200)
    >>> training.theta.shape
    (22,)
    """

    def __init__(
        self,
        widths: Sequence[int],
        theta: np.ndarray,
        X: np.ndarray,
        y: np.ndarray,
        method: TrainingMethod,
        *,
        steps: int,
        groups: RowGroups | None = None,
        weights: np.ndarray | None = None,
        pieces: PiecewiseLinear | None = None,
        seed: int = 0,
    ):
        groups = groups or RowGroups.of(np.array([len(X)]))
        self._theta = np.array(theta, np.float32)
        self._arrays = {
            "theta": self._theta,
            "X": flat(X, np.float32),
            "y" if y.ndim == 1 else "targets": flat(y, np.int32 if y.ndim == 1 else np.float32),
            "weights": None if weights is None else flat(weights, np.float32),
            **{name: flat(part, np.int32) for name, part in groups._asdict().items()},
            "widths": np.array(widths, np.int32),
        }
        _check(self._arrays, method, steps, pieces)
        self._pieces = pieces
        self._job = TrainingStruct(
            **{name: address(array) for name, array in self._arrays.items()},
            pieces=None if pieces is None else pieces.address,
            layers=len(widths) - 1,
            batch=method.batch,
            groups=len(groups.starts),
            n_places=len(groups.places),
            order=ORDERS.index(method.order),
            activation=ACTIVATIONS.index(method.activation),
            loss=LOSSES.index(method.loss),
            penalty=PENALTIES.index(method.penalty) if method.lam else 0,
            all_steps=max(steps, 1),
            warm=method.warm,
            seed=seed & 0xFFFFFFFFFFFFFFFF,
            rate=method.rate,
            keep_first=FIRST_MOMENT,
            keep_second=SECOND_MOMENT,
            epsilon=method.epsilon,
            decay=method.decay,
            lam=method.lam,
            anneal=method.anneal,
        )
        self._kernel, self._at = library(), ct.addressof(self._job)
        self._block = np.empty(self._kernel.training_size(self._at), np.uint8)
        self._kernel.training_begin(self._at, address(self._block))
        self._piece = max(1, CALL // (method.batch * len(self._theta)))

    def run(self, steps: int) -> None:
        """Take so many steps; an interrupt is heard in between."""
        for done in range(0, steps, self._piece):
            self._kernel.training_steps(self._at, address(self._block), min(self._piece, steps - done))

    def restart(self) -> None:
        """Begin a new stage: Adam forgets its moments, and the step size rises again."""
        self._kernel.training_restart(self._at, address(self._block))

    @property
    def theta(self) -> np.ndarray:
        """The parameters so far."""
        self._kernel.training_read(self._at, address(self._block))
        return self._theta.copy()


def _check(
    arrays: dict[str, np.ndarray | None], method: TrainingMethod, steps: int, pieces: PiecewiseLinear | None
) -> None:
    """Make sure of everything that the kernel relies on: it looks at no size itself."""
    theta, X, widths = (arrays[name] for name in ("theta", "X", "widths"))
    assert theta is not None and X is not None and widths is not None  # noqa: PT018
    expect("widths", sizes_fit(widths), "from two to seventeen sizes above zero")
    d, n_c, n = int(widths[0]), int(widths[-1]), len(X)
    expect("theta", theta.shape == (parameters(widths),), "one number for each weight and bias")
    columns = d if pieces is None else pieces.columns
    expect("pieces", pieces is None or pieces.width == d, "as many as the first layer has inputs, with the columns")
    expect("X", X.ndim == 2 and X.shape[1] == columns and 0 < n < 2**31, "rows of as many inputs as there are")
    for name, kinds in _NAMED.items():
        expect(name, getattr(method, name) in kinds, f"one of {', '.join(kinds)}")
    expect("batch", 0 < method.batch < 2**31, "above zero")
    expect("epsilon", method.epsilon >= 1e-30, "at least 1e-30")  # less would be zero, which Adam divides by
    expect("steps", 0 <= steps < 2**62 and method.warm >= 0, "not below zero")
    for name, shape in (("y", (n,)), ("targets", (n, n_c)), ("weights", (n,))):
        array = arrays.get(name)
        expect(name, array is None or array.shape == shape, f"shape {shape}")
    codes = arrays.get("y")
    expect("y", codes is None or bool((codes >= 0).all() and (codes < n_c).all()), f"from 0 to below {n_c}")
    expect("loss", codes is not None or method.loss == "cross-entropy", "cross-entropy for targets")
    starts, counts, places = (np.asarray(arrays[name], np.int64) for name in ("starts", "counts", "places"))
    one = starts.ndim == counts.ndim == places.ndim == 1 and 0 < len(starts) == len(counts)
    within = one and bool((starts >= 0).all() and (counts > 0).all() and (starts + counts <= n).all())
    named = within and len(places) > 0 and bool((places >= 0).all() and (places < len(starts)).all())
    expect("groups", named, "groups of rows that are there")


def sizes_fit(widths: np.ndarray) -> bool:
    """Whether the kernel has room for the layers between these sizes."""
    return widths.ndim == 1 and 2 <= len(widths) <= MOST_LAYERS + 1 and bool((widths > 0).all())


def parameters(widths: np.ndarray) -> int:
    """The number of weights and biases of a network with these sizes."""
    return sum((a + 1) * b for a, b in pairwise(widths.tolist()))
