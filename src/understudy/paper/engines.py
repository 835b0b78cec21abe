"""What units run on: processes of this machine, or a Dask cluster; both behind `concurrent.futures`.

An engine has as many slots as units may run at a time, each an executor. A process pool breaks as a whole when one of
its workers dies, so every local slot is a pool of one: what else is running does not notice.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from understudy import checks
from understudy._version import __version__
from understudy.errors import SettingError
from understudy.paper.units import ONE_THREAD

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

Answer = TypeVar("Answer")

# Seconds to wait for a scheduler, and then for its first worker.
CONNECT, FIRST_WORKER = 6.0, 10.0
# A unit whose worker died this often is given up.
MOST_DEATHS = 3


class Engine(Protocol):
    """Slots that units run in; a context, so that nothing is left running."""

    def __enter__(self) -> Self:
        """Start what is needed."""

    def __exit__(self, *error: object) -> None:
        """End at once, without waiting for units."""

    @property
    def slots(self) -> int:
        """How many units may run now."""

    def submit(self, slot: int, call: Callable[..., Answer], *arguments: object) -> Future[Answer]:
        """Have a call made in a slot. The future of one whose worker died raises `BrokenExecutor`."""

    def renew(self, slot: int) -> None:
        """Replace a worker that died."""


class Local:
    """Worker processes of this machine, each kept to one thread, and to one core if there is none to spare."""

    def __init__(self, workers: int | None = None):
        self._cores = _cores()
        self._slots = len(self._cores) if workers is None else checks.count("workers", workers, 1, 1024)
        self._pools: dict[int, ProcessPoolExecutor] = {}
        self.pids: dict[int, int] = {}
        """The process of each slot."""

    def __enter__(self) -> Self:
        try:
            self._start(range(self._slots))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for pid in self.pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)
        self._pools, self.pids = {}, {}

    @property
    def slots(self) -> int:
        """How many units may run now."""
        return self._slots

    def submit(self, slot: int, call: Callable[..., Answer], *arguments: object) -> Future[Answer]:
        """Have a call made in a slot."""
        try:
            return self._pools[slot].submit(call, *arguments)
        except BrokenExecutor as error:  # it died between two calls
            broken: Future[Answer] = Future()
            broken.set_exception(error)
            return broken

    def renew(self, slot: int) -> None:
        """Replace a worker that died."""
        self._pools[slot].shutdown()
        self._start([slot])

    def _start(self, slots: Iterable[int]) -> None:
        # A fork of a process with threads may hang, and libraries start some.
        context = multiprocessing.get_context("spawn")
        started = {}
        with _environment(ONE_THREAD):  # libraries read it before anything of ours is called
            for slot in slots:
                self.pids.pop(slot, None)
                # With cores to spare, the system knows better which one is free.
                core = self._cores[slot % len(self._cores)] if self._slots >= len(self._cores) else None
                self._pools[slot] = ProcessPoolExecutor(1, context, _begin_worker, (core,))
                started[slot] = self._pools[slot].submit(os.getpid)
        for slot, pid in started.items():
            try:
                self.pids[slot] = pid.result()
            except BrokenExecutor as error:
                hint = 'a script needs `if __name__ == "__main__":` around what it does'
                raise SettingError("workers", "worker processes that start", str(error), hint) from error


def _begin_worker(core: int | None) -> None:
    """Pin a worker to its core, leave interruptions to its parent, and end when that does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pin(core)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # a parent that was killed could not end us, and nobody would take what we return


class Dask:
    """The workers of a Dask cluster: one of this machine, or that of a scheduler somewhere.

    `connect` is how many seconds the scheduler has to answer.
    """

    def __init__(self, workers: int | None = None, scheduler: str | None = None, connect: float = CONNECT):
        if workers is not None and scheduler is not None:
            hint = "a cluster has the workers it has"
            raise SettingError("workers", "nothing, with a scheduler", workers, hint)
        self._workers = len(_cores()) if workers is None else checks.count("workers", workers, 1, 1024)
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

    def submit(self, slot: int, call: Callable[..., Answer], *arguments: object) -> Future[Answer]:
        """Have a call made by whichever worker is free, which is the one that was last used for the slot."""
        assert self._executor is not None
        cores = None if self._cluster is None else _cores()
        return self._executor.submit(_on_worker, cores, call, *arguments)

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
        with dask.config.set(rules), _deaf_children():
            self._cluster = distributed.LocalCluster(
                n_workers=self._workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # Without an address of its own, the server of the dashboard that is turned off would take port 8787.
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
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
            raise SettingError("--scheduler", f"workers with understudy {__version__}", _one_line(error)) from error
        if found != __version__:
            raise SettingError("--scheduler", f"workers with understudy {__version__}", found)


def open_engine(name: str, workers: int | None = None, scheduler: str | None = None) -> Engine:
    """The engine of this name: `local` or `dask`."""
    checks.choice("engine", name, ("local", "dask"))
    if name == "dask":
        return Dask(workers, scheduler)
    if scheduler is not None:
        raise SettingError("--scheduler", "nothing, for local processes", scheduler, "add --engine dask")
    return Local(workers)


def pin(core: int | None) -> None:
    """Keep this thread, and those that it starts, to one core, where the system can."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        with suppress(OSError):
            os.sched_setaffinity(0, {core})


def _on_worker(cores: list[int | None] | None, call: Callable[..., Answer], *arguments: object) -> Answer:
    """Make a call on a Dask worker, on a core of its own if the cluster is this machine's."""
    from distributed import get_worker

    name = get_worker().name
    if cores is not None and isinstance(name, int):
        pin(cores[name % len(cores)])
    return call(*arguments)


async def _identity(address: str, seconds: float) -> None:
    """Have a scheduler say what it is, within a time."""
    import distributed

    async with asyncio.timeout(seconds), distributed.rpc(address) as scheduler:
        await scheduler.identity()


def _version() -> str:
    return __version__


def _cores() -> list[int | None]:
    """The cores this process may use; where the system does not say, as many without a number."""
    if hasattr(os, "sched_getaffinity"):
        return [*sorted(os.sched_getaffinity(0))]
    return [None] * (os.cpu_count() or 1)


def _distributed() -> tuple[ModuleType, ModuleType]:
    try:
        import dask
        import distributed
    except ImportError as error:
        hint = 'install it: pip install "understudy[dask]"'
        raise SettingError("--engine", "dask and distributed to be installed", str(error), hint) from error
    return dask, distributed


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Have processes that are started now leave interruptions to their parent, as a signal ignored is inherited."""
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


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Have variables set for as long as processes are started."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
