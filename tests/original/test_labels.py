"""Labels that differ stay apart: each comes back as it was, or an error says what to do, by every route."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import TensorProto, helper
from pytest_httpserver import HTTPServer
from werkzeug import Response

import ectype as ec
from ectype.errors import EctypeError, OriginalError, SettingError
from ectype.ledger import Ledger
from ectype.original import Labels, Original, as_original, open_original
from ectype.queries import Queries

pytestmark = pytest.mark.usefixtures("small_lessons")

LINE, ROWS = ec.Space.normal(1), np.array([[-1.0], [1.0]])
LITTLE = {"preset": "fast", "budget": 60, "certificate_n": 60, "repeat": 0}
# Two labels that something on the way may take for one, and that nothing takes for one now.
WORDS = {
    "spaces at the ends": (" a", "a"),
    "a space": ("", " "),
    "forms of unicode": ("\u00e9", "e\u0301"),
    "letters that look alike": ("a", "\u0430"),
    "zeros in front": ("01", "1"),
    "digits": ("1", "1.0"),
    "words for missing values": ("NA", "None"),
    "no number": ("nan", "NaN"),
    "quotes and commas": ('a"b', "a,b"),
    "lines": ("a\nb", "a\rb"),
    "very long": ("x" * 1000, "x" * 999),
    "booleans": ("true", "True"),
}
NUMBERS = {
    "beyond 2**53": (2**53, 2**53 + 1),
    "the largest": (2**63 - 1, -(2**63)),
    "unsigned": (2**64 - 1, 2**64 - 2),
    "booleans": (False, True),
    "fractions": (0.1, 0.1 + 2**-50),
}
REFUSED = {
    "NUL at the end": ("a\0", "a"),
    "NUL within": ("a\0b", "ab"),
    "half a surrogate pair": ("\ud800", "\ud801"),
    "too long": ("x" * 1001, "x" * 1002),
    "signed and unsigned": (2**63, -1),
    "beyond 2**64": (2**70, 2**70 + 1),
    "far beyond": (10**5000, 1),
    "a fraction beside": (2**53 + 1, 0.0),
    "words and numbers": ("1", 1),
    "booleans and numbers": (True, 0),
    "infinite": (float("inf"), 1.0),
}
KINDS = {
    "list": list,
    "rows of one": lambda answers: [[answer] for answer in answers],
    "objects": lambda answers: np.array([*answers, None], object)[:-1],
    "series": lambda answers: pd.Series(answers, dtype=object),
}


def cases(*groups):
    named = {name: pair for group in groups for name, pair in group.items()}
    return pytest.mark.parametrize("pair", named.values(), ids=named)


def deciding(pair, kind=list):
    """An original that answers the first of two labels below zero, and the other above."""
    return lambda rows: kind([pair[int(row > 0)] for row in np.asarray(rows, float)[:, 0]])


def exactly(found):
    return [(type(label), label) for label in np.asarray(found).tolist()]


def wanted(pair):
    return [(type(label), label) for label in pair]


def kept_or_refused(ask, pair):
    """Whether both labels came back; else it is an error of ours, and no other label."""
    try:
        found = ask()
    except EctypeError:
        return False
    assert exactly(found) == wanted(pair)
    return True


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@cases(WORDS, NUMBERS)
def test_labels_come_back_as_they_are(pair, kind):
    classes = pair if isinstance(pair[0], float) else None  # or fractions were taken for scores
    found = as_original(deciding(pair, kind), classes).answer(ROWS)
    assert exactly(found) == wanted(pair)
    assert exactly(Labels(pair).decode(Labels(pair).encode(found))) == wanted(pair)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@cases(REFUSED)
def test_labels_that_cannot_be_kept_apart_are_refused(pair, kind):
    with pytest.raises(OriginalError, match=r"expected labels, found .*; see what the original returns for these rows"):
        as_original(deciding(pair, kind)).answer(ROWS)
    with pytest.raises(SettingError, match="classes: expected labels of one type"):
        as_original(deciding(pair, kind), pair)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["a\0", "a"], r"'a\\x00' in row 0: a text with a NUL character, which arrays and files drop or refuse"),
        (
            [1, 2**70],
            r"a whole number of 71 bits in row 1, where labels are from -2\*\*63 to 2\*\*63 - 1, or from 0 to",
        ),
        ([0.5, 2**53 + 1], r"a whole number of 54 bits in row 1, where labels are at most 2\*\*53 beside fractions"),
        (np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]"), "values of type datetime64"),
        ([np.datetime64("2026-01-01", "ns")] * 2, "values of type datetime64"),
        (np.array([b"a", b"b"]), r"values of type \|S1"),
        (np.array([1, np.longdouble(1) + np.finfo(np.longdouble).eps]), "more digits than 64 bits have"),
    ],
)
def test_what_is_wrong_with_a_label_is_said(answers, message):
    with pytest.raises(OriginalError, match=message):
        as_original(lambda rows: answers).answer(ROWS)


def test_one_text_is_no_list_of_classes():
    with pytest.raises(SettingError, match="classes: expected a list of labels, found 'no,yes'"):
        ec.copy_classifier(deciding(("no", "yes")), LINE, classes="no,yes", **LITTLE)


@cases(WORDS, NUMBERS, REFUSED)
def test_labels_of_several_requests_stay_apart(pair, tmp_path):
    """Each request has one label alone, with which nothing is wrong before the next."""

    def asked(ledger=None):
        box = Original(deciding(pair), pair if pair in NUMBERS.values() else None, request_rows=1)
        return Queries(box, LINE, {"training": 2}, ledger).query_labels("training", ROWS)

    fine = kept_or_refused(asked, pair)
    assert fine == (pair not in REFUSED.values())
    for _ in range(2):  # and once more, from what was written
        with Ledger(tmp_path / "ledger.sqlite", {}, LINE) as ledger:
            assert kept_or_refused(lambda ledger=ledger: asked(ledger), pair) == fine


@cases(WORDS, NUMBERS, {name: REFUSED[name] for name in REFUSED if name != "far beyond"})  # longer than Python reads
def test_labels_out_of_json_stay_apart(pair):
    with HTTPServer(host="127.0.0.1") as server:
        server.expect_request("/score").respond_with_data(json.dumps({"predictions": pair}))
        for classes in (None, pair):
            kept_or_refused(
                lambda classes=classes: open_original(
                    server.url_for("/score"), classes, protocol="instances", attempts=1
                ).answer(ROWS),
                pair,
            )


@cases(WORDS, {name: REFUSED[name] for name in ("NUL at the end", "NUL within", "too long")})
def test_labels_of_lines_stay_apart(pair, tmp_path):
    """As a program prints them, as an endpoint writes them in CSV, and in a stored table."""
    program, table = tmp_path / "program.py", tmp_path / "answers.csv"
    program.write_text(f"import sys; sys.stdin.read(); sys.stdout.buffer.write({chr(10).join(pair).encode()!r})")
    pd.DataFrame({"x": [1, 2], "label": pair}).to_csv(table, index=False)
    body = pd.DataFrame({"label": pair}).to_csv(index=False, header=False)
    with HTTPServer(host="127.0.0.1") as server:
        server.expect_request("/score").respond_with_handler(lambda request: Response(body))
        for classes in (None, pair):
            for spec, options in (
                (f"cmd:{sys.executable} {program}", {}),
                (server.url_for("/score"), {"protocol": "csv", "attempts": 1}),
            ):
                kept_or_refused(
                    lambda spec=spec, options=options, classes=classes: open_original(spec, classes, **options).answer(
                        ROWS
                    ),
                    pair,
                )
            kept_or_refused(lambda classes=classes: open_original(str(table), classes).stored[1], pair)
        if pair[0].strip() and pair[0].isprintable() and len(pair[0]) < 1000:  # those of lines that can be kept are
            assert open_original(f"cmd:{sys.executable} {program}", pair).answer(ROWS).tolist() == [*pair]
            assert open_original(str(table), pair).stored[1].tolist() == [*pair]


def test_stored_answers_are_what_their_column_says(tmp_path):
    def stored(*labels, classes=None):
        pd.DataFrame({"x": range(len(labels)), "label": labels}).to_csv(tmp_path / "answers.csv", index=False)
        return open_original(str(tmp_path / "answers.csv"), classes).stored[1].tolist()

    assert stored("0", "1") == [0, 1]
    assert stored("TRUE", "false") == [True, False]
    assert stored("0.5", "1e3") == [0.5, 1000.0]
    assert stored("01", "2") == ["01", "2"]  # as numbers they would lose the zero
    assert stored("1", "1.0") == ["1", "1.0"]  # as numbers they would be one
    assert stored("1", "0", classes=["0", "1"]) == ["1", "0"]
    assert stored("1", "0", classes=[False, True]) == [True, False]
    assert stored("NA", "EU", classes=["EU", "NA"]) == ["NA", "EU"]
    with pytest.raises(
        SettingError, match="found 'NA' in row 1, which may mean that none is known; remove such rows; or"
    ):
        stored("EU", "NA")
    with pytest.raises(SettingError, match="a number in column 'label', found 'x' in row 1; it is of another type"):
        stored("1", "x", classes=[0, 1])


def test_labels_of_onnx_stay_apart(tmp_path):
    for kind, pair in ((TensorProto.STRING, ("a", "a ")), (TensorProto.INT64, (2**53, 2**53 + 1))):
        values = helper.make_tensor("labels", kind, [2], [p.encode() if isinstance(p, str) else p for p in pair])
        nodes = [
            helper.make_node("Greater", ["x", "zero"], ["above"]),
            helper.make_node("Cast", ["above"], ["at"], to=TensorProto.INT64),
            helper.make_node("Gather", ["labels", "at"], ["label"]),
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [None, 1])],
            [helper.make_tensor_value_info("label", kind, [None, 1])],
            [values, helper.make_tensor("zero", TensorProto.DOUBLE, [], [0.0])],
        )
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx"
        )
        assert open_original(str(tmp_path / "m.onnx")).answer(ROWS).tolist() == [*pair]


@cases({name: WORDS[name] for name in ("forms of unicode", "zeros in front", "quotes and commas")}, NUMBERS)
def test_a_copy_answers_the_labels_of_its_original(pair, tmp_path):
    """Its own answers, those of a fresh process, and those of the files that it is exported to."""
    copied = ec.copy_classifier(deciding(pair), LINE, classes=pair, out=tmp_path / "run", **LITTLE)
    assert copied.certificate.estimate > 0.8
    assert exactly(copied.copy.predict(3 * ROWS)) == wanted(pair)
    assert exactly(ec.load(tmp_path / "run").copy.predict(3 * ROWS)) == wanted(pair)
    code = "import ectype as ec; print(ascii(ec.load('run').copy.predict([[-3.0], [3.0]]).tolist()))"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == ascii([*pair])
    if pair != NUMBERS["fractions"]:  # which are read as scores, unless one says otherwise
        exported = open_original(str(ec.export(copied.copy, tmp_path / "copy.onnx").path))
        assert exported.answer(3 * ROWS).tolist() == [*pair]
