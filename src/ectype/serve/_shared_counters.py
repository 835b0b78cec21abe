"""The counters of a service in one array of shared memory, summed over all workers.

Each worker adds to a row of its own, so that no lock is needed; the array is in memory that they share.
"""

from __future__ import annotations

import multiprocessing
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

# The names that requests are counted under, "none" where there is no such path, and the statuses of their answers.
ROUTES = (
    "none",
    "server",
    "live",
    "ready",
    "model",
    "model_ready",
    "infer",
    "v1_models",
    "v1_model",
    "v1_predict",
    "predict",
    "grpc",
    "metrics",
    "shadow",
    "cascade",
    "openapi",
)
STATUSES = (200, 400, 401, 404, 405, 408, 411, 413, 415, 431, 500, 503)
# Numbers beside those by route, label and time: rows, those outside the space, failures, requests under way.
NUMBERS = 4
# Upper ends of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
ENDS = (*map(floatToGoString, BUCKETS), "+Inf")


class SharedNumber:
    """A number that this worker adds to, and that is the sum of all workers' when it is read."""

    def __init__(self, table: np.ndarray, worker: int, at: int):
        self._all, self.at = table[:, at], at
        self._mine: Any = memoryview(table[worker])

    def inc(self, by: float = 1.0) -> None:
        """Add to it."""
        self._mine[self.at] += by

    def dec(self) -> None:
        """Take one away."""
        self._mine[self.at] -= 1.0

    @property
    def value(self) -> float:
        """The sum of all workers'."""
        return float(self._all.sum())


class SharedCounters:
    """The numbers of one service, or of one worker of several that share a table."""

    def __init__(self, labels: Sequence[str], table: Any = None, worker: int = 0):
        memory = np.zeros(table_width(labels)) if table is None else np.frombuffer(table)
        self._labels, self._table = labels, memory.reshape(-1, table_width(labels))
        self.worker, self._row = worker, self._table[worker]
        self._mine: Any = memoryview(self._row)  # to which a number is added in a third of the time that an array takes
        self._statuses = {status: place for place, status in enumerate(STATUSES)}
        self._routes = {route: place * len(STATUSES) for place, route in enumerate(ROUTES)}
        at = len(ROUTES) * len(STATUSES)
        self.rows, self.outside, self.failures, self.in_flight = (
            SharedNumber(self._table, worker, at + k) for k in range(NUMBERS)
        )
        self._answers = at + NUMBERS
        self._buckets = self._answers + len(labels)
        self._sum = self._buckets + len(ENDS)
        self._mine[self._sum + 1] = os.getpid()
        self._mine[self.in_flight.at] = 0.0  # those of a worker that was killed are under way no more

    def request(self, route: str, status: int) -> None:
        """Count a request."""
        self._mine[self._routes[route] + self._statuses[status]] += 1.0

    def answers(self, codes: np.ndarray) -> None:
        """Count the answers to rows, by label."""
        self.rows.inc(len(codes))
        self._row[self._answers : self._buckets] += np.bincount(codes, minlength=len(self._labels))

    def seconds(self, taken: float) -> None:
        """Count how long an answer took."""
        self._mine[self._buckets + bisect_left(BUCKETS, taken)] += 1.0
        self._mine[self._sum] += taken

    @property
    def requests(self) -> float:
        """How many requests there were."""
        return float(self._table[:, : len(ROUTES) * len(STATUSES)].sum())

    @property
    def processes(self) -> list[int]:
        """The processes of all workers."""
        return [int(pid) for pid in self._table[:, self._sum + 1] if pid]

    def collect(self) -> Iterable[Metric]:
        """All of them, as Prometheus has them."""
        total = self._table.sum(axis=0)
        requests = CounterMetricFamily("ectype_requests", "Requests.", labels=("route", "status"))
        for route, start in self._routes.items():
            for status, place in self._statuses.items():
                if total[start + place]:
                    requests.add_metric((route, str(status)), total[start + place])
        answers = CounterMetricFamily("ectype_answers", "Rows answered, by the copy's label.", labels=("label",))
        for place, word in enumerate(self._labels):
            if total[self._answers + place]:
                answers.add_metric((word,), total[self._answers + place])
        yield from (requests, answers)
        yield CounterMetricFamily("ectype_rows", "Rows answered.", value=self.rows.value)
        unlike = "Rows answered that are outside the space, where no certificate says anything."
        yield CounterMetricFamily("ectype_rows_outside", unlike, value=self.outside.value)
        failed = "Requests that failed by a fault of the server's."
        yield CounterMetricFamily("ectype_failures", failed, value=self.failures.value)
        yield GaugeMetricFamily("ectype_requests_in_flight", "Requests under way.", value=self.in_flight.value)
        below = np.cumsum(total[self._buckets : self._sum]).tolist()
        buckets = list(zip(ENDS, below, strict=True))
        about = "Seconds from a whole request to its answer."
        yield HistogramMetricFamily("ectype_infer_seconds", about, buckets, total[self._sum])


def table_width(labels: Sequence[str]) -> int:
    """How many numbers a worker has."""
    return len(ROUTES) * len(STATUSES) + NUMBERS + len(labels) + len(ENDS) + 2


def shared_table(workers: int, numbers: int) -> Any:
    """A table for processes that are started by this one; of its memory nothing is left when all have ended."""
    return multiprocessing.get_context("spawn").RawArray("d", workers * numbers)
