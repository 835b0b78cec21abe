"""Presets, each against a small server that speaks as the public documents of the real one say."""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from dialects import Answer, Dialect
from ectype.errors import OutageError, SettingError
from ectype.original.http.aws import Signer, signer_of
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits

FAST = RetryWaits(first=0.001, most=0.004, jitter=0.001)
ROWS = np.array([[1.0, 2.0], [-1.0, 0.5], [0.25, -3.0]])
FRAME = pd.DataFrame({"age": [1.5, -2.0], "city": ["Köln", None]})


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def opened(url, protocol, **options):
    return open_http(url, protocol=protocol, **{"patience": FAST, "timeout": 5.0, **options})


def sign(value):
    return "yes" if float(value) > 0 else "no"


def alone(original, rows):
    return [original.answer(rows[row : row + 1])[0] for row in range(len(rows))]


# --- Vertex AI, Azure ML ----------------------------------------------------------------------------------------------


def test_vertex(monkeypatch):
    monkeypatch.setenv("ACCESS", "hush")

    def answer(asked):
        if (
            asked.path != "/v1/projects/p/locations/l/endpoints/7:predict"
            or asked.headers["Authorization"] != "Bearer hush"
        ):
            return Answer({"error": {"code": 401}}, 401)
        shares = [0.9 if float(row["age"]) > 0 else 0.2 for row in asked.json["instances"]]
        said = [{"classes": ["no", "yes"], "scores": [1 - share, share]} for share in shares]
        return {"predictions": said, "deployedModelId": "7", "model": "m", "modelVersionId": "1"}

    with Dialect(answer) as server:
        url = f"{server.url}/v1/projects/p/locations/l/endpoints/7:predict"
        original = opened(url, "vertex", token_env="ACCESS", decode="argmax", classes=["no", "yes"])
        assert original.answer(FRAME).tolist() == ["yes", "no"]
    assert server.log[0].json == {"instances": [{"age": 1.5, "city": "Köln"}, {"age": -2.0, "city": None}]}


def test_azureml(monkeypatch):
    monkeypatch.setenv("ENDPOINT_KEY", "hush")

    def answer(asked):
        if asked.path != "/score" or asked.headers["Authorization"] != "Bearer hush":
            return Answer({"message": "key_auth_access_denied"}, 401)
        found = asked.json["input_data"]
        rows = found if isinstance(found, list) else pd.DataFrame(found["data"], found["index"], found["columns"])
        return [sign(row[0]) for row in np.asarray(rows).tolist()]

    with Dialect(answer) as server:
        options = {"token_env": "ENDPOINT_KEY", "header": "azureml-model-deployment: blue"}
        original = opened(f"{server.url}/score", "azureml", **options)
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes"]
        assert original.answer(FRAME).tolist() == ["yes", "no"]
    assert server.log[0].json == {"input_data": ROWS.tolist()}
    assert server.log[0].headers["azureml-model-deployment"] == "blue"
    split = {"columns": ["age", "city"], "index": [0, 1], "data": [[1.5, "Köln"], [-2.0, None]]}
    assert server.log[1].json == {"input_data": split}


# --- BentoML, LitServe, TorchServe ------------------------------------------------------------------------------------


def test_bentoml():
    def answer(asked):  # the arguments of the service's method are the keys
        if asked.path != "/predict" or set(asked.json) != {"rows"}:
            return Answer({"error": "1 validation error for Input: rows Field required"}, 400)
        return [sign(row[0]) for row in asked.json["rows"]]

    with Dialect(answer) as server:
        original = opened(f"{server.url}/predict", "bentoml", input="rows")
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes"]
        with pytest.raises(Exception, match="rows Field required"):
            opened(f"{server.url}/predict", "bentoml").answer(ROWS)


def test_litserve(monkeypatch):
    monkeypatch.setenv("LIT_KEY", "hush")

    def answer(asked):
        if asked.headers.get("X-API-Key") != "hush":
            return Answer({"detail": "Invalid API Key. Check that you are passing a correct 'X-API-Key' header."}, 401)
        return {"output": sign(asked.json["input"][0])}

    with Dialect(answer) as server:
        original = opened(f"{server.url}/predict", "litserve", header="X-API-Key: env:LIT_KEY")
        assert alone(original, ROWS) == ["yes", "no", "yes"]
        with pytest.raises(OutageError, match="Invalid API Key"):
            opened(f"{server.url}/predict", "litserve").answer(ROWS[:1])
    assert server.log[0].json == {"input": [1.0, 2.0]}


def test_torchserve(monkeypatch):
    monkeypatch.setenv("INFERENCE_KEY", "hush")

    def answer(asked):
        if asked.path != "/predictions/iris" or asked.headers["Authorization"] != "Bearer hush":
            return Answer({"code": 400, "type": "InvalidKeyException", "message": "Token Authorization failed."}, 400)
        return [0.2, 0.8] if sign(asked.json[0]) == "yes" else [0.7, 0.3]

    with Dialect(answer) as server:
        url, options = f"{server.url}/predictions/iris", {"token_env": "INFERENCE_KEY", "classes": ["no", "yes"]}
        assert alone(opened(url, "torchserve", decode="argmax", **options), ROWS) == ["yes", "no", "yes"]
        said = opened(url, "torchserve", decode="scores", **options).query(ROWS[:1])
        np.testing.assert_allclose(said.scores, [[0.2, 0.8]], rtol=1e-6)
    assert [json.loads(asked.body) for asked in server.log[:3]] == ROWS.tolist()


# --- SageMaker --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [b"\n", b","])
def test_a_sagemaker_container_takes_csv(between):
    def answer(asked):
        assert (asked.headers["Content-Type"], asked.headers["Accept"]) == ("text/csv", "text/csv")
        rows = [line.split(",") for line in asked.body.decode().splitlines()]
        return between.join(b"0.9" if float(row[0]) > 0 else b"0.1" for row in rows)

    with Dialect(answer) as server:
        original = opened(f"{server.url}/invocations", "sagemaker", decode="threshold", classes=["no", "yes"])
        assert original.answer(ROWS).tolist() == ["yes", "no", "yes"]
        assert original.answer(ROWS[:1]).tolist() == ["yes"]
        assert original.answer(FRAME).tolist() == ["yes", "no"]
    assert server.log[2].body.decode() == "1.5,Köln\n-2.0,\n"  # never a header


KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
HOST = "runtime.sagemaker.eu-west-1.amazonaws.com"


def test_requests_to_sagemaker_are_signed(monkeypatch):
    for name, value in {**KEYS, "AWS_SESSION_TOKEN": "hush/hush=="}.items():
        monkeypatch.setenv(name, value)

    def answer(asked):
        when = datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        url = f"http://{HOST}/endpoints/iris/invocations"
        own = Signer(*KEYS.values(), asked.headers["x-amz-security-token"], "eu-west-1", "sagemaker")
        expected = own.headers("POST", url, asked.body, when)["Authorization"]
        if asked.headers["Host"] != HOST or asked.headers["Authorization"] != expected:
            return Answer({"message": "The request signature we calculated does not match: hush/hush=="}, 403)
        return b"\n".join(sign(line.split(b",")[0]).encode() for line in asked.body.splitlines())

    with Dialect(answer) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        url = f"http://{HOST}/endpoints/iris/invocations"
        assert opened(url, "sagemaker").answer(ROWS).tolist() == ["yes", "no", "yes"]
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with pytest.raises(OutageError, match="AWS_ACCESS_KEY_ID was refused") as caught:
            opened(url, "sagemaker").answer(ROWS)
    assert "hush" not in str(caught.value)
    assert "***" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "query_date", "service", "signature"),
    [  # published by AWS, in the suite for Signature Version 4 and in the guide to it
        ("https://example.amazonaws.com/", "20150830T123600Z", "service", "5fa00fa31553b73ebf1942676e86291e"),
        (
            "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            "20150830T123600Z",
            "service",
            "b97d918cfa904a5beff61c982a1b6f45",
        ),
    ],
)
def test_signatures_are_those_that_aws_published(url, query_date, service, signature):
    when = datetime.strptime(query_date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    found = Signer(*KEYS.values(), None, "us-east-1", service).headers("GET", url, b"", when)
    assert found["Authorization"].partition("Signature=")[2].startswith(signature)


def test_where_signatures_are_for(monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    assert signer_of("http://localhost:8080/invocations") is None
    with pytest.raises(SettingError, match="a token in the environment variable AWS_ACCESS_KEY_ID, found none"):
        signer_of(f"https://{HOST}/endpoints/iris/invocations")
    with pytest.raises(SettingError, match=r"a host such as runtime\.sagemaker\.REGION\.amazonaws\.com"):
        signer_of("https://sagemaker.amazonaws.com/endpoints/iris/invocations")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    assert signer_of(f"https://{HOST}/x")[2:] == (None, "eu-west-1", "sagemaker")
    monkeypatch.setenv("TOKEN", "hush")
    with pytest.raises(SettingError, match="one Authorization"):
        opened(f"https://{HOST}/endpoints/iris/invocations", "sagemaker", token_env="TOKEN")
