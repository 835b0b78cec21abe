"""The workers of a Dask cluster, through its executor: of this machine, or wherever its scheduler is."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urlsplit

from ectype._common import validation
from ectype._version import __version__
from ectype.errors import SettingError
from ectype.workers._base import LOOPBACK, MOST_DEATHS, ONE_THREAD, cores, pin

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

Answer = TypeVar("Answer")

# Seconds to wait for a scheduler, and then for its first worker.
CONNECT, FIRST_WORKER = 6.0, 10.0


class DaskCluster:
    """The workers of a Dask cluster: one of this machine, or that of a scheduler somewhere.

    `connect` is how many seconds the scheduler has to answer.
    """

    def __init__(self, workers: int | None = None, scheduler: str | None = None, connect: float = CONNECT):
        if workers is not None and scheduler is not None:
            hint = "a cluster has the workers it has"
            raise SettingError("workers", "nothing, with a scheduler", workers, hint)
        self._workers = len(cores()) if workers is None else validation.count("workers", workers, 1, 1024)
        self._scheduler, self._connect = scheduler, connect
        self._cluster: LocalCluster | None = None
        self._client: Client | None = None
        self._executor: Executor | None = None

    def __enter__(self) -> Self:
        try:
            self._client = self._local() if self._scheduler is None else self._remote(self._scheduler)
            # Not pure: a unit that is asked for again is to be run again.
            self._executor = self._client.get_executor(pure=False)
            if self._scheduler is not None:
                self._check_workers(self._scheduler)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()
        self._executor = self._client = self._cluster = None

    @property
    def slots(self) -> int:
        """How many units may run now: a cluster grows and shrinks."""
        assert self._client is not None
        return max(1, sum(self._client.nthreads().values()))

    @property
    def address(self) -> str:
        """The address at which workers reach this process: the one from which their scheduler is reached."""
        if self._scheduler is None:
            return LOOPBACK
        found = urlsplit(self._scheduler)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:  # nothing is sent
            route.connect((found.hostname or LOOPBACK, found.port or 1))
            return str(route.getsockname()[0])

    def submit(self, slot: int, call: Callable[..., Answer], *arguments: object) -> Future[Answer]:
        """Have a call made by whichever worker is free, which is the one that was last used for the slot."""
        assert self._executor is not None
        own = None if self._cluster is None else cores()
        return self._executor.submit(_on_worker, own, call, *arguments)

    def renew(self, slot: int) -> None:
        """Nothing to do: the cluster replaces its workers, and runs again what they were at."""

    @property
    def pids(self) -> dict[str, int]:
        """The process of each worker."""
        assert self._client is not None
        return self._client.run(os.getpid)

    def _local(self) -> Client:
        """A client of a cluster of this machine's own, which nobody else can reach."""
        dask, distributed = _distributed()
        rules = {
            "distributed.scheduler.allowed-failures": MOST_DEATHS - 1,
            "distributed.nanny.pre-spawn-environ": ONE_THREAD,
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
        }
        with dask.config.set(rules), _interrupts_ignored():
            self._cluster = distributed.LocalCluster(
                n_workers=self._workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                # Without an address of its own, the server of the dashboard that is turned off would take port 8787.
                scheduler_kwargs={"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
            return distributed.Client(self._cluster, set_as_default=False)

    def _remote(self, address: str) -> Client:
        _, distributed = _distributed()
        try:
            # A client would wait on and on for whatever takes its connection and says nothing.
            asyncio.run(_identity(address, self._connect))
            return distributed.Client(address, timeout=self._connect, set_as_default=False)
        except Exception as error:  # what is no scheduler may answer anything
            slow = isinstance(error, TimeoutError)
            found = f"nothing that answered within {self._connect:g} s" if slow else _one_line(error)
            hint = "start one: dask scheduler, and dask worker ADDRESS"
            raise SettingError("--scheduler", f"a Dask scheduler at {address!r}", found, hint) from error

    def _check_workers(self, address: str) -> None:
        """There must be a worker, and it must have this very version of the library."""
        assert self._executor is not None
        try:
            found = self._executor.submit(_version).result(FIRST_WORKER)
        except TimeoutError as error:
            raise SettingError("--scheduler", f"workers at {address}", "none that answers", "start some") from error
        except Exception as error:
            raise SettingError("--scheduler", f"workers with ectype {__version__}", _one_line(error)) from error
        if found != __version__:
            raise SettingError("--scheduler", f"workers with ectype {__version__}", found)


def _on_worker(own: list[int | None] | None, call: Callable[..., Answer], *arguments: object) -> Answer:
    """Make a call on a Dask worker, on a core of its own if the cluster is this machine's."""
    from distributed import get_worker

    name = get_worker().name
    if own is not None and isinstance(name, int):
        pin(own[name % len(own)])
    return call(*arguments)


async def _identity(address: str, seconds: float) -> None:
    """Have a scheduler say what it is, within a time."""
    import distributed

    # Of an address that begins with tls://, the certificates are those of Dask's own configuration.
    secured = distributed.Security().get_connection_args("client")
    async with asyncio.timeout(seconds), distributed.rpc(address, connection_args=secured) as scheduler:
        await scheduler.identity()


def _version() -> str:
    return __version__


def _distributed() -> tuple[ModuleType, ModuleType]:
    try:
        import dask
        import distributed
    except ImportError as error:
        hint = 'install it: pip install "ectype[dask]"'
        raise SettingError("--engine", "dask and distributed to be installed", str(error), hint) from error
    return dask, distributed


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Have processes that are started now ignore interruptions, which are their parent's to handle: they inherit it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
