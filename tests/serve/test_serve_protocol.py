"""What is asked over the Open Inference Protocol is answered as the copy answers; what cannot be, is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process_server import copied, drawn, tensor

import ectype as ec
from ectype.errors import EctypeError, SpaceError
from ectype.original.protocols import V2
from ectype.serve._http_types import Refusal, quote_value, refusal_response
from ectype.serve._inference import InferenceModel
from problems import ODD, problem

pytestmark = pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")


@pytest.fixture(scope="module")
def odd():
    """Every kind of column, with gaps and without."""
    frame, codes, classes = problem("odd")
    return InferenceModel(copied(ec.Space.from_json(json.dumps(ODD)), frame, codes, classes), "odd", "1", 500)


@pytest.fixture(scope="module")
def plane():
    X = np.random.default_rng(0).normal(size=(300, 2))
    codes = (X[:, 0] > X[:, 1]).astype(int)
    return InferenceModel(copied(ec.Space.normal(2), X, codes, ["down", "up"]), "plane", "1", 500)


def asked(model, *inputs, **others):
    return model.answer(model.question(json.dumps({"inputs": list(inputs), **others}).encode()))


def labels(answer):
    (output,) = json.loads(answer.body)["outputs"]
    return output["data"]


def test_what_our_own_client_sends_is_answered_as_the_copy_answers(plane):
    rows = drawn(plane)
    answer = plane.answer(plane.question(V2().encode(rows, "ticket")))
    assert V2().decode(answer.body, len(rows), "ticket") == plane.copy.predict(rows).tolist()
    assert json.loads(answer.body)["id"] == "ticket"


def test_data_frames_of_every_kind_of_column(odd):
    frame = drawn(odd)
    document = V2().question(frame, "ticket")
    both = odd.copy.space.columns[9]
    words = [both.levels[i % 3] if i % 4 else None for i in range(len(frame))]
    mixed = [word if isinstance(word, str) or word is None else str(word) for word in words]
    document["inputs"].append(tensor("both", mixed, "BYTES"))
    document["inputs"].append(tensor("further", [0.0] * len(frame), "FP32"))
    answer = odd.answer(odd.question(json.dumps(document).encode()))
    assert labels(answer) == odd.copy.predict(frame.assign(both=pd.Series(mixed, dtype=object))).tolist()


def test_columns_of_words_and_others_as_mlserver_sends_them(odd):
    """Its codec for pandas writes every value of such a column as a JSON document."""
    frame = drawn(odd, 4).assign(both=["a", None, 1, "c'd"], order=["low", None, "high", "mid"])
    inputs = V2().question(frame.drop(columns=["both", "order"]), "")["inputs"]
    for name in ("both", "order"):
        values = [json.dumps(None if pd.isna(value) else value) for value in frame[name].astype(object)]
        inputs.append({**tensor(name, values, "BYTES"), "parameters": {"content_type": "pd_json"}})
    assert labels(asked(odd, *inputs, parameters={"content_type": "pd"})) == odd.copy.predict(frame).tolist()
    for wrong in ("{", "[1]", str(10**40), '"\\ud800"'):
        with pytest.raises(Refusal, match=r"input 'order': data"):
            asked(odd, *inputs[:-1], {**inputs[-1], "data": [wrong] * 4})


def test_metadata_says_what_may_be_sent(odd, plane):
    about = odd.metadata()
    types = {tensor["name"]: tensor["datatype"] for tensor in about["inputs"]}
    assert types == {
        "label": "FP64",
        "constant_0": "INT64",
        'a "b"': "FP64",
        "it's": "BOOL",
        "flag": "BOOL",
        "few": "FP64",
        "some": "INT64",
        "number names": "INT64",
        "gappy names": "INT64",
        "both": "BYTES",
        "order": "BYTES",
        "year": "INT64",
    }
    sent = {tensor["name"]: tensor["datatype"] for tensor in V2().question(drawn(odd), "")["inputs"]}
    assert sent == {name: types[name] for name in sent}
    labels, scores = about["outputs"]
    assert (labels["name"], labels["datatype"], labels["shape"]) == ("predict", "INT64", [-1])
    assert (scores["name"], scores["shape"], scores["parameters"]) == (
        "predict_proba",
        [-1, 3],
        {"classes": [-1, 4, 12]},
    )
    assert plane.metadata()["inputs"] == [{"name": "inputs", "datatype": "FP64", "shape": [-1, 2]}]


@pytest.mark.parametrize(
    ("classes", "datatype"), [([False, True], "BOOL"), ([3, 5], "INT64"), ([0.5, 1.5], "FP64"), (["a", "b"], "BYTES")]
)
def test_labels_keep_their_type(classes, datatype):
    X = np.array([[-1.0], [1.0]] * 20)
    model = InferenceModel(copied(ec.Space.normal(1), X, np.array([0, 1] * 20), classes), "m", "7", 10)
    content = json.loads(asked(model, tensor("x", [-1, 1], "FP64")).body)
    assert (content["model_name"], content["model_version"]) == ("m", "7")
    assert "id" not in content
    (output,) = content["outputs"]
    assert (output["datatype"], output["shape"], output["data"]) == (datatype, [2], classes)
    assert [type(label) for label in output["data"]] == [type(label) for label in classes]


def test_probabilities_where_they_are_asked_for(plane):
    rows = drawn(plane, 5)
    matrix = tensor("inputs", rows.tolist(), "FP32", [5, 2])
    both = json.loads(asked(plane, matrix, outputs=[{"name": "predict_proba"}, {"name": "predict"}]).body)["outputs"]
    assert [output["name"] for output in both] == ["predict_proba", "predict"]
    assert np.reshape(both[0]["data"], both[0]["shape"]) == pytest.approx(plane.copy.predict_proba(rows))
    assert both[1]["data"] == plane.copy.predict(rows).tolist()


def test_a_matrix_may_come_by_columns_and_a_frame_as_a_matrix(plane):
    rows = drawn(plane, 5)
    columns = [tensor("x1", rows[:, 1].tolist(), "FP64", [5]), tensor("x0", rows[:, 0].tolist(), "FP64")]
    assert labels(asked(plane, *columns)) == plane.copy.predict(rows).tolist()
    frame = pd.DataFrame(rows, columns=["a", "b"])
    model = InferenceModel(copied(ec.Space.from_data(frame), frame, np.array([0, 1, 0, 1, 0]), ["n", "y"]), "m", "1", 9)
    flat = tensor("anything", rows.ravel().tolist(), "FP64", [5, 2])
    assert labels(asked(model, flat)) == model.copy.predict(frame).tolist()


# --- refusals -------------------------------------------------------------------------------------------------------

GOOD = tensor("inputs", [0.5, 1.0], "FP64", [1, 2])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "body: expected JSON"),
        (b"\xff\xfe", "body: expected JSON"),
        (b"[" * 100_000, "body: expected JSON"),
        (b"9" * 5000, "body: expected JSON"),
        ([], "body: expected an object"),
        ({}, "inputs: expected a list of tensors, found None"),
        ({"inputs": []}, "inputs: expected a list of tensors"),
        ({"inputs": [3]}, "inputs[0]: expected an object"),
        ({"inputs": [{**GOOD, "name": 3}]}, "inputs[0]: name: expected a string, found 3"),
        ({"inputs": [{**GOOD, "datatype": "FP128"}]}, "datatype: expected one of BOOL"),
        ({"inputs": [{**GOOD, "datatype": ["FP64"]}]}, "datatype: expected one of BOOL"),
        ({"inputs": [{**GOOD, "shape": [2]}]}, "none for 'x0', 'x1'"),
        ({"inputs": [{**GOOD, "shape": [-1, 2]}]}, "shape: expected [rows] or [rows, columns]"),
        ({"inputs": [{**GOOD, "shape": [True, 2]}]}, "shape: expected [rows] or [rows, columns]"),
        ({"inputs": [{**GOOD, "shape": [1, 1, 2]}]}, "found [1, 1, 2]"),
        ({"inputs": [{**GOOD, "shape": [2, 2]}]}, "expected 4 values, as its shape [2, 2] says, found 2"),
        ({"inputs": [{**GOOD, "shape": [2**62, 2**62]}]}, "found 2"),
        ({"inputs": [{**GOOD, "data": [[0.5], [1.0]]}]}, "expected 1 lists of 2"),
        ({"inputs": [{**GOOD, "data": {"0": 1}}]}, "data: expected a list, found an object of 1"),
        ({"inputs": [{k: v for k, v in GOOD.items() if k != "data"}]}, "or as binary data"),
        ({"inputs": [{**GOOD, "data": [0.5, "1.0"]}]}, "expected values of FP64, or null, found '1.0' at 1"),
        ({"inputs": [{**GOOD, "data": [0.5, True]}]}, "found True at 1"),
        ({"inputs": [{**GOOD, "datatype": "INT64"}]}, "found 0.5 at 0"),
        ({"inputs": [{**GOOD, "data": [1, 10**400]}]}, "a number that is too large"),
        ({"inputs": [{**GOOD, "datatype": "INT64", "data": [1, 10**40]}]}, "a number that is too large"),
        ({"inputs": [{**GOOD, "data": [0.5, None]}]}, "column 1"),
        ({"inputs": [{**GOOD, "data": [0.5, float("inf")]}]}, "finite numbers"),
        ({"inputs": [{**GOOD, "datatype": "BYTES", "data": ["a", "\ud800"]}]}, "half of a surrogate pair"),
        ({"inputs": [{**GOOD, "datatype": "BYTES", "data": ["a", "b"]}]}, "table of numbers"),
        (
            {"inputs": [{**GOOD, "parameters": {"content_type": "base64"}}]},
            "content_type: expected np, pd, str, pd_json or none",
        ),
        ({"inputs": [{**GOOD, "parameters": 3}]}, "parameters: expected an object"),
        ({"inputs": [{**GOOD, "shape": [0, 2], "data": []}]}, "at least one row"),
        ({"inputs": [GOOD, GOOD]}, "every name once"),
        ({"inputs": [tensor("x0", [1.0], "FP64"), tensor("x1", [1.0, 2.0], "FP64")]}, "as many rows"),
        ({"inputs": [tensor("x0", [1.0], "FP64"), tensor("x1", [1.0, 2.0], "FP64", [1, 2])]}, "[rows] or [rows, 1]"),
        ({"inputs": [GOOD], "id": 3}, "id: expected a string"),
        (
            {"inputs": [GOOD], "outputs": [{"name": "other"}]},
            "the names predict, predict_proba or answered_by, found 'other'",
        ),
        ({"inputs": [GOOD], "outputs": [[]]}, "the names predict, predict_proba or answered_by"),
        ({"inputs": [GOOD], "outputs": {}}, "outputs: expected a list"),
    ],
)
def test_refused_with_a_reason(plane, content, reason):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(EctypeError) as error:
        plane.question(body)
    response = refusal_response(error.value)
    assert response.status == 400
    assert reason in json.loads(response.body)["error"]


def test_too_many_rows_are_refused_as_too_large(plane):
    with pytest.raises(Refusal, match="at most 500 rows, found 501") as error:
        asked(plane, tensor("inputs", [0.0] * 1002, "FP64", [501, 2]))
    assert error.value.status == 413


def test_reasons_stay_short():
    assert len(json.loads(refusal_response(SpaceError("x", "y", "z" * 10**6)).body)["error"]) < 1100
    assert quote_value(10**5000) == "a number that is too large"


# --- the same as a data frame ---------------------------------------------------------------------------------------

CELLS = {
    "BOOL": st.booleans(),
    "INT64": st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 12),
    "FP64": st.floats() | st.integers(-5, 12).map(float),
    "BYTES": st.text(max_size=4) | st.sampled_from(["a", "1", "7", "low", "mid", "true", "no", "2001", "1.5", "nan"]),
}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_value_is_read_as_in_a_data_frame_or_refused_with_it(odd, data):
    """Whatever a column is sent, the answer is `copy.predict`'s, and so is the refusal."""
    space = odd.copy.space
    frame = space.present(np.nan_to_num(space.sample(2, np.random.default_rng(0))))
    j = data.draw(st.integers(0, space.d - 1))
    kind = data.draw(st.sampled_from(sorted(CELLS)))
    cells = data.draw(st.lists(CELLS[kind] | st.none(), min_size=2, max_size=2))
    inputs = [tensor(name, frame[name].astype(object).tolist(), "BYTES") for name in space.names]
    for place, column in enumerate(space.columns):
        values = frame[column.name].astype(object).tolist()
        types = {bool: "BOOL", int: "INT64", float: "FP64", str: "BYTES"}
        inputs[place] = tensor(column.name, values, types[type(values[0])])
    inputs[j] = tensor(space.names[j], cells, kind)
    frame[space.names[j]] = pd.Series(cells, dtype=object).infer_objects() if None not in cells else cells
    try:
        expected = odd.copy.predict(frame).tolist()
    except SpaceError:
        with pytest.raises(SpaceError):
            asked(odd, *inputs)
    else:
        assert labels(asked(odd, *inputs)) == expected


# --- anything at all ------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["inputs", "outputs", "id", "name", "shape", "datatype", "data", "parameters", "x0"]), inner
        )
    ),
    max_leaves=12,
)


def answered_or_refused(model, body):
    """Never anything but an answer or a refusal of ours."""
    try:
        answer = model.answer(model.question(body))
    except EctypeError as error:
        response = refusal_response(error)
        assert 400 <= response.status < 500
        assert json.loads(response.body)["error"]
    else:
        assert json.loads(answer.body)["outputs"]


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes(plane, body):
    answered_or_refused(plane, body)


@given(JSON)
@settings(max_examples=60, deadline=None)
def test_any_json(odd, content):
    answered_or_refused(odd, json.dumps(content).encode())


def places(content, path=()):
    """Every place in a document."""
    yield path
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


@pytest.mark.parametrize("name", ["odd", "plane"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_valid_documents_with_something_wrong(request, name, data):
    model = request.getfixturevalue(name)
    content = V2("predict").question(drawn(model, 2), "ticket")
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([path for path in places(content) if path]))
        *way, last = path
        parent = content
        for key in way:
            parent = parent[key]
        if data.draw(st.booleans()):
            parent[last] = data.draw(JSON)
        else:
            del parent[last]
        if not content:
            break
    answered_or_refused(model, json.dumps(content).encode())
