"""What the kernel computes, in float64 and as plainly as can be; nothing is shared with it."""

from itertools import pairwise

import numpy as np

FIRST_MOMENT, SECOND_MOMENT = 0.9, 0.999
MASK = 2**64 - 1
CARDS = 1024


def layers(widths, theta):
    """Weights and biases of every layer."""
    found, at = [], 0
    for a, b in pairwise(widths):
        weights, biases = theta[at : at + a * b], theta[at + a * b : at + a * b + b]
        found.append((np.asarray(weights, np.float64).reshape(a, b), np.asarray(biases, np.float64)))
        at += a * b + b
    return found


def relu(z):
    return np.maximum(z, 0), (z > 0).astype(float)


def mish(z):
    """x tanh(log(1 + e^x)), and its slope."""
    bend = np.tanh(np.logaddexp(0, z))
    return z * bend, bend + z * (1 - bend**2) / (1 + np.exp(-z))


ACTIVATIONS = {"relu": relu, "mish": mish}


def forward(widths, theta, X, activation="relu"):
    """The inputs of every layer, the slopes between layers, and the scores."""
    inputs, slopes = [np.asarray(X, np.float64)], []
    *hidden, (weights, biases) = layers(widths, theta)
    for w, b in hidden:
        values, slope = ACTIVATIONS[activation](inputs[-1] @ w + b)
        inputs.append(values)
        slopes.append(slope)
    return inputs, slopes, inputs[-1] @ weights + biases


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def probabilities(widths, theta, X, activation="relu"):
    return softmax(forward(widths, theta, X, activation)[2])


def one_hot(y, n_c):
    """Targets as they are; codes as targets."""
    return np.asarray(y, np.float64) if np.ndim(y) == 2 else np.eye(n_c)[y]


def losses(kind, p, targets):
    """The loss of every row."""
    if kind == "rho":
        return ((p - targets) ** 2).sum(axis=1) / p.shape[1]
    return -(targets * np.log(p)).sum(axis=1)


def loss_slope(kind, p, targets):
    """The gradient of every row's loss with respect to its scores."""
    if kind == "cross-entropy":
        return p - targets  # where targets add up to one
    slope = 2 * (p - targets) / p.shape[1]
    return p * (slope - (p * slope).sum(axis=1, keepdims=True))


def objective(widths, theta, X, y, method, weights=None, previous=None):
    """The mean of the rows' losses, each times its weight, plus lambda times the penalty."""
    p = probabilities(widths, theta, X, method.activation)
    found = losses(method.loss, p, one_hot(y, widths[-1])) * (1 if weights is None else weights)
    held = 0 if previous is None else method.lam * penalty(method.penalty, theta - previous)
    return found.mean() + held


def gradient(widths, theta, X, y, method, weights=None, previous=None):
    """The gradient of the objective."""
    inputs, slopes, scores = forward(widths, theta, X, method.activation)
    d = loss_slope(method.loss, softmax(scores), one_hot(y, widths[-1])) / len(X)
    d = d if weights is None else d * np.asarray(weights, np.float64)[:, None]
    parts = []
    for i, (w, _) in reversed(list(enumerate(layers(widths, theta)))):
        parts += [d.sum(axis=0), (inputs[i].T @ d).ravel()]
        d = (d @ w.T) * slopes[i - 1] if i else d
    found = np.concatenate(parts[::-1])
    return found if previous is None else found + method.lam * penalty_slope(method.penalty, theta - previous)


def penalty(kind, difference):
    if kind == "norm":
        return np.linalg.norm(difference)
    return np.tanh(np.mean(difference**2)) if kind == "bounded" else 0.0


def penalty_slope(kind, difference):
    if kind == "norm":
        length = np.linalg.norm(difference)
        return difference / length if length else 0 * difference
    if kind == "bounded":
        return (1 - penalty(kind, difference) ** 2) * 2 * difference / len(difference)
    return 0 * difference


def step_size(method, in_stage, in_round, steps):
    """The size of the step after so many, in its stage and in its round, with Adam's corrections."""
    k = in_stage + 1
    size = method.rate * np.sqrt(1 - SECOND_MOMENT**k) / (1 - FIRST_MOMENT**k)
    size *= min(1, k / method.warm) if method.warm else 1
    still = 1 - method.anneal
    falling = (min(1, in_round / steps) - still) / method.anneal if method.anneal else 0
    return size * (0.5 + 0.5 * np.cos(np.pi * max(falling, 0)))


def hashed(seed, counter):
    """The numbers of a stream of splitmix64, a random-access one."""
    x = (seed + (counter + 1) * 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def below(bits, n):
    return (bits & 0xFFFFFFFF) * n >> 32


class Drawn:
    """Batches of rows drawn with replacement: a place, then a row of its group."""

    def __init__(self, groups, seed):
        self.groups, self.seed = groups, seed

    def batch(self, step, n):
        return [self._row(hashed(self.seed, step * n + i)) for i in range(n)]

    def _row(self, bits):
        starts, counts, places = self.groups
        group = places[below(bits >> 32, len(places))]
        return int(starts[group]) + below(bits, int(counts[group]))


class Deck:
    """Cards that are shuffled whenever all of them were drawn (Fisher and Yates)."""

    def __init__(self, cards, seed):
        self.cards, self.seed, self.at, self.shuffles = list(cards), seed, len(cards), 0

    def draw(self):
        if self.at == len(self.cards):
            seed = hashed(self.seed, self.shuffles)
            for i in range(len(self.cards) - 1, 0, -1):
                j = below(hashed(seed, i), i + 1)
                self.cards[i], self.cards[j] = self.cards[j], self.cards[i]
            self.at, self.shuffles = 0, self.shuffles + 1
        self.at += 1
        return self.cards[self.at - 1]


class Shuffled:
    """Batches of rows that each come once before any comes again, and groups in the same way."""

    def __init__(self, groups, seed):
        starts, counts, places = (np.asarray(part).tolist() for part in groups)
        self.groups = Deck(places * -(-CARDS // len(places)), hashed(seed, 0))
        self.rows = [
            Deck(range(start, start + count), hashed(seed, g + 1))
            for g, (start, count) in enumerate(zip(starts, counts, strict=True))
        ]

    def batch(self, step, n):
        del step  # they follow each other
        return [self.rows[self.groups.draw() if len(self.rows) > 1 else 0].draw() for _ in range(n)]


class Training:
    """The steps of a training, like `ectype._kernel._training.KernelTraining`."""

    def __init__(self, widths, theta, X, y, method, *, steps, groups, weights=None, seed=0):
        self.widths, self.X, self.y, self.method, self.weights, self.steps = widths, X, y, method, weights, steps
        self.theta = np.array(theta, np.float64)
        self.previous = self.theta.copy()
        self.first, self.second = np.zeros((2, len(theta)))
        self.in_stage = self.in_round = 0
        self.order = {"drawn": Drawn, "shuffled": Shuffled}[method.order](groups, seed)

    def run(self, steps):
        """Adam with decoupled weight decay."""
        for _ in range(steps):
            rows = self.order.batch(self.in_round, self.method.batch)
            weights = None if self.weights is None else self.weights[rows]
            g = gradient(self.widths, self.theta, self.X[rows], self.y[rows], self.method, weights, self.previous)
            self.first = FIRST_MOMENT * self.first + (1 - FIRST_MOMENT) * g
            self.second = SECOND_MOMENT * self.second + (1 - SECOND_MOMENT) * g**2
            size = step_size(self.method, self.in_stage, self.in_round, self.steps)
            direction = self.first / (np.sqrt(self.second) + self.method.epsilon) + self.method.decay * self.theta
            self.theta = self.theta - size * direction
            self.in_stage, self.in_round = self.in_stage + 1, self.in_round + 1

    def restart(self):
        self.first, self.second, self.in_stage = 0 * self.first, 0 * self.second, 0
