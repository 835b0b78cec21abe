"""From a run's directory to the services that answer for its copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from understudy import checks
from understudy.certificate.values import Certificate
from understudy.errors import SettingError
from understudy.models.classifier import CopyClassifier
from understudy.original import Original
from understudy.runs.result import Result, load
from understudy.serve.app import Service
from understudy.serve.behind import Behind, refuse_excluded
from understudy.serve.counts import Counts
from understudy.serve.keeping import Keep
from understudy.serve.limits import WAITING_ROWS, Limits
from understudy.serve.model import Model
from understudy.serve.shadow import Shadow


@dataclass(frozen=True)
class Beside:
    """A parallel run: what opens the original, the file for rows that it answers otherwise, how many may wait.

    `keep` says what is kept of it for later.
    """

    opened: Callable[[], Original]
    log: Path | None = None
    rows: int = WAITING_ROWS
    keep: Keep | None = None

    def __post_init__(self) -> None:
        checks.count("--shadow-rows", self.rows, 1)


@dataclass(frozen=True)
class Loaded:
    """A copy that was loaded under its name, and its run: what services are made of."""

    model: Model
    result: Result

    @property
    def certificate(self) -> Certificate | None:
        """The copy's certificate."""
        return self.result.certificate

    def service(
        self,
        limits: Limits,
        beside: Beside | None = None,
        token: str | None = None,
        counts: Counts | None = None,
        behind: Behind | None = None,
    ) -> Service:
        """A service that answers for it, with an original beside it, or behind it."""
        if beside is not None and behind is not None:
            hint = "a parallel run asks about every row, so that a cascade would save nothing: start two servers"
            raise SettingError("--shadow and --fallback", "one of them", "both", hint)
        shadow = None if beside is None else _shadow(beside, self.model.copy)
        fallback = None if behind is None else behind.fallback(self.result)
        return Service(self.model, self.certificate, shadow, limits, token, counts, fallback)


def loaded(directory: Path, name: str | None, version: str, limits: Limits) -> Loaded:
    """The copy in this directory, whose name it has unless it is given one."""
    label = _segment("--name", directory.resolve().name if name is None else name)
    version = _segment("--model-version", version)
    result = load(directory)
    return Loaded(Model(result.copy, label, version, limits.rows), result)


def _segment(where: str, text: str) -> str:
    """A part of a URL's path."""
    if not text or "/" in text:
        raise SettingError(where, "a word without a slash", repr(text))
    return text


def _shadow(beside: Beside, copy: CopyClassifier) -> Shadow:
    refuse_excluded("--shadow", copy)
    return Shadow(beside.opened, copy, log=beside.log, most_rows=beside.rows, keep=beside.keep)
