"""`ectype card`: what an auditor wants to know about a copy, as Markdown."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("card")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="The file to write.  [default: card.md in DIRECTORY]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(directory: Path, out: Path | None, as_json: bool) -> None:
    """Write a model card about the copy in DIRECTORY: what was copied, inputs, queries, certificate, limits, hashes.

    All files are checked against their checksums and, if ECTYPE_SIGNING_KEY is set, their signature. With --out the
    card goes elsewhere, and DIRECTORY may be read-only.
    """
    from ectype._common.atomic_io import write_text
    from ectype.report import model_card

    text, path = model_card(directory), out or directory / "card.md"
    write_text(path, text)
    click.echo(json.dumps({"card": str(path)}) if as_json else path)
