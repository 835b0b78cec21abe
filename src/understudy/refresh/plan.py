"""Refresh a copy: see whether its original changed, and if so copy it again from where the last run was."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from understudy import checks
from understudy.algorithm.draws import POLICIES, margin
from understudy.algorithm.training import steps
from understudy.errors import SettingError
from understudy.files import as_path
from understudy.original import Original
from understudy.queries import Queries, check_fit
from understudy.queries.ledger import CHECK, REPEAT, Ledger
from understudy.refresh.check import MORE, ROWS, Check, check
from understudy.refresh.flips import answers_flipped, mistakes, regions
from understudy.refresh.warm import WarmRun
from understudy.runs.copying import describe
from understudy.runs.directory import claim, finished, open_run
from understudy.runs.evaluation import Truth
from understudy.runs.finished import Past
from understudy.runs.result import Record, Result, load
from understudy.runs.settings import BATCH, Settings
from understudy.space.encoding import View
from understudy.streams import Stream, stream

# The share of the first run's training queries that a refresh may make, the steps of a round, and the share of a batch
# that goes to rows on which the copy is least sure. Batches are half as large: with few queries, each has to count.
SHARE, STEPS, UNSURE = 0.35, 1200, 0.9


@dataclass(frozen=True)
class Refresh:
    """A refresh that was checked and may begin."""

    directory: Path
    past: Past
    original: Original
    settings: Settings
    check: int
    budget: int
    """The most queries of the check and of training together."""
    deterministic: bool
    truth: Truth | None
    out: Path

    @classmethod
    def of(
        cls,
        directory: str | Path,
        original: Original,
        given: Mapping[str, Any],
        out: str | Path | None = None,
        budget: int | None = None,
        check: int = ROWS,
        deterministic: bool = False,
        test: tuple[Any, ...] | None = None,
    ) -> Refresh:
        """Check what a refresh is asked to do; of `given`, what is not None takes the place of the last settings."""
        path = as_path(directory)
        past = Past.of(path)
        if original.stored is not None:
            hint = "copy the new table instead"
            raise SettingError("original", "an original that can be asked", "a table of stored answers", hint)
        check_fit(original, past.result.space)
        check = min(checks.count("check", check, 1), len(past.rows))
        budget = max(round(SHARE * _whole(past)), check) if budget is None else checks.count("budget", budget, 1)
        if budget < check:
            hint = "raise it, or lower the rows of the check"
            raise SettingError("budget", f"at least the {check} rows of the check", budget, hint)
        settings = _settings(past, budget, given)
        truth = None if test is None else Truth.of(test, past.result.space, View(past.result.space, settings.exclude))
        place = path.with_name(f"{path.name}-refreshed") if out is None else as_path(out)
        return cls(path, past, original, settings, check, budget, bool(deterministic), truth, place)

    @property
    def about(self) -> dict[str, Any]:
        """What makes this refresh this one and no other, as JSON values."""
        test = 0 if self.truth is None else len(self.truth.labels)
        asked = {"budget": self.budget, "check": self.check, "deterministic": self.deterministic}
        described = describe(self.original, self.past.result.space, self.settings, test)
        return {**described, **asked, "refresh_of": self.past.digest}

    def steps(self) -> Generator[Record, None, Result]:
        """A record per iteration, then the result: the last run's, if no change is found."""
        past = self.past
        if finished(claim(self.out, self.about)):
            result = load(self.out)
            yield from result.history
            return result
        with open_run(self.out, self.about, past.result.space) as ledger:
            again = self._checked(ledger)
            origin = {"of": str(self.directory), "sha256": past.digest, "whole": _whole(past), "check": again.as_json()}
            if not again.changed:
                ledger.abandon()  # tomorrow the same command has to ask again
                return replace(past.result, refreshed={"verdict": "unchanged", **origin})
            run = self._run(again, ledger)
            result = yield from run.steps()
            queries = {**result.queries, REPEAT: result.queries.get(REPEAT, 0) + again.flipped}
            found = {"verdict": "changed", **origin, **_flips(past, run, result)}
            result = replace(result, queries=queries, refreshed=found)
            result.save(self.out)
        return result

    def _checked(self, ledger: Ledger) -> Check:
        past, limits = self.past, {CHECK: self.budget, REPEAT: self.budget}
        queries = Queries(self.original, past.result.space, limits, ledger)
        rng = stream(self.settings.seed, past.seed, Stream.CHECK)
        most = min(MORE * self.check, self.budget)
        return check(queries, past.rows, past.answers, self.check, most, rng, self.deterministic)

    def _run(self, again: Check, ledger: Ledger) -> WarmRun:
        """The run that follows a check which found a change."""
        learned, held_out = self.past.split(again.places)
        if (
            self.past.result.settings["target"] is not None or self.past.result.settings["until_flat"]
        ):  # they decided when it stopped, and so its network
            held_out = held_out[0][:0], held_out[1][:0]
        rounds = 1 + (self.budget - len(again.places)) // self.settings.n
        return WarmRun(
            original=self.original,
            space=self.past.result.space,
            settings=replace(self.settings, iterations=rounds),
            about=self.about,
            limited_by="budget",
            truth=self.truth,
            ledger=ledger,
            random_first=0,
            choices={**POLICIES, "margin": partial(margin, share=UNSURE)},
            past=self.past,
            check=again,
            held_out=held_out,
            learned=learned,
        )


def _settings(past: Past, budget: int, given: Mapping[str, Any]) -> Settings:
    """The last run's settings, with what a refresh does otherwise."""
    before = past.result.settings
    if isinstance(before["to"], dict):
        hint = "copy again, with the same classifier as `to`"
        raise SettingError("refresh", "a copy of a family that has a name here", before["to"]["class"], hint)
    last = Settings.of_json(before)
    single = last.method == "one-shot"
    usual = replace(
        last,
        method="sequential",
        draw=None if single else last.draw,
        batch=max(1, (BATCH if single else last.n) // 2),
        iterations=None,
        target=None,
        schedule=steps(STEPS),
    )
    chosen = replace(usual, **{name: value for name, value in given.items() if value is not None})
    return replace(chosen, budget=max(budget, chosen.batch or 1)).checked()


def _whole(past: Past) -> int:
    """The training queries of the run that all began with."""
    return past.result.refreshed["whole"] if past.result.refreshed else past.result.queries["training"]


def _flips(past: Past, run: WarmRun, result: Result) -> dict[str, Any]:
    """What changed, measured on the certificate's rows; answers on those of them that have an old one."""
    rows, new = run.measured
    old = run.held_out[1][: len(new)]
    found: dict[str, Any] = {"answers": answers_flipped(old, new[: len(old)])}
    if len(rows):
        X = run.view(rows)
        before, after = (copy.classes[copy.decide(X)] for copy in (past.result.copy, result.copy))
        found["mistakes"] = mistakes(new, before, after)
    if len(old):
        found["regions"] = regions(run.space, rows[: len(old)], old != new[: len(old)], run.settings.confidence)
    return found
