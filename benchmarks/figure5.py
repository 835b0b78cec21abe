"""Figure 5 of the paper, read in several ways: spirals, automatic lambda, thresholds 1e-6 and 1e-8.

The text leaves open how the memory term is scaled, whether Adam keeps its moments between iterations, which epsilon it
has, what an epoch of balanced batches is, when training stops, and which SVM was copied. Each reading differs from
`paper`, which is `preset="paper"`, in what its name says. A row is the mean over runs and over iterations 20 to 30: of
accuracy on the test rows (and the lowest single value), of points kept, and of lambda; `points` is also given as the
most of any iteration, in the mean over runs. The loop and its policies are the library's own.

Another problem in place of spirals says whether a reading matters elsewhere, and `--iterations 300` whether it does at
ten times the queries; means are then over the last 110. Of several problems, or `half` of the paper's, each reading is
then set beside `paper`: the mean over problems of what its copies have more in accuracy, at the end and over the late
iterations, with its standard error, and the points that they have left.

    python benchmarks/figure5.py [--json] [--runs 30] [--readings paper,norm,...] [--original study]
    python benchmarks/figure5.py --runs 1 --readings "paper,lambda >= 0.05" --deltas 1e-6 \\
        --problem waveform --data uci --iterations 300
    python benchmarks/figure5.py --runs 3 --readings "paper,bounded x 10,rms,epsilon 1e-7,moments kept" \\
        --deltas 1e-10,1e-7 --problem half --data uci
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from itertools import islice
from time import process_time
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from ectype._kernel import KernelTraining
from ectype._kernel._ffi import address
from ectype.algorithm.memory import Automatic, Fixed, Memory
from ectype.algorithm.mlp import MLP, PAPER_LAYERS
from ectype.algorithm.sample_set import SampleSet
from ectype.algorithm.selection import Select, drop_compressed, keep_all
from ectype.algorithm.sequential import sequential
from ectype.algorithm.training import Schedule, Trained, Trainer, plain, staged, steps
from ectype.rng import Stream, stream

N, ITERATIONS = 100, 30
# Iterations 20 to 30; of more iterations, as large a share.
LATE = 11


@dataclass(frozen=True)
class Reading:
    """How the text is read: what the loop's policies are made of."""

    trainer: dict[str, Any] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=plain)
    weight: float = 1.0
    """What lambda is multiplied by in the loss."""
    rms: bool = False
    """Whether it is also divided by the root of the number of parameters."""
    memory: Memory = field(default_factory=Automatic)
    moments: bool = False
    """Whether Adam keeps its moments from one iteration to the next."""
    least: float = 0.0
    """Lambda does not fall below this."""
    everything: bool = False
    """Whether nothing is dropped: pure sequential."""


@dataclass(frozen=True)
class AtLeast:
    """A rule for lambda, with a least value."""

    rule: Memory
    least: float

    @property
    def initial(self) -> float:
        return self.rule.initial

    def __call__(self, lam: float, kept: int, kept_before: int) -> float:
        return max(self.rule(lam, kept, kept_before), self.least)


class Remembering(Trainer):
    """A trainer whose Adam goes on with the moments of the last iteration."""

    def _training(self, theta: np.ndarray, S: SampleSet, lam: float, t: int, schedule: Schedule) -> KernelTraining:
        training = super()._training(theta, S, lam, t, schedule)
        kept = self.__dict__.setdefault("_kept", {"first": None, "second": None, "steps": 0})
        if kept["first"] is None:
            kept["first"], kept["second"] = np.zeros_like(theta), np.zeros_like(theta)
        training._job.first, training._job.second = address(kept["first"]), address(kept["second"])
        training._job.stage_steps = kept["steps"]
        training._kernel.training_begin(training._at, address(training._block))
        kept["steps"] += schedule.in_all(len(S), self.batch)
        return training


class Subject(NamedTuple):
    """What is copied, the rows on which copies are measured, and the network that learns it."""

    original: Any
    X_test: np.ndarray
    y_test: np.ndarray
    network: MLP


def penalised(scale: float, penalty: str = "bounded") -> Reading:
    return Reading({"penalty": penalty}, weight=scale)


# The parameters of the network for spirals.
SIZE = MLP(2, PAPER_LAYERS, 2).size
NORM = {"penalty": "norm"}
READINGS: dict[str, Reading] = {
    "paper": Reading(),
    "pure": Reading(everything=True),
    "no memory": Reading(memory=Fixed(0.0)),
    "lambda 0.05": Reading(memory=Fixed(0.05)),
    "cross-entropy": Reading({"loss": "cross-entropy"}),
    "cross-entropy without memory": Reading({"loss": "cross-entropy"}, memory=Fixed(0.0)),
    "cross-entropy + rms": Reading({"loss": "cross-entropy", **NORM}, rms=True),
    "norm": penalised(1.0, "norm"),
    "norm / 10": penalised(0.1, "norm"),
    "rms": Reading(NORM, rms=True),
    "norm / 1000": penalised(1e-3, "norm"),
    "bounded x 3": penalised(3.0),
    "bounded x 10": penalised(10.0),
    "bounded x 30": penalised(30.0),
    "bounded x 100": penalised(100.0),
    "squared norm": penalised(SIZE),
    "lambda >= 0.005": Reading(least=0.005),
    "lambda >= 0.05": Reading(least=0.05),
    "moments kept": Reading(moments=True),
    "epsilon 1e-7": Reading({"adam_epsilon": 1e-7}),
    "epsilon 1e-6": Reading({"adam_epsilon": 1e-6}),
    "epsilon 1e-10": Reading({"adam_epsilon": 1e-10}),
    "moments kept + epsilon 1e-7": Reading({"adam_epsilon": 1e-7}, moments=True),
    "unbalanced": Reading({"balanced": False}),
    "shuffled": Reading({"order": "shuffled"}),
    "shuffled + unbalanced": Reading({"order": "shuffled", "balanced": False}),
    "1000 steps": Reading(schedule=steps(1000, anneal=0.0)),
    "3200 steps": Reading(schedule=steps(3200, anneal=0.0)),
    "32000 steps": Reading(schedule=steps(32000, anneal=0.0)),
    "staged 1e-6": Reading(schedule=staged(1e-6)),
    "staged 1e-8": Reading(schedule=staged(1e-8)),
    "staged 1e-10": Reading(schedule=staged(1e-10)),
    "staged 1e-12": Reading(schedule=staged(1e-12)),
}


def subject_of(name: str, problem_name: str = "spirals", data: str | None = None) -> Subject:
    """A problem and what is copied: the study's original, the UCI problems' grid of SVMs, or one with these numbers."""
    from sklearn.svm import SVC

    from ectype_paper import load
    from ectype_paper.original_cache import cached_original

    problem = load(data, problem_name)
    if name in ("study", "grid"):
        fitted: Any = cached_original(problem, None if name == "study" else "rbf_svm")
    else:
        C, gamma = map(float, name.split(":"))
        fitted = SVC(C=C, gamma=gamma).fit(problem.X_train, problem.y_train)
    network = MLP(problem.d, PAPER_LAYERS, len(np.unique(problem.y_train)))
    return Subject(fitted, problem.X_test.astype(np.float32), problem.y_test, network)


def run(reading: Reading, delta: float, seed: int, subject: Subject, iterations: int = ITERATIONS) -> dict[str, Any]:
    """The curves of one copy."""
    original, network = subject.original, subject.network
    kind = Remembering if reading.moments else Trainer
    trainer = kind(network, reading.schedule, seed=seed, **reading.trainer)

    def draw(t: int, theta: np.ndarray) -> SampleSet:
        X = stream(seed, Stream.DRAW, t).normal(size=(N, network.d)).astype(np.float32)
        return SampleSet(X, original.predict(X.astype(float)).astype(np.int32))

    weight = reading.weight * (network.size**-0.5 if reading.rms else 1.0)

    def train(theta: np.ndarray, S: SampleSet, lam: float, t: int) -> Trained:
        return trainer(theta, S, weight * lam, t)

    select: Select = keep_all if reading.everything else drop_compressed(network, delta)
    memory = Fixed(0.0) if reading.everything else AtLeast(reading.memory, reading.least)
    theta = network.initial(stream(seed, Stream.INITIAL))
    clock = process_time()
    curves: dict[str, list[float]] = {"accuracy": [], "points": [], "lambda": [], "moved": []}
    for step in islice(sequential(draw, theta, select=select, memory=memory, train=train), iterations):
        decided = network.probabilities(step.theta, subject.X_test).argmax(axis=1)
        curves["accuracy"].append(float((decided == subject.y_test).mean()))
        curves["points"].append(len(step.S))
        curves["lambda"].append(step.lam)
        curves["moved"].append(step.moved)
    return {"delta": delta, "seed": seed, "cpu": process_time() - clock, **curves}


def summary(name: str, delta: float, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over runs and late iterations, with the standard error of the accuracy over runs."""
    last = max(LATE, round(LATE / ITERATIONS * len(runs[0]["points"])))
    late = {key: np.array([one[key][-last:] for one in runs]) for key in ("accuracy", "points", "lambda", "moved")}
    points = np.array([one["points"] for one in runs])
    means = late["accuracy"].mean(axis=1)
    return {
        "reading": name,
        "delta": delta,
        "runs": len(runs),
        "accuracy": float(means.mean()),
        "error": float(means.std(ddof=1) / len(runs) ** 0.5) if len(runs) > 1 else float("nan"),
        "lowest": float(late["accuracy"].min()),
        "last": float(late["accuracy"][:, -1].mean()),
        "points": float(late["points"].mean()),
        "left": float(points[:, -1].mean()),
        "most": float(points.mean(axis=0).max()),
        "lambda": float(np.median(late["lambda"])),
        "moved": float(late["moved"].mean()),
        "cpu": float(np.mean([one["cpu"] for one in runs])),
    }


def beside_paper(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each reading and threshold beside `paper`: the mean over problems of what it has more in accuracy."""
    plain_rows = {(row["problem"], row["delta"]): row for row in rows if row["reading"] == "paper"}
    found = []
    for name, delta in dict.fromkeys((row["reading"], row["delta"]) for row in rows):
        these = [row for row in rows if (row["reading"], row["delta"]) == (name, delta)]
        row = {"reading": name, "delta": delta, "left": float(np.mean([one["left"] for one in these]))}
        for when, measure in (("end", "last"), ("late", "accuracy")):
            more = np.array([one[measure] - plain_rows[one["problem"], delta][measure] for one in these])
            row |= {when: float(more.mean()), f"{when}_error": float(more.std(ddof=1) / len(more) ** 0.5)}
        found.append(row)
    return found


def problems_of(name: str) -> list[str]:
    from ectype_paper.operating_points import PROBLEMS

    return sorted(PROBLEMS)[::2] if name == "half" else name.split(",")


def line(row: dict[str, Any]) -> str:
    return (
        f"{row['reading']:<28}{row['delta']:>7.0e}{row['runs']:>5}{row['accuracy']:>9.4f}{row['error']:>8.4f}"
        f"{row['lowest']:>8.3f}{row['last']:>8.4f}{row['points']:>8.0f}{row['most']:>7.0f}{row['lambda']:>10.2g}"
        f"{row['moved']:>8.3f}{row['cpu']:>7.2f}"
    )


HEAD = (
    f"{'reading':<28}{'delta':>7}{'runs':>5}{'accuracy':>9}{'+-':>8}{'lowest':>8}{'t=30':>8}{'points':>8}{'most':>7}"
    f"{'lambda':>10}{'moved':>8}{'cpu':>7}"
)


def line_beside(row: dict[str, Any]) -> str:
    return (
        f"{row['reading']:<28}{row['delta']:>7.0e}{row['end']:>9.4f}{row['end_error']:>8.4f}{row['late']:>9.4f}"
        f"{row['late_error']:>8.4f}{row['left']:>8.0f}"
    )


HEAD_BESIDE = f"{'reading':<28}{'delta':>7}{'end':>9}{'+-':>8}{'late':>9}{'+-':>8}{'left':>8}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Figure 5 of the paper, read in several ways.")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--readings", default=",".join(READINGS))
    parser.add_argument("--original", default="study", help="study, grid, or C:gamma")
    parser.add_argument("--problem", default="spirals", help="names with commas between them, or half")
    parser.add_argument("--data", help="a folder of problems, as of reproduction/tools/import_archive.py")
    parser.add_argument("--deltas", default="1e-6,1e-8")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    options = parser.parse_args()
    readings = [name.strip() for name in options.readings.split(",")]
    problems = problems_of(options.problem)
    several = len(problems) > 1
    if several and "paper" not in readings:
        parser.error("--readings: several problems are set beside the reading `paper`, which is not among these")
    rows = []
    print(HEAD, file=sys.stderr, flush=True)
    for problem in problems:
        print(problem, file=sys.stderr, flush=True)
        subject = subject_of(options.original, problem, options.data)
        for name in readings:
            for delta in map(float, options.deltas.split(",")):
                runs = [run(READINGS[name], delta, seed, subject, options.iterations) for seed in range(options.runs)]
                rows.append({"problem": problem, **summary(name, delta, runs)})
                print(line(rows[-1]), file=sys.stderr, flush=True)
    found, head, as_line = (beside_paper(rows), HEAD_BESIDE, line_beside) if several else (rows, HEAD, line)
    print(json.dumps(found) if options.json else "\n".join([head, *map(as_line, found)]))


if __name__ == "__main__":
    main()
