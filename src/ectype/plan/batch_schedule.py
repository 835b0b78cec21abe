"""Rounds: how many queries each of them makes, until a budget is spent."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log
from typing import TYPE_CHECKING

from ectype._common import validation
from ectype.errors import SettingError

if TYPE_CHECKING:
    from ectype.plan.presets import Preset
    from ectype.plan.settings import Settings

# The paper's: queries of an iteration, and iterations.
BATCH, ITERATIONS = 100, 30
# Where copies are made of all answers: the rounds in which these are asked, the share of the first, which is random,
# and its least size.
ROUNDS, FIRST, LEAST = 6, 0.15, 40
# Rounds where the curve is watched, to stop when it is flat.
FINE = 12
# Under a bound on memory, the largest batch, as a share of the points kept.
FRESH = 0.75


def growing(budget: int, rounds: int = ROUNDS, first: int | None = None) -> tuple[int, ...]:
    """Batches that sum to the budget; after each, there are by the same factor more answers than before.

    >>> growing(3000), growing(100), growing(10)
    ((450, 208, 303, 444, 648, 947), (40, 8, 10, 11, 14, 17), (10,))
    """
    first = min(budget, max(round(FIRST * budget), LEAST)) if first is None else first
    ends = [round(first * (budget / first) ** (k / (rounds - 1))) for k in range(rounds)]
    return tuple(after - before for before, after in pairwise([0, *ends]) if after > before)


def growing_to(budget: int, most: int) -> tuple[int, ...]:
    """Batches that grow likewise, but to three quarters of `most` points; the rest of the budget in equal ones.

    >>> growing_to(3000, 500)
    (450, 208, 303, 339, 340, 340, 340, 340, 340)
    """
    sizes, usual = list[int](), growing(budget)
    for n in (min(usual[0], most), *usual[1:]):
        if sizes and n > FRESH * most:
            break
        sizes.append(n)
    return (*sizes, *in_parts(budget - sum(sizes), most))


def in_parts(n: int, most: int) -> tuple[int, ...]:
    """Batches of the same size, that have room beside so many points."""
    rounds = ceil(n / (FRESH * most))
    return tuple(n * (k + 1) // rounds - n * k // rounds for k in range(rounds))


def rounds_between(done: int, budget: int) -> int:
    """In how many rounds a run with so many answers spends the rest: they grow about as much as those of a whole run.

    >>> rounds_between(3000, 10_000), rounds_between(3000, 3300)
    (3, 1)
    """
    return max(1, round(log(budget / done) / log(1 / FIRST) * (ROUNDS - 1)))


def forgets(settings: Settings) -> bool:
    """Whether points are dropped by a rule of the paper's: then its network learns as they come."""
    return settings.method == "online" or bool(settings.delta)


def is_network(settings: Settings, preset: Preset) -> bool:
    """Whether the copy is the same network that chooses the queries."""
    return settings.to == "mlp" and (preset.network or forgets(settings))


def is_bounded(settings: Settings, preset: Preset) -> bool:
    """Whether there is a bound on memory, and no rule of the paper's that drops points."""
    sequential = settings.method == "sequential" and not settings.delta
    return settings.max_kept is not None and sequential and not preset.network


def is_fixed(settings: Settings, preset: Preset) -> bool:
    """Whether all batches are as large as the first, where there are several."""
    said = settings.batch is not None or settings.iterations is not None
    several = settings.method != "one-shot"
    return several and (said or settings.method == "online" or preset.network or is_network(settings, preset))


def sizes_of(settings: Settings, preset: Preset) -> tuple[int, ...]:
    """Queries of every iteration; one-shot is one iteration of everything."""
    budget = None if settings.budget is None else validation.count("budget", settings.budget, 1)
    fixed = is_fixed(settings, preset)
    whole, most = budget or BATCH * ITERATIONS, settings.max_kept if is_bounded(settings, preset) else None
    if most is not None and most < whole and not fixed:
        return growing_to(whole, most)
    if settings.method in ("sequential", "pure") and not fixed:
        return growing(whole, FINE if settings.until_flat else ROUNDS)
    batch = preset.batch_of(budget) if settings.batch is None else validation.count("batch", settings.batch, 1)
    iterations = None if settings.iterations is None else validation.count("iterations", settings.iterations, 1)
    if budget is None:
        iterations = iterations or preset.parts or ITERATIONS
    elif settings.method == "one-shot":
        batch, iterations = budget, 1
    else:
        affordable = budget // batch
        if affordable == 0:
            hint = "raise the budget or lower the batch"
            raise SettingError("budget", f"at least one batch of {batch} queries", budget, hint)
        iterations = min(iterations or affordable, affordable)
    return (batch * iterations,) if settings.method == "one-shot" else (batch,) * iterations


def check_kept(settings: Settings, sizes: tuple[int, ...]) -> None:
    """Refuse a bound on memory that has no room for a batch."""
    most, queries = settings.max_kept, sum(sizes)
    if most is None or most >= queries:
        return
    batch = max(*sizes, min(LEAST, queries))
    if most < batch:
        hint = "keep more points, or ask fewer at a time"
        raise SettingError("max_kept", f"at least one batch of {batch} queries", most, hint)
