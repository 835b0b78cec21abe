"""Serve a run's copy until a signal, in this process or in several."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from signal import Signals

from ectype.serve._app import label_words
from ectype.serve._factory import build_service, load_copy
from ectype.serve._server import Server, UvicornConfig, bind_socket
from ectype.serve._settings import Address, ServeSettings
from ectype.serve._shared_counters import SharedCounters, shared_table, table_width
from ectype.serve._worker_processes import Workers, WorkerSettings

Started = Callable[[str, Address, int | None], None]
"""Called once the service can be asked, with the model's name, its address, and the port for gRPC."""


def run(directory: Path, settings: ServeSettings, started: Started) -> Signals | None:
    """Serve until a signal, which is returned."""
    copy = load_copy(directory, settings)
    announce = partial(started, copy.model.name)
    if settings.workers == 1:
        with redirect_stdout(sys.stderr):  # what an original prints when it is asked before that
            service = build_service(copy, settings)
        server = Server(UvicornConfig(service, settings), announce)
        server.run([bind_socket(settings.address)])
        _log_end(service.counts)
        return server.stopped_by
    labels = label_words(copy.model)
    table = shared_table(settings.workers, table_width(labels))
    workers = Workers(WorkerSettings(directory, settings, table), announce)
    workers.run()
    _log_end(SharedCounters(labels, table))
    return workers.stopped_by


def _log_end(counts: SharedCounters) -> None:
    print(f"ectype: stopped after {counts.requests:.0f} requests", file=sys.stderr)
