"""`understudy serve`: answer in the original's place."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from signal import SIGINT
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import click

from understudy import checks
from understudy.cli.original import opened, original_options
from understudy.errors import SettingError, UnderstudyWarning

if TYPE_CHECKING:
    from understudy.models.classifier import CopyClassifier
    from understudy.serve.server import Address
    from understudy.serve.shadow import Shadow


@click.command("serve")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", help="The model's name in its URL.  [default: the directory's]")
@click.option("--model-version", default="1", show_default=True, help="The model's version in its URL.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, default=8080, show_default=True, help="The port to listen on; 0 is any.")
@click.option("--max-bytes", type=int, default=4 * 2**20, show_default=True, help="The longest body of a request.")
@click.option("--max-rows", type=int, default=10_000, show_default=True, help="The most rows of a request.")
@click.option("--max-connections", type=int, default=256, show_default=True, help="The most clients at once.")
@click.option(
    "--client-timeout",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds that a client has to send a request, to read its answer, and may be idle.",
)
@click.option("--grace", type=float, default=10.0, show_default=True, help="Seconds to finish in when stopped.")
@click.option("--shadow", metavar="ORIGINAL", help="Ask this original too, and count where it answers otherwise.")
@click.option("--shadow-log", type=click.Path(path_type=Path), help="A CSV file for rows that it answers otherwise.")
@click.option("--shadow-rows", type=int, default=10_000, show_default=True, help="The most rows that wait for it.")
@original_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    name: str | None,
    model_version: str,
    host: str,
    port: int,
    max_bytes: int,
    max_rows: int,
    max_connections: int,
    client_timeout: float,
    grace: float,
    shadow: str | None,
    shadow_log: Path | None,
    shadow_rows: int,
    about: dict[str, Any],
    as_json: bool,
) -> None:
    """Serve the copy in DIRECTORY by the Open Inference Protocol V2, at /v2/models/NAME, until it is stopped.

    Nobody but this machine is listened to, unless --host says so; there is no password and no encryption, so put what
    has them in front. /metrics is for Prometheus. With --shadow, answers do not wait for the original: /shadow says how
    often it would have answered otherwise. The options from --classes on say how that original is asked.

    Exit codes: 0 stopped by SIGTERM; 2 bad input; 130 stopped by SIGINT.
    """
    from understudy.runs.result import load
    from understudy.serve.connection import Limits
    from understudy.serve.model import Model
    from understudy.serve.routes import Service
    from understudy.serve.server import Address, serve

    address = Address(host, checks.count("--port", port, 0, 65535))
    seconds = checks.number("--client-timeout", client_timeout, "a number above 0", 5e-324, float("inf"))
    limits = Limits(checks.count("--max-bytes", max_bytes, 1), seconds)
    most_rows = checks.count("--max-rows", max_rows, 1)
    most_clients = checks.count("--max-connections", max_connections, 1)
    grace = checks.number("--grace", grace, "a number of at least 0", 0, float("inf"))
    waiting = checks.count("--shadow-rows", shadow_rows, 1)
    label = _segment("--name", directory.resolve().name if name is None else name)
    version = _segment("--model-version", model_version)
    _check_shadow(shadow, shadow_log, about)
    result = load(directory)
    model = Model(result.copy, label, version, most_rows)
    # Levels that the space does not have are answered as the copy answers them; a warning for each would fill a disk.
    warnings.simplefilter("ignore", UnderstudyWarning)
    beside = None if shadow is None else _shadow(shadow, about, result.copy, shadow_log, waiting)
    service = Service(model, result.certificate, beside)
    announce = partial(_announce, name=label, out=sys.stdout if as_json else None)
    try:
        with redirect_stdout(sys.stderr):  # what an original prints is no part of ours
            running = serve(service, address, limits, most_connections=most_clients, grace=grace, started=announce)
            stopped_by = asyncio.run(running)
    finally:
        service.close(grace)
    click.echo(f"understudy: stopped after {service.requests.total:.0f} requests", err=True)
    if stopped_by == SIGINT:
        sys.exit(130)


def _segment(option: str, text: str) -> str:
    """A part of a URL's path."""
    if not text or "/" in text:
        raise SettingError(option, "a word without a slash", repr(text))
    return text


def _check_shadow(shadow: str | None, log: Path | None, about: dict[str, Any]) -> None:
    """Refuse options that would be of no use."""
    given = ["--shadow-log"] * (log is not None) + [name for name, value in about.items() if value not in (None, ())]
    if shadow is None and given:
        raise SettingError("--shadow", f"an original, since {given[0]} is given", "none")


def _shadow(spec: str, about: dict[str, Any], copy: CopyClassifier, log: Path | None, rows: int) -> Shadow:
    if copy.excluded:
        hint = "leave it out: what is served takes no column that was kept from the copy, and the original needs them"
        raise SettingError("--shadow", "a copy that sees every column", f"{len(copy.excluded)} kept from it", hint)
    from understudy.serve.shadow import Shadow

    return Shadow(partial(opened, spec, about), copy, log=log, most_rows=rows)


def _announce(address: Address, name: str, out: IO[str] | None) -> None:
    """Say where the model is, once it can be asked."""
    url = f"{address}/v2/models/{quote(name, safe='')}"
    click.echo(f"understudy: serving {url}", err=True)
    if out is not None:
        about = {"url": url, "host": address.host, "port": address.port, "name": name, "pid": os.getpid()}
        click.echo(json.dumps(about), file=out)
