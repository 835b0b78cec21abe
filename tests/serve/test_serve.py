"""The server, over real sockets: what it answers, refuses, survives and counts."""

import json
import socket
from contextlib import ExitStack, suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process_server import (
    HTTP,
    connected,
    copied,
    drawn,
    head,
    metrics,
    posted,
    question,
    received,
    running,
    statuses,
)

import ectype as ec
from ectype.errors import SettingError
from ectype.models.blend import FAMILIES
from ectype.models.capacity import Capacity
from ectype.models.families import FamilyLimits
from ectype.serve import Address
from ectype.serve._http_protocol import SPARE
from ectype.serve._server import bind_socket

pytestmark = pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")


@pytest.fixture(scope="module")
def server(plane):
    with running(plane) as server:
        yield server


def test_our_own_client_gets_the_copys_answers(server, plane):
    original = ec.open_original(server.model, protocol="v2")
    rows = drawn(server.service.model, 70)
    assert original.answer(rows).tolist() == plane.predict(rows).tolist()
    versioned = ec.open_original(server.model + "/versions/1", protocol="v2", output="predict")
    assert versioned.answer(rows).tolist() == plane.predict(rows).tolist()
    decoded = ec.open_original(
        server.model, classes=["down", "up"], protocol="v2", output="predict_proba", decode="argmax"
    )
    assert decoded.answer(rows).tolist() == plane.predict(rows).tolist()


@pytest.mark.parametrize("family", ["blend", "mlp"])
def test_a_blend_and_a_network_with_pieces_are_served(family):
    X = np.random.default_rng(0).normal(size=(300, 2))
    codes, quick = ((X**2).sum(axis=1) < 1).astype(np.int32), FamilyLimits(effort=Capacity(share=0.2))
    copy = copied(ec.Space.normal(2), X, codes, ["out", "in"], FAMILIES[family], quick)
    with running(copy) as server:
        rows = drawn(server.service.model, 70)
        original = ec.open_original(server.model, protocol="v2")
        assert original.answer(rows).tolist() == copy.predict(rows).tolist()
        assert set(copy.predict(rows)) == {"out", "in"}
        asked = question(rows, outputs=[{"name": "predict_proba"}])
        (found,) = posted(server, asked).json()["outputs"]
        np.testing.assert_array_equal(np.reshape(found["data"], found["shape"]), copy.predict_proba(rows))
        assert HTTP.get(server.model).json()["platform"] == f"ectype_{family}"


def test_health_and_metadata(server):
    answers = {
        path: HTTP.get(server.url + path).json()
        for path in (
            "/v2",
            "/v2/health/live",
            "/v2/health/ready",
            "/v2/models/m/ready",
            "/v2/models/m/versions/1/ready",
        )
    }
    assert answers["/v2"]["name"] == "ectype"
    assert answers["/v2/health/live"] == {"live": True}
    assert all(answer["ready"] for path, answer in answers.items() if path.endswith("ready"))
    metadata = HTTP.get(server.model).json()
    assert metadata["inputs"] == [{"name": "inputs", "datatype": "FP64", "shape": [-1, 2]}]
    assert metadata == HTTP.get(server.model + "/versions/1/").json()
    empty = HTTP.head(server.model)
    assert (empty.status_code, empty.content) == (200, b"")


def test_many_rows_are_answered_while_others_are(server, plane):
    rows = np.random.default_rng(0).normal(size=(400, 2)).round(3)  # above what is read and predicted at once
    answer = posted(server, question(rows, id="many")).json()
    assert answer["id"] == "many"
    assert answer["outputs"][0]["data"] == plane.predict(rows).tolist()


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "reason"),
    [
        ("GET", "/v3", {}, 404, "/v2/health/live"),
        ("GET", "/v1/models/other", {}, 404, "model: expected 'm', found 'other'"),
        ("POST", "/v1/models/other:predict", {}, 404, "model: expected 'm', found 'other'"),
        ("POST", "/v1/models/m:explain", {}, 404, "nothing or :predict"),
        ("GET", "/shadow", {}, 404, "path"),
        ("GET", "/v2/models", {}, 404, "path"),
        ("GET", "/v2/models/other", {}, 404, "model: expected 'm', found 'other'"),
        ("POST", "/v2/models/other/infer", {}, 404, "model"),
        ("POST", "/v2/models/m/versions/2/infer", {}, 404, "version: expected '1', found '2'"),
        ("GET", "/v2/models/m/versions", {}, 404, "path below the model"),
        ("GET", "/v2/models/m/explain", {}, 404, "path below the model"),
        ("GET", "/v2/models/m/infer", {}, 405, "method: expected POST, found GET"),
        ("POST", "/v2/health/live", {}, 405, "method: expected GET, HEAD"),
        ("POST", "/v2/models/m/infer", {"Content-Type": "text/csv"}, 415, "expected application/json, found text/csv"),
        ("POST", "/v2/models/m/infer", {"Content-Type": "image/png"}, 415, "Content-Type"),
        ("POST", "/v2/models/m/infer", {"Content-Encoding": "br"}, 415, "Content-Encoding: expected gzip, deflate"),
        ("POST", "/v2/models/m/infer", {"Content-Encoding": "gzip"}, 400, "data compressed by gzip"),
        ("POST", "/v2/models/m/infer", {"Inference-Header-Content-Length": "9"}, 400, "at most the body's 1 bytes"),
        ("POST", "/v2/models/m/infer", {"Inference-Header-Content-Length": "-9"}, 400, "a number of bytes"),
        ("POST", "/predict", {"Inference-Header-Content-Length": "1"}, 400, "belong to /infer"),
        ("POST", "/v2/models/m/infer", {}, 400, "body: expected JSON"),
    ],
)
def test_refusals(server, method, path, headers, status, reason):
    given = {"Content-Type": "application/json", **headers}
    answer = HTTP.request(method, server.url + path, headers=given, content=b"{" if method == "POST" else None)
    assert answer.status_code == status
    assert reason in answer.json()["error"]
    if status == 405:
        assert answer.headers["Allow"] in reason


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\r\n", 411),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET /v2 HTTP\r\nHost: x\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\nHost: x\n\r\n\r\n", 400),  # bare newlines
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400),  # folded
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400),
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nA: b\0\r\n\r\n", 400),
        (b"GET /v2\x80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (head(b"{}", "Transfer-Encoding: chunked"), 400),  # two lengths
        (head(b"2\r\n{}x\r\n0\r\n\r\n", "Transfer-Encoding: chunked").replace(b"Content-Length: 12\r\n", b""), 400),
        (head(b"a" * 300, "Transfer-Encoding: chunked").replace(b"Content-Length: 300\r\n", b""), 400),
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 200_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 200_000, 431),
        (head(b"{}", "Content-Length: 7"), 400),
        (head(length=-1), 400),
        (head(length="1_0"), 400),
        (head(b"", "Transfer-Encoding: gzip"), 400),
        (head(b"zz\r\n", "Transfer-Encoding: chunked").replace(b"Content-Length: 4\r\n", b""), 400),
        (b"CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"GET http://example.com/v3 HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /v2/models/%00%ff HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ],
)
def test_what_is_not_http_or_not_asked_as_it_should_be(server, raw, status):
    with connected(server) as line:
        line.sendall(raw)
        if status in (404, 411):  # a request could follow
            line.shutdown(socket.SHUT_WR)
        answer = received(line)
    assert statuses(answer) == [status]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def test_a_huge_body_is_refused_before_it_is_sent(server):
    with connected(server) as line:
        line.sendall(head(length=10**10))
        answer = line.recv(65536)
        assert statuses(answer) == [413]
        assert b"at most 20000 bytes" in answer
        line.shutdown(socket.SHUT_WR)
        assert received(line) == b""


def test_a_body_without_a_length_is_refused_once_it_is_too_long(server):
    start = head(b"", "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    with connected(server) as line:
        line.sendall(start)
        sent, chunk = 0, b"1000\r\n" + b" " * 4096 + b"\r\n"
        line.setblocking(False)
        answer = b""
        while not answer and sent < 10**8:
            with suppress(BlockingIOError):
                sent += line.send(chunk)
            with suppress(BlockingIOError):
                answer = line.recv(65536)
    assert statuses(answer) == [413]


def test_clients_that_send_all_of_a_long_body_still_read_the_reason(server):
    assert posted(server, question(np.zeros((10_000, 2)))).status_code == 413


def test_requests_may_follow_each_other_on_one_connection_before_they_are_answered(server):
    body = json.dumps(question([1.0, 0.0])).encode()
    chunked = head(b"", "Transfer-Encoding: chunked", "Connection: close").replace(b"Content-Length: 0\r\n", b"")
    chunked += b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    bad = head(b"{}")
    with connected(server) as line:
        line.sendall(head(body) + bad + b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n" + chunked)
        answer = received(line)
    assert statuses(answer) == [200, 400, 200, 200]
    assert answer.count(b'"data":["up"]') == 2


def test_a_client_may_wait_to_be_told_to_go_on(server):
    body = json.dumps(question([1.0, 0.0])).encode()
    with connected(server) as line:
        line.sendall(head(b"", "Expect: 100-continue", "Connection: close", length=len(body)))
        assert statuses(line.recv(65536)) == [100]
        line.sendall(body)
        assert statuses(received(line)) == [200]


@given(st.binary(max_size=300) | st.binary(max_size=100).map(lambda noise: head(b'{"inputs":' + noise)))
@settings(max_examples=60, deadline=None)
def test_any_bytes_over_the_wire(server, raw):
    with connected(server) as line:
        line.sendall(raw)
        line.shutdown(socket.SHUT_WR)
        answer = received(line)
    assert all(400 <= status < 500 for status in statuses(answer))
    assert HTTP.get(server.url + "/v2/health/live").status_code == 200


def test_nothing_above_was_a_fault_of_the_servers(server):
    found = metrics(server)
    assert found["ectype_failures_total"] == 0
    assert not [name for name in found if 'status="5' in name]


def test_a_slow_client_is_cut_off_and_an_idle_one_let_go(plane):
    """Long before the sockets' own time-out, which would be an error here."""
    with running(plane, seconds=0.3) as server, connected(server, 5) as slow, connected(server, 5) as idle:
        slow.sendall(head(length=100) + b"{")
        assert statuses(received(slow)) == [408]
        assert received(idle) == b""
        assert metrics(server)['ectype_requests_total{route="infer",status="408"}'] == 1


def test_a_client_that_does_not_read_is_cut_off(plane):
    with running(plane, seconds=0.5, most_bytes=10**7, most_rows=10**6) as server:
        body = json.dumps(question(np.zeros((100_000, 2)), outputs=[{"name": "predict_proba"}])).encode()
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", server.port))
        with line:
            line.settimeout(20)
            line.sendall(head(body) * 3)
            assert HTTP.get(server.url + "/v2/health/live").status_code == 200  # others are answered meanwhile
            server.all_gone()
            assert HTTP.get(server.url + "/v2/health/live").status_code == 200


def test_one_client_too_many(plane):
    with running(plane, most_connections=1) as server, connected(server) as first:
        first.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert statuses(first.recv(65536)) == [200]
        with connected(server) as second:
            second.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert statuses(received(second)) == [503]
        with connected(server) as silent:
            assert statuses(received(silent)) == [503]
        first.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert statuses(first.recv(65536)) == [200]


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/v2/models/m/ready", "/metrics"])
def test_probes_are_answered_when_all_connections_are_taken(plane, path):
    with running(plane, most_connections=1) as server, connected(server) as first:
        first.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert statuses(first.recv(65536)) == [200]
        with connected(server) as probe:
            probe.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
            answer = received(probe)
            assert statuses(answer) == [200]
            assert b"connection: close" in answer


def test_beyond_the_connections_for_probes_nobody_waits(plane):
    with running(plane, most_connections=1) as server, ExitStack() as stack:
        lines = [stack.enter_context(connected(server)) for _ in range(1 + SPARE)]
        assert statuses(received(stack.enter_context(connected(server)))) == [503]
        for line in lines[1:]:
            line.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
            assert statuses(received(line)) == [200]


def test_what_fails_inside_is_logged_and_counted(plane, caplog):
    with running(plane) as server:
        server.service.model.probabilities = None  # as if by a fault of ours
        answer = posted(server, question([0.0, 0.0]))
        assert (answer.status_code, answer.json()) == (500, {"error": "the server failed; its log says how"})
        assert metrics(server)["ectype_failures_total"] == 1
    assert "a request to infer failed" in caplog.text


def test_metrics(plane):
    with running(plane) as server:
        for rows in ([[1.0, 0.0]], [[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]]):
            posted(server, question(rows))
        posted(server, {})
        found = metrics(server)
    assert found['ectype_requests_total{route="infer",status="200"}'] == 2
    assert found['ectype_requests_total{route="infer",status="400"}'] == 1
    assert found["ectype_rows_total"] == 4
    assert found['ectype_answers_total{label="up"}'] == 3
    assert found['ectype_infer_seconds_bucket{le="+Inf"}'] == found["ectype_infer_seconds_count"] == 2
    assert found["ectype_requests_in_flight"] == 1  # the one that asks
    assert found["process_resident_memory_bytes"] > 10**6
    assert (found["ectype_certificate_estimate"], found["ectype_certificate_lower"]) == (0.98, 0.97)


def test_a_port_that_is_taken(server):
    with pytest.raises(SettingError, match="--port 0"):
        bind_socket(Address(port=server.port))
    assert str(Address("::1", 80)) == "http://[::1]:80"
