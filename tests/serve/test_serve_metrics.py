"""What Prometheus reads."""

import gzip

import pytest
from prometheus_client import Counter, Histogram
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_text

from ectype.certificate.certificate import Certificate
from ectype.serve._metrics import Metrics, as_label, new_counter, total_of


def values(text):
    """The value of every sample, by its name and labels as they are written."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_prometheus_can_read_what_is_counted():
    times = Histogram("t_seconds", "Times.", buckets=(0.1, 1.0), registry=None)
    odd_label = Counter("a_total", "About a.", ("label",), registry=None)
    odd_label.labels(as_label('say "hi"\\\n')).inc(2)
    for seconds in (0.05, 0.1, 0.5, 7.0):
        times.observe(seconds)
    found = values(Metrics(others=[odd_label, times]).exposition()[0].decode())
    assert found['a_total{label="say \\"hi\\"\\\\\\n"}'] == 2
    assert {name: value for name, value in found.items() if name.startswith("t_seconds")} == {
        't_seconds_bucket{le="0.1"}': 2,
        't_seconds_bucket{le="1.0"}': 3,
        't_seconds_bucket{le="+Inf"}': 4,
        "t_seconds_sum": 7.65,
        "t_seconds_count": 4,
    }


def test_labels_that_are_not_text_are_shown():
    broken = new_counter("a_total", "About a.", ("label",))
    broken.labels(as_label("half \ud800")).inc()
    assert values(Metrics(others=[broken]).exposition()[0].decode())['a_total{label="half \\\\ud800"}'] == 1
    assert total_of(broken) == 1


NAMES = {
    "ectype_requests_total": "counter",
    "ectype_rows_total": "counter",
    "ectype_rows_outside_total": "counter",
    "ectype_answers_total": "counter",
    "ectype_failures_total": "counter",
    "ectype_infer_seconds": "histogram",
    "ectype_requests_in_flight": "gauge",
    "process_resident_memory_bytes": "gauge",
    "process_cpu_seconds_total": "counter",
    "ectype_certificate_estimate": "gauge",
    "ectype_certificate_lower": "gauge",
}


def test_names_and_types_are_what_they_were():
    body, headers = Metrics(Certificate(0.98, 0.97, 0.95, 2000)).exposition()
    assert headers == {"content-type": "text/plain; version=0.0.4; charset=utf-8"}
    types = [line.split()[2:] for line in body.decode().splitlines() if line.startswith("# TYPE")]
    assert dict(types) == NAMES
    assert "_created" not in body.decode()


@pytest.mark.parametrize(
    ("accept", "kind", "read"),
    [
        ("", "text/plain; version=0.0.4", plain_text),
        ("text/html, */*", "text/plain; version=0.0.4", plain_text),
        ("application/openmetrics-text; version=1.0.0,text/plain;q=0.5", "application/openmetrics-text", open_metrics),
        ("application/openmetrics-text; version=mine", "text/plain; version=0.0.4", plain_text),
        ("application/openmetrics-text; version=1.x", "text/plain; version=0.0.4", plain_text),
    ],
)
def test_the_client_chooses_the_format(accept, kind, read):
    metrics = Metrics(Certificate(0.98, 0.97, 0.95, 2000))
    metrics.counts.rows.inc(3)
    body, headers = metrics.exposition(accept, "deflate, gzip;q=0.5")
    assert headers["content-type"].startswith(kind)
    assert headers["content-encoding"] == "gzip"
    samples = [sample for family in read(gzip.decompress(body).decode()) for sample in family.samples]
    assert {sample.name: sample.value for sample in samples}["ectype_rows_total"] == 3


def test_services_in_one_process_count_apart():
    first, second = Metrics(), Metrics()
    first.counts.rows.inc(3)
    assert (first.counts.rows.value, second.counts.rows.value) == (3, 0)
