"""The types of what run.json holds as plain JSON: a reader finds what it expects, or an error that says where."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict, get_type_hints

from ectype._common.bounded_io import check_type
from ectype.plan.settings import Settings
from ectype.queries import LEFT_OUT_REASONS
from ectype.types import Json, Label


class TriedRecord(TypedDict):
    """A model that the copy was chosen from."""

    family: str
    teacher: str
    fidelity: float
    bytes: int
    ms: NotRequired[float]


class QueryCounts(TypedDict):
    """How many rows were asked, by purpose."""

    training: int


class VersionsRecord(TypedDict):
    """What made the copy."""

    ectype: str


class GivenRecord(TypedDict):
    """Answers that were given, as `PriorAnswers.as_json` tells of them."""

    used: int
    repeated: int
    left_out: dict[str, int]
    sources: list[str]
    sha256: str


class RemadeRecord(TypedDict):
    """Of a copy that was made of another run's answers: which run's."""

    of: str
    sha256: str
    answers: NotRequired[GivenRecord]


class RefreshedRecord(TypedDict):
    """Of a refreshed copy: what was found."""

    verdict: str
    whole: NotRequired[int]


class RememberedRecord(TypedDict):
    """Settings that every run remembers, beside those that `Settings` has: what was copied, and how far."""

    original: str
    method: str
    seed: NotRequired[int]
    classes: NotRequired[list[Label] | None]
    fingerprint: NotRequired[str | None]
    schedule: NotRequired[dict[str, float]]
    to: NotRequired[str | dict[str, Any]]
    stages: NotRequired[list[int]]
    known: NotRequired[list[int]]
    answers: NotRequired[str]
    rows: NotRequired[str]
    further: NotRequired[list[str]]
    opened: NotRequired[dict[str, Any]]


class PlannedRecord(TypedDict):
    """Settings without which a run can neither go on nor be made anew from its answers."""

    seed: int
    classes: list[Label] | None
    schedule: dict[str, float]
    layers: list[int] | None
    batch: int | None
    target: float | None
    until_flat: bool
    certificate_n: int
    confidence: float
    preset: str


# What run.json holds, part by part; what may be missing in those of earlier versions is checked where it is there.
PARTS: dict[str, Any] = {
    "settings": RememberedRecord,
    "queries": QueryCounts,
    "tried": list[TriedRecord],
    "versions": VersionsRecord,
    "given": GivenRecord | None,
    "remade": RemadeRecord | None,
    "refreshed": RefreshedRecord | None,
}


def check_records(run: Json, where: str) -> None:
    """ValueError for parts of run.json that are not of the types that a run writes."""
    for name, hint in PARTS.items():
        if name in run:
            check_type(run[name], hint, f"{where}: {name}")
    settings, hints = run["settings"], get_type_hints(Settings)
    for name in settings.keys() & (hints.keys() - RememberedRecord.__annotations__.keys()):
        check_type(settings[name], hints[name], f"{where}: settings: {name}")
    for given in (run.get("given"), (run.get("remade") or {}).get("answers")):
        unknown = set() if given is None else given["left_out"].keys() - LEFT_OUT_REASONS.keys()
        if unknown:
            raise ValueError(f"{where}: left_out: expected reasons that are known, found {sorted(unknown)[0]!r}")
