import csv
import io
import json
import math
import sys
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ectype.errors import OriginalError, SettingError
from ectype.original import Original
from ectype.original.protocols import PROTOCOLS, MalformedAnswer, wire

TEMPLATE = {"request": {"a": ["$rows"], "b": "$ids", "c": "rows"}, "rows": "lists", "answer": "out.0.list"}
WITH_IDS = {**TEMPLATE, "label": "said.label", "id": "number"}
ARRAY = np.array([[0.1, -2.0], [1e300, np.nan]])
MIXED = pd.DataFrame(
    {
        "height": [1.5, np.nan],
        "age": [3, 4],
        "member": [True, False],
        "city": ["Köln", None],
        "size": pd.Categorical(["S", None], categories=["S", "M"]),
        "stars": pd.array([5, 2], dtype="Int64"),
        "grade": pd.Categorical([2, 1]),
        "maybe": pd.Series([True, None], dtype=object),
    }
)
ROWS = [[1.5, 3, True, "Köln", "S", 5, 2, True], [None, 4, False, None, None, 2, 1, None]]
NAMES = list(MIXED.columns)


def every_wire():
    return [wire(p, template=WITH_IDS if p == "template" else None) for p in PROTOCOLS]


def asked(protocol, rows, **options):
    return json.loads(wire(protocol, **options).encode(rows, "t"))


# --- requests -------------------------------------------------------------------------------------------------------


def test_arrays_go_as_the_protocols_have_them():
    lists = [[0.1, -2.0], [1e300, None]]
    tensor = {"name": "input-0", "shape": [2, 2], "datatype": "FP64", "parameters": {"content_type": "np"}}
    assert asked("v2", ARRAY) == {"id": "t", "inputs": [{**tensor, "data": [0.1, -2.0, 1e300, None]}]}
    assert asked("instances", ARRAY) == {"instances": lists}
    assert asked("mlflow", ARRAY) == {"inputs": lists}
    assert asked("seldon", ARRAY) == {"data": {"ndarray": lists}}
    assert asked("template", ARRAY, template=TEMPLATE) == {"a": [lists], "b": ["t-0", "t-1"], "c": "rows"}
    assert wire("csv").encode(ARRAY, "t") == b"0.1,-2.0\n1e+300,\n"


def test_data_frames_go_by_their_columns_names():
    objects = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    assert asked("instances", MIXED) == {"instances": objects}
    assert asked("mlflow", MIXED) == {"dataframe_split": {"columns": NAMES, "data": ROWS}}
    assert asked("seldon", MIXED) == {"data": {"names": NAMES, "ndarray": ROWS}}
    assert asked("template", MIXED, template=TEMPLATE)["a"] == [ROWS]
    assert asked("template", MIXED, template={**TEMPLATE, "rows": "objects"})["a"] == [objects]
    assert asked("template", ARRAY, template={**TEMPLATE, "rows": "objects"})["a"][0][0] == {"x0": 0.1, "x1": -2.0}
    text = wire("csv").encode(MIXED, "t").decode()
    assert text == "height,age,member,city,size,stars,grade,maybe\n1.5,3,True,Köln,S,5,2,True\n,4,False,,,2,1,\n"


def test_v2_has_a_tensor_for_every_column():
    found = asked("v2", MIXED.drop(columns="maybe"))
    assert found["parameters"] == {"content_type": "pd"}
    kinds = {tensor["name"]: tensor["datatype"] for tensor in found["inputs"]}
    assert kinds == dict(zip(NAMES, ["FP64", "INT64", "BOOL", "BYTES", "BYTES", "INT64", "INT64"], strict=False))
    assert found["inputs"][3] == {
        "name": "city",
        "shape": [2, 1],
        "datatype": "BYTES",
        "parameters": {"content_type": "str"},
        "data": ["Köln", None],
    }
    assert asked("v2", ARRAY, output="label")["outputs"] == [{"name": "label"}]


@pytest.mark.parametrize(
    "column", [pd.Series([True, None], dtype=object), pd.array([1, None], dtype="Int64"), pd.Categorical([1, None])]
)
def test_v2_does_not_send_what_it_cannot_say(column):
    with pytest.raises(
        OriginalError, match=r"column a: expected a value in every row of (BOOL|INT64), found a missing"
    ):
        asked("v2", pd.DataFrame({"a": column}))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name not in ("csv", "sagemaker", "template")])
@pytest.mark.parametrize("value", [math.inf, -math.inf, pd.Timestamp(0), 1j])
def test_what_json_cannot_say_is_not_sent(protocol, value):
    frame = pd.DataFrame({"a": pd.Series(["x", value], dtype=object), "b": [1, 2]})
    with pytest.raises(OriginalError, match="column a: expected"):
        asked(protocol, frame)
    if isinstance(value, float):
        with pytest.raises(OriginalError, match=r"column x1: expected .* found -?inf in row 0; JSON has no way"):
            asked(protocol, np.array([[0.0, value]]))


@settings(deadline=None)
@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=st.floats(allow_infinity=False)))
def test_numbers_arrive_as_they_were(rows):
    found = np.array(asked("instances", rows)["instances"], dtype=np.float64)
    np.testing.assert_array_equal(found, rows)
    lines = list(csv.reader(io.StringIO(wire("csv").encode(rows, "t").decode())))
    np.testing.assert_array_equal([[float(field or "nan") for field in line] for line in lines], rows)


# --- paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "given_path", "posted"),
    [
        ("v2", "/v2/models/m", "/v2/models/m/infer"),
        ("v2", "/proxy/v2/models/m/versions/3/", "/proxy/v2/models/m/versions/3/infer"),
        ("v2", "/v2/models/m/infer", "/v2/models/m/infer"),
        ("mlflow", "", "/invocations"),
        ("mlflow", "/a/", "/a/invocations"),
        ("mlflow", "/a/invocations", "/a/invocations"),
        ("seldon", "/api/v1.0/predictions", "/api/v1.0/predictions"),
    ],
)
def test_the_path_that_is_posted_to(protocol, given_path, posted):
    assert wire(protocol).endpoint(given_path) == posted


@pytest.mark.parametrize("path", ["", "/v2", "/v2/models", "/v2/models/m/generate", "/models/m"])
def test_v2_wants_the_url_of_a_model(path):
    with pytest.raises(SettingError, match="a model's URL"):
        wire("v2").endpoint(path)


# --- answers --------------------------------------------------------------------------------------------------------


def v2_answer(data, shape=None, name="predict", **more):
    return {"outputs": [{"name": name, "shape": [len(data)] if shape is None else shape, "data": data}], **more}


SCORES = [[0.1, 0.9], [0.8, 0.2]]


@pytest.mark.parametrize(
    ("protocol", "answer", "outputs"),
    [
        ("instances", {"predictions": ["a", "b"]}, ["a", "b"]),
        ("instances", {"predictions": [True, False]}, [True, False]),
        ("mlflow", {"predictions": [1, 2]}, [1, 2]),
        ("mlflow", {"predictions": SCORES}, SCORES),
        ("seldon", {"data": {"names": [], "ndarray": SCORES}}, SCORES),
        ("seldon", {"data": {"tensor": {"shape": [2, 2], "values": [0.1, 0.9, 0.8, 0.2]}}}, SCORES),
        ("seldon", {"data": {"tensor": {"shape": [2], "values": [1, 0]}}}, [1, 0]),
        ("v2", v2_answer(["a", "b"], id="t"), ["a", "b"]),
        ("v2", v2_answer([1, 2], [2, 1], id=None), [[1], [2]]),
        ("v2", v2_answer([0.1, 0.9, 0.8, 0.2], [2, 2]), SCORES),
        ("v2", v2_answer(SCORES, [2, 2]), SCORES),
        ("template", {"out": [{"list": [1, 2]}]}, [1, 2]),
    ],
)
def test_outputs_are_where_the_protocol_says(protocol, answer, outputs):
    found = wire(protocol, template=TEMPLATE if protocol == "template" else None)
    read = found.decode(json.dumps(answer).encode(), 2, "t")
    assert read == outputs
    assert [type(value) for value in read] == [type(value) for value in outputs]


def test_one_of_several_v2_outputs_has_to_be_named():
    answer = {"outputs": v2_answer([0.1, 0.2], name="score")["outputs"] + v2_answer([1, 0], name="label")["outputs"]}
    assert wire("v2", output="label").decode(json.dumps(answer).encode(), 2, "t") == [1, 0]
    with pytest.raises(MalformedAnswer, match=r'not one output \(name it with output\) but "score", "label"'):
        wire("v2").decode(json.dumps(answer).encode(), 2, "t")
    with pytest.raises(MalformedAnswer, match="not one output 'class'"):
        wire("v2", output="class").decode(json.dumps(answer).encode(), 2, "t")


@pytest.mark.parametrize(
    ("protocol", "body", "cause", "again"),
    [
        ("instances", b"", "not JSON", True),
        ("instances", b'{"predictions": [1', "not JSON", True),
        ("instances", b"\xff\xfe\xfa", "not JSON", True),
        ("instances", b"[" * 100_000, "not JSON", True),
        ("instances", b"1" * 5000, "not JSON", True),
        ("instances", b'{"error": "busy"}', "not an answer", False),
        ("instances", b'{"predictions": {"a": 1}}', "not an answer", False),
        ("instances", b'{"predictions": [1]}', "wrong count", True),
        ("instances", b'{"predictions": [1, 2, 3]}', "wrong count", True),
        ("instances", b'{"predictions": [[1, 2], [3]]}', "wrong count", True),
        ("instances", b'{"predictions": [1, [3]]}', "wrong count", True),
        ("instances", b'{"predictions": [1, null]}', "NaN", True),
        ("instances", b'{"predictions": [1, NaN]}', "NaN", True),
        ("instances", b'{"predictions": [[1, 2], [3, -Infinity]]}', "NaN", True),
        ("instances", b'{"predictions": [1, 1e999]}', "NaN", True),
        ("instances", b'{"predictions": [1, {"label": 2}]}', "not a label", False),
        ("instances", b'{"predictions": [[[1]], [[2]]]}', "not a label", False),
        ("instances", b'{"predictions": [1, 9223372036854775808]}', "not a label", False),
        ("instances", b'{"predictions": ["a", "\\ud800"]}', "not a label", False),
        ("instances", b'{"predictions": ["a", "b\\u0000"]}', "not a label", False),
        ("v2", v2_answer([1, 2], id="another"), "wrong id", True),
        ("v2", v2_answer([1, 2, 3], [2]), "wrong count", True),
        ("v2", v2_answer([1, 2, 3]), "wrong count", True),
        ("v2", v2_answer([1, 2, 3, 4], [4, 1]), "wrong count", True),
        ("v2", v2_answer([], [10**12, 0]), "wrong count", True),
        ("v2", v2_answer([1, 2], [-1, -2]), "wrong count", True),
        ("v2", v2_answer([1, 2], [True, 2]), "wrong count", True),
        ("v2", v2_answer([1, 2], []), "not an answer", False),
        ("v2", v2_answer([1, 2], [2, 1, 1]), "not an answer", False),
        ("v2", {"outputs": []}, "not an answer", False),
        ("v2", {"outputs": [3]}, "not an answer", False),
        ("v2", {"outputs": {"predict": [1, 2]}}, "not an answer", False),
        ("seldon", {"data": [1, 2]}, "not an answer", False),
        ("seldon", {"status": {"status": "FAILURE"}}, "not an answer", False),
        ("csv", b"a\n", "wrong count", True),
        ("csv", b"a\n\n", "wrong count", True),
        ("csv", b"a\nNaN\n", "NaN", True),
        ("csv", b'a\n""\n', "NaN", True),
        ("csv", b"a\n\xff\n", "not CSV", True),
        ("csv", b"a" * 200_000 + b"\nb\n", "not CSV", True),
    ],
)
def test_malformed_answers_say_what_is_wrong(protocol, body, cause, again):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(MalformedAnswer) as caught:
        wire(protocol).decode(body, 2, "t")
    assert (caught.value.cause, caught.value.again) == (cause, again)


def test_answers_nested_as_deeply_as_can_be_read():
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit() + 10):
        nested = b"[" * depth + b"]" * depth
        for body in (nested, b'{"predictions": %b}' % nested, b'{"outputs": [{"name": %b}]}' % nested):
            for protocol in ("instances", "v2"):
                with pytest.raises(MalformedAnswer):
                    wire(protocol).decode(body, 2, "t")


def test_labels_in_csv_are_words_unless_the_classes_say_otherwise():
    def read(text, classes=None):
        return wire("csv", classes=classes).decode(text.encode(), 2, "t")

    assert read("1\r\n0\r\n") == ["1", "0"]
    assert read("\ufeff1\n0", classes=[0, 1]) == [1, 0]
    assert read("1.0\n-9007199254740993\n", classes=[0, 1]) == [1, -9007199254740993]
    assert read("true\nFalse\n", classes=[False, True]) == [True, False]
    assert read("1\n0\n", classes=[False, True]) == [True, False]
    assert read("1\n0.5\n", classes=[0.5, 1.0]) == [1.0, 0.5]
    assert read('"a, b"\n c \n') == ["a, b", " c "]  # as it stands: "c" may be another label
    assert read("0.1,0.9\n0.8,0.2\n") == [["0.1", "0.9"], ["0.8", "0.2"]]
    with pytest.raises(MalformedAnswer, match="not a label: in row 1, where the declared classes are of another type"):
        read("1\nyes\n", classes=[0, 1])
    with pytest.raises(MalformedAnswer, match="not a label"):
        read("true\nyes\n", classes=[False, True])


# --- templates ------------------------------------------------------------------------------------------------------


def elements(*pairs):
    listed = [{"number": number, "said": {"label": label}} for number, label in pairs]
    return json.dumps({"out": [{"list": listed}]}).encode()


def test_answers_are_put_back_into_the_order_of_ids():
    found = wire("template", template=WITH_IDS)
    assert found.decode(elements(("t-2", "c"), ("t-0", "a"), ("t-1", "b")), 3, "t") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "pairs",
    [
        [("t-0", "a"), ("t-0", "b")],
        [("t-0", "a"), ("u-1", "b")],
        [("t-0", "a"), (None, "b")],
        [("t-0", "a"), ([1], "b")],
    ],
)
def test_ids_that_were_not_asked_for_are_not_guessed_at(pairs):
    with pytest.raises(MalformedAnswer, match="wrong id"):
        wire("template", template=WITH_IDS).decode(elements(*pairs), 2, "t")


def test_a_template_may_be_a_file(tmp_path):
    path = tmp_path / "template.json"
    path.write_text(json.dumps(WITH_IDS))
    for given_path in (path, str(path)):
        assert wire("template", template=given_path).decode(elements(("t-0", "a")), 1, "t") == ["a"]
    path.write_text("{")
    with pytest.raises(SettingError, match=r"template.json: expected a file of JSON, found JSONDecodeError"):
        wire("template", template=path)
    with pytest.raises(SettingError, match="found FileNotFoundError"):
        wire("template", template=tmp_path / "none.json")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "it: Input should be a valid dictionary"),
        ({**TEMPLATE, "colour": 1}, "colour: Extra inputs are not permitted"),
        ({"rows": "lists", "answer": ""}, "request: Field required"),
        ({**TEMPLATE, "rows": "both"}, "rows: Input should be 'lists', 'objects' or 'columns'"),
        ({**TEMPLATE, "answer": 3}, "answer: Input should be a valid string"),
        (
            {**TEMPLATE, "request": {"data": "$line"}},
            'the string "$rows" in its request, or "$row" for one row at a ti',
        ),
        (
            {**TEMPLATE, "request": ["$row", "$rows"]},
            'the string "$rows" in its request, or "$row" for one row at a ti',
        ),
        ({**TEMPLATE, "body": "lines"}, 'the string "$row" in its request, since body is "lines"'),
        ({**TEMPLATE, "body": "form"}, 'rows as "objects" or "columns", since they are sent as fields'),
        ({"request": "$row", "rows": "lists", "body": "query"}, 'rows as "objects" or "columns", since they are sent'),
        ({"request": "$row", "rows": "columns"}, 'rows as "lists" or "objects", since they go one by one'),
        ({"request": "$row", "id": "id"}, 'the string "$ids" in its request, since id is given'),
        ({**TEMPLATE, "label": "a", "scores": {"labels": "a", "scores": "b"}}, "label or scores, not both"),
        ({**TEMPLATE, "scores": {"labels": "a"}}, "scores.Paired.scores: Field required"),
        ({**TEMPLATE, "poll": {"running": ["running"]}}, "poll.status beside its running"),
        ({**TEMPLATE, "poll": {"seconds": 3}}, "poll.seconds: Extra inputs are not permitted"),
        ({**TEMPLATE, "request": {"data": "$rows"}, "id": "id"}, 'the string "$ids" in its request, since id is given'),
        ({**TEMPLATE, "request": {"$rows": math.nan}}, "a request that is JSON"),
        ({**TEMPLATE, "request": {1, 2}}, "a request that is JSON"),
    ],
)
def test_templates_that_cannot_be_used(template, message):
    with pytest.raises(SettingError) as caught:
        wire("template", template=template)
    assert message in str(caught.value)


def test_protocols_are_never_guessed():
    listed = ", ".join(map(repr, PROTOCOLS))
    for protocol in (None, "V2", "grpc", 2):
        with pytest.raises(SettingError, match=f"protocol: expected one of {listed}, found {protocol!r}"):
            wire(protocol)
    with pytest.raises(SettingError, match="template: expected protocol='template' beside it, found protocol='v2'"):
        wire("v2", template=TEMPLATE)
    with pytest.raises(SettingError, match=r"output: expected protocol='v2' or .* beside it, found protocol='csv'"):
        wire("csv", output="label")


# --- anything at all ------------------------------------------------------------------------------------------------

KEYS = ["predictions", "outputs", "name", "shape", "data", "id", "ndarray", "tensor", "values", "out", "list", "label"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["t", "t-0", "t-1"])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4),
    max_leaves=12,
)
ANSWERS = st.one_of(
    JSON,
    st.builds(lambda v: {"predictions": v}, JSON),
    st.builds(
        lambda d, s, i: v2_answer([], s, id=i) | {"outputs": [{"name": "p", "data": d, "shape": s}]}, *[JSON] * 3
    ),
    st.builds(lambda v, s: {"data": {"tensor": {"values": v, "shape": s}}}, JSON, JSON),
    st.builds(lambda v: {"data": {"ndarray": v}}, JSON),
    st.builds(lambda v: {"out": [{"list": v}]}, st.lists(JSON, max_size=3)),
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(ANSWERS.map(lambda answer: json.dumps(answer).encode()), st.binary(), st.text().map(str.encode)))
def test_no_answer_whatever_does_anything_else_than_fail_as_it_should(body):
    for found in every_wire():
        try:
            outputs = found.decode(body, 2, "t")
        except MalformedAnswer:
            continue
        assert isinstance(outputs, list)
        assert len(outputs) == 2
        with suppress(OriginalError):
            assert len(Original(lambda rows, outputs=outputs: outputs).answer(np.zeros((2, 1)))) == 2
