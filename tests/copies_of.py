"""Copies of every family, of problems with every kind of column."""

import json
from dataclasses import replace

import numpy as np

import understudy as us
from cases import ODD, problem
from understudy.algorithm.network import MLP, Network
from understudy.models import radial
from understudy.models.blending import FAMILIES
from understudy.models.classifier import CopyClassifier
from understudy.models.effort import Effort
from understudy.models.families import Limits, fit
from understudy.space.encoding import Encoding
from understudy.toys import TOYS

# Every family, the network that the sequential method trains, and radial functions, which only blends have.
KINDS = (*FAMILIES, "plain", "radial")
QUICK = Limits(effort=Effort(share=0.2))
WRITTEN = ("tree", "linear")
EXACT = ("tree", "linear", "forest", "boosting")
# How far probabilities may be apart: networks have float32 in between, radial functions sums of a thousand of them.
APART = {**dict.fromkeys(KINDS, 1e-5), **dict.fromkeys(EXACT, 1e-12), "radial": 1e-4, "blend": 5e-5}
PROBLEMS = ("spirals", "moons", "yin-yang", "iris", "wine", "breast cancer", "loans", "odd")


def space_of(name, rows):
    if name == "odd":
        return us.Space.from_json(json.dumps(ODD))
    return us.Space.normal(2) if name in TOYS else us.Space.from_data(rows)


def network(X, n_c, hidden=(16, 8)):
    """A network nobody trained, whose classes are about as likely as each other."""
    mlp = MLP(X.shape[1], hidden, n_c)
    theta = mlp.initial(np.random.default_rng(0))
    theta[-n_c:] -= np.median(np.log(mlp.probabilities(theta, X)), axis=0)
    return Network(mlp, theta)


def made(family, X, y, n_c):
    if family == "plain":
        return network(X, n_c)
    if family == "radial":
        return radial.fitted(X, y, n_c, np.random.default_rng(0))
    return fit(FAMILIES[family], X, y, n_c, replace(QUICK, max_leaves=8) if family == "boosting" else QUICK)


def copy_of(family, name):
    """A copy of one family of one problem."""
    rows, y, classes = problem(name)
    space = space_of(name, rows)
    X = Encoding(space)(space.read(rows, "test"))
    return CopyClassifier(made(family, X, y, len(classes)), classes, space)


def fresh(copy, n, seed=1):
    return copy.space.present(copy.space.sample(n, np.random.default_rng(seed)))
