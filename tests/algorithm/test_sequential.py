"""The loop, with policies that write down what they were given."""

from itertools import islice, pairwise

import numpy as np
import pytest

from ectype.algorithm.memory import Automatic, Fixed
from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import drop_compressed, keep_all, keep_fresh
from ectype.algorithm.sequential import sequential
from ectype.algorithm.training import Trained, Trainer, annealed, plain
from ectype.algorithm.uncertainty import rho


def drawn(n):
    def draw(t, theta):
        X = np.random.default_rng([7, t]).normal(size=(n, 2)).astype(np.float32)
        return SampleSet(X, (X[:, 0] * X[:, 1] > 0).astype(np.int32))

    return draw


class Scripted:
    """Training that adds 1 to every parameter and remembers its arguments."""

    def __init__(self):
        self.calls = []

    def __call__(self, theta, S, lam, t):
        self.calls.append((float(theta[0]), len(S), lam, t))
        return Trained(theta + 1, 0.25, 0.5, 1, 1)


def run(steps, iterations):
    return list(islice(steps, iterations))


def test_the_order_of_events_is_that_of_algorithm_5():
    sizes = iter([150, 120, 130])
    seen = []

    def select(theta, S, fresh, t):
        seen.append((float(theta[0]), len(S), len(fresh), t))
        return (S | fresh).where(np.arange(len(S) + len(fresh)) < next(sizes, 0))

    train = Scripted()
    steps = run(sequential(drawn(100), np.zeros(3), select=select, memory=Automatic(), train=train), 4)
    # Selection sees the parameters of the round before, the set it kept, and the fresh points of this one.
    assert seen == [(1.0, 100, 100, 1), (2.0, 150, 100, 2), (3.0, 120, 100, 3)]
    # The first round has no memory; then 150 >= 100 halves lambda, 120 < 150 raises it, 130 >= 120 halves it.
    assert train.calls == [(0.0, 100, 0.0, 0), (1.0, 150, 0.25, 1), (2.0, 120, 0.375, 2), (3.0, 130, 0.1875, 3)]
    assert [step.dropped for step in steps] == [0, 50, 130, 90]
    assert [step.lam for step in steps] == [0.0, 0.25, 0.375, 0.1875]
    assert all(step.moved == pytest.approx(np.sqrt(3)) for step in steps)
    assert steps[-1].theta.tolist() == [4, 4, 4]


def test_pure_sequential_never_drops():
    steps = run(sequential(drawn(50), np.zeros(1), select=keep_all, memory=Fixed(0), train=Scripted()), 5)
    assert [len(step.S) for step in steps] == [50, 100, 150, 200, 250]
    assert all(step.dropped == 0 for step in steps)


def test_online_never_keeps():
    steps = run(sequential(drawn(50), np.zeros(1), select=keep_fresh, memory=Fixed(0), train=Scripted()), 4)
    for step in steps:
        np.testing.assert_array_equal(step.S.X, drawn(50)(step.t, None).X)


def test_an_empty_sample_set_keeps_the_parameters_and_raises_lambda():
    network = MLP(2, (6,), 2)
    nothing = drop_compressed(network, 0.999999)
    train = Trainer(network, schedule=plain(5))
    theta = network.initial(np.random.default_rng(0))
    steps = run(sequential(drawn(40), theta, select=nothing, memory=Automatic(), train=train), 3)
    assert [len(step.S) for step in steps] == [40, 0, 0]
    assert (steps[1].lam, steps[2].lam) == (0.75, 1.125)
    assert steps[1].moved == steps[2].moved == 0
    np.testing.assert_array_equal(steps[2].theta, steps[0].theta)


def test_algorithm_5_drops_what_the_previous_copy_has_compressed():
    network, delta = MLP(2, (16, 8), 2), 1e-2
    train = Trainer(network, schedule=plain(100))
    steps = run(
        sequential(
            drawn(60),
            network.initial(np.random.default_rng(1)),
            select=drop_compressed(network, delta),
            memory=Automatic(),
            train=train,
        ),
        6,
    )
    for before, after in pairwise(steps):
        pool = before.S | drawn(60)(after.t, None)
        uncertain = rho(network.probabilities(before.theta, pool.X), pool.y) >= delta
        np.testing.assert_array_equal(after.S.X, pool.X[uncertain])
    assert any(step.dropped for step in steps)


def test_parameters_move_less_and_less_as_theorem_2_says():
    network = MLP(2, (16, 8), 2)
    theta = network.initial(np.random.default_rng(2))
    train = Trainer(network, schedule=annealed(150))
    steps = run(sequential(drawn(100), theta, select=keep_all, memory=Fixed(0), train=train), 12)
    moved = [step.moved for step in steps]
    assert np.mean(moved[-3:]) < 0.8 * np.mean(moved[1:4])
