"""Beyond the paper's tables: Algorithms 3 and 4 as printed beside plain epochs, and ten times the queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ectype_paper.catalogue import ExhibitOptions, MadeExhibit, Row, runs_of
from ectype_paper.figures.operational import TOYS
from ectype_paper.operating_points import PLACES, operational_points
from ectype_paper.problems import names
from ectype_paper.units import DELTA, DELTAS, TRAININGS, Record, Unit

# Problems of every family of originals, from 7 to 21 columns but for one, and of two, three or more classes.
TEN = (
    "abalone", "breast-cancer-wisc", "contrac", "energy-y1", "mammographic", "magic", "pima", "ringnorm", "seeds",
    "waveform",
)  # fmt: skip
MEASURES = ("accuracy", "fidelity", "fidelity_fresh", "eff", "conv", "cpu")
# How many times as many iterations as elsewhere.
TIMES = 10
SINGLE = "single pass"
STAGED = """Means over {runs}, space {space}, CPU seconds of a copy. `plain` trains 1000 epochs in every iteration;
`staged` is Algorithms 3 and 4: bounds on the risk that halve from 0.25 to the square of delta, capacities that double
from 64 epochs, and at most 1000 epochs in all."""
SCALE = """Means over {runs}, space {space}, CPU seconds of a copy. The operational points are chosen among the
thresholds {deltas}, for each number of queries anew, as in Table 4: by the rows that they are reported on.
`single pass` is the one-shot single pass with as many queries; eff and conv are over all iterations."""


class StagesTable:
    """Algorithms 3 and 4 beside a fixed number of epochs, on the toys and ten UCI problems."""

    title = "Stages: Algorithms 3 and 4 as printed, and plain epochs"
    runs = 3
    compact = of_uci = True

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """Both ways to train, for every problem."""
        return tuple(
            Unit(problem, options.space, "sequential", delta, repetition, training=training)
            for problem in options.problems or (*TOYS, *_ten(options))
            for delta in options.deltas or (DELTA,)
            for training in TRAININGS
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """A row for each problem and way to train, and their means."""
        groups = _grouped(records, "problem", "delta", "training")
        rows = [{**of, "delta": _threshold(of["delta"]), **_means(those)} for of, those in groups]
        return MadeExhibit([*rows, *_means_over_problems(rows, "delta", "training")], _told(STAGED, options))


class ScaleTable:
    """Ten times the queries: does what is saved at 3000 hold at 30,000?"""

    title = "Scale: 30,000 queries"
    runs = 1
    compact = of_uci = True

    def units(self, options: ExhibitOptions) -> tuple[Unit, ...]:
        """The single pass and every threshold, with as many iterations as elsewhere and with ten times as many."""
        ways = [("one-shot", None), *(("sequential", delta) for delta in options.deltas or DELTAS)]
        return tuple(
            Unit(problem, options.space, method, delta, repetition, iterations=rounds)
            for problem in options.problems or _ten(options)
            for rounds in (None, TIMES * options.iterations)
            for method, delta in ways
            for repetition in range(options.runs)
        )

    def make(self, records: Sequence[Record], options: ExhibitOptions) -> MadeExhibit:
        """A row for each problem, number of queries and copy: the single pass, and the operational points."""
        rows = [
            {**of, "copy": copy, "delta": _threshold(those[0]["delta"]), **_means(those)}
            for of, found in _grouped(records, "problem", "queries")
            for copy, those in _copies(found).items()
        ]
        deltas = ", ".join(map(_threshold, options.deltas or DELTAS))
        return MadeExhibit(
            [*rows, *_means_over_problems(rows, "queries", "copy")], _told(SCALE, options, deltas=deltas)
        )


def _ten(options: ExhibitOptions) -> Sequence[str]:
    """The ten problems, or those of them that there are data of; from a table of units none are needed."""
    there = TEN if options.compact else {*names(options.data), *names()}
    return [name for name in TEN if name in there]


def _told(notes: str, options: ExhibitOptions, **more: str) -> str:
    return notes.format(runs=runs_of(options.runs), space=options.space, **more)


def _threshold(delta: float | None) -> str:
    return "" if delta is None else f"{delta:g}"


def _grouped(records: Sequence[Row], *by: str) -> list[tuple[Row, list[Row]]]:
    """Records that have these columns in common, with them."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for one in records:
        groups.setdefault(tuple(one[name] for name in by), []).append(one)
    return [(dict(zip(by, values, strict=True)), those) for values, those in groups.items()]


def _copies(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The single pass of one problem, and Algorithm 5 at each operational point."""
    points = operational_points(records)
    deltas = {SINGLE: None, **{words: getattr(points, place).delta for place, words in PLACES.items()}}
    return {words: [one for one in records if one["delta"] == delta] for words, delta in deltas.items()}


def _means(records: Sequence[Record]) -> Row:
    kept = float(np.mean([one["kept"][-1] for one in records]))
    return {name: _mean(records, name) for name in MEASURES} | {"points": round(kept)}


def _means_over_problems(rows: Sequence[Row], *by: str) -> list[Row]:
    """Rows that have the means of all problems that are alike in these columns, and no text in the others."""
    return [
        {name: of.get(name, "") for name in rows[0]}
        | {"problem": "mean", "points": round(float(np.mean([row["points"] for row in those])))}
        | {name: _mean(those, name) for name in MEASURES}
        for of, those in _grouped(rows, *by)
    ]


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """The mean of a measure; the single pass has neither eff nor conv."""
    values = [row[name] for row in rows]
    return None if None in values else float(np.mean(values))
