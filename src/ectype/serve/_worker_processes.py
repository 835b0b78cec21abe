"""Several processes that serve one copy on one port; uvicorn's supervisor replaces those that die."""

from __future__ import annotations

import logging
import multiprocessing.connection
import os
import signal
import socket
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from ectype.errors import EctypeError, SettingError
from ectype.serve._app import Service, label_words
from ectype.serve._factory import build_service, load_copy
from ectype.serve._server import Server, Started, UvicornConfig, bind_socket
from ectype.serve._settings import ServeSettings
from ectype.serve._shared_counters import SharedCounters

LOG = logging.getLogger(__name__)

# How long a worker may be silent until it counts as hung: one that loads a large copy is so for a while.
HUNG_SECONDS = 60


@dataclass(frozen=True)
class WorkerSettings:
    """The arguments of a worker: the directory of the copy, the settings, and its row of the counts."""

    directory: Path
    settings: ServeSettings
    counts: Any
    worker: int = 0

    def __call__(self) -> Service:
        """The service of one worker."""
        copy = load_copy(self.directory, self.settings)
        counts = SharedCounters(label_words(copy.model), self.counts, self.worker)
        return build_service(copy, self.settings, counts)


class Worker(Process):
    """A process that serves. It ends with its parent, and hears of Ctrl-C from that alone."""

    ready = False

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the process of the worker."""
        os.setpgid(0, 0)
        # Before uvicorn starts a thread that tells whether the server has started: two threads would make one each.
        self._server = Server(self.config)  # type: ignore[arg-type]
        try:
            super().target(sockets)
        except EctypeError as error:
            print(f"ectype: {error}", file=sys.stderr)
            sys.exit(STARTUP_FAILURE)


class Workers(Multiprocess):
    """Starts workers, and stays until all have ended."""

    processes: list[Worker]  # type: ignore[assignment]

    def __init__(self, served: WorkerSettings, started: Started):
        settings = served.settings
        listening = bind_socket(settings.address)
        port, self._grpc_port = listening.getsockname()[1], self._reserve_grpc_port(settings)
        self._settings = replace(settings, port=port, grpc_port=self._grpc_port)
        self._served, self._tell = replace(served, settings=self._settings), started
        self.stopped_by: signal.Signals | None = None
        self._failed = False
        super().__init__(self._config(0), [listening])

    def run(self) -> None:
        """Serve until a signal; refused if workers end as soon as they start, as those that replace them would."""
        super().run()
        if self._failed:
            raise SettingError("--workers", "processes that can serve", "one that ended as soon as it had started")

    def init_processes(self) -> None:
        """Start all workers, and tell when all can be asked."""
        self.processes = [self._worker(place) for place in range(self.processes_num)]
        if all(self._wait_for(worker) for worker in self.processes):
            self._tell(self._settings.address, self._grpc_port)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended or hang."""
        for place, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if worker.is_alive(HUNG_SECONDS):
                worker.ready = worker.ready or worker.is_ready()
                continue
            worker.kill()
            worker.join()
            self._failed = not worker.ready and (worker.exitcode or 0) >= 0  # by itself: a signal was somebody else's
            if self._failed:
                self.should_exit.set()
            else:
                LOG.warning("worker %d ended with status %s, and is replaced", place, worker.exitcode)
                self.processes[place] = self._worker(place)

    def join_all(self) -> None:
        """Wait for all workers; a second signal is one for them."""
        while any(worker.process.is_alive() for worker in self.processes):
            if self.signal_queue:
                self.signal_queue.clear()
                self.terminate_all()
            multiprocessing.connection.wait([worker.process.sentinel for worker in self.processes], 0.1)
        super().join_all()

    def handle_int(self) -> None:
        """Stop."""
        self._stop(signal.SIGINT)

    def handle_term(self) -> None:
        """Stop."""
        self._stop(signal.SIGTERM)

    handle_hup = handle_term

    def handle_ttin(self) -> None:
        """Do nothing: there are as many counts as workers."""

    handle_ttou = handle_ttin

    def _stop(self, number: signal.Signals) -> None:
        self.stopped_by = self.stopped_by or number
        self.should_exit.set()

    def _config(self, place: int) -> UvicornConfig:
        served = replace(self._served, worker=place)
        return UvicornConfig(served, self._settings, factory=True, workers=self._settings.workers)

    def _worker(self, place: int) -> Worker:
        worker = Worker(self._config(place), self.sockets)
        worker.start()
        return worker

    def _wait_for(self, worker: Worker) -> bool:
        """Wait until a worker can be asked; False if it ends instead, or all are to end."""
        while not worker.ready:
            self.handle_signals()
            if self.should_exit.is_set():
                return False
            worker.ready = worker.wait_until_ready(0.5, self.should_exit)
            if not worker.ready and not worker.process.is_alive():
                self._failed = True
                self.should_exit.set()
        return True

    def _reserve_grpc_port(self, settings: ServeSettings) -> int | None:
        """The port for gRPC that all workers take; a socket that does not listen keeps it from others."""
        if settings.grpc_port is None:
            return None
        address = replace(settings.address, port=settings.grpc_port)
        bind_socket(address, option="--grpc-port").close()
        self._reserving = bind_socket(address, shared=True, listens=False, option="--grpc-port")
        return int(self._reserving.getsockname()[1])
