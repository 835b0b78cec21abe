"""From a run's directory to the services that answer for its copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ectype._common import validation
from ectype.certificate.certificate import Certificate
from ectype.errors import SettingError
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Original
from ectype.runs.result import Result, load
from ectype.serve._app import Service
from ectype.serve._cascade_config import CascadeConfig, refuse_excluded
from ectype.serve._inference import InferenceModel
from ectype.serve._limits import WAITING_ROWS, ServeLimits
from ectype.serve._shadow import Shadow
from ectype.serve._shared_counters import SharedCounters
from ectype.serve._traffic_log import TrafficSettings


@dataclass(frozen=True)
class ShadowConfig:
    """A parallel run: what opens the original, the file for rows that it answers otherwise, how many may wait.

    `keep` says what is kept of it for later.
    """

    opened: Callable[[], Original]
    log: Path | None = None
    rows: int = WAITING_ROWS
    keep: TrafficSettings | None = None

    def __post_init__(self) -> None:
        validation.count("--shadow-rows", self.rows, 1)


@dataclass(frozen=True)
class LoadedServices:
    """A copy that was loaded under its name, and its run: what services are made of."""

    model: InferenceModel
    result: Result

    @property
    def certificate(self) -> Certificate | None:
        """The copy's certificate."""
        return self.result.certificate

    def service(
        self,
        limits: ServeLimits,
        beside: ShadowConfig | None = None,
        token: str | None = None,
        counts: SharedCounters | None = None,
        behind: CascadeConfig | None = None,
    ) -> Service:
        """A service that answers for it, with an original beside it, or behind it."""
        if beside is not None and behind is not None:
            hint = "a parallel run asks about every row, so that a cascade would save nothing: start two servers"
            raise SettingError("--shadow and --fallback", "one of them", "both", hint)
        shadow = None if beside is None else _shadow(beside, self.model.copy)
        fallback = None if behind is None else behind.fallback(self.result)
        return Service(self.model, self.certificate, shadow, limits, token, counts, fallback)


def load_services(directory: Path, name: str | None, version: str, limits: ServeLimits) -> LoadedServices:
    """The copy in this directory, whose name it has unless it is given one."""
    label = _segment("--name", directory.resolve().name if name is None else name)
    version = _segment("--model-version", version)
    result = load(directory)
    return LoadedServices(InferenceModel(result.copy, label, version, limits.rows), result)


def _segment(where: str, text: str) -> str:
    """A part of a URL's path."""
    if not text or "/" in text:
        raise SettingError(where, "a word without a slash", repr(text))
    return text


def _shadow(beside: ShadowConfig, copy: CopyClassifier) -> Shadow:
    refuse_excluded("--shadow", copy)
    return Shadow(beside.opened, copy, log=beside.log, most_rows=beside.rows, keep=beside.keep)
