"""Presets: what settings are where the user leaves them open, and how a network is then trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TypedDict

from understudy.algorithm.memory import FUNCTION
from understudy.algorithm.selection import UNLIMITED
from understudy.algorithm.training import Schedule, plain, steps
from understudy.models.distillation import Effort

# The paper's: queries of an iteration, and iterations.
BATCH, ITERATIONS = 100, 30
# The weight of the memory term: the paper's rule for distances between parameters, this for answers.
FUNCTION_WEIGHT = 7.0


class Training(TypedDict):
    """The loss, the size and kind of batches, and the step size, as `Trainer` takes them."""

    loss: str
    batch: int
    balanced: bool
    order: str
    rate: float


@dataclass(frozen=True)
class Preset:
    """What settings are, unless said otherwise."""

    parts: int | None
    """How many iterations a budget is spent in; else in batches of the paper's size."""
    draw: str
    delta: float
    keep: float
    """The most points kept at the end, as a share of the training queries."""
    free: int
    """Points that are kept whatever their uncertainty."""
    room: int
    """The most points kept before the end."""
    candidates: int
    """The most rows that the next queries are chosen among, unless these are many themselves."""
    ending: float
    """The share of iterations, the last ones, in which the sample set shrinks to what is kept at the end."""
    penalty: str
    schedule: Schedule
    """Of an iteration among many."""
    alone: Schedule
    """Of an iteration that is the only one."""
    run_steps: int
    """Steps of all iterations together: where they are few, each takes more than its schedule says."""
    training: Training
    effort: Effort = Effort()
    """What goes into copies of other families."""

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
        """How much weights shrink: more in a network with more inputs, which has more of them to bend to a point."""
        return 0.0 if self.training["loss"] == "rho" else min(0.02 * inputs, 0.2)


# Measured on half of the paper's problems: docs/choices.md has what each part brings.
_DEFAULT = Preset(
    parts=None,
    draw="margin",
    delta=0.0,
    keep=0.15,
    free=400,
    room=5000,
    candidates=8000,
    ending=0.1,
    penalty=FUNCTION,
    schedule=steps(800),
    alone=steps(20_000),
    run_steps=24_000,
    training={"loss": "cross-entropy", "batch": 32, "balanced": False, "order": "drawn", "rate": 8e-3},
)
PRESETS = {
    "default": _DEFAULT,
    # Few steps, most of them when all answers are there, and so few iterations that what else they cost hardly counts;
    # no point is dropped.
    "fast": replace(
        _DEFAULT,
        parts=3,
        keep=1.0,
        room=UNLIMITED,
        candidates=6000,
        ending=0.0,
        schedule=steps(200, last=600, anneal=0.5, warm=80),
        alone=steps(1000, anneal=0.5, warm=80),
        run_steps=0,
        training={**_DEFAULT.training, "batch": 64, "order": "shuffled", "rate": 2e-2},
    ),
    # The setting of the paper's experiments, with the memory term in the form that reproduces its figures.
    "paper": Preset(
        parts=None,
        draw="random",
        delta=1e-6,
        keep=1.0,
        free=0,
        room=UNLIMITED,
        candidates=8000,
        ending=0.0,
        penalty="bounded",
        schedule=plain(1000),
        alone=plain(1000),
        run_steps=0,
        training={"loss": "rho", "batch": 32, "balanced": True, "order": "drawn", "rate": 5e-4},
    ),
}
