"""`ectype copy`: copy an original into a directory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ectype.cli.click_groups import Grouped, option
from ectype.cli.original_options import opened, original_options
from ectype.cli.run_options import settings_options
from ectype.cli.terminal import note_on_interrupt, say
from ectype.errors import DirectoryError, OriginalError, SettingError, WriteError
from ectype.plan.settings import ASK, RUN

if TYPE_CHECKING:
    from ectype.original import Original
    from ectype.runs.pipeline import RunJob
    from ectype.runs.result import Result
    from ectype.space import Space


KEPT = "what was answered is kept, and the same command goes on from there"
NOTHING = "nothing was answered yet, and the same command tries again"
EXAMPLES = """\b
Examples:
  ectype copy mymodels:classifier --space space.json --out my-copy --budget 1000
  ectype copy http://127.0.0.1:8080/v2/models/m/infer --protocol v2 --space normal:4 --out my-copy --target 0.97
"""


@click.command("copy", cls=Grouped, epilog=EXAMPLES)
@click.argument("original")
@option(
    "--space",
    "space_text",
    group=ASK,
    help="A space.json, normal:D, or uniform:LOW:HIGH:D; stored answers need none.",
)
@option(
    "--rows",
    metavar="ROWS",
    group=ASK,
    help="CSV or Parquet of unlabelled rows of yours: part of the queries are about them.",
)
@option(
    "--answers",
    multiple=True,
    group=ASK,
    metavar="DIR|TABLE",
    help="Answers that were paid for before, at no cost: a run's directory, or a CSV or Parquet with a column label.",
)
@settings_options
@option("--out", type=click.Path(path_type=Path), required=True, group=RUN, help="Directory for the finished copy.")
@option("--json", "as_json", is_flag=True, group=RUN, help="Print one JSON document on stdout, and nothing else.")
@option("--dry-run", is_flag=True, group=RUN, help="Print what would be asked and made, and ask nothing.")
@option("--sign", is_flag=True, group=RUN, shown=False, help="Sign the directory with the key in ECTYPE_SIGNING_KEY.")
@original_options
def command(
    original: str,
    space_text: str | None,
    out: Path,
    rows: str | None,
    answers: tuple[str, ...],
    sign: bool,
    dry_run: bool,
    about: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Copy ORIGINAL, and certify the copy. The same command goes on where it was interrupted.

    ORIGINAL is a fitted classifier or function as package.module:name, a file model.onnx, model.skops or, with --trust,
    model.pkl or .joblib, an endpoint http(s)://... with its --protocol, a program cmd:... that reads CSV rows and
    prints a label per line, answers.csv or .parquet, a table of stored answers, or vendor.toml, a file that says which
    of these it is and how it is opened.

    Exit codes: 0 done; 1 the target was not reached; 2 bad input, nothing was written; 3 the original failed, and what
    was answered is kept, or the disk is full, likewise; 130 interrupted, 143 terminated by SIGTERM, likewise.
    """
    from ectype._common.manifest import Key
    from ectype.cli.progress import follow
    from ectype.original.stored_answers import read_table
    from ectype.plan.resolve import resolve
    from ectype.plan.settings import Settings
    from ectype.runs.api import build_job, run_job
    from ectype.runs.extend import in_directory

    plan, key = resolve(Settings(**options)), Key.needed() if sign else None  # before anything is opened
    source = opened(original, about)
    own = None if rows is None else read_table(rows)
    job = build_job(source, _space(space_text, source), plan, rows=own, answers=answers)
    job = in_directory(job, out)
    if dry_run:
        _print_plan(job, out, as_json)
        return
    _announce(source.name, job)
    wanted = plan.asked.progress and not job.done
    with resumable(lambda: kept(out)), redirect_stdout(sys.stderr):  # what an original prints is no part of ours
        result = follow(plan.asked.method, run_job(job, key), job.plan.ask.rounds, wanted)
    _tell(result, out, source.name, job.allowance.total, as_json)
    end(job.plan.asked.target, result)


def _print_plan(job: RunJob, out: Path, as_json: bool) -> None:
    """What a run would do, for people or for programs."""
    state = "finished" if job.done else "extended" if job.further else "begun" if kept(out) == KEPT else "new"
    if as_json:
        found = {"plan": job.plan.as_json(), "most_rows": job.allowance.total, "out": str(out), "state": state}
        click.echo(json.dumps(found))
        return
    words = {
        "new": f"{out} is new",
        "begun": f"{out} has part of this run: what is answered there is not asked again",
        "extended": f"{out} has a run that this goes on from: what is answered there is not asked again",
        "finished": f"{out} holds this run: nothing is asked",
    }
    click.echo(
        f"{job.plan}\n{'':<7}at most {job.allowance.total:,} rows, with those that are sent again if requests fail"
    )
    click.echo(f"{'':<7}{words[state]}")


def _announce(name: str, job: RunJob) -> None:
    """Say what will be asked, and what cannot be shown by it, before anything is."""
    from ectype.certificate.bounds import lower_bound
    from ectype.queries import describe_answers

    plan, asked, most = job.plan, job.plan.asked, job.allowance
    if plan.left_over:
        say(f"{plan.left_over} of the budget of {asked.budget} are left over: they are no whole batch", err=True)
    if job.done:
        say(f"{job.out} holds this run, and nothing is asked: {plan.ask.queries} training queries were made", err=True)
        return
    users = job.prior.user_rows
    own = "" if users is None else f", {users.queries} for one on your rows"
    if job.given is not None:
        say(describe_answers(job.given), err=True)
        say(
            f"of these rows, {2 * job.prior.rechecks} at most are asked again, to see that they are its own",
            err=True,
        )
    say(
        f"{name} will be asked at most {plan.ask.queries} queries for training, {asked.certificate_n} for the "
        f"certificate{own}, {plan.ask.repeats} again and {most.retries} if requests fail, {most.total} in all",
        err=True,
    )
    if job.further:
        click.echo(f"it goes on from a run with {plan.stages[-1]} training queries, whose answers are used", err=True)
    shown = lower_bound(asked.certificate_n, asked.certificate_n, asked.confidence) if asked.target else 1.0
    if asked.target is not None and asked.target > shown:
        say(f"{asked.certificate_n} held-out rows can show {shown:.4f} at most, if all agree", err=True)


@contextmanager
def resumable(what: Callable[[], str]) -> Iterator[None]:
    """Within, an interrupt and an original that fails say what is kept of the work that they end."""
    try:
        with note_on_interrupt(what):
            yield
    except OriginalError as error:
        hint = "; ".join(filter(None, (error.hint, what())))
        raise type(error)(error.where, error.expected, error.found, hint) from error


def kept(out: Path) -> str:
    """What is kept of a run that ended early."""
    from ectype.ledger import LEDGER, summarise_ledger

    path = out / LEDGER
    return KEPT if path.is_file() and summarise_ledger(path).answered else NOTHING


def reported(path: Path, results: dict[str, Result], title: str, original: Original | None = None) -> Path:
    """Write the report of a copy that is there already: without it, nothing that was paid for is lost."""
    from ectype.report import write_report

    try:
        return write_report(path, results, original=original, title=title, answers=path.parent)
    except DirectoryError as error:
        hint = f"the copy is in {path.parent}; make room, and `ectype report {path.parent}` writes its page"
        raise WriteError(error.where, error.expected, error.found, hint) from error


def _tell(result: Result, out: Path, name: str, announced: int, as_json: bool) -> None:
    """The outcome, for people or for programs."""
    from ectype.ledger import LEDGER, summarise_ledger

    results = {result.settings["method"]: result}
    report = reported(out / "report.html", results, f"A copy of {name}")
    found = summarise_ledger(out / LEDGER)
    sent = {"announced": announced, "asked": found.asked, "answered": found.answered, "maybe_paid": found.maybe_paid}
    if as_json:
        click.echo(json.dumps({**result.summary(), "rows": sent, "out": str(out), "report": str(report)}))
        return
    click.echo(f"\n{result}\n")
    lost = f", {found.maybe_paid} without an answer and maybe paid" if found.maybe_paid else ""
    say(f"Rows asked: {found.asked} of at most {announced}; {found.answered} answered{lost}.")
    say(f"The copy is in {out}; its report is {report}.")


def end(target: float | None, result: Result) -> None:
    """Exit with 1 if a target was asked for and not reached."""
    if target is not None and result.stopped != "target":
        why = "" if result.diagnosis is None else f": {result.diagnosis.text}"
        say(f"ectype: the target {target} was not reached{why}", err=True)
        sys.exit(1)


def _space(text: str | None, source: Original) -> Space:
    """The space named; else, for stored answers, what their own rows show."""
    from ectype.space import Space, open_space

    if text is not None:
        return open_space(text)
    if source.stored is None:
        raise SettingError("--space", "a space.json, normal:D, or uniform:LOW:HIGH:D", "nothing")
    return Space.from_data(source.stored[0])
