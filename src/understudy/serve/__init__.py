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

from understudy.serve.limits import KEPT_DAYS, KEPT_ROWS, WAITING_ROWS, Limits

if TYPE_CHECKING:
    from understudy.original import Original
    from understudy.serve.app import Service

__all__ = ["service"]


def service(
    directory: str | Path,
    *,
    name: str | None = None,
    version: str = "1",
    max_bytes: int = Limits.bytes,
    max_rows: int = Limits.rows,
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

    The arguments are the options of `understudy serve`; `shadow` opens the original that is asked too, for example
    `lambda: us.open_original("http://...", protocol="v2")`, and `fallback` the one that is asked where the copy does
    not answer alone. `keep` is a directory for the answers of `shadow` to real rows. With a `token`, clients have to
    send it.
    """
    from understudy.errors import SettingError
    from understudy.serve.behind import behind
    from understudy.serve.build import Beside, loaded
    from understudy.serve.keeping import kept_as

    for option, value in (("--shadow-log", shadow_log), ("--keep", keep)):
        if shadow is None and value is not None:
            raise SettingError("--shadow", f"an original, since {option} is given", "none")
    log = None if shadow_log is None else Path(shadow_log)
    kept = kept_as(keep, keep_rows, keep_days, keep_without, keep_masked)
    beside = None if shadow is None else Beside(shadow, log, shadow_rows, kept)
    limits = Limits(max_bytes, max_rows)
    cascade = behind(
        fallback,
        agree=agree,
        on_outage=fallback_outage,
        n=fallback_n,
        rows=fallback_rows,
        seconds=fallback_timeout,
        pause=fallback_pause,
    )
    return loaded(Path(directory), name, version, limits).service(limits, beside, token, behind=cascade)
