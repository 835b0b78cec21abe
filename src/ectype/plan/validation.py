"""Checks of single settings, and of what they allow together: the first thing wrong with them is an error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf, nextafter
from typing import Any

from ectype._common import validation
from ectype.algorithm.memory import LARGEST
from ectype.algorithm.training import Schedule, annealed
from ectype.errors import SettingError
from ectype.plan.presets import PRESETS
from ectype.plan.settings import AUTO, Settings

# The families that can be constrained to be monotone in a column.
MONOTONE = ("linear", "tree", "forest", "boosting")
# The families that are made of trees, whose depth and leaves can be limited.
TREES = ("tree", "forest", "boosting")
# Of all queries, those that are asked again; and of training queries, those about rows of the user's own.
REPEAT, ROWS_SHARE = 0.02, 0.25
SHARE = "a share from 0 to below 1"
MEMORY = f"'automatic', 'none' or a number from 0 to below {LARGEST:g}"
MILLISECONDS = "a number of milliseconds above 0"


def check_settings(settings: Settings) -> Settings:
    """The settings that are left as they are, each checked."""
    certificate_n = validation.count("certificate_n", settings.certificate_n, 0)
    for name, asked in (("the target", settings.target is not None), ("until_flat", settings.until_flat)):
        if asked and certificate_n == 0:
            hint = f"raise it, or leave out {name}"
            raise SettingError("certificate_n", f"held-out rows to measure {name} with", 0, hint)
    return replace(
        settings,
        target=None if settings.target is None else validation.fraction("target", settings.target),
        until_flat=validation.flag("until_flat", settings.until_flat),
        progress=validation.flag("progress", settings.progress),
        scores=uses_scores(settings),
        certificate_n=certificate_n,
        confidence=validation.fraction("confidence", settings.confidence),
        layers=None if settings.layers is None else _layers(settings.layers),
        seed=validation.count("seed", settings.seed, 0),
        decay=None if settings.decay is None else validation.number("decay", settings.decay, SHARE, 0, 1),
        retries=None
        if settings.retries is None
        else validation.number("retries", settings.retries, "a share from 0", 0, inf),
        **_counts(settings),
        **_columns(settings),
        max_latency=None
        if settings.max_latency is None
        else validation.number("max_latency", settings.max_latency, MILLISECONDS, nextafter(0, 1), inf),
    )


def uses_scores(settings: Settings) -> bool:
    """Whether scores are used; a loss about hard labels cannot."""
    scores = validation.flag("scores", settings.scores)
    if scores and PRESETS[settings.preset].training["loss"] == "rho":
        hint = "leave out scores, or the preset"
        raise SettingError("scores", "a preset that learns from probabilities", repr(settings.preset), hint)
    return scores


def check_repeat(repeat: float | None) -> float:
    """The share of queries that are asked again."""
    return validation.number("repeat", REPEAT if repeat is None else repeat, SHARE, 0, 1)


def check_rows_share(rows_share: float | None) -> float:
    """The share of training queries that are about rows of the user's own."""
    found = ROWS_SHARE if rows_share is None else rows_share
    return validation.number("rows_share", found, "a share from 0 to 1", 0, nextafter(1, 2))


def _counts(settings: Settings) -> dict[str, Any]:
    """The limits that are whole numbers, or none."""
    least = {"max_depth": 1, "max_leaves": 2, "max_bytes": 1}
    found = {name: getattr(settings, name) for name in least}
    return {
        name: None if value is None else validation.count(name, value, least[name]) for name, value in found.items()
    }


def _columns(settings: Settings) -> dict[str, Any]:
    """The columns that are excluded, and those in which the copy is to be monotone."""
    named = {name: _names(name, getattr(settings, name)) for name in ("exclude", "increasing", "decreasing")}
    together = [column for columns in named.values() for column in columns]
    twice = sorted({column for column in together if together.count(column) > 1})
    if twice:
        raise SettingError("exclude, increasing, decreasing", "every column named once", f"{twice} more than once")
    if (named["increasing"] or named["decreasing"]) and settings.to not in (*MONOTONE, AUTO):
        found, hint = f"the family {settings.to!r}", "choose one of them as `to`, or 'auto'"
        raise SettingError("increasing", f"a family that can be held to it: {', '.join(MONOTONE)}", found, hint)
    return named


def _names(name: str, columns: object) -> tuple[str, ...]:
    listed = isinstance(columns, Iterable) and not isinstance(columns, str)
    found = tuple(columns) if isinstance(columns, Iterable) and listed else ()
    if not listed or not all(isinstance(column, str) for column in found):
        raise SettingError(name, "a list of columns' names", repr(found if listed else columns))
    return found


def _layers(layers: object) -> tuple[int, ...]:
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        raise SettingError("layers", "the sizes of the hidden layers, such as (64, 32, 10)", repr(layers))
    return tuple(validation.count("layers", size, 1) for size in layers)


def weight_of(memory: object) -> str | float:
    """The weight of the memory term: a word or a number."""
    if isinstance(memory, str) and memory in ("automatic", "none"):
        return memory
    return validation.number("memory", memory, MEMORY, 0, LARGEST)


def schedule_of(schedule: Schedule | int) -> Schedule:
    """How long a round trains; a number is of epochs, over which the step size falls."""
    if not isinstance(schedule, Schedule):
        return annealed(validation.count("schedule", schedule, 1, 2**30))
    wide = -1e30, 1e30
    return Schedule(
        validation.count("schedule.epochs", schedule.epochs, 1, 2**30),
        validation.number("schedule.epsilon", schedule.epsilon, "a number", *wide),
        validation.number("schedule.bound", schedule.bound, "a number", *wide),
        validation.count("schedule.capacity", schedule.capacity, 1, 2**30),
        validation.count("schedule.look_every", schedule.look_every, 1, 2**30),
        validation.number("schedule.anneal", schedule.anneal, "a share from 0 to 1", 0.0, nextafter(1, 2)),
        validation.count("schedule.steps", schedule.steps, 0, 2**30),
        validation.count("schedule.last", schedule.last, 0, 2**30),
        validation.count("schedule.warm", schedule.warm, 0, 2**30),
    )
