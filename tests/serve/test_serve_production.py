"""What production asks for: a token, TLS, workers, gRPC, and an end at which no request is lost."""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import grpc
import numpy as np
import pytest
from in_process_server import connected, drawn, head, question, received, saved, statuses

import ectype as ec
from ectype.original.protocols.v2_messages import SERVICE, message
from ectype.serve._binary_tensors import pack_values, unpack_values
from server_process import Process

BODY = json.dumps(question([1.0, 0.0])).encode()


@pytest.fixture(scope="module")
def directory(plane, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "m"
    saved(plane, path)
    return path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    pair = folder / "cert.pem", folder / "key.pem"
    about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    files = ["-out", str(pair[0]), "-keyout", str(pair[1])]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*make, *about, *files], check=True, capture_output=True)
    return pair


def call(channel, method, metadata=(), **fields):
    """One request over gRPC, by messages that are written as the protocol says."""
    send = channel.unary_unary(
        f"/{SERVICE}/{method}",
        request_serializer=lambda request: request.SerializeToString(),
        response_deserializer=message(f"{method}Response").FromString,
    )
    return send(message(f"{method}Request")(**fields), timeout=20, metadata=metadata)


def asked(rows, raw=True, **others):
    inputs = {"name": "inputs", "datatype": "FP64", "shape": rows.shape}
    if raw:
        return {"model_name": "m", "inputs": [inputs], "raw_input_contents": [rows.tobytes()], **others}
    inputs["contents"] = {"fp64_contents": rows.ravel().tolist()}
    return {"model_name": "m", "inputs": [inputs], **others}


def posted(line, token=None, path="/v2/models/m/infer"):
    headers = {} if token is None else {"Authorization": token}
    line.request("POST" if path.endswith("infer") else "GET", path, BODY if path.endswith("infer") else None, headers)
    answer = line.getresponse()
    return answer.status, answer.read(), answer.headers


def test_gRPC_token_and_tls_from_the_command(directory, plane, certificate, monkeypatch):
    """One server with all of them."""
    monkeypatch.setenv("SERVED_TOKEN", "s3cret")
    cert, key = certificate
    options = ["--auth-env", "SERVED_TOKEN", "--tls-cert", cert, "--tls-key", key, "--grpc-port", "0"]
    with Process(directory, *options) as served:
        assert served.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=cert)
        with closing(http.client.HTTPSConnection("localhost", served.port, context=trusted, timeout=20)) as line:
            assert posted(line, "Bearer s3cret")[1].endswith(b'"data":["up"]}]}')
            for wrong in (None, "s3cret", "Bearer s3cre", "Basic s3cret", "Bearer \xe9"):
                status, _, headers = posted(line, wrong)
                assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert [posted(line, f"{scheme} s3cret")[0] for scheme in ("bearer", "BEARER", "Bearer ")] == [200] * 3
            found = [posted(line, path=path)[0] for path in ("/v2/health/live", "/v2/health/ready", "/metrics", "/v2")]
            assert found == [200, 200, 401, 401]
            big = question(np.zeros((2000, 2)), outputs=[{"name": "predict_proba"}])
            line.request("POST", "/v2/models/m/infer", json.dumps(big), {"Authorization": "Bearer s3cret"})
            assert len(json.loads(line.getresponse().read())["outputs"][0]["data"]) == 4000
        with connected(served) as plain:
            plain.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert statuses(received(plain)) == []
        _grpc_by_tls(served.grpc_port, cert, plane)


def _grpc_by_tls(port, cert, plane):
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    trust = grpc.ssl_channel_credentials(cert.read_bytes())
    with grpc.secure_channel(f"localhost:{port}", trust) as channel:
        assert call(channel, "ServerLive").live
        with pytest.raises(grpc.RpcError) as error:
            call(channel, "ModelInfer", **asked(rows))
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
        answer = call(channel, "ModelInfer", [("authorization", "Bearer s3cret")], **asked(rows))
        assert unpack_values(answer.raw_output_contents[0], "BYTES", 2, "") == plane.predict(rows).tolist()


@pytest.fixture(scope="module")
def remote(directory):
    """A channel to a server with two workers, and the server."""
    with ExitStack() as stack:
        served = stack.enter_context(Process(directory, "--workers", "2", "--grpc-port", "0"))
        channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{served.grpc_port}"))
        yield channel, served


def test_grpc_knows_the_server_and_its_model(remote):
    channel, _ = remote
    assert call(channel, "ServerReady").ready
    assert call(channel, "ModelReady", name="m").ready
    assert call(channel, "ServerMetadata").name == "ectype"
    about = call(channel, "ModelMetadata", name="m", version="1")
    assert (about.name, about.platform) == ("m", "ectype_trees")
    assert [(t.name, t.datatype, list(t.shape)) for t in about.inputs] == [("inputs", "FP64", [-1, 2])]
    health = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert health(b"", timeout=20) == b"\x08\x01"


@pytest.mark.parametrize("raw", [True, False])
def test_grpc_answers_as_it_was_asked(remote, plane, raw):
    channel, _ = remote
    rows = drawn(ec.serve._inference.InferenceModel(plane, "m", "1", 500), 300)
    wanted = [{"name": "predict"}, {"name": "predict_proba"}]
    answer = call(channel, "ModelInfer", **asked(rows, raw, id="g", outputs=wanted))
    assert (answer.id, answer.model_name, [output.name for output in answer.outputs]) == (
        "g",
        "m",
        ["predict", "predict_proba"],
    )
    labels, scores = answer.outputs
    if raw:
        words = unpack_values(answer.raw_output_contents[0], "BYTES", 300, "")
        numbers = np.frombuffer(answer.raw_output_contents[1])
    else:
        words = [word.decode() for word in labels.contents.bytes_contents]
        numbers = np.array(scores.contents.fp64_contents)
    assert words == plane.predict(rows).tolist()
    np.testing.assert_array_equal(numbers.reshape(scores.shape), plane.predict_proba(rows))


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"model_name": "other"}, "NOT_FOUND", "model: expected 'm'"),
        ({"model_version": "9"}, "NOT_FOUND", "version: expected '1'"),
        ({"raw_input_contents": []}, "INVALID_ARGUMENT", "2 values, as its shape [1, 2] says, found 0"),
        ({"raw_input_contents": [b"1", b"2"]}, "INVALID_ARGUMENT", "one for each of 1 inputs"),
        ({"raw_input_contents": [b"12345678"]}, "INVALID_ARGUMENT", "16 bytes of 2 FP64"),
        ({"outputs": [{"name": "other"}]}, "INVALID_ARGUMENT", "predict_proba or answered_by"),
        ({"inputs": []}, "INVALID_ARGUMENT", "raw_input_contents"),
    ],
)
def test_grpc_refuses_with_a_reason(remote, fields, code, reason):
    channel, _ = remote
    with pytest.raises(grpc.RpcError) as error:
        call(channel, "ModelInfer", **{**asked(np.array([[1.0, 0.0]])), **fields})
    assert (error.value.code().name, reason in error.value.details()) == (code, True)


def test_grpc_takes_no_noise_and_nothing_too_large(remote):
    channel, _ = remote
    infer = channel.unary_unary(f"/{SERVICE}/ModelInfer")
    with pytest.raises(grpc.RpcError) as error:
        infer(b"\xff\xff\xff", timeout=20)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError) as error:
        infer(b"\0" * 5_000_000, timeout=20)
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_workers_share_a_port_and_their_counts(remote, directory):
    _, served = remote
    for _ in range(20):
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as line:
            assert posted(line)[0] == 200
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as line:
        text = posted(line, path="/metrics")[1].decode()
    assert 'ectype_requests_total{route="infer",status="200"} 20.0' in text
    for port, option in ((served.port, "--port"), (served.grpc_port, "--grpc-port")):
        taken = Process(directory, "--workers", "2", option, str(port))
        try:
            code, _, errors = taken.ended()
            assert (code, "Address already in use" in errors) == (2, True)
        finally:
            taken.kill()


def test_a_worker_that_dies_is_replaced(directory):
    with Process(directory, "--workers", "2") as served:
        first, second = _workers(served.pid)
        os.kill(int(first), signal.SIGKILL)
        _wait(lambda: first not in _workers(served.pid) and len(_workers(served.pid)) == 2)
        for _ in range(10):
            with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as line:
                assert posted(line)[0] == 200
        os.kill(served.pid, signal.SIGINT)
        assert served.ended()[0] == 130
        assert not os.path.exists(f"/proc/{second}")


def test_a_worker_that_is_killed_before_it_serves_is_replaced_too(directory):
    """Loading takes seconds, in which others go on."""
    with Process(directory, "--workers", "2") as served:
        before = _workers(served.pid)
        os.kill(int(before[0]), signal.SIGKILL)
        _wait(lambda: set(_workers(served.pid)) - set(before))
        (young,) = set(_workers(served.pid)) - set(before)
        os.kill(int(young), signal.SIGKILL)
        _wait(lambda: young not in _workers(served.pid) and len(_workers(served.pid)) == 2)
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as line:
            assert posted(line)[0] == 200


def _workers(pid):
    """The processes that serve; another one looks after what they share."""
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):  # it has just ended
            found += [child] * (b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes())
    return found


def _wait(condition):
    done = threading.Event()
    for _ in range(2000):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("it did not come to pass")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--auth-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE, which is empty"),
        (["--tls-cert", "a.pem"], "both or none"),
        (["--tls-cert", "no.pem", "--tls-key", "no.pem"], "PEM files of a certificate and its key"),
        (["--grpc-port", "-1"], "--grpc-port"),
        (["--workers", "0"], "--workers"),
        (["--workers", "2", "--shadow", "x.csv"], "--workers: expected a whole number of at least 1 and at most 1"),
        (["--drain", "-1"], "--drain"),
    ],
)
def test_options_that_are_refused(directory, options, reason):
    from click.testing import CliRunner

    from ectype.cli.serve import command

    with pytest.raises(ec.errors.EctypeError) as error:
        CliRunner().invoke(command, [str(directory), *options], catch_exceptions=False, standalone_mode=False)
    assert reason in str(error.value)
    assert error.value.exit_code == 2


class Client(threading.Thread):
    """Asks until it is told not to; whatever it has sent is to be answered.

    On one connection, that is until an answer says that it is the last. On a new connection each time, it looks whether
    the server is ready, as a load balancer does.
    """

    def __init__(self, served, halfway, keep):
        super().__init__()
        self._served, self._halfway, self._keep = served, halfway, keep
        self.answered, self.lost = 0, []

    def run(self):
        try:
            if self._keep:
                with connected(self._served) as line:
                    while b"connection: close" not in self._ask(line, head(BODY)):
                        pass
            while not self._keep and _status(self._served, "/v2/health/ready") == 200:
                with connected(self._served) as line:
                    self._ask(line, head(BODY, "Connection: close"))
        except OSError as error:
            self.lost.append(repr(error))

    def _ask(self, line, raw):
        line.sendall(raw)
        answer = b""
        while b'"data":["up"]}]}' not in answer:
            part = line.recv(65536)
            if not part:
                raise ConnectionError(f"closed after {answer[:50]!r}")
            answer += part
        self.answered += 1
        if self.answered == 50:
            self._halfway.release()
        return answer


@pytest.mark.parametrize(("options", "kept"), [(["--drain", "1"], 4), ([], 8), (["--workers", "2", "--drain", "1"], 4)])
def test_no_request_is_lost_when_it_stops(directory, options, kept):
    """Busy clients, some of them on new connections each time; each request that was sent is answered."""
    halfway = threading.Semaphore(0)
    with Process(directory, *options) as served:
        clients = [Client(served, halfway, keep=k < kept) for k in range(8)]
        for client in clients:
            client.start()
        for _ in clients:
            assert halfway.acquire(timeout=60)
        served.signal(signal.SIGTERM)
        for client in clients:
            client.join(60)
        assert served.ended()[0] == 0
    assert [client.lost for client in clients] == [[]] * 8
    assert all(client.answered >= 50 for client in clients)


def test_while_draining_it_answers_but_is_not_ready(directory):
    with Process(directory, "--drain", "60") as served:
        served.signal(signal.SIGTERM)
        _wait(lambda: _status(served, "/v2/health/ready") == 503)
        assert _status(served, "/v2/models/m/infer") == 200
        served.signal(signal.SIGTERM)
        assert served.ended()[0] == 0


def _status(served, path):
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)) as line:
        return posted(line, path=path)[0]


def test_packed_labels_of_every_kind():
    for kind, values in {"BOOL": [True, False], "INT64": [3, -5], "FP64": [0.5, 1.5], "BYTES": ["a", "é"]}.items():
        assert list(unpack_values(pack_values(values, kind), kind, 2, "")) == values
