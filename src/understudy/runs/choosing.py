"""Which copy a run hands out: of the family asked for, within what the user allows, and with its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from understudy.algorithm.network import MLP, Network
from understudy.algorithm.samples import Samples
from understudy.algorithm.training import steps
from understudy.certificate.bounds import HeldOut, lower_bound
from understudy.certificate.values import Certificate
from understudy.errors import SettingError, SpaceError
from understudy.models.base import HEADER, Model, size_of
from understudy.models.classifier import CopyClassifier
from understudy.models.distillation import Candidate, Workshop, choose, outcomes
from understudy.models.families import FITTED, Family, Limits, constant, of_estimator
from understudy.runs.settings import Settings, own
from understudy.space import Space
from understudy.space.encoding import View
from understudy.streams import Stream, stream

# Steps of a network that learns from a teacher, and of one that teaches beside the first.
RELAY_STEPS, BESIDE_STEPS = 20_000, 12_000
# Single rows that are timed, after a few that are not.
TIMED, UNTIMED = 40, 5


@dataclass(frozen=True)
class Outcome:
    """A copy, its certificate, and all that it was chosen from, that one first."""

    copy: CopyClassifier
    certificate: Certificate | None
    tried: list[Candidate]


def hand_out(
    settings: Settings, workshop: Workshop, held: HeldOut, copy_of: Callable[[Model], CopyClassifier], looks: int
) -> Outcome:
    """The copy to hand out, of the families that the settings name; its bound allows for so many looks like this."""
    among = outcomes(settings.families) * looks
    corrected = 1 - (1 - settings.confidence) / among

    def reaches(fidelity: float) -> bool:
        agreed = round(fidelity * len(held.codes))
        return lower_bound(agreed, len(held.codes), corrected) >= (settings.target or 1.0)

    best, tried = choose(
        settings.families,
        workshop,
        Samples(held.X, held.codes),
        reaches if settings.target else None,
        lambda candidate: over_limit(settings, candidate.size, lambda: copy_of(candidate.model)),
    )
    copy = copy_of(best.model)
    proof = held.certify(copy.decide(held.X), settings.confidence, among=among) if settings.certificate_n else None
    return Outcome(copy, proof, tried)


def over_limit(settings: Settings, size: int, copy: Callable[[], CopyClassifier]) -> str | None:
    """What a copy of so many bytes has more of than the settings allow."""
    if settings.max_bytes is not None and size > settings.max_bytes:
        return f"{size} bytes"
    if settings.max_latency is not None:
        found = latency(copy())
        if found > settings.max_latency:
            return f"{found:.3g} ms a row"
    return None


def latency(copy: CopyClassifier) -> float:
    """The milliseconds that the copy takes for a row that comes alone: the median of some."""
    rows = copy.space.present(copy.space.sample(TIMED + UNTIMED, np.random.default_rng(0)))
    seconds = []
    for k in range(len(rows)):
        row = rows[k : k + 1]
        clock = perf_counter()
        copy.predict(row)
        seconds.append(perf_counter() - clock)
    return 1000 * median(seconds[UNTIMED:])


def workshop(settings: Settings, space: Space, view: View, paid: Samples, network: Network, t: int) -> Workshop:
    """What copies of other families are made of: all that was paid for, and what better copies say of free rows."""
    trainer = replace(settings.trainer(network.mlp), schedule=steps(RELAY_STEPS))

    def another(points: Samples, k: int) -> Network:
        theta = network.mlp.initial(stream(settings.seed, Stream.BESIDE, k))
        return Network(network.mlp, replace(trainer, schedule=steps(BESIDE_STEPS))(theta, points, 0.0, t + k).theta)

    return Workshop(
        paid=paid,
        network=network,
        free=lambda n: view(space.sample(n, stream(settings.seed, Stream.FREE))),
        train=lambda points: Network(network.mlp, trainer(network.theta, points, 0.0, t).theta),
        another=another,
        limits=limits_of(settings, view),
        seed=settings.seed,
        others=families_of(settings.to),
    )


def families_of(to: Any) -> dict[str, Family]:
    """How every family is fitted, and the classifier of the user's own, if it is one."""
    return {**FITTED, type(to).__name__: of_estimator(to)} if own(to) else FITTED


def limits_of(settings: Settings, view: View) -> Limits:
    """What the settings allow, in terms of what a copy sees."""
    space, encoding = view.space, view.encoding
    wanted = dict.fromkeys(settings.increasing, 1) | dict.fromkeys(settings.decreasing, -1)
    for name in wanted:
        if name not in space.names or space.names.index(name) not in encoding.numbers:
            expected = "columns with an order: " + ", ".join(space.names[j] for j in encoding.numbers)
            raise SpaceError("increasing, decreasing", expected, repr(name))
    sources, directions = encoding.sources, np.zeros(encoding.width, int)
    if not wanted:
        return Limits(settings.max_depth, settings.max_leaves, settings.max_bytes)
    directions[: len(encoding.numbers)] = [wanted.get(space.names[j], 0) for j in encoding.numbers]
    # The inputs for single values of such a column, beside the number itself, could go up and down as they like.
    values = slice(len(encoding.numbers), encoding.width - len(encoding.gaps))
    hidden = [k for k in range(encoding.width)[values] if space.names[sources[k]] in wanted]
    limits = settings.max_depth, settings.max_leaves, settings.max_bytes
    return Limits(*limits, tuple(directions.tolist()), tuple(hidden))


def check_kept(settings: Settings, copy: CopyClassifier) -> None:
    """Refuse a copy that is more than the settings allow."""
    reason = over_limit(settings, size_of(copy.model), lambda: copy)
    if reason is not None:
        hint = "allow more, or choose another family with `to`"
        raise SettingError("max_bytes, max_latency", "a copy that keeps to them", reason, hint)


def check_reachable(settings: Settings, view: View, n_c: int | None) -> None:
    """Refuse, before anything is asked, limits that not even the smallest copy would keep."""
    limits_of(settings, view).check(n_c or 2)
    network_bytes = HEADER + 4 * MLP(view.encoding.width, tuple(settings.layers), 2).size
    if settings.to == "mlp" and settings.max_bytes is not None and network_bytes > settings.max_bytes:
        hint = "allow more, give it smaller layers, or choose another family with `to`"
        found = f"at least {network_bytes} for a network with layers {tuple(settings.layers)}"
        raise SettingError("max_bytes", f"a copy of at most {settings.max_bytes} bytes", found, hint)
    if settings.max_latency is not None:
        least = latency(CopyClassifier(constant(0, 2), np.array([0, 1]), view.space))
        if least > settings.max_latency:
            found, hint = f"{least:.3g} ms for one that always answers the same", "allow more"
            raise SettingError("max_latency", f"a copy that takes {settings.max_latency:g} ms a row", found, hint)
