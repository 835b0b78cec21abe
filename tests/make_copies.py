"""Copies of every family, of problems with every kind of column."""

import json
from dataclasses import replace

import numpy as np

import ectype as ec
from ectype.algorithm.mlp import MLP, Network
from ectype.models import rbf
from ectype.models.blend import FAMILIES
from ectype.models.capacity import Capacity
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import FamilyLimits, fit
from ectype.space import Encoding
from ectype.toy_problems import TOYS
from problems import ODD, problem

# Every family, the network that the sequential method trains, and radial functions, which only blends have.
KINDS = (*FAMILIES, "plain", "radial")
QUICK = FamilyLimits(effort=Capacity(share=0.2))
WRITTEN = ("tree", "linear")
EXACT = ("tree", "linear", "forest", "boosting")
# How far probabilities may be apart: networks have float32 in between, radial functions sums of a thousand of them.
APART = {**dict.fromkeys(KINDS, 1e-5), **dict.fromkeys(EXACT, 1e-12), "radial": 1e-4, "blend": 5e-5}
PROBLEMS = ("spirals", "moons", "yin-yang", "iris", "wine", "breast cancer", "loans", "odd")


def space_of(name, rows):
    if name == "odd":
        return ec.Space.from_json(json.dumps(ODD))
    return ec.Space.normal(2) if name in TOYS else ec.Space.from_data(rows)


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
        return rbf.fit_radial(X, y, n_c, np.random.default_rng(0))
    return fit(FAMILIES[family], X, y, n_c, replace(QUICK, max_leaves=8) if family == "boosting" else QUICK)


def copy_of(family, name):
    """A copy of one family of one problem."""
    rows, y, classes = problem(name)
    space = space_of(name, rows)
    X = Encoding(space)(space.read(rows, "test"))
    return CopyClassifier(made(family, X, y, len(classes)), classes, space)


def fresh(copy, n, seed=1):
    return copy.space.present(copy.space.sample(n, np.random.default_rng(seed)))
