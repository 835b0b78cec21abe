"""`understudy serve`: answer in the original's place."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial, wraps
from pathlib import Path
from signal import SIGINT, Signals
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

import click

from understudy import checks
from understudy.cli.original import opened, original_options
from understudy.errors import SettingError
from understudy.serve.limits import WAITING_ROWS, Limits
from understudy.types import Json

if TYPE_CHECKING:
    from understudy.serve.app import Service
    from understudy.serve.build import Beside
    from understudy.serve.server import Address

_LIMITS = (
    click.option("--max-bytes", type=int, default=Limits.bytes, show_default=True, help="The longest request body."),
    click.option("--max-rows", type=int, default=Limits.rows, show_default=True, help="The most rows of a request."),
    click.option(
        "--max-connections", type=int, default=Limits.connections, show_default=True, help="The most clients at once."
    ),
    click.option(
        "--client-timeout",
        type=float,
        default=Limits.seconds,
        show_default=True,
        help="Seconds that a client has to send a request, to read its answer, and may be idle.",
    ),
    click.option(
        "--drain",
        type=float,
        default=Limits.drain,
        show_default=True,
        help="Seconds to go on for when stopped, as not ready, until nobody is sent here any more.",
    ),
    click.option(
        "--grace", type=float, default=Limits.grace, show_default=True, help="Seconds to finish in when stopped."
    ),
)


def _limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that limit its clients; they reach it as one `limits`."""

    @wraps(command)
    def with_limits(
        max_bytes: int,
        max_rows: int,
        max_connections: int,
        client_timeout: float,
        drain: float,
        grace: float,
        **others: object,
    ) -> None:
        limits = Limits(max_bytes, max_rows, max_connections, client_timeout, grace, drain)
        command(limits=limits, **others)

    for option in reversed(_LIMITS):
        with_limits = option(with_limits)
    return with_limits


@click.command("serve")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", help="The model's name in its URL.  [default: the directory's]")
@click.option("--model-version", default="1", show_default=True, help="The model's version in its URL.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, default=8080, show_default=True, help="The port to listen on; 0 is any.")
@_limit_options
@click.option("--shadow", metavar="ORIGINAL", help="Ask this original too, and count where it answers otherwise.")
@click.option("--shadow-log", type=click.Path(path_type=Path), help="A CSV file for rows that it answers otherwise.")
@click.option(
    "--shadow-rows", type=int, default=WAITING_ROWS, show_default=True, help="The most rows that wait for it."
)
@original_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    name: str | None,
    model_version: str,
    host: str,
    port: int,
    limits: Limits,
    shadow: str | None,
    shadow_log: Path | None,
    shadow_rows: int,
    about: Json,
    as_json: bool,
) -> None:
    """Serve the copy in DIRECTORY by the Open Inference Protocol V2, at /v2/models/NAME, until it is stopped.

    Binds to localhost unless --host says otherwise; no authentication and no encryption: put a proxy that has them in
    front. /metrics is for Prometheus. With --shadow, answers do not wait for the original: /shadow says how often it
    would have answered otherwise. The options from --classes on say how that original is asked.

    Exit codes: 0 stopped by SIGTERM; 2 bad input; 130 stopped by SIGINT.
    """
    from understudy.serve.build import build
    from understudy.serve.server import Address

    address = Address(host, checks.count("--port", port, 0, 65535))
    beside = _beside(shadow, shadow_log, shadow_rows, about)
    service = build(directory, name, model_version, limits, beside)
    if _served(service, address, limits, sys.stdout if as_json else None) == SIGINT:
        sys.exit(130)


def _beside(shadow: str | None, log: Path | None, rows: int, about: Json) -> Beside | None:
    """The parallel run; without one, the options that would be of no use are refused."""
    from understudy.serve.build import Beside

    if shadow is not None:
        return Beside(partial(opened, shadow, about), log, rows)
    given = ["--shadow-log"] * (log is not None) + [name for name, value in about.items() if value not in (None, ())]
    if given:
        raise SettingError("--shadow", f"an original, since {given[0]} is given", "none")
    return None


def _served(service: Service, address: Address, limits: Limits, out: IO[str] | None) -> Signals:
    """Serve until a signal, which is returned."""
    from threadpoolctl import threadpool_limits

    from understudy.serve.server import serve

    announce = partial(_announce, name=service.model.name, out=out)
    # One thread for products of matrices: those of a request are small, and threads that wait for each other spin.
    # What an original prints is no part of ours.
    with threadpool_limits(1), redirect_stdout(sys.stderr):
        stopped_by = asyncio.run(serve(service, address, limits, announce))
    click.echo(f"understudy: stopped after {service.counts.requests:.0f} requests", err=True)
    return stopped_by


def _announce(address: Address, name: str, out: IO[str] | None) -> None:
    """Say where the model is, once it can be asked."""
    url = f"{address}/v2/models/{quote(name, safe='')}"
    click.echo(f"understudy: serving {url}", err=True)
    if out is not None:
        about = {"url": url, "host": address.host, "port": address.port, "name": name, "pid": os.getpid()}
        click.echo(json.dumps(about), file=out)
