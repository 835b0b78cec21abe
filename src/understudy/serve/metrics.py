"""What a service counts, and the text in which Prometheus reads it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

from understudy.certificate.values import Certificate

# Upper ends of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
CREATED = "_created"


class Metrics:
    """The metrics of one service, in a registry of its own, since a process may hold several services."""

    def __init__(self, certificate: Certificate | None = None, others: Iterable[Collector] = ()):
        here = self.registry = CollectorRegistry()
        self.requests = Counter("understudy_requests_total", "Requests.", ("route", "status"), registry=here)
        self.rows = Counter("understudy_rows_total", "Rows answered.", registry=here)
        self.answers = Counter(
            "understudy_answers_total", "Rows answered, by the copy's label.", ("label",), registry=here
        )
        self.failures = Counter(
            "understudy_failures_total", "Requests that failed by a fault of the server's.", registry=here
        )
        self.seconds = Histogram(
            "understudy_infer_seconds", "Seconds from a whole request to its answer.", buckets=BUCKETS, registry=here
        )
        self.in_flight = Gauge("understudy_requests_in_flight", "Requests under way.", registry=here)
        for collector in (_Process(), *_proof(certificate), *others):
            here.register(collector)

    def exposition(self, accept: str = "", accept_encoding: str = "") -> tuple[bytes, dict[str, str]]:
        """All metrics, in the format and compression that a client accepts, and the headers that say which."""
        encoder, content_type = _encoder(accept)
        body, headers = encoder(_WithoutCreated(self.registry)), {"content-type": content_type}
        if gzip_accepted(accept_encoding):
            return gzip.compress(body), {**headers, "content-encoding": "gzip"}
        return body, headers


def counter(name: str, about: str, labels: tuple[str, ...] = ()) -> Counter:
    """A counter in no registry yet: the service that shows it puts it into its own."""
    return Counter(name, about, labels, registry=None)


def total(counter: Counter) -> float:
    """What was counted, whatever its labels.

    >>> rows = Counter("rows_total", "Rows answered.", ("model",), registry=None)
    >>> rows.labels("iris").inc(3)
    >>> total(rows)
    3.0
    """
    samples = (sample for metric in counter.collect() for sample in metric.samples)
    return sum(sample.value for sample in samples if not sample.name.endswith(CREATED))


def label(value: object) -> str:
    r"""A value as a metric's label, which has to be valid UTF-8.

    >>> label("half \ud800")
    'half \\ud800'
    """
    return str(value).encode(errors="backslashreplace").decode()


class _WithoutCreated:
    """A registry's metrics without the times at which series were created.

    The library's own switch for those would act on the whole process, and so on metrics that are not ours.
    """

    def __init__(self, registry: CollectorRegistry):
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith(CREATED)]
            yield metric


class _Process:
    """The memory and processor time of this process."""

    def collect(self) -> Iterable[Metric]:
        resident = resident_bytes()
        yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory.", value=resident)
        yield CounterMetricFamily("process_cpu_seconds", "Processor time used.", value=process_time())


def resident_bytes() -> float | None:
    """The memory that this process has now, where the system says so."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _encoder(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    try:
        return choose_encoder(accept)
    except TypeError:  # a version that is no number, which the library compares with one
        return choose_encoder("")


def _proof(certificate: Certificate | None) -> list[Collector]:
    if certificate is None:
        return []
    about = "Fidelity in the copy's certificate:"
    estimate = Gauge("understudy_certificate_estimate", f"{about} the estimate.", registry=None)
    lower = Gauge("understudy_certificate_lower", f"{about} its lower bound.", registry=None)
    estimate.set(certificate.estimate)
    lower.set(certificate.lower)
    return [estimate, lower]
