"""The cascade behind a server: rows that the copy does not answer alone are asked of the original, on other threads.

Nobody else waits for that: a request that needs the original leaves the event loop until it is answered, for so many
seconds at most, and so many rows may wait. An original that was out is left alone for some seconds, then opened anew.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from queue import SimpleQueue
from time import monotonic, perf_counter

import numpy as np
from prometheus_client import Gauge, Histogram
from prometheus_client.registry import Collector

from ectype.algorithm.uncertainty import margins
from ectype.cascades import ALONE, ASKED, COPY, ERROR, OUT, Routing, ask_fallback
from ectype.errors import EctypeError, OutageError
from ectype.models.copy_classifier import CopyClassifier
from ectype.original import Labels, Original
from ectype.queries import RowSlice, request_slices
from ectype.serve._http_types import Refusal
from ectype.serve._inference import Answer, Question
from ectype.serve._limits import WAITING_ROWS
from ectype.serve._metrics import CREATED, counter
from ectype.serve._shadow import presented
from ectype.serve._shared_counters import BUCKETS
from ectype.types import Json

LOG = logging.getLogger(__name__)
# What rows are counted as: by who answered them, or as refused because the original gave no answer.
COUNTED = ("copy", "original", "outage", "refused")
# How long a request waits for the original, and how long one that was out is left alone, in seconds.
SECONDS, PAUSE = 10.0, 5.0


@dataclass(frozen=True)
class UnsureRows:
    """A question with rows that the original has to answer, and what the copy says to all of them."""

    question: Question
    codes: np.ndarray
    probabilities: np.ndarray
    places: np.ndarray

    def written(self, answers: dict[int, int], by: int) -> Answer:
        """The answer, with these codes of the original's labels, and `by` for who answers where it has none."""
        codes, chances, who = self.codes.copy(), np.array(self.probabilities, float), self.unasked()
        who[self.places] = by
        for place, code in answers.items():
            codes[place], who[place], chances[place] = code, ASKED, np.arange(chances.shape[1]) == code
        return Answer(self.question.write(codes, chances, who), codes)

    def unasked(self) -> np.ndarray:
        """Who answers, if it is all the copy."""
        return np.full(len(self.codes), ALONE, np.int8)


@dataclass(frozen=True)
class FallbackOutcome:
    """What a request gets, and how its rows that need the original are counted."""

    given: Answer | Exception
    counted: dict[str, int]


Then = Callable[["Answer | Exception"], None]


class Fallback:
    """Asks the original about rows that the copy does not answer alone. It belongs to one event loop.

    `opened` opens the original, unless it comes open; it is asked on as many threads as it takes requests at once.
    """

    def __init__(
        self,
        opened: Callable[[], Original],
        copy: CopyClassifier,
        routing: Routing,
        *,
        on_outage: str = ERROR,
        most_rows: int = WAITING_ROWS,
        seconds: float = SECONDS,
        pause: float = PAUSE,
        original: Original | None = None,
    ):
        self.routing, self.on_outage, self._copy, self._opened = routing, on_outage, copy, opened
        self._labels, self._original = Labels(copy.classes), original or opened()
        self._most_rows, self._seconds, self._pause = most_rows, seconds, pause
        self._waiting, self._out_until, self._lock = 0, 0.0, threading.Lock()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        about = "Rows by who answered them; refused, if the original gave no answer."
        self._rows = counter("ectype_cascade_rows_total", about, ("by",))
        self._counted = {name: self._rows.labels(name) for name in COUNTED}
        self.outages = counter("ectype_cascade_outages_total", "How often the original was found to be out.")
        about = "Seconds that the original took for a request's rows."
        self.seconds = Histogram("ectype_cascade_original_seconds", about, buckets=BUCKETS, registry=None)
        waiting = Gauge("ectype_cascade_waiting_rows", "Rows that wait for the original.", registry=None)
        waiting.set_function(lambda: self._waiting)
        self.families: list[Collector] = [self._rows, self.outages, self.seconds, waiting]
        self._threads = [
            threading.Thread(target=self._work, name="ectype-fallback", daemon=True)
            for _ in range(self._original.concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def considered(
        self, question: Question, codes: np.ndarray, probabilities: np.ndarray, outside: np.ndarray
    ) -> Answer | UnsureRows:
        """The copy's answer, if it may answer all rows alone, none of them outside the space; any thread may ask."""
        alone = self.routing.answers(margins(np.asarray(probabilities, float))) & ~outside
        unsure = UnsureRows(question, codes, probabilities, np.flatnonzero(~alone))
        self._counted["copy"].inc(int(alone.sum()))
        return unsure if len(unsure.places) else Answer(question.write(codes, probabilities, unsure.unasked()), codes)

    def ask(self, unsure: UnsureRows, then: Then) -> None:
        """Let the original answer; whatever happens, `then` is called once, on the event loop."""
        n, out = len(unsure.places), self._out_until - monotonic()
        if out > 0:
            self._give(self._without(unsure, "an outage", out), then)
        elif self._waiting + n > self._most_rows:
            self._give(self._without(unsure, f"{self._waiting} rows that wait for it", self._pause), then)
        else:
            self._waiting += n
            self._queue.put(_Job(unsure, then, asyncio.get_running_loop(), self._seconds, self))

    def over(self, job: _Job, outcome: FallbackOutcome | None) -> None:
        """A job is done, or took too long; on the event loop."""
        self._waiting -= len(job.unsure.places)
        if outcome is None:
            found = f"no answer within {self._seconds:g} s"
            self._note_outage(found)
            self._original.stop()  # it need not try again: nobody waits any more
            outcome = self._without(job.unsure, found, self._pause)
        self._give(outcome, job.then)

    def summary(self) -> Json:
        """What is certified, and what came of it so far."""
        samples = (sample for metric in self._rows.collect() for sample in metric.samples)
        rows = {one.labels["by"]: int(one.value) for one in samples if not one.name.endswith(CREATED)}
        about = {"original": self._original.name, "on_outage": self.on_outage, "rows": rows}
        return {**self.routing.as_json(), **about, "waiting": self._waiting, "out": self._out_until > monotonic()}

    def stop(self) -> None:
        """Ask no more; a request that is under way may end by itself."""
        for _ in self._threads:
            self._queue.put(None)
        self._original.stop()

    def _give(self, outcome: FallbackOutcome, then: Then) -> None:
        for name, n in outcome.counted.items():
            self._counted[name].inc(n)
        then(outcome.given)

    def _work(self) -> None:
        while job := self._queue.get():
            if not job.over:  # it was given up while it waited
                job.tell(self._outcome(job.unsure))

    def _outcome(self, unsure: UnsureRows) -> FallbackOutcome:
        try:
            return self._asked(unsure)
        except EctypeError as error:  # it could not be opened again
            self._note_outage(error.found)
            return self._without(unsure, error.found, self._pause)
        except Exception as error:
            return FallbackOutcome(error, {})

    def _asked(self, unsure: UnsureRows) -> FallbackOutcome:
        """Ask, and write the answer."""
        original, rows, clock = self._current(), unsure.question.rows.at(unsure.places), perf_counter()
        space, n = self._copy.space, len(rows)
        found, failed = ask_fallback(original, lambda part: presented(rows.part(part), space), n, self._labels)
        self.seconds.observe(perf_counter() - clock)
        if failed is not None:
            LOG.warning("fallback: %s", failed)
        if isinstance(failed, OutageError):
            self._note_outage(failed.found)
        answers = self._codes(unsure, request_slices(n, original.request_rows), found)
        if len(answers) == n:
            return FallbackOutcome(unsure.written(answers, ASKED), {"original": n})
        reason = f"a label that is none of {self._labels}" if failed is None else failed.found
        return self._without(unsure, reason, self._pause, answers)

    def _codes(self, unsure: UnsureRows, asked: list[RowSlice], found: list[np.ndarray | None]) -> dict[int, int]:
        """The codes of the original's labels, by the places of rows; those that the copy does not have are left out."""
        answers = dict[int, int]()
        for part, labels in zip(asked, found, strict=True):
            if labels is not None:
                answers |= zip(unsure.places[part].tolist(), self._labels.find(labels).tolist(), strict=True)
        return {place: code for place, code in answers.items() if code >= 0}

    def _without(
        self, unsure: UnsureRows, found: object, wait: float, answers: dict[int, int] | None = None
    ) -> FallbackOutcome:
        """What a request gets whose rows the original has not all answered."""
        known = answers or {}
        missing = len(unsure.places) - len(known)
        if self.on_outage == COPY:
            return FallbackOutcome(unsure.written(known, OUT), {"outage": missing, "original": len(known)})
        expected, later = f"its answer for {missing} rows that the copy is not sure of", max(1, ceil(wait))
        headers = {"retry-after": str(later)}
        refusal = Refusal("the original", expected, found, "ask again later", status=503, headers=headers)
        return FallbackOutcome(refusal, {"refused": len(unsure.places)})

    def _current(self) -> Original:
        """The original, opened anew if it was out."""
        with self._lock:
            if self._out_until and self._out_until <= monotonic():
                self._original, self._out_until = self._opened(), 0.0
            return self._original

    def _note_outage(self, found: object) -> None:
        with self._lock:
            if self._out_until <= monotonic():
                self._out_until = monotonic() + self._pause
                self.outages.inc()
                LOG.warning("fallback: the original is out: %s", found)


class _Job:
    """A question that waits for the original, until it is answered or its time is over."""

    def __init__(
        self, unsure: UnsureRows, then: Then, loop: asyncio.AbstractEventLoop, seconds: float, fallback: Fallback
    ):
        self.unsure, self.then, self.over = unsure, then, False
        self._loop, self._fallback = loop, fallback
        self._timer = loop.call_later(seconds, self._end, None)

    def tell(self, outcome: FallbackOutcome) -> None:
        """Say what came of it, from another thread."""
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(self._end, outcome)

    def _end(self, outcome: FallbackOutcome | None) -> None:
        if not self.over:
            self.over = True
            self._timer.cancel()
            self._fallback.over(self, outcome)
