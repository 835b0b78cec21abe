"""A copy in the original's place: the Open Inference Protocol V2 over HTTP, counted, and compared with the original.

`v2` and `plain` read what a request asks, as `tensors` (in JSON, or `binary`); `reading` makes rows of them, `model` an
answer, and `desk` decides when. `routes` knows the paths, `app` is the ASGI application that holds them together, and
`openapi` describes it; `server` and `workers` have uvicorn serve it, with `protocol` for each client, and `grpc_front`
serves gRPC. `counts` and `metrics` are what /metrics shows. `shadow` asks the original too, and `keeping` keeps its
answers; `fallback` asks where the copy is not certified to agree, `behind` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ectype.serve._app import Service, words_of
from ectype.serve._cascade_config import CascadeConfig, build_cascade
from ectype.serve._factory import LoadedServices, ShadowConfig, load_services
from ectype.serve._grpc_server import available
from ectype.serve._limits import KEPT_DAYS, KEPT_ROWS, WAITING_ROWS, ServeLimits
from ectype.serve._server import Address, Config, Listeners, Server, Started, bound
from ectype.serve._shared_counters import SharedCounters, shared, size
from ectype.serve._traffic_log import TrafficSettings, kept_as
from ectype.serve._worker_processes import Workers, WorkerSettings

__all__ = [
    "KEPT_DAYS",
    "KEPT_ROWS",
    "WAITING_ROWS",
    "Address",
    "CascadeConfig",
    "Config",
    "Listeners",
    "LoadedServices",
    "ServeLimits",
    "Server",
    "Service",
    "ShadowConfig",
    "SharedCounters",
    "Started",
    "TrafficSettings",
    "WorkerSettings",
    "Workers",
    "available",
    "bound",
    "build_cascade",
    "kept_as",
    "load_services",
    "service",
    "shared",
    "size",
    "words_of",
]

if TYPE_CHECKING:
    from ectype.original import Original
    from ectype.serve._app import Service


def service(
    directory: str | Path,
    *,
    name: str | None = None,
    version: str = "1",
    max_bytes: int = ServeLimits.bytes,
    max_rows: int = ServeLimits.rows,
    shadow: Callable[[], Original] | None = None,
    shadow_log: str | Path | None = None,
    shadow_rows: int = WAITING_ROWS,
    keep: str | Path | None = None,
    keep_rows: int = KEPT_ROWS,
    keep_days: float = KEPT_DAYS,
    keep_without: Sequence[str] = (),
    keep_masked: Sequence[str] = (),
    fallback: Callable[[], Original] | None = None,
    agree: float | None = None,
    fallback_outage: str | None = None,
    fallback_n: int | None = None,
    fallback_rows: int | None = None,
    fallback_timeout: float | None = None,
    fallback_pause: float | None = None,
    token: str | None = None,
) -> Service:
    """The copy in a run's directory as an ASGI application, for uvicorn, hypercorn or another server.

    The arguments are the options of `ectype serve`; `shadow` opens the original that is asked too, for example
    `lambda: ec.open_original("http://...", protocol="v2")`, and `fallback` the one that is asked where the copy does
    not answer alone. `keep` is a directory for the answers of `shadow` to real rows. With a `token`, clients have to
    send it.
    """
    from ectype.errors import SettingError
    from ectype.serve._cascade_config import build_cascade
    from ectype.serve._factory import ShadowConfig, load_services
    from ectype.serve._traffic_log import kept_as

    for option, value in (("--shadow-log", shadow_log), ("--keep", keep)):
        if shadow is None and value is not None:
            raise SettingError("--shadow", f"an original, since {option} is given", "none")
    log = None if shadow_log is None else Path(shadow_log)
    kept = kept_as(keep, keep_rows, keep_days, keep_without, keep_masked)
    beside = None if shadow is None else ShadowConfig(shadow, log, shadow_rows, kept)
    limits = ServeLimits(max_bytes, max_rows)
    cascade = build_cascade(
        fallback,
        agree=agree,
        on_outage=fallback_outage,
        n=fallback_n,
        rows=fallback_rows,
        seconds=fallback_timeout,
        pause=fallback_pause,
    )
    return load_services(Path(directory), name, version, limits).service(limits, beside, token, behind=cascade)
