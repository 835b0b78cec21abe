"""Micro-batch small requests on the event loop; run large ones in a thread pool."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from ectype.serve._fallback import Fallback, UnsureRows
from ectype.serve._http_types import HttpResponse
from ectype.serve._inference import Answer, InferenceModel, Question
from ectype.serve._shadow import Shadow
from ectype.serve._shared_counters import SharedCounters

# Bodies of up to so many bytes are read, and up to so many rows predicted, on the event loop. Larger ones take longer
# than others should wait, and go to another thread.
SMALL_BYTES = 2**15
SMALL_ROWS = 16
# How many rows of small questions are predicted at once, at most.
TOGETHER = 256

# How many threads there are for large questions, at most.
MOST_THREADS = 4

Done = Callable[[HttpResponse | Exception], None]
"""Called once with a response, or with the reason that there is none."""

Considered = tuple[Question, Answer | UnsureRows]
"""A question, and its answer; in a cascade perhaps what the original is to be asked."""

Large = tuple[Considered, int]
"""The same of a large question, and how many of its rows are outside the space."""


def thread_count() -> int:
    """The number of threads for large questions: prediction releases the interpreter's lock."""
    return max(1, min(MOST_THREADS, len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1))


class MicroBatcher:
    """Answers the questions to one model, and counts them. It belongs to one event loop.

    Small questions that came since the last turn of the loop are one prediction: most of what a row costs, it costs
    only once for many.
    """

    def __init__(
        self,
        model: InferenceModel,
        counts: SharedCounters,
        shadow: Shadow | None = None,
        fallback: Fallback | None = None,
    ):
        self.model, self._counts, self._shadow, self._fallback = model, counts, shadow, fallback
        self._waiting: deque[tuple[Question, float, Done]] = deque()
        self._pool = ThreadPoolExecutor(thread_count(), thread_name_prefix="ectype-predict")

    def ask(self, read: Callable[[], Question], large: bool, done: Done) -> None:
        """Read a question and answer it; what cannot be read is an error here, unless it is large."""
        clock = perf_counter()
        if large:
            self._elsewhere(lambda: self._answered(read()), clock, done)
            return
        question = read()
        if len(question.rows) > SMALL_ROWS:
            self._elsewhere(lambda: self._answered(question), clock, done)
            return
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._together)
        self._waiting.append((question, clock, done))

    def close(self) -> None:
        """Answer no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answered(self, question: Question) -> Large:
        """The copy's answer; in a cascade, to the rows that it may answer alone."""
        matrix = question.rows.matrix
        probabilities, outside = self.model.probabilities(matrix), self.model.copy.support.outside(matrix)
        found = self._considered(question, probabilities.argmax(axis=1), probabilities, outside)
        return (question, found), int(outside.sum())

    def _considered(
        self, question: Question, codes: np.ndarray, probabilities: np.ndarray, outside: np.ndarray
    ) -> Answer | UnsureRows:
        """The answer of the copy, in which rows outside the space are marked; in a cascade the original has them."""
        if self._fallback is not None:
            return self._fallback.considered(question, codes, probabilities, outside)
        response = question.write(codes, probabilities, None)
        return Answer(response.marked(np.flatnonzero(outside)) if outside.any() else response, codes)

    def _elsewhere(self, work: Callable[[], Large], clock: float, done: Done) -> None:
        def tell(future: asyncio.Future[Large]) -> None:
            if future.cancelled():
                return
            if error := future.exception():
                done(error if isinstance(error, Exception) else RuntimeError(str(error)))
                return
            (question, answer), outside = future.result()
            self._counts.answers(answer.codes)
            self._counts.outside.inc(outside)
            self._finish(question, answer, clock, done)

        asyncio.get_running_loop().run_in_executor(self._pool, work).add_done_callback(tell)

    def _together(self) -> None:
        taken, rows = [self._waiting.popleft()], 0
        while self._waiting and (rows := rows + len(taken[-1][0].rows)) < TOGETHER:
            taken.append(self._waiting.popleft())
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._together)
        matrices = [question.rows.matrix for question, _, _ in taken]
        try:
            matrix = matrices[0] if len(matrices) == 1 else np.concatenate(matrices)
            probabilities, outside = self.model.probabilities(matrix), self.model.copy.support.outside(matrix)
            codes = probabilities.argmax(axis=1)
        except Exception as error:
            for _, _, done in taken:
                done(error)
            return
        self._counts.answers(codes)
        self._counts.outside.inc(int(outside.sum()))
        self._share(taken, codes, probabilities, outside)

    def _share(
        self,
        taken: list[tuple[Question, float, Done]],
        codes: np.ndarray,
        probabilities: np.ndarray,
        outside: np.ndarray,
    ) -> None:
        """Give each question its part of the answers."""
        # A look at all rows at once costs as much as one at a single row, and mostly there is nothing to look after.
        ordinary = self._fallback is None and not outside.any() and bool(np.isfinite(probabilities).all())
        at = 0
        for question, clock, done in taken:
            part = slice(at, at := at + len(question.rows.matrix))
            answer: Answer | UnsureRows
            try:
                if ordinary:
                    mine = codes[part]
                    answer = Answer(question.writer(mine, probabilities[part], None), mine)
                else:
                    answer = self._considered(question, codes[part], probabilities[part], outside[part])
            except Exception as error:
                done(error)
            else:
                self._finish(question, answer, clock, done)

    def _finish(self, question: Question, answer: Answer | UnsureRows, clock: float, done: Done) -> None:
        if isinstance(answer, UnsureRows):
            self._ask(question, answer, clock, done)
            return
        if self._shadow is not None:
            self._shadow.offer(question.rows, answer.codes)
        self._counts.seconds(perf_counter() - clock)
        done(answer.response)

    def _ask(self, question: Question, unsure: UnsureRows, clock: float, done: Done) -> None:
        """Let the original answer, and go on with others meanwhile."""

        def then(outcome: Answer | Exception) -> None:
            if isinstance(outcome, Answer):
                self._finish(question, outcome, clock, done)
            else:
                done(outcome)

        assert self._fallback is not None
        self._fallback.ask(unsure, then)
