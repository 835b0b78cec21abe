"""`ectype serve`: answer in the original's place."""

from __future__ import annotations

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

from ectype._common import validation
from ectype.cli.click_groups import Grouped
from ectype.cli.fallback_options import behind_of, fallback_options
from ectype.cli.original_options import opened, original_options
from ectype.cli.traffic_options import keep_options
from ectype.errors import SettingError
from ectype.serve import WAITING_ROWS, ServeLimits
from ectype.types import Json

if TYPE_CHECKING:
    from ectype.serve import Address, Listeners, LoadedServices, Service, ShadowConfig, Started, TrafficSettings

_LIMITS = (
    click.option(
        "--max-bytes", type=int, default=ServeLimits.bytes, show_default=True, help="The longest request body."
    ),
    click.option(
        "--max-rows", type=int, default=ServeLimits.rows, show_default=True, help="The most rows of a request."
    ),
    click.option(
        "--max-connections",
        type=int,
        default=ServeLimits.connections,
        show_default=True,
        help="The most clients at once.",
    ),
    click.option(
        "--client-timeout",
        type=float,
        default=ServeLimits.seconds,
        show_default=True,
        help="Seconds that a client has to send a request, to read its answer, and may be idle.",
    ),
    click.option(
        "--drain",
        type=float,
        default=ServeLimits.drain,
        show_default=True,
        help="Seconds to go on for when stopped, as not ready, until nobody is sent here any more.",
    ),
    click.option(
        "--grace", type=float, default=ServeLimits.grace, show_default=True, help="Seconds to finish in when stopped."
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
        limits = ServeLimits(max_bytes, max_rows, max_connections, client_timeout, grace, drain)
        command(limits=limits, **others)

    for option in reversed(_LIMITS):
        with_limits = option(with_limits)
    return with_limits


@click.command("serve", cls=Grouped)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--name", help="The model's name in its URL.  [default: the directory's]")
@click.option("--model-version", default="1", show_default=True, help="The model's version in its URL.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, default=8080, show_default=True, help="The port to listen on; 0 is any.")
@click.option("--grpc-port", type=int, help="A port for V2 over gRPC as well; 0 is any.  [default: none]")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="A PEM file with a certificate: serve by TLS.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="A PEM file with the certificate's key.")
@click.option("--auth-env", metavar="NAME", help="The environment variable with the token that clients must send.")
@click.option("--workers", type=int, default=1, show_default=True, help="How many processes answer.")
@_limit_options
@click.option("--shadow", metavar="ORIGINAL", help="Ask this original too, and count where it answers otherwise.")
@click.option("--shadow-log", type=click.Path(path_type=Path), help="A CSV file for rows that it answers otherwise.")
@click.option(
    "--shadow-rows", type=int, default=WAITING_ROWS, show_default=True, help="The most rows that wait for it."
)
@keep_options
@fallback_options
@original_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(
    directory: Path,
    name: str | None,
    model_version: str,
    host: str,
    port: int,
    grpc_port: int | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    auth_env: str | None,
    workers: int,
    limits: ServeLimits,
    shadow: str | None,
    shadow_log: Path | None,
    shadow_rows: int,
    keep: TrafficSettings | None,
    fallback: Json,
    about: Json,
    as_json: bool,
) -> None:
    """Serve the copy in DIRECTORY by the Open Inference Protocol V2, at /v2/models/NAME, until it is stopped.

    It takes plain rows at /predict too, and the first protocol at /v1/models/NAME:predict; /openapi.json describes all.
    Binds to localhost unless --host says otherwise; without authentication and encryption unless --auth-env and
    --tls-cert ask for them. /metrics is for Prometheus. With --shadow, answers do not wait for the original: /shadow
    says how often it would have answered otherwise. --keep keeps these rows and its answers for --answers of other
    commands. With --fallback, the copy answers where it is certified to agree, and the original elsewhere: /cascade
    says how often. The options from --classes on say how that original is asked.

    Exit codes: 0 stopped by SIGTERM; 2 bad input; 130 stopped by SIGINT.
    """
    from ectype._common.portable import require_module
    from ectype.serve import load_services

    require_module(
        "fcntl", "serve, which is ended by signals", "export the copy, and have another server answer with the file"
    )
    fronts = _fronts(host, port, grpc_port, tls_cert, tls_key)
    token, cascade = _token(auth_env), behind_of(fallback, about)
    beside = _beside(shadow, shadow_log, shadow_rows, keep, about, cascade is not None)
    validation.count("--workers", workers, 1, 1 if beside is not None or cascade is not None else 1024)
    copy = load_services(directory, name, model_version, limits)
    announce = partial(_announce, name=copy.model.name, out=sys.stdout if as_json else None)
    if workers == 1:
        with redirect_stdout(sys.stderr):  # what an original prints when it is asked before that
            service = copy.service(limits, beside, token, behind=cascade)
        stopped_by = _served(service, fronts, announce)
    else:
        stopped_by = _served_by_workers(workers, copy, directory, limits, fronts, token, announce)
    if stopped_by == SIGINT:
        sys.exit(130)


def _fronts(host: str, port: int, grpc_port: int | None, cert: Path | None, key: Path | None) -> Listeners:
    """Where to listen, and how."""
    from ectype.serve import Address, Listeners

    if (cert is None) != (key is None):
        raise SettingError("--tls-cert and --tls-key", "both or none", "one")
    tls = None if cert is None or key is None else (cert, key)
    if grpc_port is not None:
        from ectype.serve import available

        validation.count("--grpc-port", grpc_port, 0, 65535)
        available()
    return Listeners(Address(host, validation.count("--port", port, 0, 65535)), grpc_port, tls)


def _token(variable: str | None) -> str | None:
    """The token that clients must send."""
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if not token:
        raise SettingError("--auth-env", "an environment variable that holds a token", f"{variable}, which is empty")
    return token


def _beside(
    shadow: str | None, log: Path | None, rows: int, keep: TrafficSettings | None, about: Json, cascaded: bool
) -> ShadowConfig | None:
    """The parallel run; without one or a cascade, the options that would be of no use are refused."""
    from ectype.serve import ShadowConfig

    if shadow is not None:
        return ShadowConfig(partial(opened, shadow, about), log, rows, keep)
    given = ["--shadow-log"] * (log is not None) + ["--keep"] * (keep is not None)
    given += [name for name, value in about.items() if value not in (None, ()) and not cascaded]
    if given:
        raise SettingError("--shadow", f"an original, since {given[0]} is given", "none")
    return None


def _served(service: Service, fronts: Listeners, announce: Started) -> Signals | None:
    """Serve until a signal, which is returned."""
    from ectype.serve import Config, Server, bound

    server = Server(Config(service, fronts), announce)
    server.run([bound(fronts.address)])
    _say_goodbye(service.counts.requests)
    return server.stopped_by


def _served_by_workers(
    n: int,
    copy: LoadedServices,
    directory: Path,
    limits: ServeLimits,
    fronts: Listeners,
    token: str | None,
    announce: Started,
) -> Signals | None:
    """Let several processes serve until a signal, which is returned."""
    from ectype.serve import SharedCounters, Workers, WorkerSettings, shared, size, words_of

    words, model = words_of(copy.model), copy.model
    table = shared(n, size(words))
    workers = Workers(n, WorkerSettings(directory, model.name, model.version, limits, token, table), fronts, announce)
    workers.run()
    _say_goodbye(SharedCounters(words, table).requests)
    return workers.stopped_by


def _say_goodbye(requests: float) -> None:
    click.echo(f"ectype: stopped after {requests:.0f} requests", err=True)


def _announce(address: Address, grpc_port: int | None, name: str, out: IO[str] | None) -> None:
    """Say where the model is, once it can be asked."""
    url = f"{address}/v2/models/{quote(name, safe='')}"
    click.echo(f"ectype: serving {url}", err=True)
    if grpc_port is not None:
        click.echo(f"ectype: serving gRPC at {address.host}:{grpc_port}", err=True)
    if out is not None:
        about = {"url": url, "host": address.host, "port": address.port, "name": name, "pid": os.getpid()}
        also = {} if grpc_port is None else {"grpc_port": grpc_port}
        click.echo(json.dumps({**about, **also}), file=out)
