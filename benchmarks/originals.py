"""What benchmarks/scaling.py copies: originals of eight kinds, as people have them, with 8 to 41 columns.

Two of each kind: the settings of copies may be chosen on those in CHOSEN; those in REPORTED are for reporting alone.
No data are in both halves. Most are UCI problems; two are made by scikit-learn, and two are tables with numbers,
booleans, categories and gaps, made here, whose originals are pipelines that take data frames.

A space is learned from the unlabelled training rows. The test rows were seen by neither the original nor the space;
`split` seeds which they are.
Originals are deterministic and use one thread. LightGBM and XGBoost have to be installed for some:
pip install lightgbm xgboost-cpu.

    python benchmarks/originals.py [--half chosen|reported|all] [--only magic-lgbm] [--json]

prints what they are, how well they do, and how long they take to answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from subjects import Subject
from workers import FOLDER

# Learning and answering take an SVM, and a stack that has one, a time that grows with the rows it was fitted to.
FEW = 1500


class Data(NamedTuple):
    """Rows and labels to fit, and to test."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any


class Recipe(NamedTuple):
    """How an original is made."""

    kind: str
    data: Callable[[Path, int], Data]
    """From a folder and the seed of the split."""
    model: Callable[[], Any]
    most: int | None = None
    """To how many rows it is fitted at the most; the space is learned from all."""


# --- data ---------------------------------------------------------------------------------------------------------


def uci(name: str) -> Callable[[Path, int], Data]:
    """A problem of the folder, standardised."""

    def read(folder: Path, split: int = 0) -> Data:
        from ectype_paper import load

        problem = load(folder, name, seed=split)
        return Data(problem.X_train, problem.y_train, problem.X_test, problem.y_test)

    return read


def made(columns: int, classes: int, seed: int) -> Callable[[Path, int], Data]:
    """Three clusters a class, on the corners of a cube in half of the columns; the others repeat them, or are noise."""

    def make(folder: Path, split: int = 0) -> Data:
        from sklearn.datasets import make_classification

        from ectype_paper.problems import prepare

        X, y = make_classification(
            6000,
            columns,
            n_informative=columns // 2,
            n_redundant=columns // 5,
            n_classes=classes,
            n_clusters_per_class=3,
            flip_y=0.02,
            random_state=seed,
        )
        problem = prepare("made", X, y, seed=split)
        return Data(problem.X_train, problem.y_train, problem.X_test, problem.y_test)

    return make


def mixed(numbers: int, levels: tuple[int, ...], labels: tuple[str, ...], seed: int) -> Callable[[Path, int], Data]:
    """A data frame of dependent numbers, every other one with gaps, a boolean, and categories of so many levels.

    Numbers are skewed, whole, or neither, in turns. Labels come from a random network, each of whose units sees three
    columns; every level and every gap has an effect of its own; and there is some noise.
    """

    def make(folder: Path, split: int = 0) -> Data:
        import numpy as np
        import pandas as pd

        rng = np.random.default_rng(seed)
        n, d = 6000, numbers + 1 + len(levels)
        z = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + rng.normal(size=(n, d))
        z /= z.std(axis=0)
        effects = z.copy()
        columns: dict[str, Any] = {}
        for j in range(numbers):
            shown = (np.exp(z[:, j]).round(2), (10 * z[:, j] + 50).round(), z[:, j].round(3))[j % 3]
            if j % 2:
                gap = z[:, j - 1] + rng.normal(size=n) > 1.8  # about a tenth, more of them where the last is high
                shown, effects[:, j] = np.where(gap, np.nan, shown), np.where(gap, rng.normal(), z[:, j])
            columns[f"number {j}"] = shown
        columns["member"], effects[:, numbers] = z[:, numbers] > 0.5, z[:, numbers] > 0.5
        for j, count in enumerate(levels, numbers + 1):
            codes = np.searchsorted(np.quantile(z[:, j], np.linspace(0, 1, count + 1)[1:-1]), z[:, j])
            columns[f"category {j}"] = np.array([f"level {code}" for code in range(count)])[codes]
            effects[:, j] = rng.normal(size=count)[codes]
        few = np.stack([rng.permutation(d) < 3 for _ in range(40)], axis=1)
        hidden = np.tanh(2 * effects @ (few * rng.normal(size=few.shape)) + rng.normal(size=40))
        scores = hidden @ rng.normal(size=(40, len(labels)))
        scores = (scores - scores.mean(axis=0)) / scores.std(axis=0) + rng.normal(scale=0.3, size=scores.shape)
        y = np.array(labels)[scores.argmax(axis=1)]
        frame, test = pd.DataFrame(columns), (np.random.default_rng([seed, split]) if split else rng).random(n) < 0.2
        parts = frame[~test], y[~test], frame[test], y[test]
        return Data(*(part.reset_index(drop=True) if hasattr(part, "iloc") else part for part in parts))

    return make


# --- models -------------------------------------------------------------------------------------------------------


def lightgbm() -> Any:
    settings = {"n_estimators": 200, "learning_rate": 0.05, "random_state": 0, "n_jobs": 1, "verbose": -1}
    return import_module("lightgbm").LGBMClassifier(deterministic=True, force_row_wise=True, **settings)


def xgboost() -> Any:
    return import_module("xgboost").XGBClassifier(n_estimators=200, learning_rate=0.1, random_state=0, n_jobs=1)


def boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=200, early_stopping=False, random_state=0)


def forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(100, random_state=0, n_jobs=1)


def svm() -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC(C=10))


def networks() -> Any:
    """The mean probability of five networks."""
    from sklearn.ensemble import VotingClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    members = [(str(seed), MLPClassifier((64, 32), alpha=0.01, random_state=seed)) for seed in range(5)]
    return make_pipeline(StandardScaler(), VotingClassifier(members, voting="soft", n_jobs=1))


def stack() -> Any:
    """Boosting, an SVM, and logistic regression on products of columns, weighed by logistic regression."""
    from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    products = make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    members = [
        ("boosting", HistGradientBoostingClassifier(max_iter=100, early_stopping=False, random_state=0)),
        ("svm", svm()),
        ("products", products),
    ]
    return StackingClassifier(members, LogisticRegression(), cv=5, n_jobs=1)


def neighbours() -> Any:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), KNeighborsClassifier(7, n_jobs=1))


def piped(model: Callable[[], Any]) -> Callable[[], Any]:
    """A model of trees on a data frame: categories become a column for each level, and gaps stay gaps."""

    def build() -> Any:
        from sklearn.compose import make_column_selector, make_column_transformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector("category")
        return make_pipeline(make_column_transformer(one_hot, remainder="passthrough"), model())

    return build


# --- originals ----------------------------------------------------------------------------------------------------

ORIGINALS = {
    "magic-lgbm": Recipe("LightGBM", uci("magic"), lightgbm),
    "image-xgb": Recipe("XGBoost", uci("statlog-image"), xgboost),
    "made20-hgb": Recipe("boosting", made(20, 3, seed=0), boosting),
    "mixed12-forest": Recipe("forest", mixed(7, (3, 4, 5, 8), ("bronze", "silver", "gold"), seed=1), piped(forest)),
    "waveform-svm": Recipe("SVM", uci("waveform"), svm, FEW),
    "ringnorm-mlps": Recipe("networks", uci("ringnorm"), networks),
    "bank-stack": Recipe("stack", uci("bank"), stack, FEW),
    "pima-knn": Recipe("neighbours", uci("pima"), neighbours),
    "mixed14-lgbm": Recipe("LightGBM", mixed(8, (2, 3, 4, 6, 10), ("no", "yes"), seed=2), piped(lightgbm)),
    "noise-xgb": Recipe("XGBoost", uci("waveform-noise"), xgboost),
    "vehicle-hgb": Recipe("boosting", uci("statlog-vehicle"), boosting),
    "merluccius-forest": Recipe("forest", uci("oocytes_merluccius_nucleus_4d"), forest),
    "made30-svm": Recipe("SVM", made(30, 4, seed=3), svm, FEW),
    "german-mlps": Recipe("networks", uci("statlog-german-credit"), networks),
    "abalone-stack": Recipe("stack", uci("abalone"), stack, FEW),
    "trisopterus-knn": Recipe("neighbours", uci("oocytes_trisopterus_nucleus_2f"), neighbours),
}
CHOSEN = (
    "magic-lgbm",
    "image-xgb",
    "made20-hgb",
    "mixed12-forest",
    "waveform-svm",
    "ringnorm-mlps",
    "bank-stack",
    "pima-knn",
)
REPORTED = (
    "mixed14-lgbm",
    "noise-xgb",
    "vehicle-hgb",
    "merluccius-forest",
    "made30-svm",
    "german-mlps",
    "abalone-stack",
    "trisopterus-knn",
)
HALVES = {"chosen": CHOSEN, "reported": REPORTED, "all": (*CHOSEN, *REPORTED)}


@lru_cache(maxsize=1)
def subject(name: str, folder: Path, split: int = 0) -> Subject:
    """The original of this name, fitted, with its space, and test rows as the original takes them."""
    import numpy as np

    import ectype as ec

    recipe = ORIGINALS[name]
    data = recipe.data(folder, split)
    rows = np.random.default_rng(0).permutation(len(data.y_train))[: recipe.most]
    X = data.X_train.iloc[rows] if hasattr(data.X_train, "iloc") else data.X_train[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that have not converged in 200 epochs are originals as well
        model = recipe.model().fit(X, data.y_train[rows])
    return Subject(model, ec.Space.from_data(data.X_train), data.X_test, data.y_test)


def original_options(parser: argparse.ArgumentParser) -> None:
    """Which originals to take."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="<name>.csv.gz files and their index.csv")
    parser.add_argument("--half", choices=tuple(HALVES), default="all", help="to choose on, to report, or all")
    parser.add_argument("--only", nargs="+", choices=tuple(ORIGINALS), metavar="NAME", help="some originals by name")


def chosen_originals(options: argparse.Namespace) -> list[str]:
    """The originals that these options name."""
    return [name for name in HALVES[options.half] if not options.only or name in options.only]


def about(name: str, folder: Path) -> dict[str, Any]:
    """What an original is: its size, how often it is right, its answers, and its seconds for 100,000 of them."""
    import numpy as np

    begun = time.process_time()
    model, space, X_test, y_test = subject(name, folder)
    fitted = time.process_time()
    rows = space.present(space.sample(100_000, np.random.default_rng(0)))
    asked = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers, correct = model.predict(rows), float((model.predict(X_test) == y_test).mean())
    shares = np.unique(answers, return_counts=True)[1] / len(answers)
    return {
        "original": name,
        "kind": ORIGINALS[name].kind,
        "columns": space.d,
        "classes": len(model.classes_),
        "accuracy": round(correct, 4),
        "shares": [round(float(share), 3) for share in sorted(shares, reverse=True)],
        "test_rows": len(y_test),
        "fit_seconds": round(fitted - begun, 1),
        "answer_seconds": round(time.process_time() - asked, 1),
    }


def main() -> None:
    from ectype.errors import EctypeError

    parser = argparse.ArgumentParser(description="What the originals of benchmarks/scaling.py are.")
    original_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    try:
        rows = [about(name, options.folder) for name in chosen_originals(options)]
    except (ModuleNotFoundError, EctypeError) as error:
        sys.exit(f"originals.py: {error}")
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'original':<20}{'kind':<12}columns classes accuracy test rows  fit s 100k s  shares of answers")
    for row in rows:
        counts = f"{row['columns']:>7}{row['classes']:>8}{row['accuracy']:>9.3f}{row['test_rows']:>10}"
        seconds = f"{row['fit_seconds']:>7.1f}{row['answer_seconds']:>7.1f}"
        print(f"{row['original']:<20}{row['kind']:<12}{counts}{seconds}  {row['shares']}")


if __name__ == "__main__":
    main()
