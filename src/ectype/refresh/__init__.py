"""Has an original changed? If so, update the copy by a warm-started run, and list the flips."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ectype.algorithm.training import Schedule
    from ectype.queries import AnswerSources
    from ectype.refresh._refresh import Refresh as Refresh
    from ectype.runs.result import Result


def refresh(
    directory: str | Path,
    original: Any,
    *,
    out: str | Path | None = None,
    budget: int | None = None,
    check: int = 300,
    deterministic: bool = False,
    target: float | None = None,
    certificate_n: int | None = None,
    schedule: Schedule | int | None = None,
    seed: int | None = None,
    retries: float | None = None,
    classes: Iterable[Any] | None = None,
    test: tuple[Any, ...] | None = None,
    answers: AnswerSources | None = None,
    progress: bool = True,
) -> Result:
    """Bring the copy in a run's directory up to date with what its original answers today.

    Parameters
    ----------
    directory : a finished run that has a ledger; it is not changed.
    original : the original as it is today.
    out : where the refreshed copy is written, resumable like any run; the directory's name and "-refreshed" by default.
    budget : the most queries for the check and for training; 35 % of the first run's by default.
    check : rows of the ledger that are asked again. If no change is found, nothing else is asked, nothing is written,
        and the result is that of the directory.
    deterministic : whether the original always gives the same row the same label, so that one flip is a change.
    target : stop as soon as the certificate's lower bound reaches this.
    certificate_n : held-out queries, on top of the budget; the last run's by default, whose rows are asked first.
    answers : answers of the original as it is today that are there already, such as kept traffic: a directory, a table
        of rows with a column `label`, or several of these. Where they contradict the ledger, they are evidence of a
        change. After one, they are training points beside the budget, once a few rows were asked again: answers of
        another original, or from before the change, are refused. Some are held apart: `refreshed["on_answers"]` has the
        fidelity of both copies on them, and `certificate.on_answers` that of the new one in detail.
    schedule, seed, retries, classes, test, progress : as in `copy_classifier`; the seed is the last run's by default.

    `refreshed` of the result is a dictionary with the `verdict`, "changed" or "unchanged"; the `check`; and, after a
    change, the flips: of the original's `answers`, of the copy's `mistakes` before and after, and by `regions`.

    >>> from tempfile import TemporaryDirectory
    >>> from ectype import Original, Space, copy_classifier
    >>> original = Original(lambda rows: rows[:, 0] > 0, name="mine")
    >>> with TemporaryDirectory() as folder:
    ...     _ = copy_classifier(original, Space.normal(1), budget=300, preset="fast", out=f"{folder}/run")
    ...     again = refresh(f"{folder}/run", original, check=100)
    >>> again.refreshed["verdict"], again.refreshed["check"]["asked"]
    ('unchanged', 100)
    """
    from ectype.original import as_original
    from ectype.progress import ITERATIONS, show_progress
    from ectype.refresh._refresh import Refresh
    from ectype.runs.api import finish, progress_callback

    given = {"target": target, "certificate_n": certificate_n, "schedule": schedule, "seed": seed, "retries": retries}
    source = as_original(original, classes)
    planned = Refresh.of(directory, source, given, out, budget, check, deterministic, test, answers)
    with show_progress("refresh", planned.rounds, wanted=progress, step=ITERATIONS) as tell:
        return finish(planned.steps(), progress_callback(tell))


def __getattr__(name: str) -> Any:
    """`Refresh`, which is imported when it is first used."""
    if name != "Refresh":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ectype.refresh import _refresh

    return _refresh.Refresh
