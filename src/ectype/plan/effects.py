"""Which settings have an effect beside the others; one that has none is refused, and the error says what would count.

Whether a setting counts does not depend on the budget: a run may go on with a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ectype.errors import SettingError
from ectype.plan.batch_schedule import is_bounded
from ectype.plan.settings import Settings
from ectype.plan.validation import TREES

if TYPE_CHECKING:
    from ectype.plan.plan import Plan

# The families whose hidden layers can be chosen.
LAYERED = ("mlp",)


@dataclass(frozen=True)
class Condition:
    """What some settings need in order to have an effect."""

    names: tuple[str, ...]
    holds: Callable[[Plan], bool]
    expected: str
    hint: str


def explicit_settings(settings: Settings) -> frozenset[str]:
    """The names of the settings that have a value of the user's.

    >>> sorted(explicit_settings(Settings(budget=300, to="tree", certificate_n=2000)))
    ['budget', 'to']
    """
    found = ((part.name, getattr(settings, part.name), part.default) for part in fields(settings))
    return frozenset(name for name, value, usual in found if value is not None and (usual is None or value != usual))


def _in_rounds(plan: Plan) -> bool:
    return plan.asked.method != "one-shot"


def _sequential(plan: Plan) -> bool:
    return plan.asked.method == "sequential"


def _free_size(plan: Plan) -> bool:
    return _in_rounds(plan) or plan.asked.budget is None


def _drops(plan: Plan) -> bool:
    """Whether the method may drop points from what the network learns from."""
    by_network = plan.asked.max_kept is not None and plan.make.from_rounds
    return _sequential(plan) and (plan.learn.delta > 0 or by_network) and plan.uses_network


def _remembers(plan: Plan) -> bool:
    return _drops(plan) and plan.learn.memory not in ("none", 0.0)


def _differs_from_sequential(plan: Plan) -> bool:
    """Whether the method is another than sequential, or keeps points that sequential would drop."""
    return plan.asked.method != "pure" or (plan.learn.delta > 0 and plan.uses_network)


def _has_trees(plan: Plan) -> bool:
    return any(family in TREES for family in plan.make.families)


def _has_layers(plan: Plan) -> bool:
    return any(family in LAYERED for family in plan.make.families)


# What a plan must be for settings to count; of a setting that has several conditions, the first that fails is said.
CONDITIONS = (
    Condition(
        ("batch", "iterations"),
        _free_size,
        "none for the method one-shot with a budget, which asks all of it at once",
        "leave it out, or the budget",
    ),
    Condition(
        ("draw", "until_flat"),
        _in_rounds,
        "none for the method one-shot, which asks for random rows, all at once",
        "leave it out, or choose the method sequential",
    ),
    Condition(
        ("max_kept", "delta"),
        _sequential,
        "the method sequential, the only one that chooses which points to keep",
        "leave it out, or choose that method",
    ),
    Condition(
        ("method",),
        _differs_from_sequential,
        "'sequential', which asks for the same rows and keeps all of them here too",
        "pure counts only where sequential drops points: with the preset paper",
    ),
    Condition(
        ("memory", "penalty"),
        _drops,
        "a network that learns while points are dropped, as nothing else forgets",
        "leave it out, or let the method sequential drop some: with delta, or the preset paper",
    ),
    Condition(
        ("penalty",),
        _remembers,
        "a memory term with a weight above 0",
        "leave it out, or give memory another value",
    ),
    Condition(
        ("max_kept",),
        lambda plan: plan.uses_network or is_bounded(plan.asked, plan.learn.preset),
        "a copy of the points that are kept",
        "leave it out, or leave the preset at its default",
    ),
    Condition(
        ("delta", "schedule", "decay"),
        lambda plan: plan.uses_network,
        "a network that is the copy, or that chooses the rows to ask about",
        "leave it out, or leave draw open; with the preset fast, the network is the copy",
    ),
    Condition(
        ("layers",),
        _has_layers,
        "a copy that is a network",
        "leave it out, or choose to='mlp' (--to mlp)",
    ),
    Condition(
        ("max_depth", "max_leaves"),
        _has_trees,
        f"a copy of trees: {', '.join(TREES)}",
        "leave it out, or choose one of them with to (--to), or auto",
    ),
    Condition(
        ("confidence",),
        lambda plan: plan.asked.certificate_n > 0,
        "a certificate that it is about",
        "leave it out, or raise certificate_n",
    ),
)
# Of an original with stored answers, whose rows cannot be chosen or asked again.
STORED = Condition(
    ("draw", "repeat", "retries"),
    lambda plan: False,
    "none for stored answers: their rows come in random order, each once",
    "leave it out",
)
NO_ROWS = Condition(
    ("rows_share",),
    lambda plan: False,
    "rows of your own, which it is a share for",
    "leave it out, or give them with rows (--rows)",
)


def refuse_without_effect(plan: Plan, names: Collection[str], conditions: Collection[Condition] = CONDITIONS) -> None:
    """Refuse the first of these settings that has no effect in a plan."""
    for one in conditions:
        for name in one.names:
            if name in names and not one.holds(plan):
                found = f"{getattr(plan.asked, name)!r}, which would change nothing"
                raise SettingError(name, one.expected, found, one.hint)
