"""Several processes that serve one copy: they share its memory, its port and its counts; who dies is replaced."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from understudy.serve.server import STOPS, Address, Fronts, bound

LOG = logging.getLogger(__name__)

Work = Callable[[int, Fronts, socket.socket, int, Callable[[], None]], None]
"""What a worker does: with its number, where to listen, its socket, a pipe that ends with us, and whom to tell."""


@dataclass
class Worker:
    """A process that serves: its number, the end of a pipe on which it says that it can be asked, and if it has."""

    number: int
    pipe: int
    ready: bool = False

    def wait(self) -> bool:
        """Wait until it can be asked; False if it ends instead."""
        if not self.ready:
            self.ready = bool(os.read(self.pipe, 1))
            os.close(self.pipe)
        return self.ready


class Workers:
    """Forks workers, and stays until all have ended."""

    def __init__(self, n: int, fronts: Fronts, work: Work):
        self._work, self._alive = work, os.pipe()
        bound(fronts.address).close()  # a port that another server shares among its workers is taken
        first = bound(fronts.address, shared=True)
        port = first.getsockname()[1]
        address = replace(fronts.address, port=port)
        self._sockets = [first, *(bound(address, shared=True) for _ in range(1, n))]
        self.fronts = replace(fronts, address=address, grpc_port=self._grpc_port(fronts))
        self._running: dict[int, Worker] = {}
        self._told: signal.Signals | None = None
        self._failed = False

    def run(self, started: Callable[[Address, int | None], None]) -> signal.Signals | None:
        """Serve until a signal, which is returned; None if workers end by themselves as soon as they start."""
        before = {number: signal.signal(number, self._stop) for number in STOPS}
        try:
            for number in range(len(self._sockets)):
                self._fork(number)
            ready = [worker.wait() for worker in self._running.values()]
            if all(ready) and self._told is None:
                scheme = "http" if self.fronts.tls is None else "https"
                started(replace(self.fronts.address, scheme=scheme), self.fronts.grpc_port)
            while self._running:
                self._wait()
            return None if self._failed else self._told
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _grpc_port(self, fronts: Fronts) -> int | None:
        """The port that all workers take; a socket that does not listen keeps it from others."""
        if fronts.grpc_port is None:
            return None
        address = Address(fronts.address.host, fronts.grpc_port)
        bound(address, option="--grpc-port").close()
        self._reserved = bound(address, shared=True, listens=False, option="--grpc-port")
        return int(self._reserved.getsockname()[1])

    def _stop(self, number: int, _: object) -> None:
        self._told = self._told or signal.Signals(number)
        for pid in list(self._running):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _fork(self, number: int) -> None:
        """Start a worker."""
        read, write = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # so that none is missed between the fork and its record
        pid = os.fork()
        if pid == 0:
            self._be(number, read, write)
        self._running[pid] = Worker(number, read)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        os.close(write)

    def _be(self, number: int, read: int, write: int) -> None:
        """Work, and never come back."""
        code = 1
        try:
            os.setpgid(0, 0)  # Ctrl-C is for the parent, which tells its workers once
            for stop in STOPS:
                signal.signal(stop, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
            os.close(read)
            os.close(self._alive[1])
            self._work(number, self.fronts, self._sockets[number], self._alive[0], lambda: _tell(write))
            code = 0
        except BaseException as error:
            LOG.exception("worker %d failed", number)
            print(f"understudy: worker {number}: {error}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)

    def _wait(self) -> None:
        """Wait for a worker to end, and replace it unless all are to end."""
        pid, status = os.wait()
        worker = self._running.pop(pid)
        if self._told is not None:
            return
        if worker.wait():
            LOG.warning("worker %d ended with status %d, and is replaced", worker.number, status)
            self._fork(worker.number)
        else:  # and so would the next one
            LOG.error("worker %d ended before it could be asked: status %d", worker.number, status)
            self._stop(signal.SIGTERM, None)
            self._failed = True


def _tell(pipe: int) -> None:
    with suppress(OSError):  # nobody waits for a worker that replaces another
        os.write(pipe, b"1")
    os.close(pipe)
