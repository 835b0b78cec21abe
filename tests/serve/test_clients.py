"""Clients that are hostile, broken or unusual: what they may take of the server, and that others do not notice."""

import asyncio
import gc
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest
from in_process_server import HTTP, connected, head, metrics, question, received, running, saved, statuses

import ectype as ec
from ectype.original.protocols.v2_messages import SERVICE, message
from ectype.serve import ServeSettings
from ectype.serve import _content_negotiation as content_negotiation
from ectype.serve._app import Service
from ectype.serve._grpc_server import GrpcServer
from ectype.serve._http_protocol import LINGER_BYTES, MOST_HEAD
from ectype.serve._http_types import HttpRequest, Refusal
from ectype.serve._inference import InferenceModel
from ectype.serve._metrics import resident_bytes
from ectype.serve._plain_json import PlainRows
from ectype.serve._row_parser import RowParser
from ectype.serve._server import Server, UvicornConfig, _Quiet, bind_socket
from ectype.serve._v2 import load_json
from mutated_requests import compared
from server_process import Process

BODY = json.dumps(question([1.0, 0.0])).encode()
GET = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = head(b"", "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")


@pytest.fixture(scope="module")
def server(plane):
    with running(plane) as server:
        yield server


@pytest.fixture(scope="module")
def directory(plane, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "m"
    saved(plane, path)
    return path


def answers(server, *parts):
    """What is answered to raw parts that are sent one after the other, until the other side closes."""
    with connected(server) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            for part in parts:
                line.sendall(part)
        return received(line)


# --- what is HTTP -----------------------------------------------------------------------------------------------------


def test_nothing_is_taken_that_h11_and_llhttp_refuse():
    outcome = compared(3000)
    assert outcome.wrong == []
    assert outcome.kinds["failures"] == outcome.kinds["other"] == 0
    assert 1000 < outcome.kinds["refused"] < 2500  # so that both is tried


@pytest.mark.parametrize(
    ("trailer", "status"),
    [
        (b"X: y\r\n", 200),
        (b"GET /x HTTP/1.1\r\n", 400),
        (b"X: a\0\r\n", 400),
        (b"X\r\n", 400),
        (b"X: " + b"a" * 3 * MOST_HEAD + b"\r\n", 431),
    ],
)
def test_what_is_behind_the_last_chunk(server, trailer, status):
    raw = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    raw += b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(BODY), BODY, trailer)
    assert statuses(answers(server, raw)) == [status]


def test_a_header_behind_the_last_chunk_is_none(plane):
    with running(plane, token="s3cret") as server:
        raw = CHUNKED + b"%x\r\n%s\r\n0\r\nAuthorization: Bearer s3cret\r\n\r\n" % (len(BODY), BODY)
        assert statuses(answers(server, raw, b"broken\r\n\r\n")) == [401, 400]


def test_chunks_may_have_extensions_but_not_without_end(server):
    raw = CHUNKED + b"%x;%s\r\n%s\r\n0\r\n\r\n"
    assert statuses(answers(server, raw % (len(BODY), b"a=b", BODY), b"broken\r\n\r\n")) == [200, 400]
    assert statuses(answers(server, raw % (len(BODY), b"a" * 3 * MOST_HEAD, BODY))) == [431]


@pytest.mark.parametrize("size", [MOST_HEAD - 200, MOST_HEAD + 200])
@pytest.mark.parametrize("names", ["A", "A: b\r\nC"])
def test_heads_have_a_most(server, size, names):
    raw = f"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{names}: {'a' * (size - 80)}\r\n\r\n".encode()
    assert statuses(answers(server, raw)) == [200 if size < MOST_HEAD else 431]
    assert statuses(answers(server, raw[:5000], raw[5000:])) == [200 if size < MOST_HEAD else 431]


def test_behind_a_request_that_is_broken_nothing_is_answered(server):
    assert statuses(answers(server, GET + head(BODY) + b"GET /v2 HTTP/1.1\r\n\r\n" + GET)) == [200, 200, 400]
    assert statuses(answers(server, GET + CHUNKED + b"5\r\n{\r\n" + GET)) == [200, 400]
    assert statuses(answers(server, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + GET)) == [200]


@pytest.mark.parametrize("said", ["notclose", "keep-alive", "x, close-not"])
def test_only_close_closes(server, said):
    with connected(server) as line:
        for _ in range(2):
            line.sendall(GET.replace(b"\r\n\r\n", f"\r\nConnection: {said}\r\n\r\n".encode()))
            answer = line.recv(65536)
            assert (statuses(answer), b"connection: close" in answer) == ([200], False)


@pytest.mark.parametrize("said", ["h2c", "websocket"])
@pytest.mark.parametrize("cut", [None, 30, -len(BODY), -10])
def test_a_wish_for_another_protocol_is_not_followed(server, said, cut):
    """As Java's client sends it with its first request, body and all."""
    raw = head(BODY, "Connection: Upgrade, HTTP2-Settings", f"Upgrade: {said}", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
    raw += GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    found = answers(server, raw) if cut is None else answers(server, raw[:cut], raw[cut:])
    assert statuses(found) == [200, 200]
    assert found.count(b'"data":["up"]') == 1


def test_older_and_absolute_requests(server):
    assert statuses(answers(server, b"GET /v2 HTTP/1.0\r\n\r\n")) == [200]
    assert statuses(answers(server, b"GET /v2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")) == [200]
    raw = b"GET http://example.com/v2?a=b HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"
    assert statuses(answers(server, raw)) == [200]
    for method in (b"TRACE", b"DELETE", b"OPTIONS"):
        raw = method + b" /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert statuses(answers(server, raw)) == [405]
    assert b"found invalid url" in answers(server, b"GET http://x:99999/v2 HTTP/1.1\r\nHost: x\r\n\r\n")
    for version in (b"0.9", b"2.0", b"1.2"):
        assert statuses(answers(server, b"GET /v2 HTTP/%s\r\nHost: x\r\n\r\n" % version)) == [400]


@pytest.mark.parametrize(("version", "coding"), [("1.1", "identity"), ("1.1", "gzip, chunked"), ("1.0", "chunked")])
def test_a_body_ends_where_every_reader_sees_its_end(server, version, coding):
    raw = f"POST /predict HTTP/{version}\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n".encode()
    assert statuses(answers(server, raw + b"6\r\n[[1,0]\r\n1\r\n]\r\n0\r\n\r\n")) == [400]


# --- what it costs ----------------------------------------------------------------------------------------------------

TEXTS = [" ", ",", ";", "q=", "a;q=0,", "a ;", "\t", "0.", "=", "a/", "%", "&scores="]
WORK = {
    "Accept-Encoding": content_negotiation.choose_compression.__wrapped__,
    "Content-Type": lambda text: content_negotiation.media_type.__wrapped__(text.encode()),
    "Content-Encoding": lambda text: content_negotiation.compression_of(
        HttpRequest("POST", "/", {b"content-encoding": text.encode()})
    ),
    "CSV": lambda text: PlainRows(ec.Space.normal(2), 10**9).table(text.encode()),
}


def is_linear(work):
    """Whether twice the text takes about twice the time, where a quadratic pattern would take four times."""

    def seconds(n):
        found = []
        for _ in range(3):
            clock = time.process_time()
            with suppress(ec.errors.EctypeError):
                work(n)
            found.append(time.process_time() - clock)
        return min(found)

    return seconds(2**19) < 3 * seconds(2**18) + 0.02


@pytest.mark.parametrize("header", WORK)
@pytest.mark.parametrize("text", TEXTS)
def test_the_work_for_what_clients_send_is_linear(header, text):
    assert is_linear(lambda n: WORK[header](text * (n // len(text))))


def test_the_work_for_a_name_that_comes_twice_is_linear():
    def named(n):
        load_json(b"{%s}" % b",".join(b'"%d":0' % (k // 2) for k in range(n // 100)))

    assert is_linear(named)


SENT = {
    "one long word among many": (b"[" + b'["",""],' * 3000 + b'["","%s"]]' % (b"a" * 30_000), PlainRows.document),
    "empty lines": (b"\n" * 2**20, PlainRows.table),
    "short lines": (b"1,2\n" * 2**18, PlainRows.table),
    "one wide line": (b"," * 2**20, PlainRows.table),
}


@pytest.mark.parametrize("sent", SENT)
def test_rows_take_memory_in_proportion_to_their_bytes(sent):
    """Of some a compressed body may have a thousand times as many as it has bytes."""
    (body, read), space = SENT[sent], ec.Space.normal(2)
    tracemalloc.start()
    try:
        with pytest.raises(ec.errors.EctypeError):
            RowParser(space)(read(PlainRows(space, 10_000), body))
        assert tracemalloc.get_traced_memory()[1] < 40 * len(body)
    finally:
        tracemalloc.stop()


def test_a_table_is_read_no_further_than_its_rows_may_reach():
    rows = PlainRows(ec.Space.normal(2), 3)
    assert rows.table(b"x1,x0\n\n1,2\n3,4\n\n5,6\n")[0].values == ["2", "4", "6"]
    with pytest.raises(Refusal, match="at most 3 rows, found more") as error:
        rows.table(b"1,2\n" * 5 + b'"')
    assert error.value.status == 413


def test_no_pattern_meets_what_clients_send():
    """Patterns are what is easily more than linear; there is none, and llhttp has none."""
    for module in Path(ec.__file__).parent.glob("serve/*.py"):
        assert not re.search(r"^\s*(import|from) re\b", module.read_text(), re.M), module


def test_a_long_header_costs_little(server):
    raw = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\nAccept-Encoding:%sx\r\n\r\n[[1, 0]]"
    before = metrics(server)["process_cpu_seconds_total"]
    for _ in range(20):
        assert statuses(answers(server, raw % (b" " * 16_000) + b"broken\r\n\r\n")) == [200, 400]
    assert metrics(server)["process_cpu_seconds_total"] - before < 2  # it was 8


def test_many_requests_ahead_of_their_answers(directory):
    """200,000 of them by a client that reads nothing: memory stays flat, and others are answered."""
    with Process(directory, "--client-timeout", "2") as served, connected(served) as line:
        before, n = resident_bytes(served.pid), 200_000
        gone = threading.Event()

        def send():
            with suppress(OSError):
                line.sendall(GET * n)
            gone.set()

        sending = threading.Thread(target=send)
        sending.start()
        asked = 0
        while not gone.is_set():
            assert HTTP.get(served.url + "/v2/health/live").status_code == 200
            asked += 1
        sending.join()
        assert asked > 3
        assert resident_bytes(served.pid) - before < 30 * 2**20


def test_requests_ahead_of_their_answers_are_all_answered(server):
    n = 3000
    last = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with connected(server) as line:
        sending = threading.Thread(target=line.sendall, args=(GET * n + last,))
        sending.start()
        assert statuses(received(line)) == [200] * (n + 1)
        sending.join()


def test_memory_is_flat_over_many_requests(directory):
    """Of 51,200 requests nothing is left."""
    with Process(directory) as served, ExitStack() as stack:
        lines = [stack.enter_context(connected(served)) for _ in range(16)]
        for k in range(33):
            if k == 1:
                before = resident_bytes(served.pid)
            for line in lines:
                line.sendall(head(BODY) * 100)
            for line in lines:
                answer = b""
                while answer.count(b'"data":["up"]}]}') < 100:
                    part = line.recv(65536)
                    assert part
                    answer += part
        assert resident_bytes(served.pid) - before < 8 * 2**20


@pytest.fixture
def no_collections():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def refusals():
    return sum(isinstance(one, Refusal) for one in gc.get_objects())


def test_what_was_refused_is_let_go_without_a_collection(plane, no_collections):
    """A traceback holds all that was read: of 4 MiB, 50 MB, which may come faster than a collection of cycles does."""
    with running(plane, most_bytes=100_000) as server:
        before = refusals()
        for _ in range(20):
            assert HTTP.post(server.url + "/predict", content=b" " * 50_000 + b"3").status_code == 400
        assert refusals() - before < 5


def test_what_grpc_refused_is_let_go_too(plane, no_collections):
    async def refused():
        front = GrpcServer(Service(InferenceModel(plane, "m", "1", 10)), ServeSettings(grpc_port=0))
        await front.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{front.port}") as channel:
            infer, before = channel.unary_unary(f"/{SERVICE}/ModelInfer"), refusals()
            request = message("ModelInferRequest")(model_name="m", id="i" * 50_000).SerializeToString()
            for _ in range(20):
                with pytest.raises(grpc.aio.AioRpcError, match="a list of tensors"):
                    await infer(request)
            assert refusals() - before < 5
        await front.stop(0)

    asyncio.run(refused())


def test_a_refused_body_is_thrown_away_up_to_a_limit(server):
    with connected(server) as line:
        line.sendall(head(b" " * 30_000))
        assert statuses(line.recv(65536)) == [413]
        line.sendall(head(length=2**40))  # the connection goes on
        assert statuses(line.recv(65536)) == [413]
        with pytest.raises(ConnectionError):
            line.sendall(bytes(2 * LINGER_BYTES))


def test_a_connection_goes_on_after_a_large_body_that_was_refused(server):
    with connected(server) as line:
        for _ in range(3):
            line.sendall(head(b" " * 200_000) + GET)
            answer = b""
            while len(statuses(answer)) < 2:
                answer += line.recv(65536)
            assert statuses(answer) == [413, 200]


def test_a_client_may_not_drip_a_head(plane):
    with running(plane, seconds=0.3) as server:
        assert statuses(answers(server, b"GET /v2 HTTP/1.1\r\nHost: ")) == [408]
        assert statuses(answers(server, GET, b"G")) == [200, 408]
        assert statuses(answers(server, GET + b"GET /")) == [200, 408]


def test_descriptors_run_out_without_a_word_too_many(directory):
    with Process(directory, "--max-connections", "400") as served:
        used = len(os.listdir(f"/proc/{served.pid}/fd"))
        resource.prlimit(served.pid, resource.RLIMIT_NOFILE, (used + 20, used + 20))
        with ExitStack() as stack:
            for _ in range(100):
                with suppress(OSError):
                    stack.enter_context(connected(served)).sendall(GET)
        for _ in range(100):
            with suppress(OSError), connected(served) as line:
                line.sendall(GET)
                if statuses(line.recv(65536)) == [200]:
                    break
        else:
            raise AssertionError("it is never answered again")
        served.signal(signal.SIGTERM)
        assert served.ended()[2].count("\n") < 5


def test_the_loop_of_asyncio_says_once_that_descriptors_ran_out(caplog):
    class Clock:
        now = 100.0

        def time(self):
            return self.now

    handler, clock = _Quiet(), Clock()
    for _ in range(1000):
        handler(clock, {"message": "socket.accept() out of system resource", "exception": OSError(24, "too many")})
    assert len(caplog.records) == 1


def test_two_signals_before_it_serves(plane):
    """As a worker may get them while it loads its copy."""

    def made():
        for _ in range(2):
            server.handle_exit(signal.SIGTERM, None)
        return Service(InferenceModel(plane, "m", "1", 10))

    settings = ServeSettings(port=0)
    server = Server(UvicornConfig(made, settings, factory=True))
    server.run([bind_socket(settings.address)])
    assert server.stopped_by is signal.SIGTERM


# --- workers ----------------------------------------------------------------------------------------------------------

MISSING = """
from pathlib import Path
from ectype.errors import EctypeError
from ectype.serve import ServeSettings
from ectype.serve._shared_counters import shared_table
from ectype.serve._worker_processes import Workers, WorkerSettings
served = WorkerSettings(Path("nowhere"), ServeSettings(port=0, workers=2), shared_table(2, 10))
try:
    Workers(served, print).run()
except EctypeError as error:
    print(error)
"""


def test_workers_that_cannot_start_are_not_started_again(tmp_path):
    done = subprocess.run([sys.executable, "-c", MISSING], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("--workers: expected processes that can serve, found one"), done.stderr
    assert 1 <= done.stderr.count("ectype: ") <= 2
    assert "Traceback" not in done.stderr


def nobody_listens(served):
    with suppress(ConnectionRefusedError):
        while True:
            socket.create_connection(("127.0.0.1", served.port), timeout=20).close()


def test_workers_end_with_their_parent(directory):
    served = Process(directory, "--workers", "2")
    try:
        served.wait_until_ready()
        with connected(served) as line:
            line.sendall(GET)
            assert statuses(line.recv(65536)) == [200]
            served.signal(signal.SIGKILL)
            assert received(line) == b""
        nobody_listens(served)
    finally:
        served.kill()
