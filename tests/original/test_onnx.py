"""ONNX models as originals: real files, run by real processes."""

import contextlib
import gc
import os
import platform
import select
import signal
import subprocess
import sys
import tempfile
import threading
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

from ectype.errors import OriginalError, OutageError, SettingError
from ectype.original import open_original
from processes import await_end, child_processes

ROWS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 2.0], [-3.0, 1.0]])


def value(name, dtype, shape):
    return h.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, weights=(), *, ml=None, ir=8, opset=17, **more):
    domains = [h.make_opsetid("", opset)] + ([h.make_opsetid("ai.onnx.ml", ml)] if ml else [])
    graph = h.make_graph(nodes, "g", inputs, outputs, initializer=[numpy_helper.from_array(v, k) for k, v in weights])
    return h.make_model(graph, opset_imports=domains, ir_version=ir, **more)


def save(directory, made, name="model.onnx"):
    path = Path(directory) / name
    path.write_bytes(made.SerializeToString())
    return str(path)


def linear(dtype=T.FLOAT, shape=("N", 2), labels=None, **more):
    """Two outputs: the class of the higher score, of which the first is the first column and the second is zero."""
    weights = [("W", np.array([[1, 0], [0, 0]], h.tensor_dtype_to_np_dtype(dtype)))]
    nodes = [
        h.make_node("MatMul", ["X", "W"], ["scores"]),
        h.make_node("ArgMax", ["scores"], ["label"], axis=1, keepdims=0),
    ]
    rows = shape[0]
    outputs = [value("label", T.INT64, [rows]), value("scores", dtype, [rows, 2])]
    return model(nodes, [value("X", dtype, list(shape))], outputs, weights, **more)


def single(operator, dtype=T.FLOAT, out=T.BOOL, constant=0, shape=("N", 1)):
    """One operator between a constant and one column."""
    weights = [("c", np.array([constant], h.tensor_dtype_to_np_dtype(dtype)))]
    node = h.make_node(operator, ["X", "c"], ["Y"])
    return model([node], [value("X", dtype, list(shape))], [value("Y", out, list(shape))], weights)


def counting():
    """Counts in a loop up to the largest value it is given: as slow as one likes. The answer is that value."""
    one = numpy_helper.from_array(np.array([1], np.int64), "one")
    body = h.make_graph(
        [h.make_node("Add", ["sum", "one"], ["next"]), h.make_node("Identity", ["go"], ["on"])],
        "body",
        [value("at", T.INT64, []), value("go", T.BOOL, []), value("sum", T.INT64, [1])],
        [value("on", T.BOOL, []), value("next", T.INT64, [1])],
        initializer=[one],
    )
    nodes = [
        h.make_node("ReduceMax", ["X"], ["trips"], keepdims=0),
        h.make_node("Loop", ["trips", "", "zero"], ["total"], body=body),
        h.make_node("Mul", ["X", "zero"], ["zeros"]),
        h.make_node("Add", ["zeros", "total"], ["label"]),
    ]
    weights = [("zero", np.array([0], np.int64))]
    return model(nodes, [value("X", T.INT64, ["N", 1])], [value("label", T.INT64, ["N", 1])], weights)


FOREVER = np.array([[2**62]])


def children():
    gc.collect()  # what only a caught error holds on to
    return [pid for pid in child_processes() if b"model_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def child():
    (pid,) = children()
    return pid


def await_request(pid):
    """Wait until a request lies in the pipe of a process that was stopped."""
    pipe = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY)
    try:
        assert select.select([pipe], [], [], 20)[0], "nothing was sent"
    finally:
        os.close(pipe)


# --- what is answered -------------------------------------------------------------------------------------------------


def test_a_matrix_of_numbers(tmp_path):
    path = save(tmp_path, linear())
    box = open_original(path)
    assert box.answer(ROWS).tolist() == [0, 1, 0, 1]
    assert box.answer(ROWS[:1]).tolist() == [0]
    assert (box.d, box.names, box.name, box.declared) == (2, None, "model.onnx", None)
    assert box.fingerprint == sha256(Path(path).read_bytes()).hexdigest()
    assert len(children()) == 1


def test_scores_are_read_as_told(tmp_path):
    path = save(tmp_path, linear())
    box = open_original(path, ["up", "down"], decode="argmax")
    assert box.answer(ROWS).tolist() == ["up", "down", "up", "down"]
    assert open_original(path, decode="argmax", output="scores").answer(ROWS).tolist() == [0, 1, 0, 1]
    cut = model(
        [h.make_node("ReduceSum", ["X"], ["score"], keepdims=1), h.make_node("Identity", ["X"], ["same"])],
        [value("X", T.FLOAT, ["N", 1])],
        [value("score", T.FLOAT, ["N", 1]), value("same", T.FLOAT, ["N", 1])],
    )
    box = open_original(save(tmp_path, cut), decode="threshold", threshold=0.7, output="same")
    assert box.answer(np.array([[0.5], [0.75]])).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [T.FLOAT16, T.FLOAT, T.DOUBLE, T.INT32, T.INT64])
def test_numbers_of_the_type_the_model_takes(tmp_path, dtype):
    box = open_original(save(tmp_path, single("Greater", dtype)))
    assert box.answer(np.array([[1.0], [0.0], [-2.0]])).tolist() == [True, False, False]


def test_floats_are_rounded_as_the_model_asks(tmp_path):
    rows = np.array([[1 + 1e-9], [1 + 1e-3]])
    assert open_original(save(tmp_path, single("Greater", T.FLOAT, constant=1))).answer(rows).tolist() == [False, True]
    assert open_original(save(tmp_path, single("Greater", T.DOUBLE, constant=1))).answer(rows).tolist() == [True, True]
    big = np.array([[2**53], [2**53 + 1]])  # which floats cannot tell apart
    box = open_original(save(tmp_path, single("Greater", T.INT64, constant=2**53)))
    assert box.answer(big).tolist() == [False, True]


def test_a_frame_of_numbers(tmp_path):
    box = open_original(save(tmp_path, linear()))
    kinds = [
        [1.0, -1.0, np.nan],
        pd.Series([1, -1, None], dtype="Int64"),
        pd.Series([1, -1, 2]).astype("category"),
        pd.Series([1, -1, 2], dtype=object),
        pd.Series([True, None, False], dtype=object),
    ]
    for first in kinds:
        frame = pd.DataFrame({"a": first, "b": [True, False, True]})
        expected = box.answer(np.array([[1.0, 1.0], [np.nan if frame["a"].isna()[1] else -1.0, 0.0]]))
        assert box.answer(frame)[:2].tolist() == expected.tolist()


def mixed():
    """The plan is 'big' for members over 30 in Rome with more than 2 visits, else 'small'."""
    nodes = [
        h.make_node(
            "LabelEncoder",
            ["city"],
            ["place"],
            domain="ai.onnx.ml",
            keys_strings=["Rome"],
            values_int64s=[1],
            default_int64=0,
        ),
        h.make_node("Cast", ["place"], ["there"], to=T.BOOL),
        h.make_node("Greater", ["age", "thirty"], ["old"]),
        h.make_node("Greater", ["visits", "two"], ["often"]),
        h.make_node("Reshape", ["member", "column"], ["is_member"]),
        h.make_node("And", ["there", "old"], ["both"]),
        h.make_node("And", ["often", "is_member"], ["also"]),
        h.make_node("And", ["both", "also"], ["all"]),
        h.make_node("Cast", ["all"], ["code"], to=T.INT64),
        h.make_node(
            "LabelEncoder",
            ["code"],
            ["plan"],
            domain="ai.onnx.ml",
            keys_int64s=[0, 1],
            values_strings=["small", "big"],
        ),
    ]
    inputs = [
        value("age", T.FLOAT, ["N", 1]),
        value("city", T.STRING, ["N", 1]),
        value("member", T.BOOL, ["N"]),
        value("visits", T.INT64, ["N", 1]),
    ]
    weights = [
        ("thirty", np.array([30], np.float32)),
        ("two", np.array([2])),
        ("column", np.array([-1, 1])),
    ]
    return model(nodes, inputs, [value("plan", T.STRING, ["N", 1])], weights, ml=2)


PEOPLE = pd.DataFrame(
    {
        "visits": [3, 3, 1, 9],
        "city": ["Rome", "Oslo", "Rome", "Rome"],
        "age": [40.5, 50.0, 60.0, np.nan],
        "member": [True, True, True, True],
    }
)


def test_columns_go_to_the_inputs_of_their_names(tmp_path):
    box = open_original(save(tmp_path, mixed()))
    assert (box.d, box.names) == (4, ("age", "city", "member", "visits"))
    assert box.answer(PEOPLE).tolist() == ["big", "small", "small", "small"]
    typed = PEOPLE.astype({"city": "category", "visits": "Int64", "member": int})
    assert box.answer(typed).tolist() == ["big", "small", "small", "small"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (PEOPLE.drop(columns="age"), "a data frame with the columns ['age', 'city', 'member', 'visits'], found"),
        (PEOPLE.assign(more=1), "found the columns ['visits', 'city', 'age', 'member', 'more']"),
        (PEOPLE.to_numpy(), "found rows without column names"),
        (PEOPLE.assign(city=["Rome", None, "Oslo", "Rome"]), "column city: expected a string in every row, found"),
        (PEOPLE.assign(city=1), "column city: expected a string in every row, found 1 in row 0"),
        (PEOPLE.assign(age="old"), "column age: expected numbers, found values of type"),
        (
            PEOPLE.assign(visits=[1, 2, 3.5, 4]),
            "column visits: expected numbers that int64 can hold, found 3.5 in row 2",
        ),
        (PEOPLE.assign(visits=[1, np.nan, 3, 4]), "found nan in row 1"),
        (PEOPLE.assign(member=[0, 1, 2, 1]), "column member: expected numbers that bool can hold, found 2 in row 2"),
    ],
)
def test_columns_that_do_not_fit(tmp_path, changed, message):
    box = open_original(save(tmp_path, mixed()))
    with pytest.raises(OriginalError) as caught:
        box.answer(changed)
    assert message in str(caught.value)
    assert not children()  # nothing was sent


@pytest.mark.parametrize(
    ("dtype", "rows", "message"),
    [
        (T.FLOAT, np.array([[0.0], [1e300]]), "numbers that float32 can hold, found 1e+300 in row 1"),
        (T.FLOAT16, np.array([[70000.0]]), "numbers that float16 can hold"),
        (T.INT64, np.array([[np.inf]]), "numbers that int64 can hold"),
        (T.UINT8, np.array([[-1]]), "numbers that uint8 can hold, found -1 in row 0"),
        (T.FLOAT, np.array([["a"]]), "expected numbers, found values of type <U1"),
        (T.FLOAT, np.array([[1.0]], dtype=object), "expected numbers, found values of type object"),
        (T.FLOAT, np.array([[1.0, 2.0]]), "Got invalid dimensions"),
    ],
)
def test_rows_that_do_not_fit(tmp_path, dtype, rows, message):
    box = open_original(save(tmp_path, single("Equal", dtype)))
    with pytest.raises(OriginalError) as caught:
        box.answer(rows)
    assert message in str(caught.value)


def test_a_model_of_one_row_at_a_time(tmp_path):
    assert open_original(save(tmp_path, linear(shape=(1, 2)))).answer(ROWS).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7])
def test_a_model_of_a_fixed_number_of_rows(tmp_path, batch, rng):
    rows = rng.normal(size=(50, 2)).astype(np.float32).astype(float)
    free = open_original(save(tmp_path, linear()), ["a", "b"], decode="argmax")
    fixed = open_original(save(tmp_path, linear(shape=(batch, 2))), ["a", "b"], decode="argmax")
    for n in (1, batch, batch + 1, 50):
        assert fixed.answer(rows[:n]).tolist() == free.answer(rows[:n]).tolist()


def test_a_fixed_number_of_rows_and_another_of_answers(tmp_path):
    node = h.make_node("ReduceMax", ["X"], ["Y"], axes=[0])
    made = model([node], [value("X", T.INT64, [4, 1])], [value("Y", T.INT64, [1, 1])], [])
    made.opset_import[0].version = 13
    with pytest.raises(OriginalError, match="outputs for 1 rows where 4 were given"):
        open_original(save(tmp_path, made)).answer(np.ones((3, 1)))


def test_weights_among_the_inputs_as_in_old_files(tmp_path):
    made = linear(ir=3, opset=8)
    made.graph.input.append(value("W", T.FLOAT, [2, 2]))
    assert open_original(save(tmp_path, made)).answer(ROWS).tolist() == [0, 1, 0, 1]


def test_a_tree_of_the_machine_learning_operators(tmp_path):
    tree = h.make_node(
        "TreeEnsemble",
        ["X"],
        ["scores"],
        domain="ai.onnx.ml",
        n_targets=2,
        tree_roots=[0],
        nodes_featureids=[1],
        nodes_modes=h.make_tensor("modes", T.UINT8, [1], [0]),
        nodes_splits=h.make_tensor("splits", T.DOUBLE, [1], [0.1]),
        nodes_truenodeids=[0],
        nodes_trueleafs=[1],
        nodes_falsenodeids=[1],
        nodes_falseleafs=[1],
        leaf_targetids=[0, 1],
        leaf_weights=h.make_tensor("weights", T.DOUBLE, [2], [1.0, 1.0]),
    )
    made = model([tree], [value("X", T.DOUBLE, ["N", 2])], [value("scores", T.DOUBLE, ["N", 2])], ml=5, ir=10)
    box = open_original(save(tmp_path, made), decode="argmax")
    rows = np.array([[5.0, 0.1], [5.0, np.nextafter(0.1, 1)]])
    assert box.answer(rows).tolist() == [0, 1]


def test_what_begins_like_another_format_is_read_as_what_was_checked(tmp_path):
    made = linear(producer_name="ORTM" + 60 * "x")  # the mark of onnxruntime's own format, where it looks for it
    assert made.SerializeToString()[4:8] == b"ORTM"
    assert open_original(save(tmp_path, made)).answer(ROWS).tolist() == [0, 1, 0, 1]


# --- what is refused --------------------------------------------------------------------------------------------------


def external(tensor):
    tensor.data_location = T.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


def outside():
    return external(T(name="w", data_type=T.FLOAT, dims=[1]))


def with_external_weights():
    made = linear()
    external(made.graph.initializer[0]).ClearField("raw_data")
    return made


def with_external_sparse_weights():
    made = linear()
    made.graph.sparse_initializer.append(
        h.make_sparse_tensor(outside(), h.make_tensor("at", T.INT64, [1], [0]), [1]),
    )
    return made


def with_external_constant():
    made = linear()
    made.graph.node.append(h.make_node("Constant", [], ["k"], value=outside()))
    return made


def with_external_subgraph():
    made = linear()
    branch = h.make_graph([h.make_node("Constant", [], ["b"], value=outside())], "b", [], [value("b", T.FLOAT, [1])])
    made.graph.node.append(h.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch))
    return made


def with_external_training():
    made = linear()
    made.training_info.add().initialization.initializer.append(outside())
    return made


def with_foreign_domain():
    made = linear()
    made.opset_import.append(h.make_opsetid("com.example", 1))
    return made


def with_foreign_node():
    made = linear()
    made.graph.node.append(h.make_node("Evil", ["X"], ["Z"], domain="com.microsoft"))
    return made


def with_function():
    made = linear()
    body = [h.make_node("Identity", ["a"], ["b"])]
    made.functions.append(h.make_function("", "Mine", ["a"], ["b"], body, [h.make_opsetid("", 17)]))
    return made


def with_type(dtype):
    return model([h.make_node("Identity", ["X"], ["Y"])], [value("X", dtype, ["N", 2])], [value("Y", dtype, ["N", 2])])


def with_inputs(*inputs):
    nodes = [h.make_node("Identity", [made.name], [f"out_{made.name}"]) for made in inputs]
    outputs = [h.make_value_info(f"out_{made.name}", made.type) for made in inputs]
    return model(nodes, list(inputs), outputs)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (with_external_weights(), "a model in a single file, found tensor 'W' kept in another"),
        (with_external_sparse_weights(), "a model in a single file"),
        (with_external_constant(), "a model in a single file"),
        (with_external_subgraph(), "a model in a single file"),
        (with_external_training(), "a model in a single file"),
        (with_foreign_domain(), "domains ai.onnx and ai.onnx.ml, found the domain 'com.example'"),
        (with_foreign_node(), "found the domain 'com.microsoft'"),
        (with_function(), "found functions of its own: Mine"),
        (
            model([h.make_node("Nothing", ["X"], ["Y"])], [value("X", 1, [1])], [value("Y", 1, [1])]),
            "a valid ONNX model",
        ),
        (with_type(T.BFLOAT16), "the inputs X (ONNX type 16 [?, 2])"),
        (with_inputs(value("X", T.FLOAT, ["N", 2, 3])), "one input of numbers [?, d], or one input [?, 1] for each"),
        (with_inputs(value("X", T.STRING, ["N", 2])), "found the inputs X (string [?, 2])"),
        (with_inputs(value("X", T.FLOAT, [])), "found the inputs X (float32)"),
        (
            with_inputs(value("X", T.FLOAT, ["N", 2]), value("Z", T.FLOAT, ["N", 2])),
            "found the inputs X (float32 [?, 2])",
        ),
        (with_inputs(value("X", T.INT64, [1]), value("Z", T.INT64, ["N"])), "inputs of as many rows each"),
        (with_inputs(value("X", T.INT64, [7]), value("Z", T.INT64, [5])), "inputs of as many rows each"),
        (model([h.make_node("Constant", [], ["Y"], value_int=1)], [], [value("Y", T.INT64, [])]), "the inputs none"),
    ],
)
def test_models_that_are_refused(tmp_path, made, message):
    path = save(tmp_path, made)
    with pytest.raises(SettingError) as caught:
        open_original(path)
    assert message in str(caught.value)
    assert "model.onnx" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04" + 20 * b"x", b"\x80\x04]q.", b"{}", 5000 * b"x", b"\x08\x08"])
def test_other_files_under_the_name_of_a_model(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(SettingError, match=r"model\.onnx: expected an? (valid )?ONNX model, found"):
        open_original(str(path))


def many_outputs():
    """Labels of two kinds, scores of two kinds, and the sequence of maps that converters like to add."""
    nodes = [
        h.make_node("Identity", ["X"], ["probabilities"]),
        h.make_node("ArgMax", ["X"], ["code"], keepdims=0, axis=1),
        h.make_node("Cast", ["code"], ["word"], to=T.STRING),
        h.make_node("ZipMap", ["X"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]),
    ]
    maps = h.make_sequence_type_proto(h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(T.FLOAT, [])))
    outputs = [
        value("probabilities", T.FLOAT, ["N", 2]),
        value("code", T.INT64, ["N"]),
        value("word", T.STRING, ["N"]),
        h.make_value_info("maps", maps),
    ]
    return model(nodes, [value("X", T.FLOAT, ["N", 2])], outputs, ml=1)


ALL_OUTPUTS = "probabilities (float32 [?, 2]), code (int64 [?]), word (string [?]), maps (a sequence)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, f"output: expected one output of labels, found the outputs {ALL_OUTPUTS}; name one with --output"),
        ({"output": "nothing"}, f"output: expected one of {ALL_OUTPUTS}, found 'nothing'"),
        ({"output": "maps"}, "output: expected a tensor, found maps (a sequence); name another with --output: prob"),
        (
            {"output": "probabilities"},
            "decode: expected argmax or threshold for scores, found 'label' for the output prob",
        ),
        ({"output": "word", "decode": "argmax"}, "decode: expected 'label' for strings, found 'argmax'"),
        ({"decode": "softmax"}, "decode: expected one of 'label', 'argmax', 'threshold'"),
        ({"output": "code", "threshold": 0.5}, "threshold: expected decode='threshold' beside it"),
        ({"output": "code", "timeout": 0}, "timeout: expected a number of seconds above 0"),
        ({"output": "code", "timeout": float("inf")}, "timeout: expected a number of seconds above 0"),
        ({"trust": "x"}, "trust: expected one of decode, threshold, output, timeout"),
    ],
)
def test_options_that_do_not_fit(tmp_path, options, message):
    path = save(tmp_path, many_outputs())
    with pytest.raises(SettingError) as caught:
        open_original(path, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "labels"),
    [({"output": "code"}, [0, 1]), ({"output": "word"}, ["0", "1"]), ({"decode": "argmax"}, [0, 1])],
)
def test_one_of_many_outputs(tmp_path, options, labels):
    box = open_original(save(tmp_path, many_outputs()), **options)
    assert box.answer(np.array([[2.0, 1.0], [0.0, 1.0]])).tolist() == labels


def test_labels_that_are_none(tmp_path):
    made = model(
        [h.make_node("Cast", ["X"], ["Y"], to=T.INT64)],
        [value("X", T.FLOAT, ["N", 2])],
        [value("Y", T.INT64, ["N", 2])],
    )
    with pytest.raises(OriginalError, match=r"found a table of shape \(4, 2\): scores or one-hot rows"):
        open_original(save(tmp_path, made)).answer(ROWS)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "folder.onnx").mkdir()
    for name in ("nothing.onnx", "folder.onnx", "x" * 300 + ".onnx"):
        with pytest.raises(SettingError, match="original: expected a file"):
            open_original(str(tmp_path / name))
    huge = tmp_path / "huge.onnx"
    with huge.open("wb") as file:
        file.truncate(2**31 + 1)
    with pytest.raises(SettingError, match=r"huge\.onnx: expected a file of at most 2147483648 bytes"):
        open_original(str(huge))


def test_a_model_that_onnxruntime_cannot_load(tmp_path):
    without_categories = h.make_node("OneHotEncoder", ["X"], ["Y"], domain="ai.onnx.ml")
    made = model([without_categories], [value("X", T.INT64, ["N", 2])], [value("Y", T.INT64, ["N", 2])], ml=1)
    box = open_original(save(tmp_path, made))
    with pytest.raises(OutageError, match="a model that onnxruntime can load, found"):
        box.answer(np.array([[1, 2]]))
    assert not children()


# --- what goes wrong with the process ---------------------------------------------------------------------------------


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only there does this division end a process")
def test_a_row_that_crashes_the_process(tmp_path):
    box = open_original(save(tmp_path, single("Mod", T.INT64, T.INT64, constant=-1)))
    with pytest.raises(OriginalError, match="found the end of the process that runs it, by SIGFPE"):
        box.answer(np.array([[4], [-(2**63)]]))
    assert box.answer(np.array([[4]])).tolist() == [0]
    assert box.failures == {"crash": 1}


def test_a_process_killed_during_a_request(tmp_path):
    box = open_original(save(tmp_path, linear()))
    box.answer(ROWS)
    pid, caught = child(), []

    def ask():
        try:
            box.answer(ROWS)
        except OriginalError as error:
            caught.append(str(error))

    os.kill(pid, signal.SIGSTOP)
    asking = threading.Thread(target=ask)
    asking.start()
    await_request(pid)
    os.kill(pid, signal.SIGKILL)
    asking.join()
    assert ["SIGKILL" in message for message in caught] == [True]
    assert box.answer(ROWS).tolist() == [0, 1, 0, 1]
    assert child() != pid


def test_a_process_killed_between_requests(tmp_path):
    box = open_original(save(tmp_path, linear()))
    box.answer(ROWS)
    pid = child()
    os.kill(pid, signal.SIGKILL)
    await_end(pid)
    assert box.answer(ROWS).tolist() == [0, 1, 0, 1]
    assert not box.failures


def test_a_request_that_takes_too_long(tmp_path):
    box = open_original(save(tmp_path, counting()), timeout=1)
    assert box.answer(np.array([[1000], [3]])).tolist() == [1000, 1000]
    pid = child()
    with pytest.raises(OriginalError, match=r"model\.onnx: expected an answer within 1 s, found none"):
        box.answer(FOREVER)
    assert not Path(f"/proc/{pid}").exists()
    assert box.answer(np.array([[5]])).tolist() == [5]
    assert box.failures == {"timeout": 1}


def test_an_interrupted_request_leaves_no_answer_behind(tmp_path):
    box = open_original(save(tmp_path, counting()))
    box.answer(np.array([[1]]))
    pid = child()

    def interrupt(*_):
        raise KeyboardInterrupt

    def send():
        await_request(pid)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    os.kill(pid, signal.SIGSTOP)
    sending = threading.Thread(target=send)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            sending.start()
            box.answer(np.array([[2]]))
    finally:
        sending.join()
        signal.signal(signal.SIGUSR1, before)
    assert not Path(f"/proc/{pid}").exists()
    assert box.answer(np.array([[3]])).tolist() == [3]


def test_the_process_goes_with_the_original(tmp_path):
    box = open_original(save(tmp_path, linear()))
    assert not children()  # none before it is needed
    box.answer(ROWS)
    pid = child()
    del box
    gc.collect()
    assert not Path(f"/proc/{pid}").exists()  # not even as a zombie


def test_the_process_goes_with_a_killed_parent(tmp_path):
    path = save(tmp_path, counting())
    code = f"""
import numpy as np, os, sys, threading
from pathlib import Path
from ectype.original import open_original
box = open_original({path!r})
box.answer(np.array([[1]]))
children = [(task / "children").read_text() for task in Path("/proc/self/task").iterdir()]
print(*children, flush=True)
box.answer(np.array([[2**62]]))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        parent.kill()
    await_end(pid)


# --- anything at all --------------------------------------------------------------------------------------------------

WHOLE = linear().SerializeToString()


def attempt(content):
    with tempfile.TemporaryDirectory() as directory, contextlib.suppress(SettingError):
        path = Path(directory) / "model.onnx"
        path.write_bytes(content)
        open_original(str(path))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_model_or_an_error(content):
    attempt(content)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 4), st.binary(max_size=4))
def test_a_damaged_model_is_a_model_or_an_error(at, cut, put):
    attempt(WHOLE[:at] + put + WHOLE[at + cut :])


def test_what_tests_assume_about_the_files():
    for made in (linear(), mixed(), counting(), many_outputs()):
        onnx.checker.check_model(made)


def test_a_model_that_takes_too_much_memory_is_an_error_and_the_next_request_is_answered(tmp_path):
    """Its labels are those of `linear`; a row above 5 makes it fill 16 GiB first, which is more than it may."""
    sizes = np.array([2**32], np.int64)
    nodes = [
        h.make_node("ReduceMax", ["X"], ["most"], keepdims=0),
        h.make_node("Greater", ["most", "five"], ["large"]),
        h.make_node("Cast", ["large"], ["number"], to=T.INT64),
        h.make_node("Mul", ["number", "size"], ["length"]),
        h.make_node("ConstantOfShape", ["length"], ["filled"], value=h.make_tensor("v", T.FLOAT, [1], [1.0])),
        h.make_node("ReduceSum", ["filled"], ["sum"], keepdims=0),
        h.make_node("Mul", ["sum", "zero"], ["nothing"]),
        h.make_node("ReduceMax", ["X"], ["highest"], axes=[1], keepdims=0),
        h.make_node("Add", ["highest", "nothing"], ["score"]),
        h.make_node("Cast", ["score"], ["label"], to=T.INT64),
    ]
    weights = [("five", np.array(5, np.float32)), ("size", sizes), ("zero", np.array(0, np.float32))]
    made = model(nodes, [value("X", T.FLOAT, ["N", 2])], [value("label", T.INT64, ["N"])], weights)
    original = open_original(save(tmp_path, made))
    small, large = np.array([[1.0, 2.0]]), np.array([[1.0, 9.0]])
    assert original.answer(small).tolist() == [2]
    with pytest.raises(OriginalError, match="alloc"):
        original.answer(large)
    assert original.answer(small).tolist() == [2]


def test_the_process_of_a_model_is_bounded(tmp_path):
    original = open_original(save(tmp_path, linear()))
    before = child_processes()
    original.answer(ROWS)
    (child,) = child_processes() - before
    limits = Path(f"/proc/{child}/limits").read_text()
    found = {line[:26].strip(): line[26:].split()[0] for line in limits.splitlines()}
    size = (tmp_path / "model.onnx").stat().st_size
    assert found["Max address space"] == str(4 * 2**30 + 4 * size)
    assert found["Max file size"] == str(2**20)
    assert found["Max core file size"] == "0"
