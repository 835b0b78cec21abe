"""One unit of a sweep: a copy of a problem's original with given settings, and all that is measured of it.

The settings of the paper's experiments are here too, all of them; nothing is left to a default.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ectype.errors import SettingError
from ectype.workers import one_thread
from ectype_paper.original_cache import cached_original
from ectype_paper.originals import Estimator, family_of
from ectype_paper.problems import Problem, load

if TYPE_CHECKING:
    from ectype.runs.result import Record as Round
    from ectype.space import Space

# Table 4 has no row for congressional-voting, which Table 3 lists.
WITHOUT_RESULT = ("congressional-voting",)
METHODS = ("sequential", "one-shot", "pure", "online")
SPACES = ("normal", "learned")
DELTAS = (5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6, 5e-7, 1e-7, 5e-8, 1e-8, 1e-9, 1e-10)
ITERATIONS, EPOCHS = 30, 1000
# The threshold of `preset="paper"`, by whose square stages end where there is no threshold.
DELTA = 1e-6
# How a round trains: so many epochs whatever the risk, or in the stages of Algorithms 3 and 4.
TRAININGS = ("plain", "staged")
# What trains the networks. Units of another engine are other units: a store takes only those of one.
ENGINE = "native"


def paper_settings(iterations: int = ITERATIONS, epochs: int = EPOCHS) -> dict[str, Any]:
    """What every unit of a sweep has in common, as JSON values.

    The memory term is the bounded one: research/tuning.md.

    The loss, the size and kind of batches and the step size come with the preset.
    """
    return {
        "preset": "paper",
        "batch": 100,
        "iterations": iterations,
        "epochs": epochs,
        "layers": [64, 32, 10],
        "penalty": "bounded",
        "max_kept": None,
        "decay": 0.0,
        "draw": "random",
        "engine": ENGINE,
    }


def copy_arguments(
    settings: dict[str, Any],
    method: str,
    delta: float | None,
    seed: int,
    memory: str | float = "automatic",
    points: int | None = None,
    training: str = "plain",
) -> dict[str, Any]:
    """The arguments of `copy_classifier` for one unit; only the sequential method takes a threshold and has a memory.

    Those that a method does not take are left open.

    >>> copy_arguments(paper_settings(epochs=7), "one-shot", None, seed=1)["schedule"].epochs
    7
    """
    from ectype.algorithm.training import plain, staged

    common = {name: value for name, value in settings.items() if name not in ("epochs", "engine")}
    if points is not None:
        common |= {"batch": points, "iterations": 1}
    epochs, sequential = settings["epochs"], method == "sequential"
    drops = sequential and bool(delta)
    return {
        **common,
        "method": method,
        "to": "mlp",
        "delta": (delta or 0.0) if sequential else None,
        "memory": memory if drops else None,
        "penalty": settings["penalty"] if drops and memory != "none" else None,
        "draw": None if method == "one-shot" else settings["draw"],
        "schedule": plain(epochs) if training == "plain" else staged((delta or DELTA) ** 2, epochs=epochs),
        "budget": None,
        "target": None,
        "until_flat": False,
        "progress": False,
        "certificate_n": 0,
        "repeat": 0.0,
        "retries": None,
        "scores": False,
        "seed": seed,
    }


# Rows of the space, drawn for this purpose only, on which a copy's fidelity is measured.
FRESH_ROWS = 5000

Record = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """What tells a unit from all others of a sweep; `delta` is None where the method has none."""

    problem: str
    space: str
    method: str
    delta: float | None
    repetition: int
    memory: str | float = "automatic"
    """The weight of the memory term, for the sequential method."""
    points: int | None = None
    """How many points one-shot draws, if not as many as the others do in all iterations."""
    iterations: int | None = None
    """How many iterations, if not as many as the others of the sweep."""
    training: str = "plain"
    """How a round trains: for a number of epochs, or staged, as Algorithms 3 and 4 have it."""

    def __str__(self) -> str:
        delta = "" if self.delta is None else f" delta {self.delta:g}"
        memory = "" if self.memory == "automatic" else f" memory {self.memory}"
        points = "" if self.points is None else f" {self.points} points"
        rounds = "" if self.iterations is None else f" {self.iterations} iterations"
        training = "" if self.training == "plain" else f" {self.training}"
        what = f"{self.method}{delta}{memory}{points}{rounds}{training}"
        return f"{self.problem} {self.space} {what} run {self.repetition}"


@dataclass(frozen=True)
class UnitTask:
    """A unit with what is needed to run it anywhere that sees the same folder."""

    unit: Unit
    settings: dict[str, Any]
    folder: str | None
    digest: str
    """The hash of the problem, so that another version of the data is noticed."""


class Subject(NamedTuple):
    """A problem, its fitted original, and the original's answers to the test rows."""

    problem: Problem
    original: Estimator
    answers: np.ndarray


def run(task: UnitTask) -> Record:
    """Make the copy and measure it, in one thread; the record holds nothing but JSON values."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes never seen and searches cut short: the record shows
        return _measured(task, subject(task.unit.problem, task.folder, task.digest))


def _measured(task: UnitTask, subject: Subject) -> Record:
    from ectype.certificate.certify import certify
    from ectype.runs.api import copy_classifier

    unit, problem = task.unit, subject.problem
    space = operational_space(unit.space, problem)
    settings = task.settings if unit.iterations is None else {**task.settings, "iterations": unit.iterations}
    arguments = copy_arguments(
        settings, unit.method, unit.delta, unit.repetition, unit.memory, unit.points, unit.training
    )
    clock, work = perf_counter(), process_time()
    result = copy_classifier(
        subject.original, space, **arguments, test=(problem.X_test, problem.y_test, subject.answers)
    )
    seconds, cpu = perf_counter() - clock, process_time() - work
    fresh = certify(
        result.copy, subject.original, space, n=FRESH_ROWS, seed=unit.repetition, explain=False, design="plain"
    )
    return {
        **asdict(unit),
        **_curves(result.history, task.settings["batch"], single=unit.method == "one-shot"),
        "fidelity_fresh": fresh.estimate,
        "queries": result.queries["training"],
        "original_accuracy": float((subject.answers == problem.y_test).mean()),
        "family": family_of(problem),
        "source": problem.source,
        "engine": task.settings["engine"],
        "data": task.digest,
        "seconds": round(seconds, 3),
        "cpu": round(cpu, 3),
        "versions": result.versions,
    }


def _curves(history: Sequence[Round], n: int, single: bool) -> Record:
    """The paper's metrics, and what they were made from by iteration; one round alone has no conv and no eff."""
    from ectype.metrics import convergence, efficiency

    accuracies, kept = [record.accuracy for record in history], [record.kept for record in history]
    return {
        "accuracy": accuracies[-1],
        "fidelity": history[-1].agreement,
        "conv": None if single else convergence([value for value in accuracies if value is not None]),
        "eff": None if single else efficiency(kept, n),
        "accuracies": [_short(value) for value in accuracies],
        "fidelities": [_short(record.agreement) for record in history],
        "kept": kept,
        "rhos": [_short(record.mean_rho) for record in history],
        "test_rhos": [_short(record.test_rho) for record in history],
        "test_risks": [_short(record.test_risk) for record in history],
        "moved": [_short(record.moved) for record in history],
        "lambdas": [_short(record.lam) for record in history],
        "times": [round(record.seconds, 3) for record in history],
    }


def _short(value: float | None) -> float:
    """A number with as many digits as anybody looks at. It is there: every unit is measured on test data."""
    assert value is not None
    return float(f"{value:.6g}")


@lru_cache(maxsize=2)
def subject(name: str, folder: str | None, digest: str) -> Subject:
    """The problem and its original; a worker that stays with a problem loads them once."""
    problem = load(folder, name)
    if problem.digest != digest:
        hint = "every machine needs the same folder of problems at the same place"
        raise SettingError(name, f"data with the hash {digest[:12]}", problem.digest[:12], hint)
    original = cached_original(problem)
    return Subject(problem, original, original.predict(problem.X_test))


def operational_space(kind: str, problem: Problem) -> Space:
    """The paper's N(0, 1), or a space learned from the unlabelled training rows."""
    from ectype.space import Space

    return Space.from_data(problem.X_train) if kind == "learned" else Space.normal(problem.d)


def absolute(folder: str | Path | None) -> str | None:
    """The folder as workers are told of it, wherever they run."""
    return None if folder is None else str(Path(folder).absolute())
