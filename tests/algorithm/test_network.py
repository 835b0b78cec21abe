import jax.numpy as jnp
import numpy as np
import pytest

from understudy.algorithm.network import CHUNK, MLP, forward


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


def test_numpy_and_jax_give_the_same_probabilities(rng):
    network = MLP(6, (16, 8), 4)
    theta, x = network.initial(rng), rng.normal(size=(30, 6)).astype(np.float32)
    compiled = forward(network.layers(jnp.asarray(theta)), jnp.asarray(x))
    np.testing.assert_allclose(network.probabilities(theta, x), compiled, rtol=1e-4, atol=1e-7)


def test_chunks_do_not_show(rng):
    network = MLP(2, (4,), 2)
    theta, x = network.initial(rng), rng.normal(size=(CHUNK + 10, 2)).astype(np.float32)
    np.testing.assert_allclose(network.probabilities(theta, x)[-10:], network.probabilities(theta, x[-10:]), rtol=1e-5)


def test_a_wider_network_says_the_same_of_the_classes_it_knew(rng):
    network = MLP(3, (5, 4), 2)
    theta, X = network.initial(rng), rng.normal(size=(20, 3)).astype(np.float32)
    wider, grown = network.widened(theta, np.array([2, 0]), 3)
    assert grown.shape == (wider.size,)
    found = wider.probabilities(grown, X)[:, [2, 0]]
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), network.probabilities(theta, X), rtol=1e-5)
