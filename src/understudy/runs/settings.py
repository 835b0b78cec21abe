"""What a run is asked to do, checked once before anything is asked or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import ceil, inf, nextafter
from typing import Any

from understudy import checks
from understudy.algorithm.draws import DRAWS
from understudy.algorithm.memory import FUNCTION, LARGEST, PENALTIES
from understudy.algorithm.network import MLP, PAPER_LAYERS
from understudy.algorithm.selection import UNLIMITED
from understudy.algorithm.training import Schedule, Trainer, annealed, plain, steps
from understudy.errors import SettingError

FAMILIES = ("mlp", "linear", "tree", "forest", "boosting")
AUTO = "auto"
# What can be held to grow or fall with a column.
MONOTONE = ("linear", "tree", "forest", "boosting")
METHODS = ("sequential", "pure", "one-shot", "online")
SHARE = "a share from 0 to below 1"
# The paper's: queries of an iteration, and iterations.
BATCH, ITERATIONS = 100, 30


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
    compiled: bool
    """Whether training is compiled, also where it can do without."""
    training: dict[str, Any]
    """The loss, the size and kind of batches, and the step size, as `Trainer` takes them."""

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
    compiled=True,
    training={"loss": "cross-entropy", "batch": 32, "balanced": False, "rate": 8e-3},
)
PRESETS = {
    "default": _DEFAULT,
    # Few steps, most of them when all answers are there, and so few iterations that what else they cost hardly counts;
    # no point is dropped, and nothing compiled.
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
        compiled=False,
        training={**_DEFAULT.training, "batch": 64, "rate": 2e-2},
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
        compiled=True,
        training={"loss": "rho", "batch": 32, "balanced": True, "rate": 5e-4},
    ),
}
# The weight of the memory term: the paper's rule for distances between parameters, this for answers.
FUNCTION_WEIGHT = 7.0
MEMORY = f"'automatic', 'none' or a number from 0 to below {LARGEST:g}"


@dataclass(frozen=True)
class Settings:
    """What a run is asked to do. See `copy_classifier` for what each means."""

    method: str = "sequential"
    to: Any = "mlp"
    batch: int | None = None
    iterations: int | None = None
    budget: int | None = None
    target: float | None = None
    until_flat: bool = False
    certificate_n: int = 2000
    confidence: float = 0.95
    preset: str = "default"
    delta: float | None = None
    max_kept: int | None = None
    memory: str | float | None = None
    penalty: str | None = None
    layers: Sequence[int] = PAPER_LAYERS
    schedule: Schedule | int | None = None
    seed: int = 0
    draw: str | None = None
    repeat: float = 0.02
    decay: float | None = None
    max_depth: int | None = None
    max_leaves: int | None = None
    exclude: Sequence[str] = ()
    increasing: Sequence[str] = ()
    decreasing: Sequence[str] = ()
    max_bytes: int | None = None
    max_latency: float | None = None

    def checked(self) -> Settings:
        """The same settings with every default filled in; the first thing wrong with them is an error."""
        checks.choice("method", self.method, METHODS)
        if not own(self.to):
            checks.choice("to", self.to, (*FAMILIES, AUTO))
        checks.choice("preset", self.preset, tuple(PRESETS))
        return self._sized()._filled()._checked()

    def _filled(self) -> Settings:
        """With what was left to the preset."""
        preset, alone = PRESETS[self.preset], self.method == "one-shot"
        penalty = self.penalty or preset.penalty
        weight = FUNCTION_WEIGHT if penalty == FUNCTION else "automatic"
        return replace(
            self,
            draw=self.draw or (preset.draw if self.method in ("sequential", "pure") else "random"),
            delta=preset.delta if self.delta is None else self.delta,
            penalty=penalty,
            memory=weight if self.memory is None else self.memory,
            schedule=preset.schedule_of(self.iterations or 1, alone) if self.schedule is None else self.schedule,
        )

    def _checked(self) -> Settings:
        checks.choice("penalty", self.penalty, (*PENALTIES, FUNCTION))
        checks.choice("draw", self.draw, DRAWS)
        if self.draw != "random" and self.method == "one-shot":
            raise SettingError("draw", "'random' for the method one-shot", repr(self.draw), "it draws only once")
        certificate_n = checks.count("certificate_n", self.certificate_n, 0)
        for name, asked in (("the target", self.target is not None), ("until_flat", self.until_flat)):
            if asked and certificate_n == 0:
                hint = f"raise it, or leave out {name}"
                raise SettingError("certificate_n", f"held-out rows to measure {name} with", 0, hint)
        named = isinstance(self.memory, str) and self.memory in ("automatic", "none")
        return replace(
            self,
            target=None if self.target is None else checks.fraction("target", self.target),
            until_flat=checks.flag("until_flat", self.until_flat),
            certificate_n=certificate_n,
            confidence=checks.fraction("confidence", self.confidence),
            delta=checks.number("delta", self.delta, "a number from 0 to below 1", 0, 1),
            memory=self.memory if named else checks.number("memory", self.memory, MEMORY, 0, LARGEST),
            layers=_layers(self.layers),
            schedule=_schedule(self.schedule),
            seed=checks.count("seed", self.seed, 0),
            max_kept=None if self.max_kept is None else checks.count("max_kept", self.max_kept, 1),
            decay=None if self.decay is None else checks.number("decay", self.decay, SHARE, 0, 1),
            repeat=checks.number("repeat", self.repeat, SHARE, 0, 1),
            max_depth=None if self.max_depth is None else checks.count("max_depth", self.max_depth, 1),
            max_leaves=None if self.max_leaves is None else checks.count("max_leaves", self.max_leaves, 2),
            **self._constraints(),
        )

    def _constraints(self) -> dict[str, Any]:
        """What the copy may see and be."""
        named = {name: _names(name, getattr(self, name)) for name in ("exclude", "increasing", "decreasing")}
        together = [column for columns in named.values() for column in columns]
        twice = sorted({column for column in together if together.count(column) > 1})
        if twice:
            raise SettingError("exclude, increasing, decreasing", "every column named once", f"{twice} more than once")
        if (named["increasing"] or named["decreasing"]) and not self._able_to_grow:
            found, hint = f"the family {self.to!r}", "choose one of them as `to`, or 'auto'"
            raise SettingError("increasing", f"a family that can be held to it: {', '.join(MONOTONE)}", found, hint)
        wide = "a number of milliseconds above 0"
        return {
            **named,
            "max_bytes": None if self.max_bytes is None else checks.count("max_bytes", self.max_bytes, 1),
            "max_latency": None
            if self.max_latency is None
            else checks.number("max_latency", self.max_latency, wide, nextafter(0, 1), inf),
        }

    def _sized(self) -> Settings:
        """With batch, iterations and budget all known; one-shot is one iteration of everything."""
        preset = PRESETS[self.preset]
        budget = None if self.budget is None else checks.count("budget", self.budget, 1)
        batch = preset.batch_of(budget) if self.batch is None else checks.count("batch", self.batch, 1)
        iterations = None if self.iterations is None else checks.count("iterations", self.iterations, 1)
        if budget is None:
            iterations = iterations or preset.parts or ITERATIONS
        elif self.method == "one-shot":
            batch, iterations = budget, 1
        else:
            affordable = budget // batch
            if affordable == 0:
                hint = "raise the budget or lower the batch"
                raise SettingError("budget", f"at least one batch of {batch} queries", budget, hint)
            iterations = min(iterations or affordable, affordable)
        sizes = (batch * iterations, 1) if self.method == "one-shot" else (batch, iterations)
        return replace(self, batch=sizes[0], iterations=sizes[1], budget=batch * iterations)

    @property
    def families(self) -> tuple[str, ...]:
        """The families that the copy is chosen from."""
        if own(self.to):
            return (type(self.to).__name__,)
        if self.to != AUTO:
            return (self.to,)
        return MONOTONE if self.increasing or self.decreasing else FAMILIES

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many iterations checked settings may see a target reached.

        A network is there after every one; other families are made, so few times that choosing stays cheap and bounds
        tight.
        """
        n = self.iterations or 0
        if self.to == "mlp":
            return tuple(range(1, n + 1))
        return tuple(sorted({ceil(n / 4), ceil(n / 2), n})) if self.target else (n,)

    @property
    def stops(self) -> int:
        """After how many iterations checked settings may end the run because of what the held-out rows show."""
        if self.until_flat:
            return self.iterations or 0
        return len(self.looks) if self.target else 1

    @property
    def _able_to_grow(self) -> bool:
        return not own(self.to) and self.to in (*MONOTONE, AUTO)

    @property
    def n(self) -> int:
        """Queries of an iteration of checked settings."""
        return self.batch or 0

    @property
    def queries(self) -> int:
        """The most training queries that checked settings will make."""
        return self.n * (self.iterations or 0)

    @property
    def room(self) -> int:
        """The most points that checked settings ever keep; no more are ever asked about."""
        return min(self.queries, self.max_kept or PRESETS[self.preset].room)

    @property
    def ending(self) -> int:
        """The first iteration in which the sample set shrinks; a limit that was asked for holds from the start."""
        n, share = self.iterations or 0, PRESETS[self.preset].ending
        return n - int(share * n) if self.max_kept is None and self._kept_at_the_end < self.room else n

    def most_kept(self, t: int) -> int:
        """The most points that checked settings keep in iteration t."""
        if t < self.ending:
            return self.room
        before, after = min(self.room, self.n * self.ending), self._kept_at_the_end
        return round(before + (after - before) * (t + 1 - self.ending) / ((self.iterations or 0) - self.ending))

    @property
    def _kept_at_the_end(self) -> int:
        preset = PRESETS[self.preset]
        return min(self.room, max(self.n, preset.free, round(preset.keep * self.queries)))

    @property
    def candidates(self) -> int:
        """Among how many rows checked settings choose: many for a small batch, a few for each row of a large one."""
        return max(4 * self.n, min(40 * self.n, PRESETS[self.preset].candidates))

    @property
    def free(self) -> int:
        """How many points checked settings keep whatever their uncertainty."""
        return min(self.room, PRESETS[self.preset].free)

    @property
    def repeats(self) -> int:
        """How many rows checked settings ask about again: a share of all queries, among the first that are answered."""
        return min(ceil(self.repeat * (self.queries + self.certificate_n)), self.certificate_n + self.n)

    @property
    def total(self) -> int:
        """The most queries of all that checked settings will make."""
        return self.queries + self.certificate_n + self.repeats

    def trainer(self, network: MLP) -> Trainer:
        """How checked settings train a network."""
        preset = PRESETS[self.preset]
        return Trainer(
            network,
            schedule=self.schedule,  # type: ignore[arg-type]
            penalty=PENALTIES.get(self.penalty or ""),
            decay=preset.decay(network.d) if self.decay is None else self.decay,
            seed=self.seed,
            last=(self.iterations or 0) - 1,
            compiled=preset.compiled,
            **preset.training,
        )

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> Settings:
        """Checked settings from what `as_json` gave, with whatever else a run wrote down beside them left out."""
        found = {part.name: content[part.name] for part in fields(cls) if part.name in content}
        return cls(**{**found, "schedule": Schedule(**content["schedule"])})

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON values, which is how a run's directory remembers them."""
        content = {part.name: getattr(self, part.name) for part in fields(self)}
        content.update({name: list(getattr(self, name)) for name in ("layers", "exclude", "increasing", "decreasing")})
        if own(self.to):
            parameters = {name: repr(value) for name, value in sorted(self.to.get_params().items())}
            content["to"] = {"class": f"{type(self.to).__module__}.{type(self.to).__qualname__}", **parameters}
        if isinstance(self.schedule, Schedule):
            content["schedule"] = self.schedule._asdict()
        return content


def own(to: Any) -> bool:
    """Whether the family is a classifier of the user's own."""
    return all(hasattr(to, name) for name in ("fit", "predict", "get_params")) and not isinstance(to, type)


def _names(name: str, columns: Any) -> tuple[str, ...]:
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        raise SettingError(name, "a list of columns' names", repr(columns))
    columns = tuple(columns)
    if not all(isinstance(column, str) for column in columns):
        raise SettingError(name, "a list of columns' names", repr(columns))
    return columns


def _layers(layers: Any) -> tuple[int, ...]:
    if isinstance(layers, str) or not hasattr(layers, "__iter__"):
        raise SettingError("layers", "the sizes of the hidden layers, such as (64, 32, 10)", repr(layers))
    return tuple(checks.count("layers", size, 1) for size in layers)


def _schedule(schedule: Any) -> Schedule:
    if not isinstance(schedule, Schedule):
        return annealed(checks.count("schedule", schedule, 1, 2**30))
    wide = -1e30, 1e30
    return Schedule(
        checks.count("schedule.epochs", schedule.epochs, 1, 2**30),
        checks.number("schedule.epsilon", schedule.epsilon, "a number", *wide),
        checks.number("schedule.bound", schedule.bound, "a number", *wide),
        checks.count("schedule.capacity", schedule.capacity, 1, 2**30),
        checks.count("schedule.look_every", schedule.look_every, 1, 2**30),
        checks.number("schedule.anneal", schedule.anneal, "a share from 0 to 1", 0.0, nextafter(1, 2)),
        checks.count("schedule.steps", schedule.steps, 0, 2**30),
        checks.count("schedule.last", schedule.last, 0, 2**30),
        checks.count("schedule.warm", schedule.warm, 0, 2**30),
    )
