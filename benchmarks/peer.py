"""One copy in a fresh process, timed from the inside: what benchmarks/peers.py starts for each method.

The folder holds `task.json` and `rows.npz`: rows with the original's answers for those who copy in a single pass, and
rows to predict. Written there: `found.npz`, the predictions. Printed: seconds cold and warm, points kept, peak memory.
Cold is from the start of the process to the finished copy, without the time it takes to read the task; warm is a second
copy in the same process.

    python benchmarks/peer.py FOLDER METHOD
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

LAYERS = (64, 32, 10)
# Of our methods, the settings; each asks as many queries as the others.
OURS: dict[str, dict[str, Any]] = {
    "ectype": {},
    "network": {"delta": 1e-300},
    "fast": {"preset": "fast"},
    "one-shot": {"method": "one-shot", "preset": "fast"},
    "paper": {"preset": "paper"},
}
PRESC, MLP, BOOSTING = "PRESC", "sklearn MLP", "sklearn boosting"
# PRESC's again, with its network trained as long as the paper trains its own.
PRESC_LONG = "PRESC long"
LONG = {"batch_size": 32, "learning_rate_init": 5e-4, "max_iter": 1000, "n_iter_no_change": 1000, "tol": 0.0}
# What each imports for its work; where it is imported later, it counts as well.
IMPORTS = {
    PRESC: ("presc.copies.copying", "sklearn.neural_network"),
    PRESC_LONG: ("presc.copies.copying", "sklearn.neural_network"),
    MLP: ("sklearn.neural_network",),
    BOOSTING: ("sklearn.ensemble",),
}

Predict = Callable[[Any], Any]
Fit = Callable[[], tuple[Predict, int]]
"""Makes a copy: what it predicts, and how many points it kept."""


def ours(method: str, task: dict[str, Any], rows: Any) -> Fit:
    import ectype as ec
    from subjects import subject

    original, space, *_ = subject(task["problem"], Path(task["folder"]))
    settings = OURS[method]

    def fit() -> tuple[Predict, int]:
        result = ec.copy_classifier(
            original, space, budget=task["queries"], certificate_n=0, repeat=0, seed=task["seed"], **settings
        )
        return result.copy.predict, result.kept

    return fit


def presc(method: str, task: dict[str, Any], rows: Any) -> Fit:
    """The class of the package, given the space's rows as what it samples, and the original's answers to them."""
    import pandas as pd

    copier_of = import_module("presc.copies.copying").ClassifierCopy
    names = [f"x{j}" for j in range(rows["X"].shape[1])]

    class Answers:
        def predict(self, frame: Any) -> Any:
            return rows["y"]

    def sampling(**_: Any) -> Any:
        return pd.DataFrame(rows["X"], columns=names)

    def fit() -> tuple[Predict, int]:
        copier = copier_of(
            Answers(),
            network(method, task),
            sampling,
            nsamples=task["queries"],
            feature_parameters={name: {} for name in names},
        )
        copier.copy_classifier()
        return lambda X: copier.copy.predict(pd.DataFrame(X, columns=names)), task["queries"]

    return fit


def single_pass(method: str, task: dict[str, Any], rows: Any) -> Fit:
    def fit() -> tuple[Predict, int]:
        if method == MLP:
            model = network(method, task)
        else:
            model = import_module("sklearn.ensemble").HistGradientBoostingClassifier(random_state=task["seed"])
        return model.fit(rows["X"], rows["y"]).predict, task["queries"]

    return fit


def network(method: str, task: dict[str, Any]) -> Any:
    """The paper's layers, trained by scikit-learn's own rules until they say it has converged; or as in the paper."""
    settings = LONG if method == PRESC_LONG else {"max_iter": task["epochs"]}
    return import_module("sklearn.neural_network").MLPClassifier(LAYERS, random_state=task["seed"], **settings)


def prepared(method: str, task: dict[str, Any], rows: Any) -> Fit:
    if method in OURS:
        return ours(method, task, rows)
    if len(set(rows["y"].tolist())) == 1:  # which scikit-learn refuses to learn
        return lambda: (lambda X: rows["y"][:1].repeat(len(X)), 1)
    return (presc if method in (PRESC, PRESC_LONG) else single_pass)(method, task, rows)


def clocks() -> tuple[float, float]:
    """Seconds, and seconds of work: a busy machine makes the first longer, not the second."""
    return time.time(), time.process_time()


def main(folder: Path, method: str) -> None:
    for module in IMPORTS.get(method, ("ectype.runs.api",)):
        import_module(module)
    import numpy as np

    imported = clocks()
    warnings.simplefilter("ignore")
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    rows = dict(np.load(folder / "rows.npz", allow_pickle=False))
    fit = prepared(method, task, rows)
    ready = clocks()
    predict, kept = fit()
    made = clocks()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    np.savez(folder / "found.npz", fresh=predict(rows["fresh"]), test=predict(rows["test"]))
    again = clocks()
    fit()
    end = clocks()
    found: dict[str, float] = {"kept": kept, "peak_mb": round(peak / (2**20 if sys.platform == "darwin" else 2**10))}
    for clock, start, suffix in ((0, task["started"], ""), (1, 0.0, "_cpu")):
        cold = imported[clock] - start + made[clock] - ready[clock]
        found |= {f"cold{suffix}": round(cold, 3), f"warm{suffix}": round(end[clock] - again[clock], 3)}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
