"""A plan: checked settings, with a value for everything that they left open."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any

from ectype._common import validation
from ectype.algorithm.memory import FUNCTION, PENALTIES
from ectype.algorithm.mlp import MLP, PAPER_LAYERS
from ectype.algorithm.training import Schedule, Trainer
from ectype.errors import SettingError
from ectype.plan.batch_schedule import (
    check_kept,
    forgets,
    growing,
    in_parts,
    is_bounded,
    is_fixed,
    is_network,
    rounds_between,
    sizes_of,
)
from ectype.plan.effects import explicit_settings, refuse_without_effect
from ectype.plan.presets import FUNCTION_WEIGHT, PRESETS, SCOUTING, Preset
from ectype.plan.settings import AUTO, BLEND, DRAWS, FAMILIES, METHODS, Settings
from ectype.plan.validation import (
    MONOTONE,
    ROWS_SHARE,
    TREES,
    check_repeat,
    check_rows_share,
    checked,
    schedule_of,
    uses_scores,
    weight_of,
)
from ectype.types import Json, is_classifier

# Candidates for each query of a batch that grows, more where rare classes are looked for; the most in a round.
CANDIDATES, FOR_RARE, MOST_CANDIDATES = 10, 160, 400_000
# Where batches do not grow, so many queries are random before the copy chooses any.
RANDOM_FIRST = 300
DELTA = "a number from 0 to below 1"
# Settings that version 0.1 did not have: a run without them is the same as one with these.
ADDED = {"scores": False, "rows_share": ROWS_SHARE}
# Settings of which the plan decides what they leave open.
DECIDED = ("iterations", "draw", "delta", "penalty", "memory", "repeat", "rows_share")
# Settings that a run is not recognised by: one that used up its retries goes on with more, watched or not.
OPEN = ("retries", "progress")


@dataclass(frozen=True)
class Plan:
    """What a run will do. `asked` are the settings, each checked; everything that they left open is decided here.

    >>> plan = Plan.of(Settings(budget=1000))
    >>> plan.sizes, plan.queries, plan.total
    ((150, 69, 101, 148, 216, 316), 1000, 3060)
    """

    asked: Settings
    sizes: tuple[int, ...]
    """New points of every iteration: queries and, in the first, the answers that were given."""
    draw: str
    delta: float
    penalty: str
    memory: str | float
    schedule: Schedule
    repeat: float
    rows_share: float
    limited_by: str
    """What ends the run if nothing else does: the budget, or the iterations."""
    grows: bool
    """Whether batches grow."""
    explicit: frozenset[str] = frozenset()
    """The names of the settings that were not left open."""
    stages: tuple[int, ...] = ()
    """The budgets with which the same run was made before, if it goes on."""
    given: tuple[int, int] = (0, 0)
    """Answers that are there before anything is asked, and how many of them are about rows that a run drew."""

    @classmethod
    def of(cls, settings: Settings) -> Plan:
        """Check settings and decide what they leave open; the first thing wrong with them is an error."""
        if not isinstance(settings, Settings):
            raise SettingError("settings", "a Settings", type(settings).__name__)
        plan = replace(cls.of_decided(settings), explicit=explicit_settings(settings))
        refuse_without_effect(plan, plan.explicit)
        check_kept(plan.asked, plan.sizes)
        return plan

    @classmethod
    def of_decided(cls, settings: Settings) -> Plan:
        """The same of settings that another plan decided, with values that may have no effect beside the others."""
        validation.choice("method", settings.method, METHODS)
        preset = PRESETS[validation.choice("preset", settings.preset, tuple(PRESETS))]
        if settings.delta is not None:
            settings = replace(settings, delta=validation.number("delta", settings.delta, DELTA, 0, 1))
        if settings.max_kept is not None:
            settings = replace(settings, max_kept=validation.count("max_kept", settings.max_kept, 1))
        if settings.to is None:
            network = forgets(settings) or settings.layers is not None
            settings = replace(settings, to="mlp" if network else preset.to)
        if not is_classifier(settings.to):
            validation.choice("to", settings.to, (*FAMILIES, BLEND, AUTO))
        sizes = sizes_of(settings, preset)
        plan = cls(asked=settings, sizes=sizes, grows=len(set(sizes)) > 1, **_filled(settings, preset, sizes))
        return replace(plan, asked=checked(settings))

    def with_scores(self) -> Plan:
        """The same, learning from scores."""
        return replace(self, asked=replace(self.asked, scores=uses_scores(replace(self.asked, scores=True))))

    def without_repeats(self) -> Plan:
        """The same for an original that cannot be asked again, such as stored answers."""
        return replace(self, repeat=0.0)

    def after(self, stages: tuple[int, ...], batch: int | None = None) -> Plan:
        """The plan of a run that was made with these budgets before: its rounds as they were, then further ones.

        `batch` is that of its rounds, where it is known, and all are of one size. Further rounds are as large, but for
        a smaller one at the end if the budget is no whole number of them.

        >>> Plan.of(Settings(budget=3000)).after((1000,)).sizes
        (150, 69, 101, 148, 216, 316, 442, 638, 920)
        >>> fast = Plan.of(Settings(budget=800, preset="fast"))
        >>> fast.sizes, fast.after((600,), batch=200).sizes, fast.after((700,)).sizes
        ((266, 266, 266), (200, 200, 200, 200), (233, 233, 233, 101))
        """
        if not stages:
            return self
        first = self._first_stage(stages[0], batch).knowing(*self.given)
        sizes = first.sizes
        for budget in (*stages[1:], self._total(first)):
            sizes = (*sizes, *_further(self, first, sum(sizes), budget + self.known))
        grows = first.grows or (len(set(sizes)) > 1 and not is_fixed(self.asked, self.preset))
        first = replace(first, asked=self.asked, explicit=self.explicit, limited_by=self.limited_by)
        return replace(first, sizes=sizes, grows=grows, stages=stages)

    def _first_stage(self, budget: int, batch: int | None) -> Plan:
        """The plan of the first call, which asked so much."""
        asked = self.asked
        if asked.iterations is None and batch is None:
            return Plan.of_decided(replace(asked, budget=budget))
        batch = self.batch if batch is None else batch
        return Plan.of_decided(replace(asked, budget=None, batch=batch, iterations=max(1, budget // batch)))

    def _total(self, first: Plan) -> int:
        """The most training queries, in batches of the first call."""
        asked = self.asked
        if not is_fixed(asked, self.preset):
            return self.queries
        if asked.iterations is None:
            return asked.budget or self.queries
        most = asked.iterations * first.batch
        return most if asked.budget is None else min(most, asked.budget)

    def knowing(self, given: int, drawn: int) -> Plan:
        """The plan of a run that is given answers, some of them about rows that a run drew.

        They are part of the first round. Where they are more than its random queries would be, these are left out: then
        the first answers choose, and batches grow from there, as in a run that goes on.

        >>> plan = Plan.of(Settings(budget=1000))
        >>> plan.knowing(100, 100).sizes, plan.knowing(500, 500).sizes
        ((250, 69, 101, 148, 216, 316), (500, 221, 319, 460))
        """
        if not given:
            return self
        first, later = given + self.batch, self.sizes[1:]
        if self.grows and not self.bounded and drawn >= self.batch:
            first, later = given, _further(self, self, given, given + self.queries)
        return replace(self, sizes=(first, *later), given=(given, drawn))

    @classmethod
    def of_json(cls, content: Json, **changes: Any) -> Plan:
        """The plan that `as_json` described, with some changes; other entries of the JSON object are ignored."""
        return cls.of_decided(replace(settings_of_json(content), **changes)).knowing(*content.get("known", (0, 0)))

    def as_json(self) -> Json:
        """The settings and what was decided as JSON values: how a run's directory remembers and recognises them."""
        parts = [part for part in fields(Settings) if part.name not in OPEN]
        said = {part.name: getattr(self if part.name in DECIDED else self.asked, part.name) for part in parts}
        content: Json = {name: value for name, value in said.items() if name not in ADDED or value != ADDED[name]}
        content.update({name: list(content[name]) for name in ("exclude", "increasing", "decreasing")})
        content["layers"] = None if self.asked.layers is None else list(self.asked.layers)
        content["batch"] = None if self.grows else self.batch
        to = self.asked.to
        if is_classifier(to):
            parameters = {name: repr(value) for name, value in sorted(to.get_params().items())}
            content["to"] = {"class": f"{type(to).__module__}.{type(to).__qualname__}", **parameters}
        content |= {"stages": list(self.stages)} if self.stages else {}
        content |= {"known": list(self.given)} if self.known else {}
        return {**content, "budget": self.queries, "schedule": self.schedule._asdict()}

    @property
    def preset(self) -> Preset:
        """The defaults of settings that were not given."""
        return PRESETS[self.asked.preset]

    @property
    def method(self) -> str:
        """The method that the rounds follow: a name in `ectype.methods.registry`."""
        if self.bounded:
            return "bounded"
        if self.asked.method not in ("sequential", "pure"):
            return self.asked.method
        if self.asked.method == "sequential" and self.drops:
            return "sequential"
        return "pure" if self.network else "active"

    # --- what to make -----------------------------------------------------------------------------------------------

    @property
    def network(self) -> bool:
        """Whether the copy is the same network that chooses the queries."""
        return is_network(self.asked, self.preset)

    @property
    def uses_network(self) -> bool:
        """Whether the network that learns from round to round has a part in the copy, or in what is asked."""
        if self.network or (self.preset.network and "mlp" in self.families):
            return True
        chooses = self.asked.method != "one-shot" and (self.draw != "random" or self.asked.until_flat)
        return chooses and not self.bounded

    @property
    def layers(self) -> tuple[int, ...]:
        """The hidden layers of the network that chooses the queries."""
        return PAPER_LAYERS if self.asked.layers is None else tuple(self.asked.layers)

    @property
    def families(self) -> tuple[str, ...]:
        """The families that the copy is chosen from."""
        to = self.asked.to
        if not isinstance(to, str):
            return (type(to).__name__,)
        if to != AUTO:
            return (to,)
        monotone = bool(self.asked.increasing or self.asked.decreasing)
        leaves = self.asked.max_depth is not None or self.asked.max_leaves is not None
        held = [one for one in FAMILIES if not (monotone and one not in MONOTONE) and not (leaves and one not in TREES)]
        if monotone or leaves:  # those that can be held to it
            return tuple(held)
        return (BLEND, *FAMILIES) if self.limited or self.asked.target is not None else (BLEND,)

    @property
    def limited(self) -> bool:
        """Whether the user limits what a copy may be."""
        asked = self.asked
        limits = (asked.max_bytes, asked.max_latency, asked.max_depth, asked.max_leaves)
        return bool(asked.increasing or asked.decreasing) or any(limit is not None for limit in limits)

    # --- what to ask ------------------------------------------------------------------------------------------------

    @property
    def known(self) -> int:
        """How many answers are there before anything is asked."""
        return self.given[0]

    @property
    def batches(self) -> tuple[int, ...]:
        """Queries of every iteration."""
        return (self.sizes[0] - self.known, *self.sizes[1:])

    @property
    def queries(self) -> int:
        """The most training queries."""
        return sum(self.batches)

    @property
    def batch(self) -> int:
        """Queries of the first iteration; of each, unless they grow."""
        return self.batches[0]

    @property
    def iterations(self) -> int:
        """The most iterations."""
        return len(self.sizes)

    @property
    def left_over(self) -> int:
        """What is left of the budget, because it is less than a batch."""
        asked = self.asked
        return 0 if asked.budget is None or asked.iterations is not None else max(0, asked.budget - self.queries)

    @property
    def random_first(self) -> int:
        """The random queries before active learning begins."""
        return self.batch if self.grows else RANDOM_FIRST

    @property
    def repeats(self) -> int:
        """How many rows are asked about again: a share of all queries, among the first that are answered."""
        asked = self.asked
        most = asked.certificate_n + self.batch
        return min(ceil(self.repeat * (self.queries + asked.certificate_n)), most)

    @property
    def total(self) -> int:
        """The most queries in total, unless some have to be sent again."""
        return self.queries + self.asked.certificate_n + self.repeats

    def candidates(self, t: int) -> int:
        """The size of the candidate pool of a round.

        10 times a growing batch, 160 times for balanced classes, at most 400,000, but at least twice the batch. Of
        other batches 40 times, at most the preset's number, but at least 4 times.
        """
        n = self.sizes[t]
        if self.grows:
            return max(2 * n, min((FOR_RARE if self.draw == "balanced" else CANDIDATES) * n, MOST_CANDIDATES))
        return max(4 * n, min(40 * n, self.preset.candidates))

    # --- when to stop -----------------------------------------------------------------------------------------------

    @property
    def looks(self) -> tuple[int, ...]:
        """After which iterations the target is checked.

        A network is there after every one. Other families have to be made: a few looks keep that cheap, and the
        Bonferroni correction small.
        """
        n = self.iterations
        if self.network:
            return tuple(range(1, n + 1))
        return tuple(sorted({ceil(n / 4), ceil(n / 2), n})) if self.asked.target else (n,)

    @property
    def stops(self) -> int:
        """How often the held-out rows may end the run, or have ended it before: what the bound is corrected for."""
        looks = self.iterations if self.asked.until_flat else len(self.looks) if self.asked.target else 1
        return looks * (1 + len(self.stages))

    # --- what to keep, and how to train ---------------------------------------------------------------------------

    @property
    def most_kept(self) -> int:
        """The most points kept in any iteration."""
        return min(sum(self.sizes), self.asked.max_kept or sum(self.sizes))

    @property
    def drops(self) -> bool:
        """Whether points may be dropped; where none is, nothing has to be remembered."""
        return self.delta > 0 or self.most_kept < sum(self.sizes)

    @property
    def bounded(self) -> bool:
        """Whether a blend learns from round to round, because not all points are kept."""
        return is_bounded(self.asked, self.preset) and self.most_kept < sum(self.sizes)

    @property
    def free(self) -> int:
        """Up to so many points, none is dropped."""
        return min(self.most_kept, self.preset.free)

    def trainer(self, network: MLP) -> Trainer:
        """How a network is trained."""
        return Trainer(
            network,
            schedule=self.schedule,
            penalty=self.penalty if self.penalty in PENALTIES else "none",
            decay=self.preset.decay(network.d) if self.asked.decay is None else self.asked.decay,
            seed=self.asked.seed,
            last=self.iterations - 1,
            **self.preset.training,
        )


def settings_of_json(content: Json) -> Settings:
    """The settings that `Plan.as_json` described: all decisions are now explicit, except the budget, which follows."""
    found = {part.name: content[part.name] for part in fields(Settings) if part.name in content}
    if found["batch"] is None:  # batches that grow
        found |= {"iterations": None}
    else:
        found |= {"budget": None}
    return Settings(**{**found, "schedule": Schedule(**content["schedule"])})


def _further(plan: Plan, first: Plan, done: int, budget: int) -> tuple[int, ...]:
    """Queries of further iterations, from where a run has so many answers to where it has spent its budget."""
    left = budget - done
    if left <= 0:
        return ()
    if plan.asked.method == "one-shot":
        return (left,)
    if is_fixed(plan.asked, plan.preset):
        whole, rest = divmod(left, first.batch)
        online = plan.asked.method == "online"  # which would forget all others for a few
        return (first.batch,) * whole + ((rest,) if rest and not online else ())
    if plan.bounded:
        return in_parts(left, plan.most_kept)
    return growing(budget, 1 + rounds_between(done, budget), first=done)[1:]


def _filled(settings: Settings, preset: Preset, sizes: tuple[int, ...]) -> dict[str, Any]:
    """What may be left to the preset, each checked."""
    iterations, single, network = len(sizes), settings.method == "one-shot", is_network(settings, preset)
    penalty = validation.choice("penalty", settings.penalty or preset.penalty, (*PENALTIES, FUNCTION))
    chosen = preset.draw if network or preset.network else "committee"
    usual = chosen if settings.method in ("sequential", "pure") else "random"
    draw = validation.choice("draw", settings.draw or usual, DRAWS)
    usual_memory = FUNCTION_WEIGHT if penalty == FUNCTION else "automatic"
    usual_schedule = preset.schedule_of(iterations, single) if network or preset.network else SCOUTING
    return {
        "draw": draw,
        "delta": preset.delta if settings.delta is None else settings.delta,
        "penalty": penalty,
        "memory": weight_of(usual_memory if settings.memory is None else settings.memory),
        "repeat": check_repeat(settings.repeat),
        "rows_share": check_rows_share(settings.rows_share),
        "schedule": schedule_of(usual_schedule if settings.schedule is None else settings.schedule),
        "limited_by": "iterations"
        if settings.iterations == iterations or (settings.budget is None and len(set(sizes)) == 1)
        else "budget",
    }
