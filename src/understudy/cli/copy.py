"""`understudy copy`: copy an original into a directory."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from understudy.algorithm.draws import DRAWS
from understudy.cli.original import opened, original_options
from understudy.errors import OriginalError, SettingError
from understudy.runs.settings import AUTO, FAMILIES, METHODS, PRESETS, Settings

if TYPE_CHECKING:
    from understudy.original import Original
    from understudy.space import Space


RESUMES = "what was answered is kept, and the same command goes on from there"


@click.command("copy")
@click.argument("original")
@click.option("--space", "space_text", help="A space.json, normal:D, or uniform:LOW:HIGH:D; stored answers need none.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the finished copy.")
@click.option(
    "--to", type=click.Choice([*FAMILIES, AUTO]), default=Settings.to, show_default=True, help="The family of the copy."
)
@click.option("--method", type=click.Choice(METHODS), default=Settings.method, show_default=True)
@click.option("--budget", type=int, help="The most training queries.  [default: 3000]")
@click.option(
    "--batch", type=int, help="Queries per iteration.  [default: 100, or a third of the budget with --preset fast]"
)
@click.option("--target", type=float, help="Stop when the certificate's lower bound reaches this.")
@click.option("--until-flat", is_flag=True, help="Stop when further queries hardly make the copy more faithful.")
@click.option(
    "--certificate-n", type=int, default=Settings.certificate_n, show_default=True, help="Held-out queries, on top."
)
@click.option(
    "--preset",
    type=click.Choice(tuple(PRESETS)),
    default=Settings.preset,
    show_default=True,
    help="What settings are where they are not given.",
)
@click.option("--delta", type=float, help="Drop points with rho below this.  [default: as --max-kept says]")
@click.option(
    "--max-kept",
    type=int,
    help="The most points kept in any round.  [default: 5000, and 15 % of the budget at the end]",
)
@click.option("--max-depth", type=int, help="How deep trees may grow.")
@click.option("--max-leaves", type=int, help="How many leaves a tree may have.")
@click.option("--exclude", multiple=True, metavar="COLUMN", help="A column that the copy may not see; may be repeated.")
@click.option(
    "--increasing", multiple=True, metavar="COLUMN", help="The last of two classes may only get likelier with it."
)
@click.option("--decreasing", multiple=True, metavar="COLUMN", help="The last of two classes may only get unlikelier.")
@click.option("--max-bytes", type=int, help="The most bytes that the copy may take.")
@click.option("--max-latency", type=float, help="The most milliseconds that it may take for a single row.")
@click.option(
    "--layers",
    callback=lambda context, option, text: layers(text),
    help=f"The hidden layers of the network.  [default: {','.join(map(str, Settings.layers))}]",
)
@click.option("--draw", type=click.Choice(DRAWS), help=f"Which rows to ask.  [default: {PRESETS['default'].draw}]")
@click.option(
    "--repeat", type=float, default=Settings.repeat, show_default=True, help="The share of queries asked again."
)
@click.option("--seed", type=int, default=Settings.seed, show_default=True)
@original_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    original: str, space_text: str | None, out: Path, about: dict[str, Any], as_json: bool, **options: object
) -> None:
    """Copy ORIGINAL, and certify the copy. The same command goes on where it was interrupted.

    ORIGINAL is a fitted classifier or function as package.module:name, a file model.onnx, model.skops or, with --trust,
    model.pkl or .joblib, an endpoint http(s)://... with its --protocol, a program cmd:... that reads CSV rows and
    prints a label per line, or answers.csv, a table of stored answers.

    Exit codes: 0 done; 1 the target was not reached; 2 bad input, nothing was written; 3 the original failed, and what
    was answered is kept; 130 interrupted, likewise.
    """
    from understudy.certificate.bounds import lower_bound
    from understudy.cli.progress import follow
    from understudy.cli.table import comparison
    from understudy.report import write_report
    from understudy.runs.copying import copy_steps

    settings = Settings(**options)  # type: ignore[arg-type]
    settings.checked()  # before anything is opened
    source = opened(original, about)
    if source.stored is not None:
        settings = replace(settings, repeat=0.0)
    checked, space = settings.checked(), _space(space_text, source)
    click.echo(
        f"{source.name} will be asked at most {checked.queries} queries for training, {checked.certificate_n} for the "
        f"certificate and {checked.repeats} again, {checked.total} in all",
        err=True,
    )
    most = lower_bound(checked.certificate_n, checked.certificate_n, checked.confidence) if checked.target else 1.0
    if checked.target is not None and checked.target > most:
        click.echo(f"{checked.certificate_n} held-out rows can show {most:.4f} at most, if all agree", err=True)
    try:
        with redirect_stdout(sys.stderr):  # what an original prints is no part of ours
            result = follow(checked.method, copy_steps(source, space, settings, out=out), checked.iterations or 1)
    except OriginalError as error:
        if not (out / "ledger.sqlite").is_file():
            raise
        hint = "; ".join(filter(None, (error.hint, RESUMES)))
        raise type(error)(error.where, error.expected, error.found, hint) from error
    report = write_report(out / "report.html", {checked.method: result}, title=f"A copy of {source.name}")
    if as_json:
        click.echo(json.dumps({**result.summary(), "out": str(out), "report": str(report)}))
    else:
        comparison({checked.method: result})
        for one in result.tried[:1]:
            click.echo(f"\nThe copy is a {one['family']}, taught by {one['teacher']}, of {one['bytes']} bytes.")
        click.echo(f"\nThe copy is in {out}; its report is {report}.")
    if checked.target is not None and result.stopped != "target":
        why = "" if result.diagnosis is None else f": {result.diagnosis.text}"
        click.echo(f"understudy: the target {checked.target} was not reached{why}", err=True)
        sys.exit(1)


def layers(text: str | None) -> Sequence[int]:
    """The sizes of layers that the command line names.

    >>> layers("16,8")
    (16, 8)
    """
    try:
        return Settings.layers if text is None else tuple(int(size) for size in text.split(","))
    except ValueError as error:
        raise SettingError("--layers", "sizes such as 64,32,10", repr(text)) from error


def _space(text: str | None, source: Original) -> Space:
    """The space named; else, for stored answers, what their own rows show."""
    from understudy.space import Space, open_space

    if text is not None:
        return open_space(text)
    if source.stored is None:
        raise SettingError("--space", "a space.json, normal:D, or uniform:LOW:HIGH:D", "nothing")
    return Space.from_data(source.stored[0])
