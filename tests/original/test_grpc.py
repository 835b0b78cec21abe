"""V2 over gRPC, against a real gRPC server that answers with messages of the protocol."""

import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import numpy as np
import pandas as pd
import pytest
import trustme

from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original import open_original
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits
from ectype.original.protocols.v2_messages import CONTENTS, SERVICE, message

FAST = RetryWaits(first=0.001, most=0.004, jitter=0.001)
ROWS = np.array([[1.0, 2.0], [-1.0, np.nan], [0.25, -3.0]])
FRAME = pd.DataFrame({"age": [1.5, np.nan, -2.0], "member": [True, False, True], "city": ["Köln", "Nice", "a"]})


def opened(url, **options):
    return open_http(url, **{"patience": FAST, "timeout": 5.0, **options})


@contextmanager
def serving(answer, credentials=None):
    """A server that gives `answer(request, context)`; its address, and what it was asked."""
    log = []

    def infer(data, context):
        request = message("ModelInferRequest").FromString(data)
        log.append((request, dict(context.invocation_metadata())))
        found = answer(request, context)
        return found if isinstance(found, bytes) else found.SerializeToString()

    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool)
        handlers = {"ModelInfer": grpc.unary_unary_rpc_method_handler(infer)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
        place = "127.0.0.1:0"
        port = server.add_insecure_port(place) if credentials is None else server.add_secure_port(place, credentials)
        server.start()
        try:
            yield f"127.0.0.1:{port}", log
        finally:
            server.stop(0).wait()


def reply(request, data, kind="BYTES", shape=None, raw=False, name="label", **more):
    """An answer of one output."""
    made = message("ModelInferResponse")(model_name=request.model_name, id=request.id, **more)
    tensor = made.outputs.add(name=name, datatype=kind, shape=[len(data)] if shape is None else shape)
    values = [value.encode() if isinstance(value, str) else value for value in data]
    if not raw:
        getattr(tensor.contents, CONTENTS[kind]).extend(values)
    elif kind == "BYTES":
        made.raw_output_contents.append(b"".join(struct.pack("<I", len(value)) + value for value in values))
    else:
        made.raw_output_contents.append(np.array(values, np.dtype(raw)).tobytes())
    return made


def signs(request, context):
    first = list(request.inputs[0].contents.fp64_contents)[:: request.inputs[0].shape[1]]
    return reply(request, ["yes" if value > 0 else "no" for value in first])


def test_arrays_and_data_frames():
    with serving(signs) as (place, log):
        original = opened(f"grpc://{place}/iris/versions/2", input="x")
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes"]
        assert original.answer(FRAME).tolist() == ["yes", "no", "no"]
        assert original.name == f"grpc://{place}/iris/versions/2"
    array, frame = (request for request, _ in log)
    assert (array.model_name, array.model_version, array.inputs[0].name) == ("iris", "2", "x")
    assert list(array.inputs[0].shape) == [3, 2]
    np.testing.assert_array_equal(list(array.inputs[0].contents.fp64_contents), ROWS.ravel())
    kinds = {tensor.name: (tensor.datatype, list(tensor.shape)) for tensor in frame.inputs}
    assert kinds == {"age": ("FP64", [3, 1]), "member": ("BOOL", [3, 1]), "city": ("BYTES", [3, 1])}
    assert [word.decode() for word in frame.inputs[2].contents.bytes_contents] == ["Köln", "Nice", "a"]
    assert frame.parameters["content_type"].string_param == "pd"


def test_the_type_of_the_input_may_be_named():
    with serving(lambda request, _: reply(request, [1, 0, 1], "INT64")) as (place, log):
        assert opened(f"grpc://{place}/v2/models/iris", input="x:FP32").answer(ROWS).tolist() == [1, 0, 1]
    assert (log[0][0].inputs[0].name, log[0][0].inputs[0].datatype) == ("x", "FP32")
    assert list(log[0][0].inputs[0].contents.fp32_contents)[2] == -1.0


@pytest.mark.parametrize(
    ("data", "kind", "raw"),
    [
        (["yes", "no", "Köln"], "BYTES", False),
        (["yes", "no", "Köln"], "BYTES", True),
        ([1, 0, -5], "INT64", False),
        ([1, 0, -5], "INT64", "<i8"),
        ([1, 0, 7], "UINT8", "<u1"),
        ([True, False, True], "BOOL", "?"),
        ([1, 0, 7], "INT32", False),
    ],
)
def test_outputs_of_every_kind(data, kind, raw):
    with serving(lambda request, _: reply(request, data, kind, raw=raw)) as (place, _):
        assert opened(f"grpc://{place}/m").answer(ROWS).tolist() == data


@pytest.mark.parametrize("raw", [False, "<f4"])
def test_scores(raw):
    scores = [0.9, 0.1, 0.2, 0.8, 0.5, 0.5]
    with serving(lambda request, _: reply(request, scores, "FP32", [3, 2], raw=raw)) as (place, _):
        said = opened(f"grpc://{place}/m", decode="scores", classes=["no", "yes"]).query(ROWS)
    assert said.labels.tolist() == ["no", "yes", "no"]
    np.testing.assert_allclose(said.scores, np.reshape(scores, (3, 2)), rtol=1e-6)


def test_one_of_several_outputs():
    def answer(request, _):
        made = reply(request, [0.5, 0.5, 0.5], "FP64", name="score")
        made.outputs.add(name="label", datatype="INT64", shape=[3]).contents.int64_contents.extend([1, 2, 3])
        return made

    with serving(answer) as (place, log):
        assert opened(f"grpc://{place}/m", output="label").answer(ROWS).tolist() == [1, 2, 3]
        with pytest.raises(OriginalError, match="not one output"):
            opened(f"grpc://{place}/m").answer(ROWS)
    assert [output.name for output in log[0][0].outputs] == ["label"]


@pytest.mark.parametrize(
    ("code", "message_of", "outage", "times"),
    [
        ("INVALID_ARGUMENT", "status 400 Bad Request, INVALID_ARGUMENT: said", False, 1),
        ("NOT_FOUND", "NOT_FOUND: said; check the URL", True, 1),
        ("UNAUTHENTICATED", "UNAUTHENTICATED: said; no token was sent", True, 1),
        ("RESOURCE_EXHAUSTED", "at the last of 2 attempts", True, 2),
        ("INTERNAL", "INTERNAL: said, at the last of 2 attempts", False, 2),
        ("UNAVAILABLE", "NetworkError: said, at the last of 2 attempts", True, 2),
    ],
)
def test_what_a_server_says_instead(code, message_of, outage, times):
    def answer(request, context):
        context.abort(grpc.StatusCode[code], "said")

    with serving(answer) as (place, log), pytest.raises(OriginalError) as caught:
        opened(f"grpc://{place}/m", attempts=2).answer(ROWS)
    assert message_of in str(caught.value)
    assert isinstance(caught.value, OutageError) == outage
    assert len(log) == times


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (lambda request: b"\xff\xff\xff", "not a message"),
        (lambda request: reply(request, ["a"], shape=[1]), "wrong count"),
        (lambda request: reply(request, ["a", "b", "c"], shape=[2]), "wrong count"),
        (lambda request: reply(request, [1.0, float("nan"), 2.0], "FP64"), "NaN"),
        (lambda request: reply(request, [b"\xff", b"a", b"b"]), "the output label of BYTES"),
        (
            lambda request: reply(request, ["a", "b", "c"], raw=True, raw_output_contents=[b"\x09\0\0\0a"]),
            "wrong count",
        ),
        (lambda request: _cut(reply(request, ["a", "b", "c"], raw=True)), "a word that is cut short"),
        (lambda request: _named(reply(request, ["a", "b", "c"]), "TEXT"), "the output label of TEXT"),
        (lambda request: _other(reply(request, ["a", "b", "c"])), "the answer to another request"),
    ],
)
def test_answers_that_do_not_fit(answer, found):
    with serving(lambda request, _: answer(request)) as (place, _), pytest.raises(OriginalError, match=found):
        opened(f"grpc://{place}/m", attempts=1).answer(ROWS)


def _cut(made):
    made.raw_output_contents[0] = made.raw_output_contents[0][:-1]
    return made


def _named(made, kind):
    made.outputs[0].datatype = kind
    return made


def _other(made):
    made.id = "another"
    return made


def test_headers_are_metadata_and_secret(monkeypatch):
    monkeypatch.setenv("KEY", "hush/hush")

    def answer(request, context):
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no hush/hush")

    refused = pytest.raises(OutageError, match=r"no \*\*\*; the token in the environment variable KEY or KEY was")
    with serving(answer) as (place, log), refused as caught:
        opened(f"grpc://{place}/m", token_env="KEY", header=["X-Key: env:KEY"]).answer(ROWS)
    assert "hush" not in str(caught.value)
    assert (log[0][1]["authorization"], log[0][1]["x-key"]) == ("Bearer hush/hush", "hush/hush")


def test_tls(tmp_path):
    authority = trustme.CA()
    own, client = authority.issue_cert("localhost"), authority.issue_cert("me@a.test")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    client.private_key_pem.write_to_path(tmp_path / "key.pem")
    client.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    pair = (own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes())
    credentials = grpc.ssl_server_credentials([pair], authority.cert_pem.bytes(), True)
    files = {name: str(tmp_path / f"{file}.pem") for name, file in (("client_cert", "cert"), ("client_key", "key"))}
    with serving(signs, credentials) as (place, _):
        url = f"grpcs://localhost:{place.rpartition(':')[2]}/m"
        assert opened(url, ca=str(tmp_path / "ca.pem"), **files).answer(ROWS).tolist() == ["yes", "no", "yes"]
        with pytest.raises(OutageError):
            opened(url, ca=str(tmp_path / "ca.pem"), attempts=1, timeout=2.0).answer(ROWS)


def test_nobody_answers():
    with serving(signs) as (place, _):
        pass
    with pytest.raises(OutageError, match="NetworkError"):
        opened(f"grpc://{place}/m", attempts=2).answer(ROWS)


@pytest.mark.parametrize(
    ("url", "options", "found"),
    [
        ("grpc://127.0.0.1:1", {}, "grpc://HOST:PORT/MODEL"),
        ("grpc://127.0.0.1:1/a/b", {}, "grpc://HOST:PORT/MODEL"),
        ("grpc://127.0.0.1:1/m", {"protocol": "instances"}, "protocol: expected v2, the only one over gRPC"),
        ("grpc://me:hush@127.0.0.1:1/m", {}, "a URL without a user or a password"),
        ("grpc://127.0.0.1:1/m", {"ca": "x.pem"}, "ca: expected an endpoint whose URL begins with https or grpcs"),
    ],
)
def test_settings_are_checked_first(url, options, found):
    with pytest.raises(SettingError) as caught:
        open_original(url, **options)
    assert found in str(caught.value)


def test_gaps_that_a_message_has_no_word_for():
    frame = FRAME.assign(city=["Köln", None, "a"])
    with pytest.raises(
        OriginalError, match="column city: expected a value in every row of BYTES, found a missing value"
    ):
        opened("grpc://127.0.0.1:1/m").answer(frame)
