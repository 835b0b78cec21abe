"""The server, over real sockets: what it answers, refuses, survives, counts and compares; and how it stops."""

import asyncio
import csv
import json
import re
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress

import httpx2
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from test_serve_protocol import copied, drawn, tensor

import understudy as us
from cases import loans
from faulty import FaultyServer
from serving import Process
from understudy.certificate.bounds import lower_bound
from understudy.certificate.values import Certificate
from understudy.cli.serve import command
from understudy.errors import OriginalError, OutageError, SettingError
from understudy.runs.result import Record, Result
from understudy.serve.connection import Limits
from understudy.serve.model import Model
from understudy.serve.routes import Service
from understudy.serve.server import Address, Server
from understudy.serve.shadow import PAIRS, Shadow

# One for all tests, since making one takes long; it keeps no connection.
HTTP = httpx2.Client(limits=httpx2.Limits(max_keepalive_connections=0), timeout=20)
pytestmark = pytest.mark.filterwarnings("ignore::understudy.errors.UnderstudyWarning")


@pytest.fixture(scope="module")
def plane():
    X = np.random.default_rng(0).normal(size=(300, 2))
    return copied(us.Space.normal(2), X, (X[:, 0] > X[:, 1]).astype(int), ["down", "up"])


@pytest.fixture(scope="module")
def lending():
    frame, decisions = loans(600, 0)
    return copied(us.Space.from_data(frame), frame, (decisions == "refuse").astype(int), ["grant", "refuse"])


def saved(copy, path):
    history = [Record(0, 600, 600, 0, 0.0, 0.1, 0.1, None, 0.0, 1, 0.1)]
    proof = Certificate(0.98, 0.97, 0.95, 2000)
    settings = {"method": "one-shot", "original": "loans"}
    return Result(copy, proof, history, copy.space, settings, {"training": 600}, "budget", 1.0, 1.0).save(path)


# --- a server in this process ---------------------------------------------------------------------------------------


class Running:
    """A server on a thread of its own; `stop` stops it, as often as one likes."""

    def __init__(self, copy, limits, most_connections=64, most_rows=500, shadow=None):
        self.service = Service(Model(copy, "m", "1", most_rows), Certificate(0.98, 0.97, 0.95, 2000), shadow)
        self._server = Server(self.service, limits, most_connections)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port = self._do(self._server.start(Address(port=0))).port
        self.url = f"http://127.0.0.1:{self.port}"
        self.model = f"{self.url}/v2/models/m"

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def stop(self, seconds=5.0):
        if self._thread.is_alive():
            self._do(self._server.stop(seconds))
            self.service.close(5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


@contextmanager
def running(copy, seconds=30.0, most_bytes=20_000, **options):
    server = Running(copy, Limits(most_bytes, seconds), **options)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def server(plane):
    with running(plane) as server:
        yield server


def question(rows, **others):
    rows = np.atleast_2d(rows)
    return {"inputs": [tensor("inputs", rows.ravel().tolist(), "FP64", list(rows.shape))], **others}


def posted(server, content, **options):
    return HTTP.post(server.model + "/infer", json=content, **options)


def head(body=b"", *lines, path="/v2/models/m/infer", length=None):
    """A raw request to ask the model."""
    size = len(body) if length is None else length
    first = (f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {size}")
    return "\r\n".join([*first, *lines, "", ""]).encode() + body


@contextmanager
def connected(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as line:
        yield line


def received(line):
    """All that comes until the other side closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


def statuses(raw):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", raw)]


def metrics(server):
    text = HTTP.get(server.url + "/metrics").text
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_our_own_client_gets_the_copys_answers(server, plane):
    original = us.open_original(server.model, protocol="v2")
    rows = drawn(server.service.model, 70)
    assert original.answer(rows).tolist() == plane.predict(rows).tolist()
    versioned = us.open_original(server.model + "/versions/1", protocol="v2", output="predict")
    assert versioned.answer(rows).tolist() == plane.predict(rows).tolist()
    decoded = us.open_original(
        server.model, classes=["down", "up"], protocol="v2", output="predict_proba", decode="argmax"
    )
    assert decoded.answer(rows).tolist() == plane.predict(rows).tolist()


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
    assert answers["/v2"]["name"] == "understudy"
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
        ("GET", "/", {}, 404, "/v2/health/live"),
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
        ("POST", "/v2/models/m/infer", {"Content-Type": ""}, 415, "Content-Type"),
        ("POST", "/v2/models/m/infer", {"Content-Encoding": "gzip"}, 415, "Content-Encoding"),
        ("POST", "/v2/models/m/infer", {"Inference-Header-Content-Length": "9"}, 400, "binary form"),
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
        (b"GET /v2 HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 200_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 200_000, 431),
        (head(b"{}", "Content-Length: 7"), 400),
        (head(length=-1), 400),
        (head(length="1_0"), 400),
        (head(b"", "Transfer-Encoding: gzip"), 400),
        (head(b"zz\r\n", "Transfer-Encoding: chunked").replace(b"Content-Length: 4\r\n", b""), 400),
        (b"CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET http://example.com/v2 HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        (b"GET /v2/models/%00%ff HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    ],
)
def test_what_is_not_http_or_not_asked_as_it_should_be(server, raw, status):
    with connected(server) as line:
        line.sendall(raw)
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
    assert found["understudy_failures_total"] == 0
    assert not [name for name in found if 'status="5' in name]


def test_a_slow_client_is_cut_off_and_an_idle_one_let_go(plane):
    with running(plane, seconds=0.3) as server, connected(server) as slow, connected(server) as idle:
        slow.sendall(head(length=100) + b"{")
        begun = time.monotonic()
        assert statuses(received(slow)) == [408]
        assert received(idle) == b""
        assert time.monotonic() - begun < 10
        assert metrics(server)['understudy_requests_total{route="infer",status="408"}'] == 1


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
            deadline = time.monotonic() + 20
            while server._server._open and time.monotonic() < deadline:
                HTTP.get(server.url + "/v2/health/live")
                time.sleep(0.05)
        assert not server._server._open


def test_one_client_too_many(plane):
    with running(plane, most_connections=1) as server, connected(server) as first:
        first.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert statuses(first.recv(65536)) == [200]
        with connected(server) as second:
            assert statuses(received(second)) == [503]
        first.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert statuses(first.recv(65536)) == [200]


def test_what_fails_inside_is_logged_and_counted(plane, caplog):
    with running(plane) as server:
        server.service.model.answer = None  # as if by a fault of ours
        answer = posted(server, question([0.0, 0.0]))
        assert (answer.status_code, answer.json()) == (500, {"error": "the server failed; its log says how"})
        assert metrics(server)["understudy_failures_total"] == 1
    assert "a request to infer failed" in caplog.text


def test_metrics(plane):
    with running(plane) as server:
        for rows in ([[1.0, 0.0]], [[0.0, 1.0], [2.0, 1.0], [3.0, 1.0]]):
            posted(server, question(rows))
        posted(server, {})
        found = metrics(server)
    assert found['understudy_requests_total{route="infer",status="200"}'] == 2
    assert found['understudy_requests_total{route="infer",status="400"}'] == 1
    assert found["understudy_rows_total"] == 4
    assert found['understudy_answers_total{label="up"}'] == 3
    assert found['understudy_infer_seconds_bucket{le="+Inf"}'] == found["understudy_infer_seconds_count"] == 2
    assert found["understudy_requests_in_flight"] == 1  # the one that asks
    assert found["process_resident_memory_bytes"] > 10**6
    assert (found["understudy_certificate_estimate"], found["understudy_certificate_lower"]) == (0.98, 0.97)


# --- the shadow -----------------------------------------------------------------------------------------------------


def offered(shadow, model, inputs):
    asked = model.question(json.dumps({"inputs": inputs}).encode())
    answer = model.answer(asked)
    shadow.offer(asked.rows, answer.codes)
    return [model.copy.classes[code] for code in answer.codes]


def settled(shadow):
    """What came of it, once nothing waits."""
    deadline = time.monotonic() + 20
    while (found := shadow.summary())["waiting"] and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


@contextmanager
def shadowing(original, copy, **options):
    shadow = Shadow(lambda: us.Original(original, request_rows=8), copy, **options)
    try:
        yield shadow, Model(copy, "m", "1", 500)
    finally:
        shadow.stop(5)


def matrix(rows):
    return [tensor("inputs", np.ravel(rows).tolist(), "FP64", list(np.shape(rows)))]


def test_disagreements_are_counted_and_written_down(plane, tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 2))
    theirs = np.where(rows[:, 0] > 0, "up", "left")
    path = tmp_path / "log.csv"
    with shadowing(lambda X: np.where(X[:, 0] > 0, "up", "left"), plane, log=path) as (shadow, model):
        for at in range(0, 50, 10):
            offered(shadow, model, matrix(rows[at : at + 10]))
        found = settled(shadow)
    ours = plane.predict(rows)
    differ = ours != theirs
    n = int(differ.sum())
    assert (found["rows"], found["disagreements"], found["failed"], found["dropped"]) == (50, n, 0, 0)
    assert found["fidelity"] == {"estimate": 1 - n / 50, "lower": lower_bound(50 - n, 50)}
    assert {(p["original"], p["copy"]): p["rows"] for p in found["pairs"]} == (
        pd.Series(list(zip(theirs[differ], ours[differ], strict=True))).value_counts().to_dict()
    )
    with open(path, newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["x0", "x1", "original", "copy"]
    assert [(float(a), float(b), o, c) for a, b, o, c in lines] == [
        (*row, o, c) for row, o, c, d in zip(rows.tolist(), theirs, ours, differ, strict=True) if d
    ]
    with shadowing(lambda X: ["up"] * len(X), plane, log=path) as (shadow, model):
        offered(shadow, model, matrix([[-1.0, 1.0]]))
        settled(shadow)
    assert path.read_text().splitlines()[-1] == "-1.0,1.0,up,down"
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(SettingError, match="x0"):
        Shadow(lambda: us.Original(len), plane, log=tmp_path / "other.csv")


def test_the_original_is_asked_what_the_client_asked(lending):
    """Unknown levels and fractions of whole numbers included, each column in its type of production."""
    seen = []

    def original(frame):
        seen.append(frame)
        return ["grant"] * len(frame)

    frame = loans(3, 5)[0].assign(region=["north", "Atlantis", "south"], jobs=[1.0, np.nan, 2.0])
    cells = {name: [None if pd.isna(v) else v for v in frame[name].astype(object)] for name in frame}
    cells["age"][2] = 30.5
    kinds = {"age": "FP64", "owner": "BOOL", "region": "BYTES", "grade": "BYTES", "employer": "BYTES"}
    with shadowing(original, lending) as (shadow, model):
        offered(shadow, model, [tensor(name, cells[name], kinds.get(name, "FP64")) for name in frame])
        assert settled(shadow)["rows"] == 3
    (asked,) = seen
    assert asked["region"].tolist() == ["north", "Atlantis", "south"]
    assert asked["age"].tolist() == cells["age"]
    assert (
        asked["grade"].dtype == lending.space.present(lending.space.sample(1, np.random.default_rng(0)))["grade"].dtype
    )
    assert asked["jobs"].isna().tolist() == [False, True, False]


def test_rows_beyond_the_limit_are_dropped_and_nobody_waits(plane):
    asked, go_on = threading.Event(), threading.Event()

    def original(rows):
        asked.set()
        assert go_on.wait(20)
        return ["up"] * len(rows)

    with shadowing(original, plane, most_rows=20) as (shadow, model):
        offered(shadow, model, matrix(np.zeros((8, 2))))
        assert asked.wait(20)
        for _ in range(3):
            offered(shadow, model, matrix(np.zeros((8, 2))))  # the first still fits
        assert shadow.summary()["dropped"] == 16
        go_on.set()
        assert settled(shadow)["rows"] == 16


def test_a_row_that_the_original_refuses_takes_no_other_with_it(plane, caplog):
    def original(rows):
        if (rows[:, 0] == 3).any():
            raise OriginalError("original", "other rows", "a three")
        return ["up"] * len(rows)

    with shadowing(original, plane) as (shadow, model):
        offered(shadow, model, matrix([[float(j), 0.0] for j in range(8)]))
        found = settled(shadow)
    assert (found["rows"], found["failed"]) == (7, 1)
    assert "a three" in caplog.text


def test_an_original_that_was_out_is_opened_again(plane):
    states = iter([OutageError("original", "an answer", "nothing"), None])

    def opened():
        error = next(states)

        def predict(rows):
            if error:
                raise error
            return ["up"] * len(rows)

        return us.Original(predict)

    shadow, model = Shadow(opened, plane, pause=0.01), Model(plane, "m", "1", 500)
    offered(shadow, model, matrix([[1.0, 0.0]]))
    assert settled(shadow)["failed"] == 1
    offered(shadow, model, matrix([[1.0, 0.0]]))
    assert settled(shadow)["rows"] == 1
    shadow.stop(5)


def test_rows_answered_before_an_outage_count_as_compared(plane):
    def original(rows):
        if len(rows) > 4:
            raise OriginalError("original", "fewer rows", len(rows))
        if rows[0, 0] >= 4:
            raise OutageError("original", "an answer", "nothing")
        return ["up"] * len(rows)

    with shadowing(original, plane, pause=0.01) as (shadow, model):
        offered(shadow, model, matrix([[float(j), 0.0] for j in range(8)]))
        found = settled(shadow)
    assert (found["rows"], found["failed"]) == (4, 4)


def test_labels_without_end_do_not_fill_the_memory(plane):
    names = iter(range(10**6))
    with shadowing(lambda rows: [f"label {next(names)}" for _ in rows], plane) as (shadow, model):
        for _ in range(5):
            offered(shadow, model, matrix(np.zeros((400, 2))))
        found = settled(shadow)
    assert found["disagreements"] == found["rows"] == 2000
    assert len(found["pairs"]) == PAIRS + 1


# --- the command ----------------------------------------------------------------------------------------------------


def refuses(server):
    """Wait until nobody listens any more."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=20).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.01)
    return False


def test_the_command_from_start_to_stop(lending, tmp_path):
    """A parallel run against a real endpoint; then SIGTERM while a request is under way, and SIGINT."""
    saved(lending, tmp_path / "loans")
    log = tmp_path / "differ.csv"
    decide = lambda frame: np.where(frame["income"].astype(float) > 30_000, "grant", "refuse").tolist()  # noqa: E731
    with FaultyServer(decide, share=0) as box:
        original = f"{box.url}/v2/models/box"
        served = Process(tmp_path / "loans", "--shadow", original, "--protocol", "v2", "--shadow-log", str(log))
        other = Process(tmp_path / "loans", "--name", "a name", "--model-version", "7", "--grace", "0.1")
        try:
            assert served.wait_until_ready()["name"] == "loans"
            _parallel_run(served, lending, decide, log)
            _stopped_with_a_request_under_way(served, lending)
            assert other.wait_until_ready()["url"].endswith("/v2/models/a%20name")
            assert HTTP.get(f"{other.model}/versions/7/ready").json() == {"name": "a name", "ready": True}
            with connected(other) as stuck:
                stuck.sendall(head(b"{", "Expect: 100-continue", path="/v2/models/a%20name/infer", length=99))
                assert statuses(stuck.recv(65536)) == [100]
                other.signal(signal.SIGINT)
                assert other.ended()[0] == 130
        finally:
            served.kill()
            other.kill()


def _parallel_run(served, lending, decide, log):
    frame = loans(60, 7)[0]
    ours, theirs = lending.predict(frame), np.array(decide(frame))
    client = us.open_original(served.model, protocol="v2")
    assert client.answer(frame).tolist() == ours.tolist()
    deadline = time.monotonic() + 30
    while (found := HTTP.get(served.url + "/shadow").json())["rows"] < 60 and time.monotonic() < deadline:
        time.sleep(0.02)
    differ = int((ours != theirs).sum())
    assert differ
    assert (found["rows"], found["disagreements"], found["failed"]) == (60, differ, 0)
    counted = metrics(served)
    assert counted["understudy_shadow_rows_total"] == 60
    pairs = [value for name, value in counted.items() if name.startswith("understudy_shadow_disagreements_total")]
    assert sum(pairs) == differ
    written = pd.read_csv(log)
    assert written["copy"].tolist() == ours[ours != theirs].tolist()
    assert written["income"].tolist() == frame["income"][ours != theirs].tolist()


def _stopped_with_a_request_under_way(served, lending):
    frame = loans(2, 8)[0]
    body = us.original.protocols.V2().encode(frame, "last")
    with connected(served) as line, connected(served) as idle:
        line.sendall(head(b"", "Expect: 100-continue", path="/v2/models/loans/infer", length=len(body)))
        assert statuses(line.recv(65536)) == [100]
        served.signal(signal.SIGTERM)
        assert refuses(served)
        assert received(idle) == b""
        line.sendall(body)
        answer = received(line)
    assert statuses(answer) == [200]
    assert b"Connection: close" in answer or b"connection: close" in answer
    (output,) = json.loads(answer.partition(b"\r\n\r\n")[2])["outputs"]
    assert output["data"] == lending.predict(frame).tolist()
    code, out, errors = served.ended()
    assert (code, out) == (0, "")
    assert errors.startswith("understudy: stopped after ")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--port", "70000"], "--port"),
        (["--max-rows", "0"], "--max-rows"),
        (["--client-timeout", "0"], "--client-timeout"),
        (["--name", "a/b"], "a word without a slash"),
        (["--protocol", "v2"], "an original, since protocol is given"),
        (["--shadow-log", "x.csv"], "an original, since --shadow-log is given"),
        ([], "run.json"),
    ],
)
def test_bad_options(tmp_path, options, reason):
    with pytest.raises(us.errors.UnderstudyError) as error:
        CliRunner().invoke(command, [str(tmp_path), *options], catch_exceptions=False, standalone_mode=False)
    assert reason in str(error.value)
    assert error.value.exit_code == 2


def test_a_port_that_is_taken(server, plane):
    async def start():
        await Server(server.service, Limits()).start(Address(port=server.port))

    with pytest.raises(SettingError, match="--port 0"):
        asyncio.run(start())
    assert str(Address("::1", 80)) == "http://[::1]:80"
