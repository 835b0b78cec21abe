"""Counters, gauges and histograms, and the text in which Prometheus reads them."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper ends of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

Sample = tuple[str, dict[str, str], float]
"""The ending of a name, labels, and a value."""


class Counter:
    """What only grows, by labels. Any thread may add.

    >>> rows = Counter("rows_total", "Rows answered.", "model")
    >>> rows.add("iris", by=3)
    >>> print(exposition([rows]), end="")
    # HELP rows_total Rows answered.
    # TYPE rows_total counter
    rows_total{model="iris"} 3
    """

    kind = "counter"

    def __init__(self, name: str, about: str, *labels: str):
        self.name, self.about, self.labels = name, about, labels
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}
        self._lock = threading.Lock()

    def add(self, *labels: str, by: float = 1) -> None:
        """Count, under these labels."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + by

    @property
    def total(self) -> float:
        """What was counted, whatever its labels."""
        with self._lock:
            return sum(self._values.values())

    def samples(self) -> Iterable[Sample]:
        """What was counted."""
        with self._lock:
            found = list(self._values.items())
        return [("", dict(zip(self.labels, labels, strict=True)), value) for labels, value in found]


class Gauge:
    """What somebody else keeps: a function that is asked when somebody looks. None is left out."""

    def __init__(self, name: str, about: str, value: Callable[[], float | None], kind: str = "gauge"):
        self.name, self.about, self._value, self.kind = name, about, value, kind

    def samples(self) -> Iterable[Sample]:
        """The value now."""
        value = self._value()
        return [] if value is None else [("", {}, value)]


class Histogram:
    """How long something took. One thread adds."""

    kind = "histogram"

    def __init__(self, name: str, about: str, buckets: tuple[float, ...] = BUCKETS):
        self.name, self.about, self.buckets = name, about, buckets
        self._counts, self._sum = [0] * (len(buckets) + 1), 0.0

    def add(self, seconds: float) -> None:
        """Count one that took so long."""
        self._counts[bisect_left(self.buckets, seconds)] += 1
        self._sum += seconds

    def samples(self) -> Iterable[Sample]:
        """How many took at most so long, for every bucket, and all of them together."""
        total = 0
        for end, count in zip((*map(str, self.buckets), "+Inf"), self._counts, strict=True):
            total += count
            yield "_bucket", {"le": end}, total
        yield "_sum", {}, self._sum
        yield "_count", {}, total


Family = Counter | Gauge | Histogram


def exposition(families: Iterable[Family]) -> str:
    """All of these as text."""
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.about}", f"# TYPE {family.name} {family.kind}"]
        for ending, labels, value in family.samples():
            inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
            lines.append(f"{family.name}{ending}{{{inside}}} {value}" if inside else f"{family.name}{ending} {value}")
    return "\n".join(lines) + "\n"


def resident_bytes() -> float | None:
    """The memory that this process has now, where the system says so."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
