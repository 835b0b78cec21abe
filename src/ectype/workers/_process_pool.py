"""Worker processes of this machine, one for each slot, each at the other end of a pipe of its own.

A worker that dies closes its pipe, in the middle of a message too, so that whoever waits for it is told at once; the
others do not notice.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Self, TypeVar

from ectype._common import validation
from ectype.errors import SettingError
from ectype.workers._base import LOOPBACK, ONE_THREAD, cores, pin

Answer = TypeVar("Answer")


class ProcessPool:
    """Processes of this machine, each kept to one thread, and to one core if there is none to spare."""

    def __init__(self, workers: int | None = None):
        self._cores = cores()
        self._slots = len(self._cores) if workers is None else validation.count("workers", workers, 1, 1024)
        self._workers: dict[int, _Worker] = {}

    def __enter__(self) -> Self:
        try:
            self._start(range(self._slots))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers.values():
            worker.process.kill()
        for worker in self._workers.values():
            worker.close()
        self._workers = {}

    @property
    def slots(self) -> int:
        """How many calls may be under way now."""
        return self._slots

    @property
    def address(self) -> str:
        """The address at which workers reach this process."""
        return LOOPBACK

    @property
    def pids(self) -> dict[int, int]:
        """The process of each slot."""
        return {slot: worker.process.pid or 0 for slot, worker in self._workers.items()}

    def submit(self, slot: int, call: Callable[..., Answer], *arguments: object) -> Future[Answer]:
        """Have a call made in a slot."""
        worker = self._workers[slot]
        return worker.thread.submit(worker.ask, call, arguments)

    def renew(self, slot: int) -> None:
        """Replace a worker that died."""
        self._workers.pop(slot).close()
        self._start([slot])

    def _start(self, slots: Iterable[int]) -> None:
        started = list(slots)
        with _environment(ONE_THREAD):  # libraries read it before anything of ours is called
            for slot in started:
                # With cores to spare, the system knows better which one is free.
                core = self._cores[slot % len(self._cores)] if self._slots >= len(self._cores) else None
                self._workers[slot] = _Worker(core)
        for slot in started:
            try:
                self.submit(slot, os.getpid).result()
            except BrokenExecutor as error:
                hint = 'a script needs `if __name__ == "__main__":` around what it does'
                raise SettingError("workers", "worker processes that start", str(error), hint) from error


class _Worker:
    """A process, the pipe to it, and the thread that waits for its answers."""

    def __init__(self, core: int | None):
        # A fork of a process with threads may hang, and libraries start some.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(theirs, core), daemon=False)
        self.process.start()
        theirs.close()  # so that the pipe ends with the process
        self.thread = ThreadPoolExecutor(1)

    def ask(self, call: Callable[..., Answer], arguments: tuple[object, ...]) -> Answer:
        """Have the process make a call, and wait for what comes of it."""
        message = pickle.dumps((call, arguments))
        try:
            self._pipe.send_bytes(message)
            worked, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise BrokenExecutor("the worker's process ended") from error
        if not worked:
            raise answer
        given: Answer = answer
        return given

    def close(self) -> None:
        """Release a process that was killed, or has died."""
        self.process.kill()
        self.process.join()
        self.thread.shutdown()
        self._pipe.close()


def _work(pipe: Connection, core: int | None) -> None:
    """The main loop of a worker: make the calls that come, one after the other, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # interruptions are the parent's to handle
    pin(core)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send_bytes(_answer(pipe.recv_bytes()))


def _answer(message: bytes) -> bytes:
    """Make a call; its pickled answer or error, for the parent."""
    try:
        call, arguments = pickle.loads(message)
        return pickle.dumps((True, call(*arguments)))
    except Exception as error:
        return pickle.dumps((False, _picklable(error)))


def _picklable(error: Exception) -> Exception:
    """An error, or its words if it cannot be sent."""
    try:
        sent: Any = pickle.loads(pickle.dumps(error))
    except Exception:
        sent = None
    return error if isinstance(sent, Exception) else RuntimeError(f"{type(error).__name__}: {error}")


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # a parent that was killed could not end us, and nobody would take what we return


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
