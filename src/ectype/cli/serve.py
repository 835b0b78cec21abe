"""`ectype serve`: answer in the original's place."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import Field
from functools import partial
from pathlib import Path
from signal import SIGINT
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

import click

from ectype.cli.click_groups import Grouped, GroupedOption
from ectype.cli.original_options import REMEMBERED, opened, original_options
from ectype.errors import SettingError
from ectype.serve import COLUMNS, ServeOption, ServeSettings, serve_options
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.original import Original
    from ectype.serve import Address


def _settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every setting of the server, under the setting's own name."""
    for part, about in reversed(serve_options()):
        command = _option(part, about)(command)
    return command


def _option(part: Field[Any], about: ServeOption) -> Callable[[Callable[..., None]], Callable[..., None]]:
    several = about.kind == COLUMNS
    return click.option(
        about.flag or f"--{part.name.replace('_', '-')}",
        part.name,
        cls=GroupedOption,
        group=about.group,
        shown=about.shown,
        alias=about.alias,
        type=str if several else click.Path(path_type=Path) if about.kind is Path else about.kind,
        multiple=several,
        metavar="COLUMN" if several else about.metavar,
        **({"is_flag": False, "flag_value": REMEMBERED} if part.name in ("shadow", "fallback") else {}),
        default=part.default,
        show_default=part.default not in (None, ()),
        help=f"{about.text}  [default: {about.open}]" if about.open else about.text,
    )


@click.command("serve", cls=Grouped)
@click.argument("directory", type=click.Path(path_type=Path))
@_settings_options
@partial(original_options, usual=())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path, shadow: str | None, fallback: str | None, about: Json, as_json: bool, **options: Any
) -> None:
    """Serve the copy in DIRECTORY by the Open Inference Protocol V2, at /v2/models/NAME, until it is stopped.

    It takes plain rows at /predict too, and the first protocol at /v1/models/NAME:predict; /openapi.json describes all.
    Binds to localhost unless --host says otherwise; without authentication and encryption unless --auth-env and
    --tls-cert ask for them. /metrics is for Prometheus. With --shadow, answers do not wait for the original: /shadow
    says how often it would have answered otherwise. --traffic keeps these rows and its answers for --answers of other
    commands. With --fallback, the copy answers where it is certified to agree, and the original elsewhere: /cascade
    says how often. --help-all shows the options that say how that original is asked, such as --protocol.

    Exit codes: 0 stopped by SIGTERM; 2 bad input; 130 stopped by SIGINT.
    """
    from ectype._common.portable import require_module
    from ectype.serve import run_server

    require_module(
        "fcntl", "serve, which is ended by signals", "export the copy, and have another server answer with the file"
    )
    settings = ServeSettings(
        shadow=_opener(shadow, about, directory), fallback=_opener(fallback, about, directory), **options
    )
    unused = [name for name, value in about.items() if value not in (None, ())]
    if unused and shadow is None and fallback is None:
        raise SettingError("--shadow", f"an original, since {unused[0]} is given", "none")
    if settings.fallback_n:
        click.echo(f"ectype: at most {settings.fallback_n} rows are asked first, to certify the cascade", err=True)
    announce = partial(_announce, out=sys.stdout if as_json else None)
    if run_server(directory, settings, announce) == SIGINT:
        sys.exit(130)


def _opener(spec: str | None, about: Json, directory: Path) -> Callable[[], Original] | None:
    return None if spec is None else partial(opened, spec, about, directory)


def _announce(name: str, address: Address, grpc_port: int | None, out: IO[str] | None) -> None:
    """Say where the model is, once it can be asked."""
    url = f"{address}/v2/models/{quote(name, safe='')}"
    click.echo(f"ectype: serving {url}", err=True)
    if grpc_port is not None:
        click.echo(f"ectype: serving gRPC at {address.host}:{grpc_port}", err=True)
    if out is not None:
        about = {"url": url, "host": address.host, "port": address.port, "name": name, "pid": os.getpid()}
        also = {} if grpc_port is None else {"grpc_port": grpc_port}
        click.echo(json.dumps({**about, **also}), file=out)
