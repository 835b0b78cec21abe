import copy
import pickle

import numpy as np
import pytest

from ectype.algorithm.mlp import MLP, Network


@pytest.mark.parametrize("hidden", [(), (7,), (64, 32, 10), (3, 3, 3, 3, 3)])
def test_any_layer_sizes(hidden, rng):
    network = MLP(4, hidden, 3)
    theta = network.initial(rng)
    assert theta.shape == (network.size,)
    assert theta.dtype == np.float32
    p = network.probabilities(theta, rng.normal(size=(10, 4)).astype(np.float32))
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-6)


def test_the_forward_pass_is_what_it_says(rng):
    network = MLP(2, (3,), 2)
    theta, x = network.initial(rng), rng.normal(size=(5, 2)).astype(np.float32)
    (w1, b1), (w2, b2) = network.layers(theta)
    logits = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(network.probabilities(theta, x), expected, rtol=1e-5)


def test_a_row_is_answered_alike_alone_and_among_others(rng):
    network = MLP(2, (4,), 2)
    theta, x = network.initial(rng), rng.normal(size=(3000, 2)).astype(np.float32)
    assert network.probabilities(theta, x)[-10:].tobytes() == network.probabilities(theta, x[-10:]).tobytes()


def test_a_network_that_has_answered_can_travel(rng):
    mlp = MLP(3, (5,), 2)
    network, X = Network(mlp, mlp.initial(rng)), rng.normal(size=(20, 3)).astype(np.float32)
    expected = network.probabilities(X).tobytes()
    for same in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        assert same.probabilities(X).tobytes() == expected


def test_a_wider_network_says_the_same_of_the_classes_it_knew(rng):
    network = MLP(3, (5, 4), 2)
    theta, X = network.initial(rng), rng.normal(size=(20, 3)).astype(np.float32)
    wider, grown = network.widened(theta, np.array([2, 0]), 3)
    assert grown.shape == (wider.size,)
    found = wider.probabilities(grown, X)[:, [2, 0]]
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), network.probabilities(theta, X), rtol=1e-5)
