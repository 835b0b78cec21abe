"""How long a training round takes, and the size of its steps."""

from __future__ import annotations

from typing import NamedTuple


class Schedule(NamedTuple):
    """How long a round trains: Algorithm 3 with early stopping as its capacity control.

    Stage k trains until the risk falls below its bound eps_k, or its capacity Omega_k (in epochs) is used up. Then the
    bound halves towards `epsilon`, the capacity doubles, and a new stage starts from where the last one ended. A round
    ends when the risk is below `epsilon`, or after `epochs` in all. The step size has a linear warm-up over the first
    `warm` steps of a stage, is then constant, and falls to zero by cosine annealing over the last share `anneal` of the
    epochs. An epoch is a pass over the sample set, unless `steps` says how many steps it has, and `last` how many in
    the last round of a run.
    """

    epochs: int
    epsilon: float = -1.0
    bound: float = -1.0
    capacity: int = 2**30
    look_every: int = 2**30
    anneal: float = 0.0
    steps: int = 0
    last: int = 0
    warm: int = 0

    def of_round(self, last: bool) -> Schedule:
        """The schedule of a round, which may be the last."""
        return self._replace(steps=self.last) if last and self.last else self

    def in_all(self, n: int, batch: int) -> int:
        """The steps of a round with n points that runs all of its epochs."""
        return self.epochs * (self.steps or -(-n // batch))


def plain(epochs: int = 1000) -> Schedule:
    """The setting of the paper's experiments: a fixed number of epochs, whatever the risk."""
    return Schedule(epochs)


def annealed(epochs: int = 1000) -> Schedule:
    """A fixed number of epochs, with a step size that falls to zero over them.

    A constant step leaves each round wherever its last noisy step landed; research/tuning.md has the cost.
    """
    return Schedule(epochs, anneal=1.0)


def steps(n: int, last: int = 0, anneal: float = 1.0, warm: int = 0) -> Schedule:
    """A fixed number of steps, whatever the number of points: a round costs the same early and late in a run.

    `last` is the number for the last round of a run: earlier rounds only have to find out where to ask.
    """
    return Schedule(1, anneal=anneal, steps=n, last=last, warm=warm)


def staged(
    epsilon: float = 1e-6, *, epochs: int = 1000, bound: float = 0.25, capacity: int = 64, look_every: int = 8
) -> Schedule:
    """Algorithm 3: bounds that halve from `bound` to `epsilon`, capacities that double from `capacity` epochs."""
    return Schedule(epochs, epsilon, bound, capacity, look_every)


PLAIN = plain()
