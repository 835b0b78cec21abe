"""Beyond the paper's tables: Algorithms 3 and 4 as printed beside plain epochs, and ten times the queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.paper.catalogue import Made, Options, Row, runs_of
from understudy.paper.figures.numbers import only
from understudy.paper.figures.operational import TOYS
from understudy.paper.problems import names
from understudy.paper.settings import DELTA, TRAININGS
from understudy.paper.units import Record, Unit

# Problems of every family of originals, from 7 to 21 columns but for one, and of two, three or more classes.
TEN = (
    "abalone", "breast-cancer-wisc", "contrac", "energy-y1", "mammographic", "magic", "pima", "ringnorm", "seeds",
    "waveform",
)  # fmt: skip
MEASURES = ("accuracy", "fidelity", "fidelity_fresh", "eff", "conv", "cpu")
# Iterations of the paper, and ten times as many.
ROUNDS = (30, 300)
STAGED = """Means over {runs}, space {space}, delta {delta:g}, CPU seconds of a copy. `plain` trains 1000 epochs in
every iteration; `staged` is Algorithms 3 and 4: bounds on the risk that halve from 0.25 to the square of delta,
capacities that double from 64 epochs, and at most 1000 epochs in all."""
SCALE = """Means over {runs}, space {space}, CPU seconds of a copy. `single` is the one-shot single pass with as many
queries; eff and conv are over all iterations."""


class Stages:
    """Algorithms 3 and 4 beside a fixed number of epochs, on the toys and ten UCI problems."""

    title = "Stages: Algorithms 3 and 4 as printed, and plain epochs"
    runs = 3
    compact = of_uci = True

    def units(self, options: Options) -> tuple[Unit, ...]:
        """Both ways to train, for every problem."""
        return tuple(
            Unit(problem, options.space, "sequential", _delta(options), repetition, training=training)
            for problem in options.problems or (*TOYS, *_ten(options))
            for training in TRAININGS
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: Options) -> Made:
        """A row for each problem and way to train, and their means."""
        groups = _grouped(records, "training")
        rows = [{"problem": name, "training": way, **_means(those)} for (name, way), those in groups.items()]
        rows += [{"problem": "mean", "training": way, **_mean_of_rows(rows, training=way)} for way in TRAININGS]
        notes = STAGED.format(runs=runs_of(options.runs), space=options.space, delta=_delta(options))
        return Made(rows, notes)


class Scale:
    """Ten times the queries: does what is saved at 3000 hold at 30,000?"""

    title = "Scale: 30,000 queries"
    runs = 1
    compact = of_uci = True

    def units(self, options: Options) -> tuple[Unit, ...]:
        """Algorithm 5 and the single pass, with 3000 and with 30,000 queries."""
        return tuple(
            Unit(problem, options.space, method, delta, repetition, iterations=None if rounds == ROUNDS[0] else rounds)
            for problem in options.problems or _ten(options)
            for rounds in ROUNDS
            for method, delta in (("one-shot", None), ("sequential", _delta(options)))
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: Options) -> Made:
        """A row for each problem and number of queries, and their means."""
        groups = _grouped(records, "queries")
        rows = [{"problem": name, "queries": queries, **_both(those)} for (name, queries), those in groups.items()]
        for queries in dict.fromkeys(row["queries"] for row in rows):
            rows.append({"problem": "mean", "queries": queries, **_mean_of_rows(rows, queries=queries)})
        return Made(rows, SCALE.format(runs=runs_of(options.runs), space=options.space))


def _ten(options: Options) -> Sequence[str]:
    """The ten problems, or those of them that there are data of; from a table of units none are needed."""
    there = TEN if options.compact else {*names(options.data), *names()}
    return [name for name in TEN if name in there]


def _delta(options: Options) -> float:
    return only("--deltas", options.deltas, DELTA)


def _grouped(records: Sequence[Record], by: str) -> dict[tuple[str, object], list[Record]]:
    groups: dict[tuple[str, object], list[Record]] = {}
    for one in records:
        groups.setdefault((one["problem"], one.get(by, TRAININGS[0])), []).append(one)
    return groups


def _both(records: Sequence[Record]) -> Row:
    """Algorithm 5, and the single pass beside it."""
    single = [one for one in records if one["method"] == "one-shot"]
    copies = _means([one for one in records if one["method"] == "sequential"])
    named = {"single accuracy": "accuracy", "single fidelity": "fidelity", "single fresh": "fidelity_fresh"}
    row = {name: _mean(single, column) for name, column in named.items()}
    return row | copies | {"single cpu": _mean(single, "cpu")}


def _means(records: Sequence[Record]) -> Row:
    kept = float(np.mean([one["kept"][-1] for one in records]))
    return {name: _mean(records, name) for name in MEASURES} | {"points": round(kept)}


def _mean(records: Sequence[Record], name: str) -> float:
    return float(np.mean([one[name] for one in records]))


def _mean_of_rows(rows: Sequence[Row], **where: object) -> Row:
    found = [row for row in rows if where.items() <= row.items() and row["problem"] != "mean"]
    names = [name for name in found[0] if name != "problem" and name not in where]
    means = {name: float(np.mean([row[name] for row in found])) for name in names}
    return means | {"points": round(means["points"])}
