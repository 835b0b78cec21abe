"""The service as an ASGI application: called by hand, and under servers that are not ours."""

import asyncio
import json
import re
import signal
from pathlib import Path

import httpx2
import numpy as np
import pytest
from in_process_server import HTTP, drawn, metrics, question, saved

import ectype as ec
from ectype.errors import SettingError
from ectype.serve import ServeSettings, service
from ectype.serve._app import Service
from ectype.serve._inference import InferenceModel
from ectype.serve._shadow import Shadow
from server_process import Foreign

DOCUMENT = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
(COMMANDS,), (MODULE,) = (re.findall(rf"^```{kind}\n(.*?)^```", DOCUMENT, flags=re.M | re.S) for kind in ("bash", "py"))
JSON = [(b"content-type", b"application/json")]
INFER = "/v2/models/m/infer"


@pytest.fixture
def app(plane):
    app = Service(InferenceModel(plane, "m", "1", 500), settings=ServeSettings(max_bytes=1000))
    yield app
    app.close()


def asked(app, method, path, *bodies, headers=(), **scope):
    """What the application sends for a request whose body comes in these parts, None where the client goes."""
    about = {"type": "http", "http_version": "1.1", "method": method, "path": path, "headers": headers, **scope}
    coming = [
        {"type": "http.disconnect"}
        if part is None
        else {"type": "http.request", "body": part, "more_body": place < len(bodies)}
        for place, part in enumerate(bodies, 1)
    ]
    sent = []

    async def receive():
        return coming.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(app(about, receive, send))
    return sent, coming


def answered(*arguments, **others):
    """The status, the headers and the document of the answer."""
    (start, body), _ = asked(*arguments, **others)
    assert (start["type"], body["type"]) == ("http.response.start", "http.response.body")
    assert not body.get("more_body")
    headers = dict(start["headers"])
    assert int(headers[b"content-length"]) == len(body["body"])
    return start["status"], headers, json.loads(body["body"])


def test_a_body_may_come_in_parts(app, plane):
    rows = drawn(app.model, 3)
    body = json.dumps(question(rows)).encode()
    headers = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % len(body))]
    status, _, answer = answered(app, "POST", INFER, body[:10], b"", body[10:], headers=headers)
    assert status == 200
    assert answer["outputs"][0]["data"] == plane.predict(rows).tolist()


def test_whole_requests_are_answered_in_one_batch_and_one_that_is_lost_takes_no_other_along(app, caplog):
    body = json.dumps(question(np.zeros((1, 2)))).encode()
    about = {"type": "http", "method": "POST", "path": INFER, "http_version": "1.1"}
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    told = []

    def lost(response):
        raise OSError("the client is gone")

    async def ask():
        last = asyncio.get_running_loop().create_future()
        for tell in (lost, told.append, last.set_result):
            app.respond({**about, "headers": headers}, body, tell)
        assert (told, app.counts.in_flight.value) == ([], 3)
        return await last

    last = asyncio.run(ask())
    assert [response.status for response in told] == [last.status] == [200]
    assert (app.counts.in_flight.value, app.counts.requests) == (0, 3)
    assert "an answer of infer could not be sent" in caplog.text


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/nowhere", b"{}", {}, 404),
        (INFER, b"x" * 1001, {b"transfer-encoding": b"chunked"}, 413),
        (INFER, b"{}", {b"content-length": b"1001"}, 413),
        (INFER, b"{", {b"content-length": b"1"}, 400),
    ],
)
def test_a_whole_request_that_is_refused_is_told_at_once(app, path, body, headers, status):
    told = []
    about = {"type": "http", "method": "POST", "path": path, "http_version": "1.1"}
    app.respond({**about, "headers": headers.items()}, body, told.append)
    assert [response.status for response in told] == [status]
    assert (app.counts.in_flight.value, app.counts.requests) == (0, 1)


def test_a_body_that_is_too_long_is_not_read_on(app):
    chunked = [*JSON, (b"transfer-encoding", b"chunked")]
    (start, _), left = asked(app, "POST", INFER, b" " * 600, b" " * 600, b" " * 600, headers=chunked)
    assert (start["status"], len(left)) == (413, 1)
    declared = [*JSON, (b"content-length", b"1001")]
    (start, _), left = asked(app, "POST", INFER, b"", headers=declared)
    assert (start["status"], len(left)) == (413, 1)


def test_a_client_that_goes_gets_no_answer(app):
    assert asked(app, "POST", INFER, b"{", None, headers=[*JSON, (b"content-length", b"99")]) == ([], [])
    assert app.counts.requests == 0


def test_only_http_1_needs_the_length_of_a_body(app):
    body = json.dumps(question([1.0, 0.0])).encode()
    assert answered(app, "POST", INFER, body, headers=JSON)[0] == 411
    assert answered(app, "POST", INFER, body, headers=JSON, http_version="2")[0] == 200


@pytest.mark.parametrize("path", ["/v2/models/m", "/below/v2/models/m"])
def test_it_may_be_mounted_below_a_path(app, path):
    assert answered(app, "GET", path, b"", root_path="/below")[2]["name"] == "m"
    assert answered(app, "GET", "/belowv2", b"", root_path="/below")[0] == 404


def test_names_come_decoded(plane):
    app = Service(InferenceModel(plane, "a 50% name", "1", 500))
    assert answered(app, "GET", "/v2/models/a 50% name", b"")[2]["name"] == "a 50% name"
    app.close()


def test_other_protocols_are_rejected(app):
    with pytest.raises(ValueError, match="websocket"):
        asyncio.run(app({"type": "websocket"}, None, None))


def test_a_lifespan_ends_what_runs_beside(plane):
    shadow = Shadow(plane, ServeSettings(shadow=lambda: ec.Original(lambda rows: ["up"] * len(rows))))
    app = Service(InferenceModel(plane, "m", "1", 500), shadow=shadow)
    said = []

    async def receive():
        alive = shadow._thread.is_alive()
        assert alive == (len(said) < 2)
        return {"type": "lifespan.shutdown" if said else "lifespan.startup"}

    async def send(message):
        said.append(message["type"])

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not shadow._thread.is_alive()


def test_a_service_from_a_directory(plane, tmp_path):
    saved(plane, tmp_path / "plane")
    app = service(tmp_path / "plane", version="7", max_rows=1)
    assert answered(app, "GET", "/v2/models/plane/versions/7", b"")[2]["versions"] == ["7"]
    body = json.dumps(question(np.zeros((2, 2)))).encode()
    assert answered(app, "POST", "/v2/models/plane/infer", body, headers=JSON, http_version="2")[0] == 413
    app.close()
    for wrong in ({"max_rows": 0}, {"name": "a/b"}, {"shadow_log": "x.csv"}, {"traffic": "x"}, {"keep": "x"}):
        with pytest.raises(SettingError):
            service(tmp_path / "plane", **wrong)


def test_a_service_with_a_shadow(plane, tmp_path):
    saved(plane, tmp_path / "plane")
    original = ec.Original(lambda rows: ["up"] * len(rows))
    app = service(tmp_path / "plane", shadow=lambda: original, shadow_log=tmp_path / "log.csv")
    body = json.dumps(question([[0.0, 1.0], [1.0, 0.0]])).encode()
    assert answered(app, "POST", "/v2/models/plane/infer", body, headers=JSON, http_version="2")[0] == 200
    assert app.shadow.settled(20)
    assert answered(app, "GET", "/shadow", b"")[2]["disagreements"] == 1
    app.close()
    assert (tmp_path / "log.csv").read_text().splitlines()[1:] == ["0.0,1.0,up,down"]


# --- servers that are not ours --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS.strip().splitlines())
def test_another_server(command, plane, tmp_path):
    """The documented module and command, from start to stop."""
    saved(plane, tmp_path / "my-copy")
    (tmp_path / "app.py").write_text(MODULE)
    with Foreign(command, tmp_path) as server:
        server.model = f"{server.url}/v2/models/my-copy"
        _answers(server, plane)
        _refuses(server)
        if command.startswith("hypercorn"):
            with httpx2.Client(http1=False, http2=True) as client:
                answer = client.post(server.model + "/infer", json=question([1.0, 0.0]))
            assert (answer.http_version, answer.json()["outputs"][0]["data"]) == ("HTTP/2", ["up"])
        code, errors = server.stop()
    # uvicorn ends itself by the signal that it was sent, once all is done.
    assert code == (-signal.SIGTERM if command.startswith("uvicorn") else 0), errors
    assert "Error" not in errors
    assert "Traceback" not in errors
    assert ("Application shutdown complete" in errors) == command.startswith("uvicorn")


def _answers(server, plane):
    rows = np.random.default_rng(1).normal(size=(40, 2))
    assert ec.open_original(server.model, protocol="v2").answer(rows).tolist() == plane.predict(rows).tolist()
    assert HTTP.get(server.model).json()["inputs"] == [{"name": "inputs", "datatype": "FP64", "shape": [-1, 2]}]
    assert HTTP.get(server.url + "/v2/health/live").json() == {"live": True}
    assert HTTP.get(server.url + "/v2/health/ready").json() == {"name": "my-copy", "ready": True}
    empty = HTTP.head(server.model)
    assert (empty.status_code, empty.content) == (200, b"")
    found = metrics(server)
    assert found["ectype_rows_total"] == 40
    assert found["ectype_certificate_lower"] == 0.97
    assert found["ectype_requests_in_flight"] == 1


def _refuses(server):
    answer = HTTP.post(server.model + "/infer", content=b"{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"][:4]) == (400, "body")
    assert HTTP.get(server.url + "/v2/models/other").status_code == 404
    answer = HTTP.post(server.model + "/infer", content=b" " * 5_000_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
