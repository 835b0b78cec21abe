"""A copy in the original's place: the Open Inference Protocol V2 over HTTP, counted, and compared with the original.

A request goes from `_http_protocol` (one client's connection, for uvicorn in `_server` and `_worker_processes`) through
`_app` and `_routes`; `_v2` and `_plain_json` read it as `_tensors`, `_row_parser` makes rows of them, and
`_micro_batcher` has `_inference` answer. `_shadow` asks the original too, and `_traffic_log` keeps its answers;
`_fallback` asks it where the copy is not certified to agree. `_settings` declares every option.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from ectype.serve._libraries import APPLICATION, SERVER, require_libraries
from ectype.serve._settings import COLUMNS, Address, ServeOption, ServeSettings, ServiceSettings, serve_options

__all__ = ["COLUMNS", "Address", "ServeOption", "ServeSettings", "run_server", "serve_options", "service"]

if TYPE_CHECKING:
    from ectype.serve._app import Service
    from ectype.serve._run import Started

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")


def _takes(settings: Callable[P, S]) -> Callable[[Callable[[Path, S], R]], Callable[Concatenate[str | Path, P], R]]:
    """Give a function the parameters of settings, which are declared in one place; `keep` is `traffic` too."""

    def decorated(function: Callable[[Path, S], R]) -> Callable[Concatenate[str | Path, P], R]:
        @wraps(function)
        def taking(directory: str | Path, *given: P.args, **named: P.kwargs) -> R:
            if "keep" in named:
                named["traffic"] = named.pop("keep")
            return function(Path(directory), settings(*given, **named))

        first = Parameter("directory", Parameter.POSITIONAL_OR_KEYWORD, annotation="str | Path")
        found = signature(settings)
        cast(Any, taking).__signature__ = found.replace(
            parameters=[first, *found.parameters.values()], return_annotation=function.__annotations__["return"]
        )
        return cast(Any, taking)

    return decorated


@_takes(ServiceSettings)
def service(directory: Path, settings: ServiceSettings) -> Service:
    """The copy in a run's directory as an ASGI application, for uvicorn, hypercorn or another server.

    The arguments are the options of `ectype serve`; `shadow` opens the original that is asked too, for example
    `lambda: ec.open_original("http://...", protocol="v2")`, and `fallback` the one that is asked where the copy does
    not answer alone. `traffic` is a directory for the answers of `shadow` to real rows. With a `token`, clients have to
    send it.
    """
    require_libraries("service", "serve", *APPLICATION)
    from ectype.serve._factory import build_service, load_copy

    return build_service(load_copy(directory, settings), settings)


def run_server(directory: Path, settings: ServeSettings, started: Started) -> int | None:
    """Serve the copy in a run's directory until a signal, which is returned."""
    require_libraries("serve", "serve", *SERVER)
    if settings.grpc_port is not None:
        require_libraries("--grpc-port", "grpc", "grpc")
    from ectype.serve._run import run

    return run(directory, settings, started)
