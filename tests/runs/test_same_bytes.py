"""Kinds of runs whose outcome is known to the byte: whoever changes how a run is made finds out what else that changes.

    python -m pytest tests/runs/test_same_bytes.py --write-bytes

writes what is found today to `same_bytes.json`, after a change that is meant to change it.
"""

import hashlib
import json
import platform
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sklearn
from threadpoolctl import threadpool_info

import ectype as ec
from problems import disc

EXPECTED = Path(__file__).with_name("same_bytes.json")
PLANE = ec.Space.normal(2)
QUICK = {"certificate_n": 200, "repeat": 0.05}
SHORT = ec.training.steps(150)


class Table:
    """Four columns of different kinds, three labels."""

    space = ec.Space.from_json(
        json.dumps(
            {
                "columns": [
                    {"name": "age", "kind": "integer", "low": 18, "high": 90},
                    {"name": "income", "kind": "float", "quantiles": [9, 21, 30, 43, 160], "missing": 0.1},
                    {"name": "owner", "kind": "boolean"},
                    {"name": "region", "kind": "category", "levels": ["north", "south", "west"], "missing": 0.05},
                ]
            }
        )
    )

    @staticmethod
    def decide(rows):
        score = rows["income"].fillna(25) / 20 + 0.02 * (rows["age"].astype(float) - 40) - (rows["region"] == "west")
        return np.where(score > 1.5, "grant", np.where(score > 0.5, "ask", "refuse"))


def shifted(rows):
    """The disc after a change of the original."""
    return ((np.asarray(rows) - [0.3, 0.0]) ** 2).sum(axis=1) < 1


def corner(rows):
    """Three labels, one of them far out, so that it turns up late."""
    rows = np.asarray(rows)
    return np.where(rows[:, 0] > 2.6, 2, (rows[:, 1] > 0).astype(int))


class Scored:
    """An original that gives probabilities too."""

    classes_ = np.array([0, 1])

    def predict(self, rows):
        return self.predict_proba(rows).argmax(axis=1)

    def predict_proba(self, rows):
        rows = np.asarray(rows)
        p = 1 / (1 + np.exp(-3 * (rows[:, 0] * rows[:, 1] - 0.2)))
        return np.column_stack([1 - p, p])


def rows_of_the_user():
    return np.random.default_rng(5).normal(0.5, 0.8, (300, 2))


def copied(out, original=disc, space=PLANE, **settings):
    return ec.copy_classifier(original, space, out=out, progress=False, **{"budget": 240, **QUICK, **settings})


def extended(out):
    copied(out, budget=160)
    return copied(out, budget=300)


def refreshed(out, **more):
    copied(out.with_name("before"))
    return ec.refresh(out.with_name("before"), shifted, out=out, check=60, budget=120, progress=False, **more)


def refreshed_with_answers(out):
    rows = rows_of_the_user()
    told = out.with_name("answers.csv")
    lines = [f"{x!r},{y!r},{label}" for (x, y), label in zip(rows.tolist(), shifted(rows), strict=True)]
    told.write_text("\n".join(["x0,x1,label", *lines]))
    return refreshed(out, answers=told)


def with_answers(out):
    copied(out.with_name("first"), budget=120, seed=7)
    return copied(out, answers=out.with_name("first"))


def remade(out):
    copied(out.with_name("first"))
    return ec.remake(out.with_name("first"), to="tree", max_leaves=8, out=out)


KINDS = {
    "default": copied,
    "table": lambda out: copied(out, Table.decide, Table.space),
    "bounded": lambda out: copied(out, max_kept=80, budget=300),
    "delta": lambda out: copied(out, delta=1e-3, schedule=SHORT),
    "fast": lambda out: copied(out, preset="fast"),
    "paper": lambda out: copied(out, preset="paper", batch=60, schedule=ec.training.plain(60)),
    "paper-staged": lambda out: copied(out, preset="paper-staged", batch=80, schedule=ec.training.plain(60)),
    "pure": lambda out: copied(out, method="pure", preset="paper", batch=60, schedule=ec.training.plain(60)),
    "one-shot": lambda out: copied(out, method="one-shot"),
    "online": lambda out: copied(out, method="online", batch=80, schedule=SHORT),
    "scores": lambda out: copied(out, Scored(), scores=True),
    "rows of the user's own": lambda out: copied(out, rows=rows_of_the_user()),
    "answers": with_answers,
    "a label that is new": lambda out: copied(out, corner, draw="random", preset="fast", batch=60, budget=420, seed=3),
    "a bound and a label that is new": lambda out: copied(out, corner, max_kept=60, budget=420, seed=3),
    "extended": extended,
    "refreshed": refreshed,
    "refreshed with answers": refreshed_with_answers,
    "remade": remade,
    "target": lambda out: copied(out, target=0.9, budget=400),
    "balanced": lambda out: copied(out, corner, draw="balanced", classes=[0, 1, 2]),
    "tree": lambda out: copied(out, to="tree", max_leaves=12),
}


def digest(value):
    content = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def asked(path):
    """By purpose, the rows in the order that they were asked in, and the answers."""
    found = {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as ledger:
        sql = "SELECT purpose, rows, codes FROM requests JOIN answers ON request = id ORDER BY id"
        for purpose, rows, codes in ledger.execute(sql):
            found.setdefault(purpose, hashlib.sha256()).update(rows + codes)
    return {purpose: one.hexdigest()[:16] for purpose, one in sorted(found.items())}


def outcome(result, out):
    """What a run came to, without what it took."""
    known = [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in _lines(out / "history.jsonl")]
    ledger = out / "ledger.sqlite"
    return {
        "copy": digest((out / "copy.safetensors").read_bytes()),
        "history": digest(known),
        "asked": asked(ledger) if ledger.exists() else {},
        "queries": result.queries,
        "certificate": [result.certificate.estimate, result.certificate.lower],
    }


def _lines(path):
    return path.read_text().splitlines() if path.exists() else []


@cache
def surroundings():
    """What decides the last bits of all that is not the kernel's: libraries, and the processor as they see it."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    has = sorted(name for name, there in features.items() if there and name in ("AVX2", "AVX512F", "FMA3", "NEON"))
    products = {one["architecture"] for one in threadpool_info() if one["user_api"] == "blas"}
    return [np.__version__, sklearn.__version__, platform.machine(), *has, *sorted(products)]


@pytest.fixture(scope="module")
def written(request):
    """What is expected; what was found is written at the end, if that was asked for."""
    found = {}
    yield found
    if request.config.getoption("--write-bytes"):
        EXPECTED.write_text(json.dumps({"surroundings": surroundings(), "runs": found}, indent=1) + "\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_comes_to_the_same_bytes(kind, tmp_path, written, request):
    found = outcome(KINDS[kind](tmp_path / "run"), tmp_path / "run")
    if request.config.getoption("--write-bytes"):
        written[kind] = found
        return
    expected = json.loads(EXPECTED.read_text())
    if surroundings() != expected["surroundings"]:
        pytest.skip(f"the bytes are those of {expected['surroundings']}")
    assert found == expected["runs"][kind]
