"""Model selection: which copy a run hands out, of the families asked for, within the user's limits, certified."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import numpy as np

from ectype.algorithm.mlp import MLP
from ectype.algorithm.sample_set import SampleSet
from ectype.certificate.bounds import HeldOut, lower_bound
from ectype.certificate.certificate import Certificate
from ectype.errors import SettingError, SpaceError
from ectype.models.base import HEADER, Model, size_of
from ectype.models.blend import BLEND, FAMILIES
from ectype.models.capacity import SCORED
from ectype.models.copy_classifier import CopyClassifier
from ectype.models.distillation import Candidate, FitContext, choose, outcomes
from ectype.models.families import SMALLER, Family, FamilyLimits, constant, of_estimator
from ectype.plan.plan import Plan
from ectype.rng import Stream, stream
from ectype.space import FeatureView, Space
from ectype.types import Classifier, Json, is_classifier

# Single rows that are timed, after a warm-up of a few.
TIMED, UNTIMED = 40, 5


@dataclass(frozen=True)
class Selection:
    """A copy, its certificate, and all candidates that it was chosen from, that one first."""

    copy: CopyClassifier
    certificate: Certificate | None
    tried: list[Candidate]
    blend: float | None = None
    """What the blend that taught it reaches on the same rows, if the copy is something else."""


def select_copy(
    plan: Plan, workshop: FitContext, held: HeldOut, copy_of: Callable[[Model], CopyClassifier]
) -> Selection:
    """The copy to hand out, of the plan's families; a Bonferroni correction allows for all candidates and looks."""
    settings, among = plan.asked, outcomes(plan.make.families) * plan.stop.comparisons
    corrected = 1 - (1 - settings.confidence) / among

    def reaches(fidelity: float) -> bool:
        agreed = round(fidelity * len(held.codes))
        return lower_bound(agreed, len(held.codes), corrected) >= (settings.target or 1.0)

    best, tried = choose(
        plan.make.families,
        workshop,
        SampleSet(held.X, held.codes),
        reaches if settings.target else None,
        lambda candidate: over_limit(plan, candidate.size, lambda: copy_of(candidate.model)),
    )
    copy = copy_of(best.model)
    proof = held.certify(copy.decide(held.X), settings.confidence, among=among) if settings.certificate_n else None
    return Selection(
        copy, proof, tried if len(tried) > 1 else [], _beyond(plan, best, workshop, held) if proof else None
    )


def _beyond(plan: Plan, best: Candidate, workshop: FitContext, held: HeldOut) -> float | None:
    """The fidelity of the blend on the held-out rows, if something else is handed out and nothing keeps a blend out."""
    if best.family == BLEND or plan.make.limited:
        return None
    return float((workshop.teacher.probabilities(held.X).argmax(axis=1) == held.codes).mean())


def over_limit(plan: Plan, size: int, copy: Callable[[], CopyClassifier]) -> str | None:
    """The size or latency of a copy, if it is more than the user allows."""
    settings = plan.asked
    if settings.max_bytes is not None and size > settings.max_bytes:
        return f"{size} bytes"
    if settings.max_latency is not None:
        found = latency(copy())
        if found > settings.max_latency:
            return f"{found:.3g} ms a row"
    return None


def latency(copy: CopyClassifier) -> float:
    """The median latency of single rows, in milliseconds."""
    rows = copy.space.present(copy.space.sample(TIMED + UNTIMED, np.random.default_rng(0)))
    seconds = []
    for k in range(len(rows)):
        row = rows[k : k + 1]
        clock = perf_counter()
        copy.predict(row)
        seconds.append(perf_counter() - clock)
    return 1000 * median(seconds[UNTIMED:])


def listed(tried: Iterable[Candidate], copy_of: Callable[[Model], CopyClassifier]) -> list[Json]:
    """What run.json says of candidates, with the latency of each on this machine."""
    return [{**one.as_json(), "ms": rounded_latency(copy_of(one.model))} for one in tried]


def rounded_latency(copy: CopyClassifier) -> float:
    """Milliseconds for a single row, with the digits that mean something."""
    return round(latency(copy), 4)


def fit_context(
    plan: Plan, space: Space, view: FeatureView, paid: SampleSet, n_c: int, known: Mapping[str, Model] | None = None
) -> FitContext:
    """What copies are made from: all paid points, and unlabelled rows for distillation."""
    seed = plan.asked.seed
    return FitContext(
        paid=paid,
        n_c=n_c,
        free=lambda n: view(space.sample(n, stream(seed, Stream.FREE))),
        limits=limits_of(plan, view),
        seed=seed,
        families=families_of(plan.asked.to),
        known=known or {},
        worth=SCORED if plan.asked.scores and paid.p is not None else 1.0,
    )


def families_of(to: str | Classifier | None) -> dict[str, Family]:
    """How every family is fitted, and the user's own classifier, if `to` is one."""
    return {**FAMILIES, type(to).__name__: of_estimator(to)} if is_classifier(to) else FAMILIES


def limits_of(plan: Plan, view: FeatureView) -> FamilyLimits:
    """The user's limits, in terms of the copy's inputs."""
    settings, space, encoding = plan.asked, view.space, view.encoding
    wanted = dict.fromkeys(settings.increasing, 1) | dict.fromkeys(settings.decreasing, -1)
    for name in wanted:
        if name not in space.names or space.names.index(name) not in encoding.numbers:
            expected = "columns with an order: " + ", ".join(space.names[j] for j in encoding.numbers)
            raise SpaceError("increasing, decreasing", expected, repr(name))
    layers = () if settings.layers is None else tuple(settings.layers)
    limits = FamilyLimits(
        settings.max_depth, settings.max_leaves, settings.max_bytes, layers=layers, effort=plan.make.capacity
    )
    if not wanted:
        return limits
    sources, directions = encoding.sources, np.zeros(encoding.width, int)
    directions[: len(encoding.numbers)] = [wanted.get(space.names[j], 0) for j in encoding.numbers]
    # The one-hot inputs of such a column, beside the number itself, would not be monotone.
    values = slice(len(encoding.numbers), encoding.width - len(encoding.gaps))
    hidden = [k for k in range(encoding.width)[values] if space.names[sources[k]] in wanted]
    return replace(limits, directions=tuple(directions.tolist()), hidden=tuple(hidden))


def check_kept(plan: Plan, copy: CopyClassifier) -> None:
    """Refuse a copy that exceeds the user's limits."""
    reason = over_limit(plan, size_of(copy.model), lambda: copy)
    if reason is not None:
        hint = "allow more, or choose another family with `to`"
        raise SettingError("max_bytes, max_latency", "a copy that keeps to them", reason, hint)


def check_reachable(plan: Plan, view: FeatureView, n_c: int | None) -> None:
    """Refuse, before the first query, limits that even the smallest copy would exceed."""
    settings = plan.asked
    limits_of(plan, view).check(n_c or 2)
    if settings.max_bytes is not None and settings.max_bytes <= HEADER:
        raise SettingError("max_bytes", f"a number of bytes above {HEADER}", settings.max_bytes, "no copy takes less")
    smallest = plan.learn.layers if plan.make.network or settings.layers else SMALLER[-1]
    network_bytes = HEADER + 4 * MLP(view.encoding.width, smallest, 2).size
    if settings.to == "mlp" and settings.max_bytes is not None and network_bytes > settings.max_bytes:
        hint = "allow more, give it smaller layers, or choose another family with `to`"
        found = f"at least {network_bytes} for a network with layers {smallest}"
        raise SettingError("max_bytes", f"a copy of at most {settings.max_bytes} bytes", found, hint)
    if settings.max_latency is not None:
        least = latency(CopyClassifier(constant(0, 2), np.array([0, 1]), view.space))
        if least > settings.max_latency:
            found, hint = f"{least:.3g} ms for one that always answers the same", "allow more"
            raise SettingError("max_latency", f"a copy that takes {settings.max_latency:g} ms a row", found, hint)
