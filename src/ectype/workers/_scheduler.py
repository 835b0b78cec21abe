"""Jobs on an engine: each in a slot, one whose worker died made again, and interruptions where they do no harm."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Generic, NamedTuple, Protocol, TypeVar

from ectype.errors import WorkerError
from ectype.workers._base import MOST_DEATHS, Engine

# Seconds after which to look whether a cluster has grown, though nothing was finished.
LOOK = 10.0

Task = TypeVar("Task")
TaskOf = TypeVar("TaskOf", covariant=True)
Answer = TypeVar("Answer")


class Job(Protocol[TaskOf]):
    """Something to do: what is sent to a worker, with what only its sender needs."""

    @property
    def task(self) -> TaskOf:
        """What the call is given."""


AJob = TypeVar("AJob", bound=Job[object])


class JobQueue(Protocol[AJob]):
    """Jobs that wait, in an order of their own."""

    def take(self, slot: int) -> AJob | None:
        """The next one, for a slot; None if there is none for it now."""

    def put_back(self, job: AJob) -> None:
        """Have a job taken again."""


class FinishedJob(NamedTuple, Generic[AJob, Answer]):
    """What came of a job: the answer, or what went wrong."""

    job: AJob
    answer: Answer | None
    error: Exception | None


def run_jobs(jobs: JobQueue[AJob], engine: Engine, call: Callable[..., Answer]) -> Iterator[FinishedJob[AJob, Answer]]:
    """Have a call made of every job's task on an engine that is started; one whose worker died again, but not for ever.

    What ends comes through a queue that a signal's handler may write to as well: an interruption is heard between two
    jobs, and never inside a lock that another thread needs to end.
    """
    ended: SimpleQueue[Future[Answer] | None] = SimpleQueue()
    running: dict[Future[Answer], tuple[int, AJob]] = {}
    deaths = Counter[int]()
    with _interrupts_deferred(lambda: ended.put(None)) as interrupted:
        while True:
            interrupted()
            busy = {slot for slot, _ in running.values()}
            for slot in (slot for slot in range(engine.slots) if slot not in busy):
                if (job := jobs.take(slot)) is not None:
                    future = engine.submit(slot, call, job.task)
                    running[future] = slot, job
                    future.add_done_callback(ended.put)
            if not running:
                return
            try:
                done = ended.get(timeout=LOOK)
            except Empty:
                continue
            if done is None:
                continue
            slot, job = running.pop(done)
            outcome = _outcome(job, done)
            if isinstance(outcome.error, BrokenExecutor):
                engine.renew(slot)
                deaths[id(job)] += 1
                if deaths[id(job)] < MOST_DEATHS:
                    jobs.put_back(job)
                    continue
            yield outcome


def _outcome(job: AJob, future: Future[Answer]) -> FinishedJob[AJob, Answer]:
    try:
        return FinishedJob(job, future.result(), None)
    except CancelledError as error:
        hint = "what is finished is kept, and the same command goes on from there"
        raise WorkerError("engine", "workers until the end", "the connection to them was lost", hint) from error
    except Exception as error:
        return FinishedJob(job, None, error)


@contextmanager
def _interrupts_deferred(wake: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Within, Ctrl-C and SIGTERM do what they would have done when the function given is called; `wake` tells of them.

    A second one is not put off.
    """
    usual: dict[int, Callable[[int, FrameType | None], object]] = {}
    heard: list[int] = []

    def restore() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    def hear(number: int, frame: FrameType | None) -> None:
        restore()
        heard.append(number)
        wake()

    def interrupted() -> None:
        for number in heard:
            usual[number](number, None)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):  # neither ignored nor left to the system
                usual[number] = handler
                signal.signal(number, hear)
    try:
        yield interrupted
    finally:
        restore()
