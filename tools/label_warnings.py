"""How often a warning of a label among the columns is right, on tables that have one left in them and on others.

Each table has numbers, words, flags of the labels' own words (a previous decision, an opinion of somebody else, as
close to the label as it may be in life), names drawn from those that labels have, and a label of one of several kinds,
which is left among the columns or not. The original was fitted with the label among its columns, or without it, which
then ignores that column; or its answers are a stored table. A column that a warning names is right if it is that label.

    python tools/label_warnings.py
    python tools/label_warnings.py --tables 100 --seed 3
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import ectype as ec
from ectype.original import Labels
from ectype.runs.label_leakage import leaked

# The labels, by their kind; columns that hold them have them as words, numbers or booleans just so.
KINDS: dict[str, list[Any]] = {
    "yes and no": ["no", "yes"],
    "three words": ["high", "low", "middle"],
    "five words": ["Fair", "Good", "Ideal", "Premium", "Very Good"],
    "0 and 1": [0, 1],
    "0 to 2": [0, 1, 2],
    "booleans": [False, True],
}
NAMES = ("y", "class", "label", "target", "cut", "decision", "outcome", "result", "prediction", "grade", "x", "flag")
# How an original came to answer: fitted without the label among its columns, with it, or gone and stored.
WAYS = ("without", "with", "stored")
QUERIES = (80, 2080)


class Made(NamedTuple):
    """A table: columns, the answers of an original, and the column that is the label, if one was left in."""

    space: ec.Space
    rows: np.ndarray
    answers: np.ndarray
    label: str
    stored: bool


def made(rng: np.random.Generator, kind: str, way: str, left: bool, queries: int) -> Made:
    """A table of a kind, and what its original answers."""
    n, classes = 1000, np.array(KINDS[kind])
    X = rng.normal(size=(n, 4))
    weights = rng.normal(size=4) * rng.choice([0.3, 1.0, 3.0], 4)
    score = X @ weights + rng.choice([0.0, 0.3]) * np.abs(weights).max() * X[:, 0] * X[:, 1]
    cuts = np.quantile(score, np.sort(rng.dirichlet(np.full(len(classes), 5.0))[:-1].cumsum()))
    codes = np.digitize(score, cuts)
    names = [str(name) for name in rng.permutation(NAMES)]
    frame = pd.DataFrame({f"x{j}": X[:, j].round(3) for j in range(4)})
    frame["area"] = rng.choice(["north", "south", "west"], n)
    for _ in range(int(rng.integers(1, 4))):  # flags of the labels' own words
        frame[names.pop()] = classes[_noisy(rng, codes, len(classes), rng.uniform(0.2, 1.0))]
    label = names.pop()
    truth = classes[_noisy(rng, codes, len(classes), rng.choice([0.0, 0.02, 0.05, 0.1, 0.2]))]
    coded = left and rng.random() < 0.3  # as codes of its own, where the original says words, or words for its numbers
    frame = frame.assign(**{label: pd.Series(codes + 3 if coded and way == "stored" else truth)}) if left else frame
    frame = frame[[str(name) for name in rng.permutation(frame.columns)]]
    seen = [name for name in frame if name != label or way == "with"]
    tree = DecisionTreeClassifier(max_depth=int(rng.integers(2, 9)), random_state=0).fit(_coded(frame[seen]), truth)
    space = ec.Space.from_data(frame)
    rows = space.read(frame, "rows")[:queries] if way == "stored" else space.sample(queries, rng)
    asked = frame[:queries] if way == "stored" else pd.DataFrame(space.present(rows))
    return Made(space, rows, tree.predict(_coded(asked[seen])), label if left else "", way == "stored")


def _noisy(rng: np.random.Generator, codes: np.ndarray, k: int, share: float) -> np.ndarray:
    return np.where(rng.random(len(codes)) < share, rng.integers(0, k, len(codes)), codes)


def _coded(frame: pd.DataFrame) -> np.ndarray:
    words = {"no": 0, "yes": 1, "low": 0, "middle": 1, "high": 2, "north": 0, "south": 1, "west": 2}
    words |= {word: at for at, word in enumerate(KINDS["five words"])}
    return np.column_stack([frame[name].map(lambda value: words.get(value, value)).astype(float) for name in frame])


def main() -> None:
    """Count the warnings that are right, by the kind of label and the way of the original."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=30, help="of each kind and way, with a label and without")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = Counter[tuple[str, str, str]]()
    for kind in KINDS:
        for way in WAYS:
            for at in range(2 * given.tables):
                rng = np.random.default_rng([given.seed, at, *map(ord, kind + way)])
                table = made(rng, kind, way, at % 2 == 0, QUERIES[at // 2 % 2])
                declared = None if way == "stored" else Labels(KINDS[kind])
                named = [one.name for one in leaked(table.space, table.rows, table.answers, declared, table.stored)]
                found.update((kind, way, "right" if name == table.label else "wrong") for name in named)
                found[kind, way, "left in"] += table.label != ""
                found[kind, way, "tables"] += 1
    print(f"{'label':14} {'original':9} {'tables':>7} {'left in':>8} {'named':>6} {'wrongly':>8}")
    for kind in KINDS:
        for way in WAYS:
            numbers = [found[kind, way, what] for what in ("tables", "left in", "right", "wrong")]
            print(f"{kind:14} {way:9} {numbers[0]:7d} {numbers[1]:8d} {numbers[2]:6d} {numbers[3]:8d}")
    for way in (*WAYS, "all"):
        right, wrong, left = (_sum(found, what, way) for what in ("right", "wrong", "left in"))
        share = f" ({right / (right + wrong):.1%})" if right + wrong else ""
        print(f"{way}: of {right + wrong} that were named {right} are the label{share}; left in were {left}")


def _sum(found: Counter[tuple[str, str, str]], what: str, way: str) -> int:
    return sum(n for (_, one, end), n in found.items() if end == what and way in (one, "all"))


if __name__ == "__main__":
    main()
