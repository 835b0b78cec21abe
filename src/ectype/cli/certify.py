"""`ectype certify`: how alike a finished copy and an original decide, and where they differ."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from ectype.cli.click_groups import Grouped
from ectype.cli.original_options import opened, original_options
from ectype.cli.terminal import say
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.certificate.certificate import Certificate
    from ectype.ledger import Purpose, Session
    from ectype.original import Original
    from ectype.queries import PriorAnswers
    from ectype.runs.result import Result
    from ectype.types import Answered

# What is said of answers that were written nowhere.
UNWRITTEN = "what was answered is not kept, and the same command begins anew"
# Fresh rows, where no number is given and the original can be asked about any.
ROWS = 2000


@click.command("certify", cls=Grouped)
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("original", required=False)
@click.option(
    "--answers",
    multiple=True,
    metavar="DIR|TABLE",
    help="Answers that the original gave before, such as to kept traffic: measured apart, nothing is asked for them.",
)
@click.option("--data", metavar="ROWS", help="CSV or Parquet of unlabelled rows to measure on as well.")
@click.option(
    "--n", type=int, help=f"Fresh rows of the space to ask about.  [default: {ROWS}, or all stored answers left]"
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the lower bounds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed asks about other rows.")
@click.option(
    "--design",
    help="plain, or stratified: more rows where the copy is unsure.  [default: stratified, if possible]",
)
@click.option(
    "--width",
    type=float,
    help="Say how many rows would put the bound this far below the estimate.  [default: half as far as now]",
)
@click.option("--retries", type=float, help="Rows that may be sent again after failures, as a share.  [default: 0.25]")
@click.option("--report", type=click.Path(path_type=Path), metavar="PAGE.html", help="Write a page about it as well.")
@original_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    original: str | None,
    answers: tuple[str, ...],
    data: str | None,
    n: int | None,
    confidence: float,
    seed: int,
    design: str | None,
    width: float | None,
    retries: float | None,
    report: Path | None,
    about: dict[str, Any],
    as_json: bool,
) -> None:
    """Compare the copy in DIRECTORY with ORIGINAL on fresh rows of its space, none of which trained it.

    Prints fidelity with its lower bound, overall, for each class, near the copy's boundary and away from it; which
    labels are mistaken for which, conditions under which they are, and examples. With --data the same for these
    rows: its bound is about the population that they are a random sample of. With --answers likewise for answers
    that are there, but for those that the copy learned from; ORIGINAL may then be left out, and nothing is asked.
    Without either, ORIGINAL is the one that the copy was made of, opened as run.json remembers it; the word run
    means the same, and is needed where that runs code or is sent a secret. Then says how many further rows a wanted
    width of the bound would take. The copy's files are checked against their checksums and, if ECTYPE_SIGNING_KEY
    is set, their signature.

    What is asked is written to DIRECTORY/asked.sqlite before it is sent. So the same command goes on where it was
    interrupted, within a week, and asks nothing twice; once it has ended, it asks anew.

    Exit codes: 0 done; 2 bad input; 3 the original failed, and what was answered is kept, or the disk is full,
    likewise; 130 interrupted, 143 terminated by SIGTERM, likewise.
    """
    from ectype._common import validation
    from ectype.certificate.certify import (
        CERTIFY,
        allowance_for,
        certify_answers,
        certify_with_rows,
        design_for,
        sample_of,
        session_identity,
        unseen_answers,
    )
    from ectype.certificate.sample_size import sample_size_for
    from ectype.cli.copy import resumable
    from ectype.cli.progress import heard
    from ectype.cli.tables import certificate
    from ectype.ledger import Purpose, open_session
    from ectype.original.stored_answers import read_table
    from ectype.queries import describe_answers, read_sources
    from ectype.runs.result import load

    validation.fraction("confidence", confidence)
    validation.count("seed", seed, 0)
    if width is not None:
        validation.fraction("width", width)
    result = load(directory)
    known = (
        unseen_answers(read_sources(answers), result.copy, result.space, directory).require_some() if answers else None
    )
    given = None if known is None else certify_answers(result.copy, result.space, known, confidence, seed)
    if original is None and known is not None and given is not None:
        _tell_given(directory, known, given, as_json)
        return
    source = opened(original, about, directory)
    design_for(design, result.copy, source.stored is not None)  # refused before anything is asked
    if source.stored is not None:
        source = _fresh(source, result)
    n = validation.count("n", (ROWS if source.stored is None else len(source.stored[1])) if n is None else n, 1)
    rows = None if data is None else sample_of(read_table(data), result.copy, source, result.space)
    different = 0 if rows is None else rows.distinct
    most = allowance_for(source, {Purpose.CERTIFICATE: n, Purpose.DATA: different}, retries)
    words = f"{source.name} will be asked {most.planned} queries"
    say(f"{words}, and at most {most.retries} again if requests fail, {most.total} in all", err=True)
    clock = perf_counter()
    with open_session(directory, CERTIFY, source, result.space, session_identity(n, seed, design, rows)) as ledger:
        # What an original prints is no part of ours.
        with resumable(lambda: _kept(ledger)), heard() as check, redirect_stdout(sys.stderr):
            proof, asked = certify_with_rows(
                *(result.copy, source, result.space, n, confidence, seed, rows, ledger),
                retries=retries,
                design=design,
            )
            check()
        proof, plan = replace(proof, on_answers=given), sample_size_for(proof, width)
        queries = {Purpose.CERTIFICATE: n, Purpose.DATA: different}
        told = replace(result, certificate=proof, queries=_spent(result, queries))
        page = None if report is None else _reported(report, directory, told, asked, source)
        if as_json:
            seconds = round(perf_counter() - clock, 3)
            checked = {"checked": result.checked, "signature": result.signature}
            document = {"directory": str(directory), "original": source.name, "queries": queries, "seconds": seconds}
            written: Json = {} if page is None else {"report": str(page)}
            written |= {} if known is None else {"answers": known.as_json()}
            found = {"certificate": proof.as_json(), "plan": plan.as_json()}
            click.echo(json.dumps({**document, **checked, **found, **written}))
            return
        certificate(proof, data)
        if known is not None:
            say(describe_answers(known.as_json()))
        say()
        say(plan.text)
        say(f"checksums of {directory}: {'all agree' if result.checked else 'none'}; signature: {result.signature}")
        if page is not None:
            say(f"The report is {page}.")


def _kept(ledger: Session | None) -> str:
    """What is kept of answers if nothing follows them."""
    from ectype.cli.copy import KEPT, NOTHING

    return UNWRITTEN if ledger is None else KEPT if ledger.counts.answered else NOTHING


def _tell_given(directory: Path, known: PriorAnswers, given: Certificate, as_json: bool) -> None:
    """The outcome where no original is named: what the given answers alone show."""
    from ectype.cli.tables import certificate
    from ectype.queries import describe_answers

    if as_json:
        document: Json = {"directory": str(directory), "original": None, "queries": {}, "certificate": None}
        click.echo(json.dumps({**document, "on_answers": given.as_json(), "answers": known.as_json()}))
        return
    certificate(given, None, given)
    say(describe_answers(known.as_json()))


def _spent(result: Result, queries: Mapping[Purpose, int]) -> dict[str, int]:
    """The queries of a run, and those that a comparison made, as its page calls them."""
    from ectype.ledger import Purpose

    words = {Purpose.CERTIFICATE: "this comparison", Purpose.DATA: "this comparison, on rows of your own"}
    return {**result.queries, **{words[purpose]: n for purpose, n in queries.items() if n}}


def _reported(path: Path, directory: Path, result: Result, asked: Answered, source: Original) -> Path:
    """Write the page about a copy, with this certificate in place of its run's."""
    from ectype.report import PaidAnswers, write_report

    title = f"A copy of {result.settings['original']}, compared with {source.name}"
    if source.stored is not None and result.certificate is not None and result.certificate.differences is not None:
        shown = replace(result.certificate.differences, examples=())  # stored rows are the user's: a page has none
        result = replace(result, certificate=replace(result.certificate, differences=shown))
    paid = replace(PaidAnswers.of(result, directory), held_out=asked)
    return write_report(path, {result.settings["method"]: result}, title=title, answers=paid)


def _fresh(table: Original, result: Result) -> Original:
    """Stored answers; if the copy was made from this very table, those that were not used for it."""
    from ectype.ledger import Purpose
    from ectype.queries import unused_rows

    if table.fingerprint != result.settings["fingerprint"]:
        return table
    used = result.queries[Purpose.TRAINING] + result.queries[Purpose.CERTIFICATE]
    return unused_rows(table, result.settings["seed"], used)
