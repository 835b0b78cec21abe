"""What a run is asked to do, checked once before anything is asked or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from understudy.errors import SettingError
from understudy.hypothesis.mlp import PAPER_LAYERS
from understudy.memory import PENALTIES
from understudy.training import Schedule, annealed

FAMILIES = ("mlp",)
METHODS = ("sequential", "pure", "one-shot", "online")


@dataclass(frozen=True)
class Settings:
    """What a run is asked to do. See `copy_classifier` for what each means."""

    method: str = "sequential"
    to: str = "mlp"
    batch: int = 100
    iterations: int | None = None
    budget: int | None = None
    target: float | None = None
    certificate_n: int = 2000
    confidence: float = 0.95
    delta: float = 1e-6
    memory: str | float = "automatic"
    penalty: str = "bounded"
    layers: Sequence[int] = PAPER_LAYERS
    schedule: Schedule | int = 1000
    seed: int = 0

    def checked(self) -> Settings:
        """The same settings with every default filled in; the first thing wrong with them is an error."""
        _choice("method", self.method, METHODS)
        _choice("to", self.to, FAMILIES)
        _choice("penalty", self.penalty, tuple(PENALTIES))
        _fraction("confidence", self.confidence)
        if self.target is not None:
            _fraction("target", self.target)
            if self.certificate_n == 0:
                raise SettingError(
                    "certificate_n", "held-out rows to measure the target with", 0, "raise it, or leave out the target"
                )
        if not _is_number(self.delta) or not 0 <= self.delta < 1:
            raise SettingError("delta", "a number from 0 to below 1", repr(self.delta))
        named = self.memory in ("automatic", "none")
        if not named and not (_is_number(self.memory) and float(self.memory) >= 0):
            raise SettingError("memory", "'automatic', 'none' or a number not below zero", repr(self.memory))
        return replace(
            self._sized(),
            certificate_n=_count("certificate_n", self.certificate_n, 0),
            layers=tuple(_count("layers", size, 1) for size in self.layers),
            schedule=self.schedule
            if isinstance(self.schedule, Schedule)
            else annealed(_count("schedule", self.schedule, 1)),
            seed=_count("seed", self.seed, 0),
        )

    def _sized(self) -> Settings:
        """With batch, iterations and budget all known; one-shot is one iteration of everything."""
        batch = _count("batch", self.batch, 1)
        iterations = None if self.iterations is None else _count("iterations", self.iterations, 1)
        if self.budget is None:
            iterations = iterations or 30
        else:
            affordable = _count("budget", self.budget, 1) // batch
            if affordable == 0:
                raise SettingError(
                    "budget",
                    f"at least one batch of {batch} queries",
                    self.budget,
                    "raise the budget or lower the batch",
                )
            iterations = min(iterations or affordable, affordable)
        sizes = (batch * iterations, 1) if self.method == "one-shot" else (batch, iterations)
        return replace(self, batch=sizes[0], iterations=sizes[1], budget=batch * iterations)

    @property
    def queries(self) -> int:
        """The most training queries that checked settings will make."""
        return self.batch * (self.iterations or 0)

    def as_json(self) -> dict[str, Any]:
        """The settings as JSON values, which is how a run's directory remembers them."""
        content = {part.name: getattr(self, part.name) for part in fields(self)}
        content["layers"] = list(self.layers)
        if isinstance(self.schedule, Schedule):
            content["schedule"] = self.schedule._asdict()
        return content


def _choice(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingError(name, "one of " + ", ".join(map(repr, known)), repr(value))


def _count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SettingError(name, f"a whole number of at least {least}", repr(value))
    return int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(np.isfinite(value))


def _fraction(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 < value < 1:
        raise SettingError(name, "a number between 0 and 1", repr(value))
