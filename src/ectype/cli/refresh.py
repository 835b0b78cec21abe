"""`ectype refresh`: see whether an original changed, and bring its copy up to date."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ectype.cli.click_groups import Grouped
from ectype.cli.copy import end, kept, reported, resumable
from ectype.cli.original_options import opened, original_options
from ectype.cli.terminal import say
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.runs.result import Result


@click.command("refresh", cls=Grouped)
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("original")
@click.option("--out", type=click.Path(path_type=Path), help="Where the new copy goes.  [default: DIRECTORY-refreshed]")
@click.option(
    "--budget", type=int, help="The most queries to check and train with.  [default: 35 % of the first run's]"
)
@click.option("--check", type=int, default=300, show_default=True, help="Rows of the ledger that are asked again.")
@click.option("--deterministic", is_flag=True, help="The original always answers alike: a single flip is a change.")
@click.option("--target", type=float, help="Stop when the certificate's lower bound reaches this.")
@click.option("--certificate-n", type=int, help="Held-out queries, on top.  [default: the last run's]")
@click.option(
    "--answers",
    multiple=True,
    metavar="DIR|TABLE",
    help="Answers of ORIGINAL as it is now, at no cost, as for `ectype copy`: such as kept traffic.",
)
@click.option("--seed", type=int, help="[default: the last run's]")
@click.option("--retries", type=float, help="Rows that may be sent again after failures, as a share.  [default: 0.25]")
@original_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    original: str,
    out: Path | None,
    budget: int | None,
    check: int,
    deterministic: bool,
    answers: tuple[str, ...],
    about: dict[str, Any],
    as_json: bool,
    **given: Any,
) -> None:
    """Ask ORIGINAL again about rows that the run in DIRECTORY has answers to; if some changed, copy it anew from there.

    DIRECTORY stays as it is. Where no change is found, nothing else is asked and nothing is written. The same command
    goes on where it was interrupted. ORIGINAL is named as for `ectype copy`. With --answers, rows that contradict
    the ledger are evidence of a change, most of the others are learned from, and the rest measure both copies, apart.

    Exit codes: 0 done, or unchanged; 1 the target was not reached; 2 bad input, nothing was written; 3 the original
    failed, and what was answered is kept; 130 interrupted, 143 terminated by SIGTERM, likewise.
    """
    from ectype.cli.progress import follow
    from ectype.queries import describe_answers
    from ectype.refresh import Refresh

    source = opened(original, about)
    refresh = Refresh.of(directory, source, given, out, budget, check, deterministic, answers=answers)
    plan, most, name = refresh.plan, refresh.allowance, source.name
    if refresh.given is not None:
        say(describe_answers(refresh.given.as_json()), err=True)
        say(f"after a change, {refresh.again} queries at most see that these are its own, as it is now", err=True)
    say(
        f"{name} will be asked again about {refresh.check} rows; if answers changed, it will be asked at most "
        f"{refresh.budget} queries to check and train with, {plan.asked.certificate_n} for the certificate, "
        f"{refresh.repeats + refresh.again} again and {most.retries} if requests fail, {most.total} in all",
        err=True,
    )
    # What an original prints is no part of ours.
    with resumable(lambda: kept(refresh.out)), redirect_stdout(sys.stderr):
        result = follow("refresh", refresh.steps(), refresh.rounds)
    changed = _tell(result, refresh.out, as_json)
    end(plan.asked.target if changed else None, result)


def _tell(result: Result, out: Path, as_json: bool) -> bool:
    """The outcome, for people or for programs; gives whether the original changed."""
    found = result.refreshed or {}
    changed = bool(found["verdict"] == "changed")
    page = None
    if changed:
        title = f"A copy of {result.settings['original']}, refreshed"
        page = reported(out / "report.html", {"refresh": result}, title)
    if as_json:
        more = {**result.summary(), "out": str(out), "report": str(page)} if changed else {"out": None}
        click.echo(json.dumps({**found, **more}))
        return changed
    _say(found)
    if changed:
        click.echo(f"\n{result}\n")
        say(f"The refreshed copy is in {out}; its report is {page}.")
    return changed


def _say(found: Json) -> None:
    """What was found, in words."""
    check = found["check"]
    say(f"{found['verdict']}: {check['asked']} rows asked again, {check['flipped']} answers differ")
    if "contested" in check:
        one = check["contested"]
        say(f"of {one['asked']} rows whose given answers differ from the ledger's, {one['stayed']} are as given now")
    if "on_answers" in found:
        say(_apart(found["on_answers"]))
    if found["verdict"] == "unchanged":
        say(f"with 95% confidence, at most {check['at_most']:.2%} of the ledger's answers changed for good")
        if check["stayed"]:
            say("too few to tell a change from noise; if the original always answers alike, add --deterministic")
        return
    answers = found["answers"]
    if answers["rows"]:
        say(f"of {answers['rows']} held-out rows, the original answers {answers['flipped']} otherwise than before")
        for one in answers["became"][:10]:
            say(f"  {one['n']:>6}  {one['old']!r} became {one['new']!r}")
    for one in found.get("regions", ()):
        say(f"  {one['flipped']:>6}  of {one['rows']} where {one['where']}")
    if "mistakes" in found:
        wrong = found["mistakes"]
        say(f"of {wrong['rows']} held-out rows, the copy got {wrong['before']} wrong; now {wrong['after']}")
        for one in wrong["by_class"]:
            say(f"  {one['rows']:>6}  are {one['label']!r}: {one['before']} wrong; now {one['after']}")


def _apart(found: Json) -> str:
    """How faithful the copies are on given answers that they did not learn from."""
    if not found["rows"]:
        return "no row with a given answer is left that the copy did not learn from"
    told = [
        f"{words} {part['estimate']:.2%} (at least {part['lower']:.2%})"
        for words, part in (("the copy agrees on", found["before"]), ("now", found.get("after")))
        if part is not None
    ]
    return f"of {found['rows']} rows with given answers that taught nothing, {'; '.join(told)}"
