"""Problems that several tests copy: a table with every kind of column, an odd one, and the well-known ones."""

import json

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import ectype as ec
from ectype.queries import Allowance, Queries
from ectype.toy_problems import TOYS

# Every kind of column, with and without gaps, in the ways that a graph reads them.
ODD = {
    "columns": [
        {"name": "label", "kind": "float", "mean": 1e6, "std": 3.0, "missing": 0.1},
        {"name": "constant_0", "kind": "integer", "low": -20, "high": 20},
        {"name": 'a "b"', "kind": "integer", "low": 0, "high": 9, "missing": 0.2},
        {"name": "it's", "kind": "boolean", "missing": 0.3},
        {"name": "flag", "kind": "boolean"},
        {"name": "few", "kind": "float", "values": [4.0, 1.0, 2.5, 9.0], "missing": 0.1},
        {"name": "some", "kind": "integer", "values": [1, 2, 5]},
        {"name": "number names", "kind": "category", "levels": [7, 3, 11]},
        {"name": "gappy names", "kind": "category", "levels": [7, 3], "missing": 0.2},
        {"name": "both", "kind": "category", "levels": ["a", 1, "c'd"], "missing": 0.2},
        {"name": "order", "kind": "ordered", "levels": ["low", "mid", "high"], "missing": 0.2},
        {"name": "year", "kind": "ordered", "levels": [2001, 2002, 2005]},
    ]
}


def disc(rows):
    """An original anyone can check by hand: inside or outside the unit circle."""
    return (np.asarray(rows) ** 2).sum(axis=1) < 1


def ask_through(ledger, original, space, rows, purpose):
    """The labels of rows, from a ledger where it has them, else asked and written down there; without a limit."""
    unlimited = Allowance(10**9, 10**9)
    return Queries(original, space, {purpose: len(rows)}, ledger, allowance=unlimited).query_labels(purpose, rows)


def loans(n, seed):
    """Applications with an integer, floats, a flag, ordered and unordered categories, gaps in two of them."""
    rng = np.random.default_rng(seed)
    z = rng.multivariate_normal(np.zeros(4), 0.4 + 0.6 * np.eye(4), n)
    income = np.exp(10.3 + 0.6 * z[:, 1])
    debt = np.where(rng.random(n) < 0.3, 0.0, income * np.exp(-1 + 0.8 * z[:, 2]))
    owner = rng.random(n) < 1 / (1 + np.exp(-(z[:, 0] + 0.5 * z[:, 1])))
    region = rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1])
    grade = np.digitize(z[:, 3] + 0.3 * z[:, 1], [-1, 0, 1])
    jobs = np.where(rng.random(n) < 0.1, np.nan, rng.poisson(2, n))
    frame = pd.DataFrame(
        {
            "age": np.clip(np.round(42 + 14 * z[:, 0]), 18, 90).astype(int),
            "income": income.round(2),
            "debt": debt.round(2),
            "owner": owner,
            "region": region,
            "grade": pd.Categorical.from_codes(grade, ["D", "C", "B", "A"], ordered=True),
            "jobs": jobs,
            "employer": np.where(rng.random(n) < 0.15, None, rng.choice(["public", "private", "self"], n)),
        }
    )
    score = 1.2 * z[:, 1] - 1.5 * debt / income + 0.8 * owner + 0.5 * grade - 0.3 * np.nan_to_num(jobs, nan=4.0)
    score += np.where(region == "west", -1, 0) + 0.02 * (frame["age"] - 40) + 0.3 * rng.logistic(size=n)
    return frame, np.where(score > 0.2, "grant", "refuse")


def problem(name):
    """Rows, codes of their labels, the labels, and the space."""
    if name in TOYS:
        X, y = TOYS[name](600)
        return (
            X,
            y,
            {"spirals": np.array([0, 1]), "moons": np.array([False, True])}.get(name, np.array(["yang", "yin"])),
        )
    if name == "loans":
        frame, labels = loans(600, 0)
        return frame, (labels == "refuse").astype(int), np.array(["grant", "refuse"])
    if name == "odd":
        space = ec.Space.from_json(json.dumps(ODD))
        rows = space.sample(800, np.random.default_rng(0))
        filled = np.nan_to_num((rows - space.moments[0]) / space.moments[1], nan=0.4)
        score = (
            filled[:, 0] * filled[:, 3] + filled[:, 2] + (rows[:, 9] == 1) + filled[:, 5] * filled[:, 7] + filled[:, 10]
        )
        return space.present(rows), np.digitize(score, [-0.8, 0.8]), np.array([-1, 4, 12])
    data = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}[name]()
    classes = {
        "iris": data.target_names.astype(str),
        "wine": np.array([1, 2, 3]),
        "breast cancer": np.array([False, True]),
    }
    return data.data, data.target, classes[name]
