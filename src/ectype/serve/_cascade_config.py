"""The original behind a served copy: what is said about it, and from there to a cascade that is certified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from ectype._common import validation
from ectype.cascades import DEFAULT_AGREEMENT, ON_OUTAGE, RAISE_ERROR, cascade, has_held_out_rows, queryable_original
from ectype.errors import SettingError
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Original
from ectype.runs.result import Result
from ectype.serve._fallback import PAUSE, SECONDS, Fallback
from ectype.serve._limits import WAITING_ROWS


@dataclass(frozen=True)
class CascadeConfig:
    """What opens the original, how often the copy has to agree with it where it answers alone, and what if it is out.

    `n` fresh rows are asked before anything is served; if it is not given, the run's held-out rows are used. So many
    `rows` may wait for the original, each request for so many `seconds`; one that was out is left alone for a `pause`.
    """

    opened: Callable[[], Original]
    agree: float = DEFAULT_AGREEMENT
    on_outage: str = RAISE_ERROR
    n: int | None = None
    rows: int = WAITING_ROWS
    seconds: float = SECONDS
    pause: float = PAUSE

    def __post_init__(self) -> None:
        validation.fraction("--agree", self.agree)
        validation.choice("--fallback-outage", self.on_outage, ON_OUTAGE)
        validation.count("--fallback-rows", self.rows, 1)
        validation.number("--fallback-timeout", self.seconds, "a number above 0", 5e-324, inf)
        validation.number("--fallback-pause", self.pause, "a number of at least 0", 0, inf)
        if self.n is not None:
            validation.count("--fallback-n", self.n, 1)

    def fallback(self, result: Result) -> Fallback:
        """The cascade, certified; refused if the copy may answer nothing alone."""
        refuse_excluded("--fallback", result.copy)
        if self.n is None and not has_held_out_rows(result):
            found = "none in the run's directory"
            raise SettingError("--fallback-n", "rows to ask, or the held-out rows of a run", found)
        original = queryable_original(self.opened(), "--fallback")
        routing = cascade(result, original, self.agree, n=self.n, progress=False).routing
        if not routing.alone:
            advice = routing.advice.replace(" n=", " --fallback-n ").replace("certificate_n", "--certificate-n")
            raise SettingError("--agree", "an agreement that is certified for some rows", f"{self.agree:g}", advice)
        return Fallback(
            self.opened,
            result.copy,
            routing,
            on_outage=self.on_outage,
            most_rows=self.rows,
            seconds=self.seconds,
            pause=self.pause,
            original=original,
        )


# What the options are called on the command line.
_OPTIONS = {
    "agree": "--agree",
    "on_outage": "--fallback-outage",
    "n": "--fallback-n",
    "rows": "--fallback-rows",
    "seconds": "--fallback-timeout",
    "pause": "--fallback-pause",
}


def build_cascade(opened: Callable[[], Original] | None, **options: Any) -> CascadeConfig | None:
    """The original behind a copy, with those of the options that are given; without one, they are refused."""
    given = {name: value for name, value in options.items() if value is not None}
    if opened is not None:
        return CascadeConfig(opened, **given)
    if given:
        raise SettingError("--fallback", f"an original, since {_OPTIONS[next(iter(given))]} is given", "none")
    return None


def refuse_excluded(option: str, copy: CopyClassifier) -> None:
    """Refuse an original that needs columns which what is served does not take."""
    if copy.excluded:
        hint = "leave it out: what is served takes no column that was kept from the copy, and the original needs them"
        raise SettingError(option, "a copy that sees every column", f"{len(copy.excluded)} kept from it", hint)
