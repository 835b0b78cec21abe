"""`understudy copy`: copy an original into a directory."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from understudy.settings import FAMILIES, METHODS, Settings


@click.command("copy")
@click.argument("original")
@click.option("--space", "space_text", required=True, help="A space.json, normal:D, or uniform:LOW:HIGH:D.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory for the finished copy.")
@click.option(
    "--to", type=click.Choice(FAMILIES), default=Settings.to, show_default=True, help="The family of the copy."
)
@click.option("--method", type=click.Choice(METHODS), default=Settings.method, show_default=True)
@click.option("--budget", type=int, help="The most training queries.  [default: 3000]")
@click.option("--batch", type=int, default=Settings.batch, show_default=True, help="Queries per iteration.")
@click.option("--target", type=float, help="Stop when the certificate's lower bound reaches this.")
@click.option(
    "--certificate-n", type=int, default=Settings.certificate_n, show_default=True, help="Held-out queries, on top."
)
@click.option("--delta", type=float, default=Settings.delta, show_default=True, help="Drop points with rho below this.")
@click.option("--classes", help="The labels it may answer, with commas, where it does not say so itself.")
@click.option("--seed", type=int, default=Settings.seed, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(original: str, space_text: str, out: Path, classes: str | None, as_json: bool, **options: object) -> None:
    """Copy ORIGINAL, a fitted classifier or function named as package.module:name, and certify the copy.

    Exit codes: 0 done; 1 the target was not reached; 2 bad input, nothing was written; 3 the original failed.
    """
    from understudy.cli.progress import follow
    from understudy.cli.table import comparison
    from understudy.copying import copy_steps
    from understudy.original import open_original
    from understudy.report import write_report
    from understudy.space import open_space

    settings = Settings(**options)  # type: ignore[arg-type]
    checked = settings.checked()
    sys.path.insert(0, str(Path.cwd()))  # a module beside the caller is importable, as with `python -m`
    with redirect_stdout(sys.stderr):  # what an original prints is no part of ours
        opened, space = open_original(original, _classes(classes)), open_space(space_text)
    total = checked.queries + checked.certificate_n
    click.echo(
        f"{opened.name} will be asked at most {checked.queries} queries for training and {checked.certificate_n} for "
        f"the certificate, {total} in all",
        err=True,
    )
    with redirect_stdout(sys.stderr):
        result = follow(checked.method, copy_steps(opened, space, settings, out=out), checked.iterations or 1)
    report = write_report(out / "report.html", {checked.method: result}, title=f"A copy of {opened.name}")
    if as_json:
        click.echo(json.dumps({**result.summary(), "out": str(out), "report": str(report)}))
    else:
        comparison({checked.method: result})
        click.echo(f"\nThe copy is in {out}; its report is {report}.")
    if checked.target is not None and result.stopped != "target":
        click.echo(f"understudy: the target {checked.target} was not reached", err=True)
        sys.exit(1)


def _classes(text: str | None) -> list[int] | list[str] | None:
    """Labels from the command line: whole numbers if all of them are, else strings."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    try:
        return [int(word) for word in words]
    except ValueError:
        return words
