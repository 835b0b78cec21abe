"""Presets: defaults for the settings that the user leaves open, and how networks are trained."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil
from typing import TypedDict

from ectype.algorithm.memory import FUNCTION
from ectype.algorithm.training import Schedule, plain, staged, steps
from ectype.models.capacity import Capacity
from ectype.plan.batch_schedule import BATCH, ITERATIONS

# Where copies are made of all answers: how long the network trains in a round, to help choosing the next.
SCOUTING = steps(1500)
# The weight of the memory term in function space; penalties on parameters follow the paper's rule.
FUNCTION_WEIGHT = 7.0


class TrainingPreset(TypedDict):
    """The loss, the size and kind of batches, and the step size, as `Trainer` takes them."""

    loss: str
    batch: int
    balanced: bool
    order: str
    rate: float


@dataclass(frozen=True)
class Preset:
    """The default settings."""

    to: str
    """The family of the copy."""
    network: bool
    """Whether a copy that is a network is the one that chose the queries; else one is made of all answers."""
    parts: int | None
    """How many iterations a budget is spent in; None: batches of the paper's size."""
    draw: str
    delta: float
    free: int
    """Up to so many points, none is dropped."""
    candidates: int
    """The most candidates that the next queries are chosen from, unless batches are large."""
    penalty: str
    schedule: Schedule
    """Of one iteration among several."""
    alone: Schedule
    """Of a single iteration (one-shot)."""
    run_steps: int
    """The fewest training steps of a run: with few iterations, each takes more than its schedule says."""
    training: TrainingPreset
    effort: Capacity = field(default_factory=Capacity)
    """How much training goes into copies of other families."""

    def batch_of(self, budget: int | None) -> int:
        """Queries of an iteration."""
        return BATCH if self.parts is None else max(1, (budget or BATCH * ITERATIONS) // self.parts)

    def schedule_of(self, iterations: int, alone: bool) -> Schedule:
        """How long an iteration trains."""
        if alone:
            return self.alone
        least = steps(ceil(self.run_steps / iterations))
        return max(self.schedule, least, key=lambda schedule: schedule.steps)

    def decay(self, inputs: int) -> float:
        """Weight decay: more for a network with more inputs, which overfits more easily."""
        return 0.0 if self.training["loss"] == "rho" else min(0.02 * inputs, 0.2)


# Measured on half of the paper's problems: research/tuning.md has what each part brings.
_DEFAULT = Preset(
    to="auto",
    network=False,
    parts=None,
    draw="margin",
    delta=0.0,
    free=400,
    candidates=8000,
    penalty=FUNCTION,
    schedule=steps(800),
    alone=steps(20_000),
    run_steps=24_000,
    training={"loss": "cross-entropy", "batch": 32, "balanced": False, "order": "drawn", "rate": 8e-3},
)
# The setting of the paper's experiments, with the memory term in the form that reproduces its figures.
_PAPER = Preset(
    to="mlp",
    network=True,
    parts=None,
    draw="random",
    delta=1e-6,
    free=0,
    candidates=8000,
    penalty="bounded",
    schedule=plain(1000),
    alone=plain(1000),
    run_steps=0,
    training={"loss": "rho", "batch": 32, "balanced": True, "order": "drawn", "rate": 5e-4},
)
# Algorithms 3 and 4 as printed: stages that end by a bound on the risk. The last bound is the square of the threshold
# delta: the risk is a mean of rho^2, and points that were trained any less would never be dropped.
_STAGED = staged(_PAPER.delta**2)
PRESETS = {
    "default": _DEFAULT,
    # Few steps, most of them in the last round, and so few iterations that their overhead hardly counts.
    "fast": replace(
        _DEFAULT,
        to="mlp",
        network=True,
        parts=3,
        candidates=6000,
        schedule=steps(200, last=600, anneal=0.5, warm=80),
        alone=steps(1000, anneal=0.5, warm=80),
        run_steps=0,
        training={**_DEFAULT.training, "batch": 64, "order": "shuffled", "rate": 2e-2},
    ),
    "paper": _PAPER,
    "paper-staged": replace(_PAPER, schedule=_STAGED, alone=_STAGED),
}
