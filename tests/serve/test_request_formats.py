"""The forms in which clients ask: binary tensors, compressed bodies, V1, plain rows and CSV, with few headers."""

import gzip
import http.client
import json
import re
import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process_server import connected, copied, drawn, head, metrics, question, received, running, statuses, tensor

import ectype as ec
from ectype.serve._binary_tensors import pack_values, unpack_values
from ectype.serve._http_types import refusal_response
from ectype.serve._inference import InferenceModel
from ectype.serve._plain_json import AnswerStyle, PlainRows
from ectype.serve._tensors import DATATYPES
from ectype.serve._v2 import OUTPUTS
from problems import ODD, loans, problem

pytestmark = pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")


@pytest.fixture(scope="module")
def server(plane):
    with running(plane, most_bytes=100_000) as server:
        yield server


@pytest.fixture(scope="module")
def bank(lending):
    with running(lending) as server:
        yield server


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body[: int(self.headers.get("inference-header-content-length", len(self.body)))])

    @property
    def tail(self):
        return self.body[int(self.headers["inference-header-content-length"]) :]


def sent(server, path, body, **headers):
    """A request with no headers but these and the length."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    line.putrequest("POST", path, skip_accept_encoding=True)
    for name, value in {"Content-Length": len(body), **headers}.items():
        line.putheader(name.replace("_", "-"), value)
    line.endheaders(body)
    answer = line.getresponse()
    found = Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    line.close()
    return found


def binary(arrays, **others):
    """A request of binary tensors as tritonclient writes it: its body, and how much of that is JSON."""
    kinds = {"f8": "FP64", "f4": "FP32", "f2": "FP16", "i8": "INT64", "b1": "BOOL", "O8": "BYTES"}
    inputs, blobs = [], []
    for name, array in arrays.items():
        kind = kinds[array.dtype.str[1:] if array.dtype != object else "O8"]
        blobs.append(pack_values(array.ravel().tolist(), kind))
        size = {"binary_data_size": len(blobs[-1])}
        inputs.append({"name": name, "shape": list(array.shape), "datatype": kind, "parameters": size})
    start = json.dumps({"inputs": inputs, **others}).encode()
    return start + b"".join(blobs), len(start)


INFER = "/v2/models/m/infer"


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_binary_tensors_both_ways(server, plane, dtype):
    rows = drawn(server.service.model, 30).astype(dtype)
    body, size = binary({"inputs": rows}, parameters={"binary_data_output": True}, id="t")
    answer = sent(server, INFER, body, Inference_Header_Content_Length=size, Content_Type="application/octet-stream")
    (output,) = answer.json["outputs"]
    assert (answer.status, answer.json["id"], "data" in output) == (200, "t", False)
    assert output["parameters"]["binary_data_size"] == len(answer.tail)
    assert unpack_values(answer.tail, "BYTES", 30, "") == plane.predict(rows).tolist()


def test_outputs_may_be_binary_one_by_one(server, plane):
    rows = drawn(server.service.model, 3)
    wanted = [{"name": "predict", "parameters": {"binary_data": False}}, {"name": "predict_proba"}]
    body, size = binary({"inputs": rows}, outputs=wanted, parameters={"binary_data_output": True})
    answer = sent(server, INFER, body, Inference_Header_Content_Length=size)
    labels, scores = answer.json["outputs"]
    assert labels["data"] == plane.predict(rows).tolist()
    found = np.reshape(unpack_values(answer.tail, "FP64", 6, ""), scores["shape"])
    np.testing.assert_array_equal(found, plane.predict_proba(rows))
    body = json.dumps(question(rows, outputs=[{"name": "predict", "parameters": {"binary_data": True}}])).encode()
    assert unpack_values(sent(server, INFER, body).tail, "BYTES", 3, "") == plane.predict(rows).tolist()


def test_binary_columns_of_every_kind(bank, lending):
    frame, _ = loans(40, 5)
    frame = frame[~frame.isna().any(axis=1)]
    arrays = {name: frame[name].to_numpy() for name in frame}
    arrays = {
        name: array.astype(object)
        if array.dtype.kind not in "bif"
        else array.astype(array.dtype.str.replace("<i4", "<i8"))
        for name, array in arrays.items()
    }
    body, size = binary(arrays)
    answer = sent(bank, INFER, body, Inference_Header_Content_Length=size)
    assert answer.json["outputs"][0]["data"] == lending.predict(frame).tolist()


def test_a_nan_in_binary_is_a_gap(bank, lending):
    frame, _ = loans(200, 5)
    gaps = frame[frame["jobs"].isna()]
    frame = gaps[~gaps.drop(columns="jobs").isna().any(axis=1)].iloc[:3]
    assert len(frame)
    arrays = {name: frame[name].to_numpy() for name in frame}
    arrays = {
        k: a if a.dtype.kind in "bf" else a.astype(object if a.dtype.kind != "i" else "<i8") for k, a in arrays.items()
    }
    body, size = binary(arrays)
    answer = sent(bank, INFER, body, Inference_Header_Content_Length=size)
    assert answer.json["outputs"][0]["data"] == lending.predict(frame).tolist()


GOOD, SIZE = binary({"inputs": np.array([[1.0, 0.0]])})


@pytest.mark.parametrize(
    ("body", "size", "reason"),
    [
        (GOOD[:-1], SIZE, "at most the 15 bytes that are left"),
        (GOOD + b"x", SIZE, "1 further bytes"),
        (GOOD, SIZE - 1, "body: expected JSON"),
        (GOOD.replace(b'"binary_data_size": 16', b'"binary_data_size": -1'), SIZE, "a number of bytes"),
        (GOOD.replace(b"[1, 2]", b"[2, 2]"), SIZE, "32 bytes of 4 FP64"),
        (GOOD.replace(b"FP64", b"BYTES"), SIZE + 1, "each behind its length"),
        (GOOD[:SIZE].replace(b"binary_data_size", b"shared_memory_region"), SIZE + 4, "found shared memory"),
        (GOOD[:-8] + b"\0\0\0\0\0\0\xf8\x7f", SIZE, "finite numbers"),
    ],
)
def test_broken_binary_requests_are_refused(server, body, size, reason):
    answer = sent(server, INFER, body, Inference_Header_Content_Length=size)
    assert answer.status == 400
    assert reason in answer.json["error"]


@given(st.binary(max_size=120), st.integers(0, 140), st.sampled_from(["FP64", "BYTES", "BOOL", "INT8"]))
@settings(max_examples=60, deadline=None)
def test_any_bytes_behind_the_json(noise, size, kind):
    model = _model()
    about = {"name": "inputs", "shape": [2, 2], "datatype": kind, "parameters": {"binary_data_size": size}}
    start = json.dumps({"inputs": [about]}).encode()
    try:
        model.answer(model.question(start + noise, len(start)))
    except ec.errors.EctypeError as error:
        assert refusal_response(error).status == 400  # noqa: PT017


def _model(made=[]):  # noqa: B006  one for all examples
    if not made:
        X = np.random.default_rng(0).normal(size=(50, 2))
        made.append(InferenceModel(copied(ec.Space.normal(2), X, (X[:, 0] > 0).astype(int), ["n", "y"]), "m", "1", 500))
    return made[0]


@pytest.mark.parametrize(
    "kind",
    [None, "application/octet-stream", "application/x-www-form-urlencoded", "text/plain", "application/problem+json"],
)
@pytest.mark.parametrize("path", [INFER, "/predict", "/v1/models/m:predict"])
def test_json_needs_no_type(server, kind, path):
    content = {INFER: question([1.0, 0.0]), "/predict": [[1.0, 0.0]]}.get(path, {"instances": [[1.0, 0.0]]})
    headers = {} if kind is None else {"Content_Type": kind}
    answer = sent(server, path, json.dumps(content).encode(), **headers)
    assert answer.status == 200
    assert b'["up"]' in answer.body


COMPRESSED = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "raw deflate": lambda data: zlib.compress(data, wbits=-15),
}


@pytest.mark.parametrize("how", COMPRESSED)
def test_bodies_may_be_compressed(server, plane, how):
    rows = drawn(server.service.model, 200)
    body = COMPRESSED[how](json.dumps(question(rows)).encode())
    answer = sent(server, INFER, body, Content_Encoding=how.split()[-1])
    assert answer.json["outputs"][0]["data"] == plane.predict(rows).tolist()
    assert "content-encoding" not in answer.headers


@pytest.mark.parametrize(("accepted", "how"), [("gzip", "gzip"), ("deflate", "deflate"), ("br, gzip;q=0", None)])
def test_answers_are_compressed_for_who_accepts_it(server, plane, accepted, how):
    rows = drawn(server.service.model, 400)
    answer = sent(server, INFER, json.dumps(question(rows)).encode(), Accept_Encoding=accepted)
    assert answer.headers.get("content-encoding") == how
    body = zlib.decompress(answer.body, 47) if how else answer.body
    assert json.loads(body)["outputs"][0]["data"] == plane.predict(rows).tolist()
    small = sent(server, INFER, json.dumps(question(rows[:1])).encode(), Accept_Encoding=accepted)
    assert "content-encoding" not in small.headers


def test_a_bomb_is_refused_once_it_is_too_large(server):
    answer = sent(server, INFER, gzip.compress(b" " * 50_000_000), Content_Encoding="gzip")
    assert (answer.status, "at most 100000 bytes" in answer.json["error"]) == (413, True)
    cut = gzip.compress(json.dumps(question([1.0, 0.0])).encode())[:-3]
    assert sent(server, INFER, cut, Content_Encoding="gzip").status == 400


def test_v1(server, plane):
    rows = drawn(server.service.model, 5)
    for path in ("/v1/models/m:predict", "/v1/models/m/versions/1:predict"):
        answer = sent(server, path, json.dumps({"instances": rows.tolist()}).encode())
        assert answer.json == {"predictions": plane.predict(rows).tolist()}
    assert sent(server, path, b"[]").status == 400
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    found = {}
    for path in ("/", "/v1/models", "/v1/models/m"):
        line.request("GET", path)
        found[path] = json.loads(line.getresponse().read())
    line.close()
    assert found == {
        "/": {"status": "alive"},
        "/v1/models": {"models": ["m"]},
        "/v1/models/m": {"name": "m", "ready": True},
    }


def test_plain_rows(server, plane, bank, lending):
    rows = drawn(server.service.model, 5)
    assert (
        sent(server, "/predict", json.dumps(rows.tolist()).encode()).json["predictions"] == plane.predict(rows).tolist()
    )
    objects = [{"x1": b, "more": None, "x0": a} for a, b in rows.tolist()]
    assert sent(server, "/predict", json.dumps(objects).encode()).json["predictions"] == plane.predict(rows).tolist()
    assert sent(server, "/predict", json.dumps(objects[0]).encode()).json["predictions"] == [plane.predict(rows)[0]]
    frame, _ = loans(50, 6)
    text = frame.to_json(orient="records").encode()
    assert sent(bank, "/predict", text).json["predictions"] == lending.predict(frame).tolist()
    scored = sent(bank, "/predict?scores=true", text).json
    assert scored["classes"] == ["grant", "refuse"]
    np.testing.assert_array_equal(scored["scores"], lending.predict_proba(frame))


def forms_of(frame):
    """The bodies in which others send the rows of a data frame."""
    split, records = json.loads(frame.to_json(orient="split")), json.loads(frame.to_json(orient="records"))
    lists, columns = split["data"], {name: [row[name] for row in records] for name in frame}
    backwards = json.loads(frame[frame.columns[::-1]].assign(more=1).to_json(orient="split", index=False))
    yield from (
        columns,
        {"inputs": columns},
        split,
        {"dataframe_split": split},
        {"dataframe_split": backwards},
        backwards,
    )
    for rows in (lists, records):
        yield from ({name: rows} for name in ("instances", "rows", "inputs", "data", "dataframe_records"))
        yield {"instances": rows, "parameters": {"a": 1}, "signature_name": "serving_default"}


def test_rows_in_the_forms_of_other_servers(server, plane, bank, lending):
    frame, _ = loans(50, 6)
    rows = drawn(server.service.model, 5)
    for model, copy, table in ((server, plane, pd.DataFrame(rows, columns=["x0", "x1"])), (bank, lending, frame)):
        expected = copy.predict(table if model is bank else rows).tolist()
        for body in forms_of(table):
            answer = sent(model, "/predict", json.dumps(body).encode())
            assert answer.json == {"predictions": expected}, list(body)


def test_the_description_has_every_form(server):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    line.request("GET", "/openapi.json")
    schemas = json.loads(line.getresponse().read())["components"]["schemas"]
    line.close()
    asked = [one for one in schemas["Rows"]["anyOf"] if "properties" in one]
    named = {name for one in asked for name in one["properties"]}
    assert named == {"instances", "inputs", "rows", "data", "dataframe_records", "dataframe_split"}
    refs = {one["$ref"].rpartition("/")[2] for one in schemas["Rows"]["anyOf"] if "$ref" in one}
    assert refs == {"List", "Row", "Columns", "Split"} <= schemas.keys()


@pytest.mark.parametrize("names", [["data"], ["rows", "data"], ["columns", "data"], ["instances", "id"]])
def test_a_column_may_have_the_name_of_a_form(names):
    """As a row and by column it is the column; under another name, or with rows in it, it is the form."""
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])[:, : len(names)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, len(names))), columns=names)
    reader = PlainRows(ec.Space.from_data(frame), 10)

    def read(body):
        tensors = reader.document(json.dumps(body).encode())
        flat = [tensor.values for tensor in tensors]
        return np.reshape(flat[0], (-1, len(names))) if len(tensors) == 1 and len(names) > 1 else np.transpose(flat)

    lists = rows.tolist()
    for body in (
        dict(zip(names, lists[0], strict=True)),
        dict(zip(names, rows.T.tolist(), strict=True)),
        {"instances": lists},
        {"data": lists},
        {"columns": names, "data": lists},
        {"dataframe_split": {"columns": names, "data": lists}},
    ):
        wanted = rows[:1] if not isinstance(next(iter(body.values())), (list, dict)) else rows
        np.testing.assert_array_equal(read(body).reshape(-1, len(names)), wanted)


def test_csv(server, plane, bank, lending):
    rows = drawn(server.service.model, 5)
    text = "".join(f"{a!r},{b!r}\n" for a, b in rows.tolist())
    for body in (text, "x1,x0,z\n" + "".join(f"{b!r},{a!r},\n" for a, b in rows.tolist())):
        for headers in ({}, {"Content_Type": "text/csv"}):
            answer = sent(server, "/predict", body.encode(), **headers)
            assert answer.json["predictions"] == plane.predict(rows).tolist()
    frame, _ = loans(60, 6)
    body = frame.to_csv(index=False).encode()
    answer = sent(bank, "/predict?scores=true", body, Content_Type="text/csv; charset=utf-8", Accept="text/csv")
    header, *lines = answer.body.decode().splitlines()
    assert (header, answer.headers["content-type"]) == (
        "prediction,score grant,score refuse",
        "text/csv; charset=utf-8",
    )
    assert [line.split(",")[0] for line in lines] == lending.predict(frame).tolist()


def test_csv_of_levels_that_are_numbers():
    frame, codes, classes = problem("odd")
    model = InferenceModel(copied(ec.Space.from_json(json.dumps(ODD)), frame, codes, classes), "odd", "1", 5000)
    text = frame.to_csv(index=False).encode()
    answer = model.answer(model.plain_question(model.plain.table(text), AnswerStyle()))
    assert json.loads(answer.body)["predictions"] == model.copy.predict(frame).tolist()


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (b"3", "application/json", "a list of rows, an object with every column, or one with rows"),
        (b"[]", "application/json", "at least one row"),
        (b"", "", "body: expected JSON"),
        (b"[[1, 2], [3]]", "application/json", "rows[1]: expected 2 values, found 1"),
        (b"[1, 2]", "application/json", "lists or objects"),
        (b"[[1, 2], {}]", "application/json", "all of one kind"),
        (b'[{"x0": 1}]', "application/json", "rows[0]: expected a value or null for 'x1', found none"),
        (b"[[1, [2]]]", "application/json", "one value in JSON"),
        (b"[[1, null]]", "application/json", "finite numbers"),
        (b'[[1, "a"]]', "application/json", "table of numbers"),
        (b'{"x0": 1}', "", "rows[0]: expected a value or null for 'x1', found none"),
        (b'{"x0": 1, "x1": [2]}', "", "one value in JSON"),
        (b'{"x0": [1], "x1": [2, 3]}', "", "rows: 'x1': expected 1 values, as for the first column, found 2"),
        (b'{"x0": [], "x1": []}', "", "at least one row"),
        (b'{"examples": [[1, 2]]}', "", "or under 'columns' and 'data', found an object with 'examples'"),
        (b'{"instances": [[1, 2]], "more": 3}', "", "found an object with 'instances', 'more'"),
        (b"{}", "", "found an object with nothing"),
        (b'{"instances": {"x0": 1}}', "", "instances: expected a list of rows, found an object of 1"),
        (b'{"rows": []}', "", "rows: expected at least one row"),
        (
            b'{"inputs": [{"name": "a", "shape": [1, 2], "datatype": "FP64", "data": [1, 2]}]}',
            "",
            "/v2/models/NAME/infer",
        ),
        (b'{"inputs": {"x0": [1]}}', "", "inputs: expected every column, found none for 'x1'"),
        (b'{"dataframe_split": [[1, 2]]}', "", "dataframe_split: expected 'columns', a list of names, and 'data'"),
        (b'{"columns": ["x0"], "data": [[1]]}', "", "data: expected every column, found none for 'x1'"),
        (b'{"columns": ["x0", "x0"], "data": [[1, 2]]}', "", "columns: expected every name once"),
        (
            b'{"columns": ["x0", "x1"], "data": [[1]]}',
            "",
            "data[0]: expected a list of 2 values, one for each of columns",
        ),
        (b"1,2\n3\n", "text/csv", "row 1: expected 2 cells, found 1"),
        (b"a,b\n1,2\n", "text/csv", "table of numbers"),
        (b"1,\n", "text/csv", "finite numbers"),
        (b"1_000,2\n", "text/csv", "not a number: '1_000'"),
        ("١٢,2\n".encode(), "text/csv", "not a number"),
        (b'[["1_000", 2]]', "application/json", "not a number: '1_000'"),
        (
            b'[{"x0": 1, "x1": 2, "x0": 3}]',
            "application/json",
            "every name once in an object, found 'x0' more than once",
        ),
        (b'[["1", "' + b"1_" * 500 + b'"]]', "application/json", "not a number: '1_1_"),
        (b'{"rows": [[1, 2]], "rows": [[3, 4]]}', "application/json", "found 'rows' more than once"),
        (b'{"rows": [[1, 2]], "r\\u006fws": [[3, 4]]}', "application/json", "found 'rows' more than once"),
        (b"\xff,1\n", "text/csv", "CSV in UTF-8"),
        (b'"1,2\n', "text/csv", "CSV in UTF-8"),
        (b"x0,x1,x1\n1,2,3\n", "text/csv", "every name once"),
        (b"x0,x1\n", "text/csv", "at least one row"),
    ],
)
def test_plain_rows_that_are_refused(server, body, kind, reason):
    answer = sent(server, "/predict", body, Content_Type=kind)
    assert answer.status == 400
    assert reason in answer.json["error"]
    assert sent(server, "/predict?scores=maybe", b"[[1, 2]]").status == 400


def test_a_table_of_a_data_frame_names_its_columns(bank):
    answer = sent(bank, "/predict", b"1,2,3,4,5,6,7,8\n", Content_Type="text/csv")
    assert (answer.status, "the name of every column" in answer.json["error"]) == (400, True)


@given(st.binary(max_size=200) | st.text(alphabet='x01,\n"{}[]:.e ', max_size=80).map(str.encode))
@settings(max_examples=80, deadline=None)
def test_any_bytes_as_rows(body):
    model = _model()
    for read in (model.plain.document, model.plain.table, model.plain.instances):
        try:
            model.answer(model.plain_question(read(body), AnswerStyle()))
        except ec.errors.EctypeError as error:
            assert refusal_response(error).status == 400  # noqa: PT017


def test_questions_that_come_together_are_answered_each_as_alone(server, plane):
    rows = drawn(server.service.model, 60)
    bodies = [json.dumps(question(rows[at : at + 3], id=str(at))).encode() for at in range(0, 60, 3)]
    bodies[7] = b"{}"
    with connected(server) as line:
        line.sendall(b"".join(map(head, bodies[:-1])) + head(bodies[-1], "Connection: close"))
        raw = received(line)
    assert statuses(raw) == [200] * 7 + [400] + [200] * 12
    answers = [json.loads(part.partition(b"\r\n\r\n")[2]) for part in raw.split(b"HTTP/1.1 ")[1:]]
    for at, answer in zip(range(0, 60, 3), answers, strict=True):
        if at != 21:
            assert (answer["id"], answer["outputs"][0]["data"]) == (str(at), plane.predict(rows[at : at + 3]).tolist())


def test_the_description_has_every_path(server):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    line.request("GET", "/openapi.json")
    about = json.loads(line.getresponse().read())
    for path, operations in about["paths"].items():
        ((method, operation),) = operations.items()
        body = json.dumps(
            {INFER: question([1.0, 0.0])}.get(path, {"instances": [[1, 2]]} if "v1" in path else [[1, 2]])
        )
        body = json.dumps(question([1.0, 0.0])) if path.endswith("infer") else body
        body = json.dumps(question([1.0, 0.0])) if path.endswith("infer") else body
        line.request(method.upper(), path, body if method == "post" else None)
        answer = line.getresponse()
        answer.read()
        kinds = operation["responses"][str(answer.status)]["content"]
        assert (answer.status, answer.getheader("content-type").partition(";")[0] in kinds) == (200, True)
    line.close()
    assert set(server.service._routes._paths) == set(about["paths"])
    schemas = about["components"]["schemas"]
    assert set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(about))) == schemas.keys()
    assert schemas["InputTensor"]["properties"]["datatype"]["enum"] == list(DATATYPES)
    assert schemas["InferResponse"]["properties"]["outputs"]["items"]["properties"]["name"]["enum"] == list(OUTPUTS)


def test_tensors_of_one_dimension_are_columns(server, plane):
    body = json.dumps({"inputs": [tensor("x0", [1.0], "FP64", [1]), tensor("x1", [0.0], "FP64", [1])]}).encode()
    assert sent(server, INFER, body).json["outputs"][0]["data"] == ["up"]


@pytest.mark.parametrize("path", ["/predict", INFER, "/v1/models/m:predict"])
def test_rows_outside_the_space_are_marked_and_counted(server, path):
    rows = [[0.0, 0.0], [40.0, 0.0], [0.5, 0.5], [0.0, -1e9]]
    bodies = {
        "/predict": rows,
        INFER: {"inputs": [{"name": "inputs", "shape": [4, 2], "datatype": "FP64", "data": np.ravel(rows).tolist()}]},
        "/v1/models/m:predict": {"instances": rows},
    }
    counted = metrics(server)["ectype_rows_outside_total"]
    found = sent(server, path, json.dumps(bodies[path]).encode())
    assert (found.status, found.headers.get("x-outside-space")) == (200, "1,3"), found.body
    assert metrics(server)["ectype_rows_outside_total"] == counted + 2
    large = sent(server, "/predict", json.dumps(rows * 100).encode())
    assert large.headers["x-outside-space"].endswith(",...")
    assert metrics(server)["ectype_rows_outside_total"] == counted + 202
    inside = sent(server, "/predict", json.dumps(rows[::2]).encode())
    assert "x-outside-space" not in inside.headers
