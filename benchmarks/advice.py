"""What a run says would help: how often that is right, once one does it.

The originals of benchmarks/originals.py, each in the space learned from its unlabelled training rows, as they are and
with a rare label: one row in about 65, of those with the commonest label, where the sum of the first numbers is high.
Runs of several budgets with 2000 rows for the certificate; what they say is followed by another run, and both copies
are compared on 20,000 fresh rows, which neither has seen. It is right

`budget`     if the gain of twice the budget is within the range that was said;
`scores`     if as many queries with scores make a more faithful copy;
`family`     if the blend's gain is between half and twice of what was said;
`label`      if balanced asking makes a copy that agrees on more of the rare label;
`capacity`   if to='auto' makes a more faithful copy, where a copy of one family is said to be too small;
`samples`    if twice the budget makes a more faithful copy, where more answers are said to be needed;
`at least`   if no fewer answers than that reached what a run with more of them reached; likewise `beyond`.

`--hard`: also waves in six columns, parity, noise and a coin, with budgets up to 3000.

And of what is not said: `flat`, that more answers may not help where the trend is not clear, if twice the budget gains
less than 0.1 points; `rows`, a larger rows_share where a copy does worse on real rows, if it does better on others
then; `common`, balanced asking for a worst label that is not rare, if the copy agrees on more of it.

    python benchmarks/advice.py [--half chosen|reported|all] [--only NAME] [--budgets 100 300 ...] [--seeds 0 1]
                                [--hard] [--keep FOLDER] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from originals import HALVES, ORIGINALS, chosen_originals, original_options, subject
from subjects import Subject
from workers import each

FRESH = 20_000
# Where a copy of a single family is made, where real rows are asked about, and where there is a rare label.
ALONE, REAL, WITH_RARE = (300, 3000), (300, 1000, 3000), (1000, 3000)
FAMILIES = ("tree", "linear", "mlp")
# The most answers about originals that are hard.
HARDEST = 3000
# A target that few copies reach, and a label that is not rare, though not common either.
TARGET, COMMON = 0.99, 0.15
# Of what is not said any more, the bound of a gain that is none.
NONE = 0.001

Row = dict[str, Any]


class Runs(NamedTuple):
    """Runs about one original with one seed; each is made once, and kept in a folder if there is one."""

    name: str
    seed: int
    rare: bool
    folder: Path
    kept: Path | None

    def __call__(self, budget: int, **settings: Any) -> Row:
        """What a run of this budget says, and what is true of its copy."""
        key = json.dumps([self.name, self.seed, self.rare, budget, settings])
        path = None if self.kept is None else self.kept / f"{sha256(key.encode()).hexdigest()[:20]}.json"
        if path is not None and path.is_file():
            found: Row = json.loads(path.read_text())
            return found
        found = {"key": key, **made(self, budget, settings)}
        if path is not None:
            path.write_text(json.dumps(found))
        return found


def made(runs: Runs, budget: int, settings: Row) -> Row:
    """A run, as far as advice and diagnosis go by it, and how faithful its copy is on rows that it never saw."""
    from ectype.errors import EctypeWarning
    from ectype.plan.resolve import resolve
    from ectype.plan.settings import Settings
    from ectype.runs.api import build_job
    from ectype.runs.assembly import assemble
    from ectype.runs.pipeline import run_rounds

    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", EctypeWarning)
    model, space, X_test, _ = about(runs.name, runs.seed, runs.rare, runs.folder)
    fresh, said = drawn(runs.name, runs.seed, runs.rare, runs.folder)
    rows = ORIGINALS[runs.name].data(runs.folder, runs.seed).X_train if "rows_share" in settings else None
    plan = resolve(Settings(budget=budget, seed=runs.seed, progress=False, **settings))
    job = build_job(model, space, plan, rows=rows)
    ended = finished(run_rounds(job))
    copy, points, proof = ended.selection.copy, ended.round.points, assemble(job, ended).certificate
    assert proof is not None
    agree, own, repeats = copy.predict(fresh) == said, proof.on_data, ended.repeats
    return {
        "proof": {**proof.as_json(), "differences": None, "on_data": None},
        "own": None if own is None else [own.estimate, own.n],
        "repeats": None if repeats is None else [repeats.n, repeats.disagreed],
        "errors": ended.errors,
        "blend": ended.selection.blend,
        "offers": job.original.predict_with_scores is not None and not job.original.scored,
        "trained": float((copy.decide(points.X) != points.y).mean()),
        "truth": float(agree.mean()),
        "per_class": [[str(label), float(agree[said == label].mean())] for label in sorted({*said.tolist()})],
        "on_rows": None if X_test is None else float((copy.predict(X_test) == model.predict(X_test)).mean()),
    }


def finished(rounds: Any) -> Any:
    """What a generator returns."""
    while True:
        try:
            next(rounds)
        except StopIteration as end:
            return end.value


# --- originals ------------------------------------------------------------------------------------------------------


class WithRareLabel:
    """A model that answers `rare` to some of the rows that it has its commonest label for."""

    def __init__(self, model: Any, space: Any, share: float = 0.015):
        import numpy as np

        numbers = self._numbers(space.present(space.sample(FRESH, np.random.default_rng(6))))
        self._model, self._mean, self._scale = model, np.nanmean(numbers, 0), np.nanstd(numbers, 0) + 1e-9
        rows = space.present(space.sample(FRESH, np.random.default_rng(5)))
        said, sums = model.predict(rows), self._sums(rows)
        names, counts = np.unique(said, return_counts=True)
        self._common = names[counts.argmax()]
        own = sums[said == self._common]
        self._most = np.quantile(own, 1 - share * len(rows) / len(own))
        self.classes_ = np.array(sorted([*map(str, names), "rare"]))

    def predict(self, rows: Any) -> Any:
        import numpy as np

        said = self._model.predict(rows)
        return np.where((said == self._common) & (self._sums(rows) > self._most), "rare", said.astype(str))

    def _sums(self, rows: Any) -> Any:
        import numpy as np

        return np.nan_to_num((self._numbers(rows) - self._mean) / self._scale).sum(1)

    def _numbers(self, rows: Any) -> Any:
        import numpy as np

        table = rows.select_dtypes("number").to_numpy(float) if hasattr(rows, "select_dtypes") else rows
        return np.asarray(table, float)[:, :3]


class Wave:
    """Which side of a wave in six columns a row is on: ever finer, ever harder to learn."""

    def __init__(self, finer: float):
        self._finer = finer

    def predict(self, rows: Any) -> Any:
        import numpy as np

        return np.sin(self._finer * rows.sum(axis=1)) > 0


class Noisy:
    """Whether two columns have one sign; so many answers are turned, whenever they are asked for."""

    def __init__(self, share: float):
        self._share, self._calls = share, 0

    def predict(self, rows: Any) -> Any:
        import numpy as np

        self._calls += 1
        turned = np.random.default_rng([self._calls, len(rows)]).random(len(rows)) < self._share
        return (rows[:, 0] * rows[:, 1] > 0) ^ turned


class Parity:
    """Whether an even number of the columns is above zero."""

    def predict(self, rows: Any) -> Any:
        return (rows > 0).sum(axis=1) % 2 == 0


HARD: dict[str, Callable[[], Any]] = {
    "wave 1.7": partial(Wave, 1.7),
    "wave 1.9": partial(Wave, 1.9),
    "wave 2": partial(Wave, 2.0),
    "wave 3": partial(Wave, 3.0),
    "parity": Parity,
    "noise 0.03": partial(Noisy, 0.03),
    "noise 0.1": partial(Noisy, 0.1),
    "coin": partial(Noisy, 0.5),
}


@lru_cache(maxsize=2)
def about(name: str, seed: int, rare: bool, folder: Path) -> Subject:
    """An original with its space, as it is or with a rare label."""
    if name in HARD:
        import ectype as ec

        return Subject(HARD[name](), ec.Space.normal(6), None, None)
    found = subject(name, folder, seed)
    return found._replace(original=WithRareLabel(found.original, found.space)) if rare else found


@lru_cache(maxsize=2)
def drawn(name: str, seed: int, rare: bool, folder: Path) -> tuple[Any, Any]:
    """Fresh rows of its space, and its answers."""
    import numpy as np

    model, space, *_ = about(name, seed, rare, folder)
    fresh = space.present(space.sample(FRESH, np.random.default_rng([seed, 99])))
    return fresh, model.predict(fresh)


# --- what is said, and whether it is right --------------------------------------------------------------------------


def checked(task: tuple[str, int, bool], options: argparse.Namespace) -> list[Row]:
    """What all runs about an original say, and whether it is right."""
    name, seed, rare = task
    runs = Runs(name, seed, rare, options.folder, options.keep)
    half = "hard" if name in HARD else next(half for half, names in HALVES.items() if name in names)
    budgets, found = [n for n in options.budgets if name not in HARD or n <= HARDEST], []
    for budget in budgets:
        kinds = of_label(runs, budget) if rare else of_all(runs, budget, budgets)
        found += [{"half": half, "original": name, "budget": budget, "said": kind, "right": ok} for kind, ok in kinds]
    return found


def of_label(runs: Runs, budget: int) -> Iterator[tuple[str, bool]]:
    """Advice about a rare label."""
    if budget in WITH_RARE and "label" in (said := advice_of(runs(budget), choosable=True)):
        yield "label", of(runs(budget, draw="balanced"), said["label"][1]) > of(runs(budget), said["label"][1])


def of_all(runs: Runs, budget: int, budgets: list[int]) -> Iterator[tuple[str, bool]]:
    """Everything else."""
    from ectype.certificate.trend import SPAN, trend_of

    run, twice = runs(budget), runs(2 * budget)
    said, gain = advice_of(run), twice["truth"] - run["truth"]
    trend = trend_of(run["errors"])
    if "budget" in said:
        yield "budget", SPAN[0] * said["budget"][0] <= gain <= SPAN[1] * said["budget"][0]
    elif trend is not None and not trend.clear:
        yield "flat", gain < NONE
    if "scores" in said:
        yield "scores", runs(budget, scores=True)["truth"] > run["truth"]
    yield from of_trend(runs, run, budget, budgets)
    if (cause := cause_of(run, whole=True)) and cause[0] == "samples" and "needs more answers" in cause[1]:
        yield "samples", gain > 0
    if runs.name in HARD:
        return
    for family in FAMILIES if budget in ALONE else ():
        alone = runs(budget, to=family)
        if "family" in (found := advice_of(alone)):
            yield "family", found["family"][0] / 2 <= run["truth"] - alone["truth"] <= 2 * found["family"][0]
        if (cause := cause_of(alone)) and cause[0] == "capacity":
            yield "capacity", run["truth"] > alone["truth"]
    yield from of_unsaid(runs, run, budget)


def of_trend(runs: Runs, run: Row, budget: int, budgets: list[int]) -> Iterator[tuple[str, bool]]:
    """How many more answers it takes to be as faithful as copies from more of them are."""
    from ectype.certificate.certificate import Certificate
    from ectype.certificate.diagnosis import further_answers
    from ectype.certificate.trend import BEYOND, clear_trend

    trend = clear_trend(Certificate.from_json(run["proof"]), run["errors"], repeats_of(run))
    for other in sorted({2 * budget, *(n for one in budgets for n in (one, 2 * one) if one > budget)}):
        reached = runs(other)["truth"]
        more, words = further_answers(trend, 1 - run["proof"]["estimate"], 1 - reached)
        if more is not None:
            yield "at least", budget + more <= other
        elif "times as many" in words:
            yield "beyond", other >= BEYOND * budget


def of_unsaid(runs: Runs, run: Row, budget: int) -> Iterator[tuple[str, bool]]:
    """What would be said of real rows, and of a worst label that is not rare."""
    worst, n = run["proof"]["worst"], run["proof"]["n"]
    if worst["n"] <= COMMON * n and "label" not in advice_of(run, choosable=True):
        yield "common", of(runs(budget, draw="balanced"), worst["label"]) > of(run, worst["label"])
    if budget in REAL:
        real = runs(budget, rows_share=0.25)
        own, held = real["own"]
        if real["proof"]["estimate"] - own > 2 * (own * (1 - own) / held) ** 0.5:
            yield "rows", runs(budget, rows_share=0.5)["on_rows"] > real["on_rows"]


def advice_of(run: Row, choosable: bool = False) -> dict[str, tuple[float, Any]]:
    """The kinds of advice that a run gives, each with its gain, and with the worst label."""
    from ectype.certificate.certificate import Certificate
    from ectype.certificate.diagnosis import advise

    proof = Certificate.from_json(run["proof"])
    found = advise(proof, run["errors"], repeats_of(run), scores=run["offers"], blend=run["blend"], choosable=choosable)
    label = None if proof.worst is None else proof.worst.label
    return {one.about: (one.gain or 0.0, label) for one in found}


def cause_of(run: Row, whole: bool = False) -> tuple[str, str] | None:
    """Why a run would have missed the target, and how that is said; none if it would have reached it."""
    from ectype.certificate.certificate import Certificate
    from ectype.certificate.diagnosis import diagnose

    proof = Certificate.from_json(run["proof"])
    if proof.lower >= TARGET:
        return None
    found = diagnose(TARGET, proof, run["errors"], run["trained"], repeats_of(run), whole)
    return found.cause, found.text


def repeats_of(run: Row) -> Any:
    """What was asked twice."""
    from ectype.certificate.repeats import Repeats

    return Repeats(*run["repeats"]) if run.get("repeats") else None


def of(run: Row, label: Any) -> float:
    """On which share of the fresh rows with a label a copy agrees; none of a label that none has."""
    return dict(run["per_class"]).get(str(label), 0.0)


# --- printing -------------------------------------------------------------------------------------------------------

SAID = ("budget", "scores", "family", "label", "capacity", "samples", "at least", "beyond")
UNSAID = ("flat", "rows", "common")


def table(rows: list[Row]) -> str:
    """How often each was said, and right, in either half and by budget."""
    budgets = sorted({row["budget"] for row in rows})
    halves = [half for half in ("chosen", "reported", "hard") if any(row["half"] == half for row in rows)]
    lines = [f"{'':<12}{'half':<10}{'said':>6}{'right':>7}" + "".join(f"{f'at {n}':>10}" for n in budgets)]
    for kind in (*SAID, *UNSAID):
        for half in halves:
            found = [row for row in rows if (row["said"], row["half"]) == (kind, half)]
            if not found:
                continue
            parts = [[row["right"] for row in found if row["budget"] == n] for n in budgets]
            cells = "".join(f"{f'{sum(part)}/{len(part)}' if part else '-':>10}" for part in parts)
            share = sum(row["right"] for row in found) / len(found)
            note = "  (not said)" if kind in UNSAID else ""
            lines.append(f"{kind:<12}{half:<10}{len(found):>6}{share:>7.2f}{cells}{note}")
    for half in halves:
        said = [row["right"] for row in rows if row["half"] == half and row["said"] in SAID]
        lines.append(f"{'all of it':<12}{half:<10}{len(said):>6}{sum(said) / max(1, len(said)):>7.2f}")
    return "\n".join(lines)


def main() -> None:
    from ectype.errors import EctypeError

    parser = argparse.ArgumentParser(description="How often what a run says would help is right.")
    original_options(parser)
    parser.add_argument("--budgets", type=int, nargs="+", default=[100, 300, 1000, 3000, 10_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--hard", action="store_true", help="also originals that can hardly be learned, or not at all")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what runs say there, and make none twice")
    parser.add_argument("--workers", type=int, default=2, help="processes, each pinned to a core; 0: this one")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    names = chosen_originals(options)
    tasks = [(name, seed, rare) for rare in (False, True) for name in names for seed in options.seeds]
    tasks += [(name, seed, False) for name in HARD for seed in options.seeds] if options.hard else []
    try:
        rows = [row for found in each(partial(checked, options=options), tasks, options.workers) for row in found]
    except (ModuleNotFoundError, EctypeError) as error:
        sys.exit(f"advice.py: {error}")
    print(json.dumps(rows) if options.json else table(rows))


if __name__ == "__main__":
    main()
