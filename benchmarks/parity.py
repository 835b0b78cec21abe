"""Exported copies beside the copies they were made of: on how many fresh rows they disagree, and how fast they answer.

Every family is fitted to every problem and exported; the file is then asked by onnxruntime, as anyone would. After that
the ONNX file of the demo's network and the RBF-SVM that it copies answer the same single rows, in turn.

    python benchmarks/parity.py
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.svm import SVC

import ectype as ec
from ectype.export._sql_verification import sql_answers
from ectype.export._verification import onnx_answers
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.families import SINGLE_FAMILIES, fit
from ectype.original import Original

TABLES = {"iris": load_iris, "wine": load_wine, "breast-cancer": load_breast_cancer}
MIXED = """{"columns": [
 {"name": "age", "kind": "integer", "low": 18, "high": 90},
 {"name": "income", "kind": "float", "quantiles": [9000, 21000, 30000, 43000, 160000], "missing": 0.1},
 {"name": "owner", "kind": "boolean", "missing": 0.1},
 {"name": "region", "kind": "category", "levels": ["north", "south", "east", "west"], "missing": 0.05},
 {"name": "grade", "kind": "ordered", "levels": ["D", "C", "B", "A"]},
 {"name": "jobs", "kind": "integer", "values": [0, 1, 2, 3, 5]}
]}"""
WRITTEN = ("linear", "tree")
# Single rows that one answers before the other has its turn.
BLOCKS = (50, 1)


def mixed(rows: Any) -> np.ndarray:
    score = rows["income"].fillna(25000) / 20000 + 0.02 * (rows["age"] - 40) - 0.4 * rows["jobs"]
    score += rows["grade"].map({"D": -1.0, "C": 0.0, "B": 0.5, "A": 1.0}).astype(float)
    score += np.where(rows["region"] == "west", -1.0, 0.0) + np.where(rows["owner"].isna(), -0.3, 0.0)
    return np.where(score > 1.5, "grant", np.where(score > 0.5, "ask", "refuse"))


def problem(name: str) -> tuple[Callable[[Any], np.ndarray], ec.Space]:
    """An original, as a function, and its space."""
    if name == "mixed":
        return mixed, ec.Space.from_json(MIXED)
    if name in TABLES:
        table = TABLES[name]()
        space = ec.Space.from_data(table.data)
        scale = space.moments[1]
        words = table.target_names.astype(str)
        svm = SVC(C=10, gamma="scale").fit(table.data / scale, words[table.target])
        return lambda rows: svm.predict(rows / scale), space
    X, y = ec.toy_problems.TOYS[name](4000)
    return SVC(C=1000, gamma=1).fit(X, y).predict, ec.Space.normal(2)


def copies(name: str, budget: int) -> dict[str, CopyClassifier]:
    """A copy of each family: the network copied in one shot, the others fitted to rows that the original labels."""
    predict, space = problem(name)
    network = ec.copy_classifier(predict, space, method="one-shot", to="mlp", budget=budget, certificate_n=0).copy
    rows = space.sample(10 * budget, np.random.default_rng(1))
    y = np.searchsorted(network.classes, predict(space.present(rows)))
    X, n_c = network.encoding(rows), len(network.classes)
    others = {
        family: CopyClassifier(fit(SINGLE_FAMILIES[family], X, y, n_c), network.classes, space)
        for family in SINGLE_FAMILIES
    }
    return {"mlp": network, **others}


def differ(copy: CopyClassifier, kind: str, rows: Any, expected: np.ndarray, folder: Path) -> dict[str, Any]:
    written = ec.export(copy, folder / f"copy.{kind}")
    answer = onnx_answers(copy, written.path, rows) if kind == "onnx" else _of_sql(copy, written.path, rows)
    return {"format": kind, "disagree": int((answer != expected).sum()), "bytes": written.bytes}


def _of_sql(copy: CopyClassifier, path: Path, rows: Any) -> np.ndarray:
    return np.array(sql_answers(copy, path.read_text(encoding="utf-8"), rows)).astype(copy.classes.dtype)


def parity(names: list[str], n: int, budget: int) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for family, copy in copies(name, budget).items():
                rows = copy.space.present(copy.space.sample(n, np.random.default_rng(2)))
                expected = copy.predict(rows)
                for kind in ("onnx", "sql") if family in WRITTEN else ("onnx",):
                    outcome = differ(copy, kind, rows, expected, Path(folder))
                    found.append({"problem": name, "family": family, "rows": n, **outcome})
    return found


def speed(n: int, budget: int) -> dict[str, Any]:
    """Medians over single rows, in microseconds: the demo's SVM, and the ONNX file of its copy."""
    X, y = ec.toy_problems.TOYS["spirals"]()
    split = len(X) * 8 // 10
    svm = SVC(C=1000, gamma=1).fit(X[:split], y[:split])
    original = Original(svm.predict, svm.classes_, d=2)
    copy = ec.copy_classifier(original, ec.Space.normal(2), budget=budget, certificate_n=0).copy
    with tempfile.TemporaryDirectory() as folder:
        ec.export(copy, Path(folder) / "copy.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a row is too little to share
        session = onnxruntime.InferenceSession(Path(folder) / "copy.onnx", options)
    rows = copy.space.sample(n, np.random.default_rng(3))
    agree = float((session.run(None, {"X": rows})[0] == svm.predict(rows)).mean())
    answers = {"svm": svm.predict, "onnx": lambda row: session.run(None, {"X": row})}
    return {"fidelity": agree, "rounds": [_in_turn(rows, answers, block) for block in BLOCKS]}


def _in_turn(rows: np.ndarray, answers: dict[str, Callable[[np.ndarray], Any]], block: int) -> dict[str, Any]:
    """Single rows, a block by the one, then by the other; in short blocks, each finds the other's in the caches."""
    times: dict[str, list[float]] = {name: [] for name in answers}
    for start in range(0, len(rows), block):
        for name, answer in answers.items():
            for row in rows[start : start + block, None, :]:
                clock = perf_counter()
                answer(row)
                times[name].append(perf_counter() - clock)
    svm, onnx = (1e6 * median(times[name]) for name in ("svm", "onnx"))
    return {"block": block, "svm_us": svm, "onnx_us": onnx, "ratio": svm / onnx}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*ec.toy_problems.TOYS, *TABLES, "mixed"]
    parser.add_argument("--problems", nargs="+", choices=known, default=known)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--single-rows", type=int, default=5000)
    parser.add_argument(
        "--budget", type=int, default=2000, help="queries for networks; the others get ten times as many"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = parity(options.problems, options.rows, options.budget)
    timed = speed(options.single_rows, min(3000, 2 * options.budget))
    if options.json:
        print(json.dumps({"parity": found, "speed": timed}))
        return
    print(f"{'problem':<14} {'family':<9} {'format':<6} {'rows':>7} {'disagree':>9} {'bytes':>9}")
    for row in found:
        print("{problem:<14} {family:<9} {format:<6} {rows:>7} {disagree:>9} {bytes:>9}".format(**row))
    print(f"\n{'single rows in turn':<20} {'SVM ec':>8} {'ONNX ec':>8} {'ratio':>6}")
    for row in timed["rounds"]:
        print("{block:<20} {svm_us:>8.1f} {onnx_us:>8.1f} {ratio:>6.1f}".format(**row))


if __name__ == "__main__":
    main()
