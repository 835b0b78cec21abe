"""Fidelity by the number of answers: our copies beside models fitted once to random rows.

Originals of eight kinds (benchmarks/originals.py), each in the space learned from its unlabelled training rows. Ours
are made by `copy_classifier` with as many queries and no certificate; `ectype` is the default. The peers are fitted
once to as many random rows of the space and their answers: LightGBM and scikit-learn's boosting with 200 trees each,
its random forest, extra-trees, MLP, SVM (up to 10,000 rows) and logistic regression; PRESC's copier, if asked for, with
the Python that has it. Where a space has categories or gaps, the peers get the rows as our copies see them: one-hot
levels, and indicators of gaps.

Fidelity is the share of rows on which a copy says what the original says: of 20,000 fresh rows of the space, and of the
real test rows. Seconds are of CPU, warm, for one copy: ours with drawing and choosing the rows, the peers' for the fit
alone; the original's own time is in neither. With --memory, every copy is made in a process of its own, and the peak of
that process, the original included, is reported.

    python benchmarks/scaling.py [--half chosen|reported|all] [--only made20-hgb] [--budgets 100 1000] [--seeds 0 1]
                                 [--methods ectype LightGBM] [--set to=boosting] [--store scaling.jsonl]
                                 [--figure scaling.svg] [--presc PYTHON] [--memory] [--json]

--store keeps every result in a file of JSON lines: a run that was interrupted goes on from there, and peers are fitted
once. A peer's results are found by original, budget, seed and method; ours also by their settings and by --tag, which
should name the code that made them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from charts import by_answers
from originals import chosen_originals, original_options, subject
from peer import BOOSTING, MLP, PRESC
from peers import child
from workers import each

BUDGETS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
FRESH = 20_000
# Of our methods, the settings; --set adds to all of them.
OURS: dict[str, dict[str, Any]] = {
    "ectype": {},
    "auto": {"to": "auto"},
    "boosting": {"to": "boosting"},
    "mlp": {"to": "mlp"},
    "fast": {"preset": "fast"},
    "paper": {"preset": "paper"},
    "one-shot": {"method": "one-shot"},
}
OWN, LIGHTGBM, SVM = "ectype", "LightGBM", "SVM"
BOOSTINGS = (LIGHTGBM, BOOSTING)
# Of peers, the class and what differs from its defaults. Where these were worse on CHOSEN, others were taken: a network
# of 128 and 64 units, C=10 and 200 trees are each better than the default with 100 and with 300 answers.
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    LIGHTGBM: ("lightgbm.LGBMClassifier", {"n_estimators": 200, "n_jobs": 1, "verbose": -1}),
    BOOSTING: ("sklearn.ensemble.HistGradientBoostingClassifier", {"max_iter": 200, "early_stopping": False}),
    "forest": ("sklearn.ensemble.RandomForestClassifier", {"n_estimators": 200, "n_jobs": 1}),
    "extra-trees": ("sklearn.ensemble.ExtraTreesClassifier", {"n_estimators": 200, "n_jobs": 1}),
    MLP: ("sklearn.neural_network.MLPClassifier", {"hidden_layer_sizes": (128, 64)}),
    SVM: ("sklearn.svm.SVC", {"C": 10}),
    "logistic": ("sklearn.linear_model.LogisticRegression", {"max_iter": 1000}),
}
# Those that see scaled inputs.
SCALED = (MLP, SVM, "logistic")
# The most rows that a method is fitted to: what an SVM needs grows with their square.
MOST = {SVM: 10_000}
METHODS = (*OURS, *PEERS, PRESC)
# A fall of fidelity from one budget to the next that counts as none.
LEVEL = 0.003

Row = dict[str, Any]


class Cell(NamedTuple):
    """One copy to make, and how it is found in a store."""

    original: str
    method: str
    budget: int
    seed: int
    settings: str
    """Of ours, the settings and the tag, as JSON; nothing for peers."""


class Timed:
    """An original that counts the seconds of CPU that it takes to answer."""

    def __init__(self, model: Any):
        self.model, self.classes_, self.seconds = model, model.classes_, 0.0

    def predict(self, rows: Any) -> Any:
        begun = time.process_time()
        answers = self.model.predict(rows)
        self.seconds += time.process_time() - begun
        return answers


# --- one copy -----------------------------------------------------------------------------------------------------


def measured(cell: Cell, options: argparse.Namespace) -> Row:
    """One copy: how faithful it is, and what it took."""
    from ectype.errors import EctypeWarning

    warnings.simplefilter("ignore", UserWarning)  # some peers do not converge; LightGBM misses the names of columns
    warnings.simplefilter("ignore", EctypeWarning)
    model, _, X_test, _ = subject(cell.original, options.folder)
    about, *said = ours(cell, options) if cell.method in OURS else peer(cell, options)
    truth = fresh_rows(cell, options)[1], model.predict(X_test)
    fresh, test = (round(float((a == b).mean()), 5) for a, b in zip(said, truth, strict=True))
    memory = {"peak_mb": about.get("peak_mb", peak_mb())} if options.memory else {}
    return {**cell._asdict(), "fresh": fresh, "test": test, "cpu": round(about["cpu"], 3), **memory}


def ours(cell: Cell, options: argparse.Namespace) -> tuple[Row, Any, Any]:
    """What our copy took, without the original's part; what it says to fresh rows and to the test rows."""
    import ectype as ec

    model, space, X_test, _ = subject(cell.original, options.folder)
    settings = {key: value for key, value in json.loads(cell.settings).items() if key != "tag"}

    def copied(original: Timed, budget: int) -> Any:
        return ec.copy_classifier(
            original, space, budget=budget, certificate_n=0, repeat=0, seed=cell.seed, **settings
        ).copy

    warm_up(cell.method, lambda: copied(Timed(model), 200))
    original, begun = Timed(model), time.process_time()
    copy = copied(original, cell.budget)
    seconds = time.process_time() - begun - original.seconds
    return {"cpu": seconds}, copy.predict(space.present(fresh_rows(cell, options)[0])), copy.predict(X_test)


def peer(cell: Cell, options: argparse.Namespace) -> tuple[Row, Any, Any]:
    """What it took to fit a peer to random rows; what it says to fresh ones and to the test rows."""
    _, space, X_test, _ = subject(cell.original, options.folder)
    rows, labels = answered(cell.original, cell.budget, cell.seed, 98, options.folder)
    parts = rows, fresh_rows(cell, options)[0], space.read(X_test, "test rows")
    X, fresh, test = map(seen(space), parts)
    if len(set(labels.tolist())) == 1:  # which scikit-learn refuses to learn
        return {"cpu": 0.0}, labels[:1].repeat(len(fresh)), labels[:1].repeat(len(test))
    if cell.method == PRESC:
        return presc(cell, options, X=X, y=labels, fresh=fresh, test=test)
    warm_up(cell.method, lambda: unfitted(cell).fit(X[:200], X[:200, 0] > X[0, 0]))
    begun = time.process_time()
    model = unfitted(cell).fit(X, labels)
    return {"cpu": time.process_time() - begun}, model.predict(fresh), model.predict(test)


def unfitted(cell: Cell) -> Any:
    """A peer's model, in a pipeline that scales its inputs if it needs that."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    path, settings = PEERS[cell.method]
    module, _, name = path.rpartition(".")
    model = getattr(import_module(module), name)(random_state=cell.seed, **settings)
    return make_pipeline(StandardScaler(), model) if cell.method in SCALED else model


def presc(cell: Cell, options: argparse.Namespace, **rows: Any) -> tuple[Row, Any, Any]:
    """PRESC's copy as benchmarks/peers.py has it made, in a process of its own."""
    import numpy as np

    task = {"problem": cell.original, "queries": cell.budget, "epochs": 1000, "seed": cell.seed}
    with TemporaryDirectory() as folder:
        np.savez(Path(folder) / "rows.npz", **rows)
        about = child(Path(folder), PRESC, task, options.presc)
        said = dict(np.load(Path(folder) / "found.npz"))
    return {"cpu": about["warm_cpu"], "peak_mb": about["peak_mb"]}, said["fresh"], said["test"]


def seen(space: Any) -> Callable[[Any], Any]:
    """How peers see rows of a space: as they are, or encoded if there are categories or gaps."""
    from ectype.space import Encoding, Number

    plain = all(isinstance(column, Number) and not column.missing for column in space.columns)
    return (lambda rows: rows) if plain else Encoding(space)


@lru_cache(maxsize=2)  # those to fit, and those to measure by
def answered(name: str, n: int, seed: int, stream: int, folder: Path) -> tuple[Any, Any]:
    """Rows of a space, and what the original says to them; the same for all methods."""
    import numpy as np

    model, space, *_ = subject(name, folder)
    rows = space.sample(n, np.random.default_rng([seed, stream]))
    return rows, model.predict(space.present(rows))


def fresh_rows(cell: Cell, options: argparse.Namespace) -> tuple[Any, Any]:
    """The rows to measure by, and what the original says to them."""
    return answered(cell.original, FRESH, cell.seed, 99, options.folder)


_warm: set[str] = set()


def warm_up(method: str, call: Callable[[], Any]) -> None:
    """Do something small by a method, once in a process, so that what it imports is not counted."""
    if method not in _warm:
        call()
        _warm.add(method)


def peak_mb() -> int:
    """The most memory this process has held; not that of its parent, which Linux hands down in ru_maxrss."""
    import resource

    status = Path("/proc/self/status")
    if status.exists():
        return round(int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2 ** (20 if sys.platform == "darwin" else 10))


# --- all of them --------------------------------------------------------------------------------------------------


def unit(cells: Sequence[Cell], options: argparse.Namespace) -> list[Row]:
    """All copies of one original, each stored as soon as it is measured."""
    rows = []
    for cell in cells:
        if options.memory:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
                rows.append(alone.submit(measured, cell, options).result())
        else:
            rows.append(measured(cell, options))
        if options.store:
            with options.store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    return rows


def wanted(name: str, options: argparse.Namespace) -> list[Cell]:
    """The copies of an original that these options ask for; those of the same rows follow each other."""
    return [
        Cell(name, method, budget, seed, settings_of(method, options))
        for seed in options.seeds
        for budget in options.budgets
        for method in options.methods
        if budget <= MOST.get(method, budget)
    ]


def settings_of(method: str, options: argparse.Namespace) -> str:
    """What tells our copies apart beside the method, as JSON."""
    if method not in OURS:
        return ""
    return json.dumps(
        {**OURS[method], **dict(options.set), **({"tag": options.tag} if options.tag else {})}, sort_keys=True
    )


def stored(options: argparse.Namespace) -> dict[Cell, Row]:
    """What earlier runs have kept; of two results for the same copy, the later one."""
    if not (options.store and options.store.exists()):
        return {}
    rows = [json.loads(line) for line in options.store.read_text(encoding="utf-8").splitlines()]
    return {Cell(*(row[key] for key in Cell._fields)): row for row in rows if "peak_mb" in row or not options.memory}


def results(options: argparse.Namespace) -> list[Row]:
    """The measured copies that these options ask for, made now or before."""
    known = stored(options)
    asked = [wanted(name, options) for name in chosen_originals(options)]
    units = [missing for cells in asked if (missing := [cell for cell in cells if cell not in known])]
    for done, rows in enumerate(each(partial(unit, options=options), units, options.workers), 1):
        known |= {Cell(*(row[key] for key in Cell._fields)): row for row in rows}
        print(f"{done}/{len(units)} {rows[0]['original']}: {len(rows)} copies", file=sys.stderr, flush=True)
    return [known[cell] for cells in asked for cell in cells]


# --- what they show -----------------------------------------------------------------------------------------------


class Found:
    """The results, by what they are asked for."""

    def __init__(self, rows: Sequence[Row]):
        self.originals, self.methods, self.budgets, self.seeds = (
            list(dict.fromkeys(row[key] for row in rows)) for key in ("original", "method", "budget", "seed")
        )
        self._by = {(row["original"], row["method"], row["budget"], row["seed"]): row for row in rows}

    def has(self, method: str, budget: int) -> bool:
        return (self.originals[0], method, budget, self.seeds[0]) in self._by

    def values(self, method: str, budget: int, key: str) -> list[float]:
        return [self._by[name, method, budget, seed][key] for name in self.originals for seed in self.seeds]

    def of(self, name: str, method: str, budget: int) -> float:
        """The fidelity on fresh rows on one original, the mean of the seeds."""
        return fmean(self._by[name, method, budget, seed]["fresh"] for seed in self.seeds)

    def table(self, key: str, average: Callable[[Iterable[float]], float]) -> dict[str, dict[int, float]]:
        """By method and budget, an average over originals and seeds."""
        return {
            method: {n: round(average(self.values(method, n, key)), 4) for n in self.budgets if self.has(method, n)}
            for method in self.methods
        }


def summary(rows: list[Row]) -> dict[str, Any]:
    """Means and medians by method and budget, and how ours do beside the peers."""
    found = Found(rows)
    totals: dict[str, Any] = {
        "originals": found.originals,
        "seeds": len(found.seeds),
        "fresh": found.table("fresh", fmean),
        "test": found.table("test", fmean),
        "cpu": found.table("cpu", median),
    }
    if all("peak_mb" in row for row in rows):
        totals["peak_mb"] = found.table("peak_mb", max)
    own = [method for method in found.methods if method in OURS]
    totals["over_boosting"] = {method: over_boosting(found, method) for method in own}
    totals["over_best_peer"] = {method: over_best_peer(found, totals["fresh"], method) for method in own}
    totals["falls"] = {method: falls(found, method) for method in found.methods}
    if BOOSTING in found.methods:
        totals["times_boosting"] = {method: times_boosting(found, method) for method in found.methods}
    return totals


def over_boosting(found: Found, method: str) -> dict[int, Row]:
    """By budget, the lead over whichever boosting is better on each original: the mean, the worst, and each."""
    beside = [peer for peer in BOOSTINGS if peer in found.methods]
    leads = {}
    for n in found.budgets if beside else ():
        each_lead = {
            name: round(found.of(name, method, n) - max(found.of(name, peer, n) for peer in beside), 4)
            for name in found.originals
        }
        worst = min(each_lead, key=each_lead.__getitem__)
        mean = round(fmean(each_lead.values()), 4)
        leads[n] = {"mean": mean, "worst": each_lead[worst], "worst_on": worst, "each": each_lead}
    return leads


def over_best_peer(found: Found, means: dict[str, dict[int, float]], method: str) -> dict[int, Row]:
    """By budget, the lead in the mean over the single peer that has the highest mean."""
    leads = {}
    for n in found.budgets:
        others = {peer: means[peer][n] for peer in found.methods if peer not in OURS and n in means[peer]}
        if others:
            best = max(others, key=others.__getitem__)
            leads[n] = {"mean": round(means[method][n] - others[best], 4), "peer": best}
    return leads


def falls(found: Found, method: str) -> Row:
    """The greatest fall of fidelity on an original from one budget to the next: of the mean of seeds, and of one."""
    budgets = [n for n in found.budgets if found.has(method, n)]
    steps = list(pairwise(budgets))
    if not steps:
        return {}
    fallen = {
        (name, a, b): found.of(name, method, a) - found.of(name, method, b)
        for name in found.originals
        for a, b in steps
    }
    pairs = [zip(found.values(method, a, "fresh"), found.values(method, b, "fresh"), strict=True) for a, b in steps]
    worst = max(fallen, key=fallen.__getitem__)
    return {
        "greatest": round(max(fallen[worst], 0.0), 4),
        "on": worst[0],
        "between": worst[1:],
        "more_than_level": sum(fall > LEVEL for fall in fallen.values()),
        "of_one_seed": round(max(0.0, *(a - b for pair in pairs for a, b in pair)), 4),
    }


def times_boosting(found: Found, method: str) -> dict[int, float]:
    """By budget, the median of the seconds as a multiple of one fit of scikit-learn's boosting."""
    return {
        n: round(
            median(
                a / max(b, 1e-3)  # an original that says one thing to all takes no fit
                for a, b in zip(found.values(method, n, "cpu"), found.values(BOOSTING, n, "cpu"), strict=True)
            ),
            2,
        )
        for n in found.budgets
        if found.has(method, n)
    }


def table(totals: dict[str, Any]) -> str:
    """Fidelity and seconds by method and budget, then ours beside the others."""
    about = f"{len(totals['originals'])} originals, {totals['seeds']} seeds"
    lines = [
        *block(f"fidelity on fresh rows of the space, mean of {about}", totals["fresh"], ">9.4f"),
        *block("fidelity on real test rows, mean", totals["test"], ">9.4f"),
        *block("seconds of CPU, median", totals["cpu"], ">9.2f"),
    ]
    if "times_boosting" in totals:
        lines += block("as a multiple of one fit of sklearn boosting, median", totals["times_boosting"], ">9.2f")
    if "peak_mb" in totals:
        lines += block("peak memory of the process in MB, the most", totals["peak_mb"], ">9.0f")
    for method, leads in totals["over_boosting"].items():
        if leads:
            lines += block(f"{method}: lead over the better boosting on each original", by_original(leads), ">+9.4f")
        for n, lead in leads.items():
            lines.append(f"{method} at {n}: {lead['mean']:+.4f} over the better boosting, ")
            lines[-1] += f"{lead['worst']:+.4f} at worst ({lead['worst_on']})"
    for method, leads in totals["over_best_peer"].items():
        for n, lead in leads.items():
            lines.append(f"{method} at {n}: {lead['mean']:+.4f} over {lead['peer']}, the best single peer")
    lines += [f"{method}: {fallen(fall)}" for method, fall in totals["falls"].items() if fall]
    return "\n".join(lines)


def by_original(leads: dict[int, Row]) -> dict[str, dict[int, float]]:
    """The lead on each original and the mean, by budget."""
    names = next(iter(leads.values()))["each"]
    each_lead = {name: {n: lead["each"][name] for n, lead in leads.items()} for name in names}
    return {**each_lead, "mean": {n: lead["mean"] for n, lead in leads.items()}}


def fallen(fall: Row) -> str:
    """Whether fidelity only rises with the budget, in words."""
    if not fall["greatest"]:
        return f"never falls in the mean of seeds; {fall['of_one_seed']:.4f} at most of one seed"
    verdict = f"{fall['more_than_level']} falls above {LEVEL}" if fall["more_than_level"] else "monotone"
    where = f"{fall['on']}, {fall['between'][0]} to {fall['between'][1]}"
    return f"{verdict}, greatest fall {fall['greatest']:.4f} ({where}), {fall['of_one_seed']:.4f} of one seed"


def block(title: str, values: dict[str, dict[int, float]], form: str) -> list[str]:
    """A line for each method, a column for each budget."""
    budgets = sorted({n for row in values.values() for n in row})
    lines = [title, f"{'':<20}" + "".join(f"{n:>9}" for n in budgets)]
    for name, row in values.items():
        lines.append(f"{name:<20}" + "".join(f"{row[n]:{form}}" if n in row else f"{'':>9}" for n in budgets))
    return [*lines, ""]


def draw_figure(totals: dict[str, Any], path: Path) -> None:
    """Mean fidelity against answers, a line for each method."""
    by_answers(totals["fresh"], path, "answers of the original", OURS)


# --- the command --------------------------------------------------------------------------------------------------


def setting(text: str) -> tuple[str, Any]:
    """A setting of ours: name=value, the value as JSON, or else as a word."""
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"{text!r} is not name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fidelity by the number of answers, beside models fitted once.")
    original_options(parser)
    parser.add_argument("--budgets", type=int, nargs="+", default=list(BUDGETS), metavar="N")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], metavar="SEED")
    among = f"of {', '.join(METHODS)}; by default {OWN} and all peers but {PRESC}"
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[OWN, *PEERS], metavar="METHOD", help=among)
    parser.add_argument(
        "--set", type=setting, nargs="+", action="extend", default=[], metavar="NAME=VALUE", help="settings of ours"
    )
    parser.add_argument("--tag", default="", help="what code ours are of, if one store holds several")
    parser.add_argument("--store", type=Path, metavar="FILE", help="JSON lines to go on from and to add to")
    parser.add_argument("--workers", type=int, default=2, help="processes, each pinned to a core; 0: this one")
    parser.add_argument("--presc", default=sys.executable, metavar="PYTHON", help="the one that has presc")
    parser.add_argument("--memory", action="store_true", help="a process for each copy, and its peak memory")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the means there")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    options.budgets, options.seeds = sorted(set(options.budgets)), sorted(set(options.seeds))
    if not chosen_originals(options):
        parser.error("--only names no original of this half")
    return options


def main() -> None:
    from ectype.errors import EctypeError

    options = parse()
    try:
        rows = results(options)
    except (ModuleNotFoundError, EctypeError) as error:
        sys.exit(f"scaling.py: {error}")
    totals = summary(rows)
    if options.figure:
        draw_figure(totals, options.figure)
    print(json.dumps({"rows": rows, **totals}) if options.json else table(totals))


if __name__ == "__main__":
    main()
