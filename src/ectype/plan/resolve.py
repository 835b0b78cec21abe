"""From settings to a plan: the only place that decides what a run does where the user left it open."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any

from ectype._common import validation
from ectype.algorithm.memory import FUNCTION, PENALTIES
from ectype.algorithm.mlp import PAPER_LAYERS
from ectype.algorithm.training import Schedule
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
from ectype.plan.effects import NO_ROWS, STORED, explicit_settings, refuse_without_effect
from ectype.plan.plan import AskPlan, LearnPlan, MakePlan, Plan, StopPlan
from ectype.plan.presets import FUNCTION_WEIGHT, PRESETS, SCOUTING, Preset
from ectype.plan.settings import AUTO, BLEND, DRAWS, FAMILIES, METHODS, Settings
from ectype.plan.validation import (
    MONOTONE,
    TREES,
    check_repeat,
    check_rows_share,
    check_settings,
    schedule_of,
    uses_scores,
    weight_of,
)
from ectype.types import Json, is_classifier

# Where batches do not grow, so many queries are random before the copy chooses any.
RANDOM_FIRST = 300
# Candidates for each query of a batch that grows, more where rare classes are looked for; the most in a round.
CANDIDATES, FOR_RARE, MOST_CANDIDATES = 10, 160, 400_000
DELTA = "a number from 0 to below 1"


@dataclass(frozen=True)
class Facts:
    """What is known of an original, and of what a run is given, before anything is asked."""

    scored: bool = False
    """Whether it answers with scores."""
    stored: bool = False
    """Whether it is a table of stored answers."""
    user_rows: bool = False
    """Whether there are rows of the user's own."""


@dataclass(frozen=True)
class _Choices:
    """What was decided of settings that may be left open; all else in a plan follows from these and the settings."""

    asked: Settings
    sizes: tuple[int, ...]
    grows: bool
    limited_by: str
    draw: str
    delta: float
    penalty: str
    memory: str | float
    schedule: Schedule
    repeat: float
    rows_share: float
    explicit: frozenset[str] = frozenset()
    stages: tuple[int, ...] = ()
    given: tuple[int, int] = (0, 0)


def resolve(settings: Settings) -> Plan:
    """Check settings and decide what they leave open; the first thing wrong with them is an error.

    >>> plan = resolve(Settings(budget=1000))
    >>> plan.ask.sizes, plan.ask.queries, plan.ask.total
    ((150, 69, 101, 148, 216, 316), 1000, 3060)
    """
    if not isinstance(settings, Settings):
        raise SettingError("settings", "a Settings", type(settings).__name__)
    plan = replace(resolve_decided(settings), explicit=explicit_settings(settings))
    refuse_without_effect(plan, plan.explicit)
    check_kept(plan.asked, plan.ask.sizes)
    return plan


def resolve_decided(settings: Settings) -> Plan:
    """The plan of settings that another plan decided, with values that may have no effect beside the others."""
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
    chosen = _chosen(settings, preset, sizes)
    return _plan(_Choices(asked=check_settings(settings), sizes=sizes, grows=len(set(sizes)) > 1, **chosen))


def resolve_for(plan: Plan, facts: Facts) -> Plan:
    """The plan for an original; settings that have no effect on it are refused."""
    if not facts.user_rows:
        refuse_without_effect(plan, plan.explicit, [NO_ROWS])
    if facts.stored:
        refuse_without_effect(plan, plan.explicit, [STORED])
        refuse_without_effect(_changed(plan, draw="random"), plan.explicit)
        plan = _changed(plan, repeat=0.0)
    if facts.scored and not plan.asked.scores:
        return replace(plan, asked=replace(plan.asked, scores=uses_scores(replace(plan.asked, scores=True))))
    return plan


def with_answers(plan: Plan, given: int, drawn: int) -> Plan:
    """The plan of a run that is given answers, some of them about rows that a run drew.

    They are part of the first round. Where they are more than its random queries would be, these are left out: then
    the first answers choose, and batches grow from there, as in a run that goes on.

    >>> plan = resolve(Settings(budget=1000))
    >>> with_answers(plan, 100, 100).ask.sizes, with_answers(plan, 500, 500).ask.sizes
    ((250, 69, 101, 148, 216, 316), (500, 221, 319, 460))
    """
    if not given:
        return plan
    ask = plan.ask
    first, later = given + ask.batch, ask.sizes[1:]
    if ask.grows and plan.method != "bounded" and drawn >= ask.batch:
        first, later = given, _further(plan, plan, given, given + ask.queries)
    return _changed(plan, sizes=(first, *later), given=(given, drawn))


def with_sizes(plan: Plan, sizes: tuple[int, ...], given: tuple[int, int]) -> Plan:
    """The plan with these rounds, whose first has the answers that are given."""
    return _changed(plan, sizes=sizes, given=given, limited_by="budget")


def with_stages(plan: Plan, stages: tuple[int, ...]) -> Plan:
    """The plan of a run that was made with these budgets before."""
    return _changed(plan, stages=stages)


def resume(plan: Plan, stages: tuple[int, ...], batch: int | None = None) -> Plan:
    """The plan of a run that was made with these budgets before: its rounds as they were, then further ones.

    `batch` is that of its rounds, where it is known, and all are of one size. Further rounds are as large, but for
    a smaller one at the end if the budget is no whole number of them.

    >>> resume(resolve(Settings(budget=3000)), (1000,)).ask.sizes
    (150, 69, 101, 148, 216, 316, 442, 638, 920)
    >>> fast = resolve(Settings(budget=800, preset="fast"))
    >>> fast.ask.sizes, resume(fast, (600,), batch=200).ask.sizes, resume(fast, (700,)).ask.sizes
    ((266, 266, 266), (200, 200, 200, 200), (233, 233, 233, 101))
    """
    if not stages:
        return plan
    preset = PRESETS[plan.asked.preset]
    first = with_answers(_first_stage(plan, stages[0], batch), *plan.given)
    sizes = first.ask.sizes
    for budget in (*stages[1:], _total(plan, first)):
        sizes = (*sizes, *_further(plan, first, sum(sizes), budget + plan.ask.known))
    grows = first.ask.grows or (len(set(sizes)) > 1 and not is_fixed(plan.asked, preset))
    said = {"asked": plan.asked, "explicit": plan.explicit, "limited_by": plan.stop.limited_by}
    return _changed(first, sizes=sizes, grows=grows, stages=stages, **said)


def plan_of_json(content: Json, **changes: Any) -> Plan:
    """The plan that `Plan.as_json` described, with some changes; other entries of the JSON object are ignored."""
    return with_answers(resolve_decided(replace(settings_of_json(content), **changes)), *content.get("known", (0, 0)))


def settings_of_json(content: Json) -> Settings:
    """The settings that `Plan.as_json` described: all decisions are now explicit, except the budget, which follows."""
    found = {part.name: content[part.name] for part in fields(Settings) if part.name in content}
    if found["batch"] is None:  # batches that grow
        found |= {"iterations": None}
    else:
        found |= {"budget": None}
    return Settings(**{**found, "schedule": Schedule(**content["schedule"])})


def _chosen(settings: Settings, preset: Preset, sizes: tuple[int, ...]) -> dict[str, Any]:
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


def _changed(plan: Plan, **changes: Any) -> Plan:
    """The plan with other choices: all that follows from them is decided anew."""
    ask, learn = plan.ask, plan.learn
    choices = _Choices(
        plan.asked,
        ask.sizes,
        ask.grows,
        plan.stop.limited_by,
        ask.draw,
        learn.delta,
        learn.penalty,
        learn.memory,
        learn.schedule,
        ask.repeat,
        ask.rows_share,
        plan.explicit,
        plan.stages,
        plan.given,
    )
    return _plan(replace(choices, **changes))


def _plan(chosen: _Choices) -> Plan:
    """All parts of a plan."""
    asked, preset, sizes = chosen.asked, PRESETS[chosen.asked.preset], chosen.sizes
    most_kept = min(sum(sizes), asked.max_kept or sum(sizes))
    network = is_network(asked, preset)
    drops = chosen.delta > 0 or most_kept < sum(sizes)
    learn = LearnPlan(
        layers=PAPER_LAYERS if asked.layers is None else tuple(asked.layers),
        schedule=chosen.schedule,
        delta=chosen.delta,
        penalty=chosen.penalty,
        memory=chosen.memory,
        most_kept=most_kept,
        free=min(most_kept, preset.free),
        drops=drops,
        decay=asked.decay,
        preset=preset,
        seed=asked.seed,
        last=len(sizes) - 1,
    )
    bounded = is_bounded(asked, preset) and most_kept < sum(sizes)
    make = MakePlan(_families(asked), network, preset.network, _limited(asked), preset.effort)
    ask, stop = _ask_plan(chosen, preset), _stop_plan(chosen, network)
    method = _method(asked, bounded, drops, network)
    return Plan(asked, method, ask, learn, make, stop, chosen.explicit, chosen.stages, chosen.given)


def _method(asked: Settings, bounded: bool, drops: bool, network: bool) -> str:
    """The method that these settings come to."""
    if bounded:
        return "bounded"
    if asked.method not in ("sequential", "pure"):
        return asked.method
    if asked.method == "sequential" and drops:
        return "sequential"
    return "pure" if network else "active"


def _ask_plan(chosen: _Choices, preset: Preset) -> AskPlan:
    sizes, known = chosen.sizes, chosen.given[0]
    return AskPlan(
        sizes=sizes,
        known=known,
        grows=chosen.grows,
        draw=chosen.draw,
        random_first=sizes[0] - known if chosen.grows else RANDOM_FIRST,
        candidates=tuple(_candidates(n, chosen, preset) for n in sizes),
        rows_share=chosen.rows_share,
        held_out=chosen.asked.certificate_n,
        repeat=chosen.repeat,
    )


def _candidates(n: int, chosen: _Choices, preset: Preset) -> int:
    """The candidates that n rows are chosen from.

    10 times a growing batch, 160 times for balanced classes, at most 400,000, but at least twice the batch. Of other
    batches 40 times, at most the preset's number, but at least 4 times.
    """
    if chosen.grows:
        return max(2 * n, min((FOR_RARE if chosen.draw == "balanced" else CANDIDATES) * n, MOST_CANDIDATES))
    return max(4 * n, min(40 * n, preset.candidates))


def _stop_plan(chosen: _Choices, network: bool) -> StopPlan:
    """When to stop: a network is there after every round, and may be looked at.

    Other families have to be made: a few looks keep that cheap, and the Bonferroni correction small.
    """
    asked, n = chosen.asked, len(chosen.sizes)
    looks: tuple[int, ...] = (n,)
    if network:
        looks = tuple(range(1, n + 1))
    elif asked.target:
        looks = tuple(sorted({ceil(n / 4), ceil(n / 2), n}))
    compared = n if asked.until_flat else len(looks) if asked.target else 1
    comparisons = compared * (1 + len(chosen.stages))
    return StopPlan(asked.target, asked.until_flat, looks, comparisons, asked.confidence, chosen.limited_by)


def _families(asked: Settings) -> tuple[str, ...]:
    """The families that the copy is chosen from."""
    if not isinstance(asked.to, str):
        return (type(asked.to).__name__,)
    if asked.to != AUTO:
        return (asked.to,)
    monotone = bool(asked.increasing or asked.decreasing)
    leaves = asked.max_depth is not None or asked.max_leaves is not None
    held = [one for one in FAMILIES if not (monotone and one not in MONOTONE) and not (leaves and one not in TREES)]
    if monotone or leaves:  # those that can be held to it
        return tuple(held)
    return (BLEND, *FAMILIES) if _limited(asked) or asked.target is not None else (BLEND,)


def _limited(asked: Settings) -> bool:
    """Whether the user limits what a copy may be."""
    limits = (asked.max_bytes, asked.max_latency, asked.max_depth, asked.max_leaves)
    return bool(asked.increasing or asked.decreasing) or any(limit is not None for limit in limits)


def _first_stage(plan: Plan, budget: int, batch: int | None) -> Plan:
    """The plan of the first call, which asked so much."""
    asked = plan.asked
    if asked.iterations is None and batch is None:
        return resolve_decided(replace(asked, budget=budget))
    batch = plan.ask.batch if batch is None else batch
    return resolve_decided(replace(asked, budget=None, batch=batch, iterations=max(1, budget // batch)))


def _total(plan: Plan, first: Plan) -> int:
    """The most training queries, in batches of the first call."""
    asked = plan.asked
    if not is_fixed(asked, PRESETS[asked.preset]):
        return plan.ask.queries
    if asked.iterations is None:
        return asked.budget or plan.ask.queries
    most = asked.iterations * first.ask.batch
    return most if asked.budget is None else min(most, asked.budget)


def _further(plan: Plan, first: Plan, done: int, budget: int) -> tuple[int, ...]:
    """Queries of further rounds, from where a run has so many answers to where it has spent its budget."""
    left = budget - done
    if left <= 0:
        return ()
    if plan.asked.method == "one-shot":
        return (left,)
    if is_fixed(plan.asked, PRESETS[plan.asked.preset]):
        whole, rest = divmod(left, first.ask.batch)
        online = plan.asked.method == "online"  # which would forget all others for a few
        return (first.ask.batch,) * whole + ((rest,) if rest and not online else ())
    if plan.method == "bounded":
        return in_parts(left, plan.learn.most_kept)
    return growing(budget, 1 + rounds_between(done, budget), first=done)[1:]
