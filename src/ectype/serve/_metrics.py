"""The text in which Prometheus reads what a service counts."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from ectype.certificate.certificate import Certificate
from ectype.serve._content_negotiation import choose_compression
from ectype.serve._shared_counters import SharedCounters

CREATED = "_created"


class Metrics:
    """The metrics of one service, in a registry of its own, since a process may hold several services."""

    def __init__(
        self,
        certificate: Certificate | None = None,
        others: Iterable[Collector] = (),
        counts: SharedCounters | None = None,
        labels: Sequence[str] = (),
    ):
        self.counts, self.registry = counts or SharedCounters(labels), CollectorRegistry()
        for collector in (self.counts, _Process(self.counts), *_proof(certificate), *others):
            self.registry.register(collector)  # type: ignore[arg-type]  # it asks for no more than `collect`

    def exposition(self, accept: str = "", accept_encoding: str = "") -> tuple[bytes, dict[str, str]]:
        """All metrics, in the format and compression that a client accepts, and the headers that say which."""
        encoder, content_type = _encoder(accept)
        body, headers = encoder(_WithoutCreated(self.registry)), {"content-type": content_type}
        if choose_compression(accept_encoding) == "gzip":
            return gzip.compress(body), {**headers, "content-encoding": "gzip"}
        return body, headers


def new_counter(name: str, about: str, labels: tuple[str, ...] = ()) -> Counter:
    """A counter in no registry yet: the service that shows it puts it into its own."""
    return Counter(name, about, labels, registry=None)


def total_of(counter: Counter) -> float:
    """The sum of a counter over its labels.

    >>> rows = Counter("rows_total", "Rows answered.", ("model",), registry=None)
    >>> rows.labels("iris").inc(3)
    >>> total_of(rows)
    3.0
    """
    samples = (sample for metric in counter.collect() for sample in metric.samples)
    return sum(sample.value for sample in samples if not sample.name.endswith(CREATED))


def as_label(value: object) -> str:
    r"""A value as a metric's label, which has to be valid UTF-8.

    >>> as_label("half \ud800")
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
    """The memory and processor time of all workers."""

    def __init__(self, counts: SharedCounters):
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        resident, seconds = resident_bytes(), process_time()
        if len(everybody := self._counts.processes) > 1:
            resident, seconds = (sum(of(pid) or 0.0 for pid in everybody) for of in (resident_bytes, _seconds))
        yield GaugeMetricFamily("process_resident_memory_bytes", "Resident memory.", value=resident)
        yield CounterMetricFamily("process_cpu_seconds", "Processor time used.", value=seconds)


def resident_bytes(pid: int | str = "self") -> float | None:
    """The memory that a process has now, where the system says so."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _seconds(pid: int) -> float:
    """The processor time of another process, where the system says so."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _encoder(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    try:
        return choose_encoder(accept)
    except TypeError:  # a version that is no number, which the library compares with one
        return choose_encoder("")


def _proof(certificate: Certificate | None) -> list[Collector]:
    if certificate is None:
        return []
    about = "Fidelity in the copy's certificate:"
    estimate = Gauge("ectype_certificate_estimate", f"{about} the estimate.", registry=None)
    lower = Gauge("ectype_certificate_lower", f"{about} its lower bound.", registry=None)
    estimate.set(certificate.estimate)
    lower.set(certificate.lower)
    return [estimate, lower]
