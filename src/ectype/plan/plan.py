"""A plan: everything that a run will do, decided once by `ectype.plan.resolve`, as a value that prints itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil

from ectype.algorithm.memory import PENALTIES
from ectype.algorithm.mlp import MLP
from ectype.algorithm.training import Schedule, Trainer
from ectype.models.capacity import Capacity
from ectype.plan.presets import Preset
from ectype.plan.settings import Settings
from ectype.plan.validation import ROWS_SHARE
from ectype.types import Json, is_classifier

# Settings that version 0.1 did not have: a run without them is the same as one with these.
ADDED = {"scores": False, "rows_share": ROWS_SHARE}
# Settings that a run is not recognised by: one that used up its retries goes on with more, watched or not.
OPEN = ("retries", "progress")
# Rounds of one size that are not listed one by one.
MANY = 6
# How rows are chosen, in words.
CHOSEN = {
    "random": "random as well",
    "margin": "where the copy is least sure",
    "committee": "where a committee disagrees",
    "boundary": "on the copy's boundary",
    "balanced": "of all classes equally",
}


@dataclass(frozen=True)
class AskPlan:
    """What is asked, and in which rounds."""

    sizes: tuple[int, ...]
    """New points of every round: queries and, in the first, the answers that were given."""
    known: int
    """How many answers are there before anything is asked."""
    grows: bool
    """Whether batches grow."""
    draw: str
    """Which acquisition function chooses the rows."""
    random_first: int
    """The random queries before active learning begins."""
    candidates: tuple[int, ...]
    """The rows that those of a round are chosen from."""
    rows_share: float
    """Of training queries, the share that is about the user's own rows."""
    held_out: int
    """The queries of the certificate."""
    repeat: float
    """Of all queries, the share that is asked again."""

    @property
    def batches(self) -> tuple[int, ...]:
        """Queries of every round."""
        return (self.sizes[0] - self.known, *self.sizes[1:])

    @property
    def queries(self) -> int:
        """The most training queries."""
        return sum(self.batches)

    @property
    def batch(self) -> int:
        """Queries of the first round; of each, unless they grow."""
        return self.batches[0]

    @property
    def rounds(self) -> int:
        """The most rounds."""
        return len(self.sizes)

    @property
    def repeats(self) -> int:
        """How many rows are asked again: a share of all queries, among the first that are answered."""
        return min(ceil(self.repeat * (self.queries + self.held_out)), self.held_out + self.batch)

    @property
    def total(self) -> int:
        """The most queries in total, unless some have to be sent again."""
        return self.queries + self.held_out + self.repeats


@dataclass(frozen=True)
class LearnPlan:
    """How the network that learns from round to round is trained, and what it keeps."""

    layers: tuple[int, ...]
    """Its hidden layers."""
    schedule: Schedule
    delta: float
    """Points with an uncertainty below this are dropped."""
    penalty: str
    memory: str | float
    most_kept: int
    """The most points kept in any round."""
    free: int
    """Up to so many points, none is dropped."""
    drops: bool
    """Whether points may be dropped; where none is, nothing has to be remembered."""
    decay: float | None
    """Weight decay; none: by the number of inputs."""
    preset: Preset
    seed: int
    last: int
    """The round that is the last."""

    def trainer(self, network: MLP) -> Trainer:
        """What trains a network."""
        return Trainer(
            network,
            schedule=self.schedule,
            penalty=self.penalty if self.penalty in PENALTIES else "none",
            decay=self.preset.decay(network.d) if self.decay is None else self.decay,
            seed=self.seed,
            last=self.last,
            **self.preset.training,
        )


@dataclass(frozen=True)
class MakePlan:
    """What the copy may be."""

    families: tuple[str, ...]
    """The families that it is chosen from."""
    network: bool
    """Whether it is the same network that chooses the queries."""
    from_rounds: bool
    """Whether a copy that is a network is the one that learned from round to round; else one is made of all answers."""
    limited: bool
    """Whether the user limits what it may be."""
    capacity: Capacity
    """How much training goes into copies of other families."""


@dataclass(frozen=True)
class StopPlan:
    """When a run ends."""

    target: float | None
    until_flat: bool
    looks: tuple[int, ...]
    """After which rounds the target is checked."""
    comparisons: int
    """How often the held-out rows may end the run, or have ended it before: what the bound is corrected for."""
    confidence: float
    limited_by: str
    """What ends the run if nothing else does: the budget, or the iterations."""


@dataclass(frozen=True)
class Plan:
    """What a run will do. `asked` are the settings, each checked; everything that they left open is decided here.

    >>> from ectype.plan.resolve import resolve
    >>> print(resolve(Settings(budget=1000)))
    ask    1,000 rows in 6 rounds: 150 random, then 69, 101, 148, 216, 316 where a committee disagrees
           2,000 held out, 60 asked again: 3,060 in all
    learn  active: every answer is kept
    make   blend, of all answers
    stop   after 1,000 answers
    """

    asked: Settings
    method: str
    """A name in `ectype.methods.registry`."""
    ask: AskPlan
    learn: LearnPlan
    make: MakePlan
    stop: StopPlan
    explicit: frozenset[str] = frozenset()
    """The names of the settings that were not left open."""
    stages: tuple[int, ...] = ()
    """The budgets with which the same run was made before, if it goes on."""
    given: tuple[int, int] = (0, 0)
    """Answers that are there before anything is asked, and how many of them are about rows that a run drew."""

    @property
    def left_over(self) -> int:
        """What is left of the budget, because it is less than a batch."""
        asked = self.asked
        return 0 if asked.budget is None or asked.iterations is not None else max(0, asked.budget - self.ask.queries)

    @property
    def uses_network(self) -> bool:
        """Whether the network that learns from round to round has a part in the copy, or in what is asked."""
        if self.make.network or (self.make.from_rounds and "mlp" in self.make.families):
            return True
        chooses = self.asked.method != "one-shot" and (self.ask.draw != "random" or self.stop.until_flat)
        return chooses and self.method != "bounded"

    def as_json(self) -> Json:
        """The settings and what was decided as JSON values: how a run's directory remembers and recognises them."""
        ask, learn, asked = self.ask, self.learn, self.asked
        decided = {
            "iterations": ask.rounds,
            "draw": ask.draw,
            "delta": learn.delta,
            "penalty": learn.penalty,
            "memory": learn.memory,
            "repeat": ask.repeat,
            "rows_share": ask.rows_share,
        }
        names = [part.name for part in fields(Settings) if part.name not in OPEN]
        said = {name: decided.get(name, getattr(asked, name)) for name in names}
        content: Json = {name: value for name, value in said.items() if name not in ADDED or value != ADDED[name]}
        content.update({name: list(content[name]) for name in ("exclude", "increasing", "decreasing")})
        content["layers"] = None if asked.layers is None else list(asked.layers)
        content["batch"] = None if ask.grows else ask.batch
        if is_classifier(asked.to):
            parameters = {name: repr(value) for name, value in sorted(asked.to.get_params().items())}
            content["to"] = {"class": f"{type(asked.to).__module__}.{type(asked.to).__qualname__}", **parameters}
        content |= {"stages": list(self.stages)} if self.stages else {}
        content |= {"known": list(self.given)} if ask.known else {}
        return {**content, "budget": ask.queries, "schedule": learn.schedule._asdict()}

    def __str__(self) -> str:
        parts = {"ask": self._asks(), "learn": self._learns(), "make": self._makes(), "stop": self._stops()}
        return "\n".join(f"{name:<7}{text}" for name, text in parts.items())

    def _asks(self) -> str:
        ask, (first, *later) = self.ask, self.ask.batches
        beside = f"{ask.known:,} answers are given; " if ask.known else ""
        same = len(later) > MANY and all(n == first for n in later)
        sizes = "the others" if same else ", ".join(f"{n:,}" for n in later)
        then = f", then {sizes} {CHOSEN[ask.draw]}" if later else ""
        rounds = f"{ask.rounds} rounds" if later else "one round"
        again = f"{ask.held_out:,} held out, {ask.repeats:,} asked again: {ask.total:,} in all"
        return f"{beside}{ask.queries:,} rows in {rounds}: {first:,} random{then}\n{'':<7}{again}"

    def _learns(self) -> str:
        learn, kept = self.learn, "every answer is kept"
        if learn.most_kept < sum(self.ask.sizes):
            kept = f"at most {learn.most_kept:,} points are kept"
        elif self.method == "sequential":
            kept = f"points with an uncertainty below {learn.delta:g} are dropped"
        elif self.method == "online":
            kept = "every batch is used once"
        return f"{self.method}: {kept}"

    def _makes(self) -> str:
        what = " or ".join(self.make.families)
        return f"{what}, the one that chose the queries" if self.make.network else f"{what}, of all answers"

    def _stops(self) -> str:
        stop, reasons = self.stop, []
        if stop.target is not None:
            reasons.append(f"as soon as the lower bound reaches {stop.target:g}")
        if stop.until_flat:
            reasons.append("when more queries hardly help")
        return ", ".join([*reasons, f"after {self.ask.queries:,} answers"])
