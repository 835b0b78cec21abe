"""Families of copies on the paper's UCI problems: what a relay is worth to a tree, and what `auto` is worth.

Every problem's original is copied into every family from the same 3000 queries of a space that is learned from the
unlabelled training rows. `tree alone` is a tree fitted to those very answers and nothing else. `sklearn mlp`, the
paper's network, and `sklearn boosting` are fitted by scikit-learn to the answers to 3000 random rows, as people would
do without this library, and `one-shot mlp` is our own network, likewise. Fidelity is measured on 5000 fresh rows of the
space that nothing has seen.

    python benchmarks/families.py [--half odd] [--only iris wine] [--queries 3000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from workers import chosen_problems, each, problem_options

FRESH = 5000
# What people would fit to random rows themselves; the network as peers.py has it.
SINGLE = ("sklearn mlp", "sklearn boosting")
LAYERS, LONG_ENOUGH = (64, 32, 10), {"max_iter": 1000, "random_state": 0}
Row = dict[str, Any]


def run(name: str, options: argparse.Namespace) -> Row:
    """One problem: its fidelity and seconds for every family."""
    import numpy as np

    import ectype as ec
    from ectype.errors import EctypeWarning
    from ectype.paper import load
    from ectype.paper.cache import cached_original
    from ectype.plan.settings import FAMILIES

    warnings.simplefilter("ignore", EctypeWarning)  # some originals say the same to all; the table shows it
    problem = load(options.folder, name)
    original = cached_original(problem)
    space = ec.Space.from_data(problem.X_train)
    fresh = space.sample(FRESH, np.random.default_rng([options.seed, 99]))
    answers = original.predict(fresh)
    fidelity: dict[str, float] = {}
    lower: dict[str, float] = {}
    seconds: dict[str, float] = {}
    chosen = ""
    copied = partial(ec.copy_classifier, original, space, budget=options.queries, repeat=0, seed=options.seed)
    for family in (*FAMILIES, "auto"):
        with TemporaryDirectory() as folder:
            clock = perf_counter()
            result = copied(to=family, out=Path(folder) / "run")
            seconds[family] = round(perf_counter() - clock, 2)
            if family == "tree":
                fidelity["tree alone"] = float((tree_alone(Path(folder) / "run", space, fresh) == answers).mean())
        fidelity[family] = float((result.copy.predict(fresh) == answers).mean())
        assert result.certificate is not None
        lower[family] = result.certificate.lower
        if family == "auto":
            chosen = f"{result.family} taught by {result.tried[0]['teacher'] if result.tried else 'nobody'}"
    single = copied(method="one-shot", certificate_n=0).copy
    fidelity["one-shot mlp"] = float((single.predict(fresh) == answers).mean())
    for kind in SINGLE:
        fidelity[kind] = float((single_pass(kind, original, space, options)(fresh) == answers).mean())
    return {"problem": name, "fidelity": fidelity, "lower": lower, "seconds": seconds, "auto": chosen}


def tree_alone(run: Path, space: Any, fresh: Any) -> Any:
    """What a tree says that was fitted to the answers of a run, and to nothing else."""
    from sklearn.tree import DecisionTreeClassifier

    from ectype.ledger import LEDGER, query_table
    from ectype.space import Encoding

    asked = query_table(run / LEDGER, space)
    paid = asked[asked["purpose"] == "training"]
    encode = Encoding(space)
    X, labels = encode(paid[list(space.names)].to_numpy(float)), paid["label"].to_numpy(int)
    return DecisionTreeClassifier(random_state=0).fit(X, labels).predict(encode(fresh))


def single_pass(kind: str, original: Any, space: Any, options: argparse.Namespace) -> Any:
    """A model of scikit-learn's with its defaults, fitted to random rows and their answers."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.neural_network import MLPClassifier

    rows = space.sample(options.queries, np.random.default_rng([options.seed, 98]))
    answers = original.predict(rows)
    if len(set(answers.tolist())) == 1:
        return lambda fresh: np.repeat(answers[:1], len(fresh))
    boosting = kind == "sklearn boosting"
    model = HistGradientBoostingClassifier(random_state=0) if boosting else MLPClassifier(LAYERS, **LONG_ENOUGH)
    return model.fit(rows, answers).predict


def table(rows: list[Row]) -> str:
    """A line per problem, the means, and what the project asks for."""
    kinds = list(rows[0]["fidelity"])
    width = max(len(kind) for kind in kinds) + 2
    head = f"{'problem':<32}" + "".join(f"{kind:>{width}}" for kind in kinds) + "  auto is"
    lines = [head]
    for row in sorted(rows, key=lambda row: row["problem"]):
        lines.append(f"{row['problem']:<32}" + numbers(row["fidelity"], width) + f"  {row['auto']}")
    mean = {kind: fmean(row["fidelity"][kind] for row in rows) for kind in kinds}
    lines.append(f"{'mean':<32}" + numbers(mean, width))
    seconds = {kind: fmean(row["seconds"][kind] for row in rows) for kind in rows[0]["seconds"]}
    lines.append("seconds: " + ", ".join(f"{kind} {value:.1f}" for kind, value in seconds.items()))
    gains = [row["fidelity"]["tree"] - row["fidelity"]["tree alone"] for row in rows]
    least = min(zip(gains, (row["problem"] for row in rows), strict=True))
    lines.append(f"relay to a tree: {fmean(gains):+.4f} on average, {least[0]:+.4f} at worst ({least[1]})")
    families = [kind for kind in rows[0]["lower"] if kind != "auto"]
    best = max(families, key=lambda kind: mean[kind])
    lines.append(f"auto: {mean['auto'] - mean[best]:+.4f} over {best}, the best single family")
    single = fmean(max(row["fidelity"][kind] for kind in SINGLE) for row in rows)
    better = max(SINGLE, key=lambda kind: mean[kind])
    lines.append(f"auto: {mean['auto'] - mean[better]:+.4f} over {better}, the better single pass of scikit-learn's,")
    lines[-1] += f" {mean['auto'] - single:+.4f} over whichever is better on each problem"
    lines.append(f"auto: {mean['auto'] - mean['one-shot mlp']:+.4f} over our own single pass")
    return "\n".join(lines)


def numbers(values: dict[str, float], width: int) -> str:
    return "".join(f"{value:>{width}.4f}" for value in values.values())


def main() -> None:
    from ectype.errors import EctypeError

    parser = argparse.ArgumentParser(description="Families of copies on the paper's UCI problems.")
    problem_options(parser)
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every problem's numbers there too")
    options = parser.parse_args()
    rows: list[Row] = []
    try:
        problems = chosen_problems(options)
        for found in each(partial(run, options=options), problems, options.workers):
            rows.append(found)
            print(f"{len(rows)}/{len(problems)}", json.dumps(found), file=sys.stderr, flush=True)
    except EctypeError as error:
        sys.exit(f"families.py: {error}")
    print(table(rows))
    if options.json:
        options.json.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
