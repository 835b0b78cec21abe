"""`ectype paper import`: the public archive of the paper's problems as a folder."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("import")
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write, for --data.")
@click.option("--all", "everything", is_flag=True, help="Every problem of the archive, not only the paper's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def import_command(archive: Path, out: Path, everything: bool, as_json: bool) -> None:
    """Read ARCHIVE, a .zip, a .tar.gz or a folder with files <name>/<name>_R.dat, into a folder of problems."""
    from ectype.paper.archive import import_archive
    from ectype.paper.originals import FAMILY_OF

    found = import_archive(archive, out, None if everything else tuple(FAMILY_OF))
    missing = sorted(FAMILY_OF.keys() - {*found})
    if as_json:
        click.echo(json.dumps({"out": str(out), "problems": list(found), "missing": missing}))
        return
    if missing:
        click.echo(f"not in the archive: {', '.join(missing)}", err=True)
    click.echo(f"{len(found)} problems are in {out}.")
