"""Originals that are asked for their probabilities too."""

import json
import sys

import numpy as np
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

import ectype as ec
from ectype.errors import OriginalError, SettingError
from ectype.original import Labels, as_original, open_original
from ectype.original.scores import probabilities, refuse_other_labels

ROWS = np.array([[-2.0], [0.5], [3.0]])
CLASSES = Labels(["no", "yes"])


class Sigmoid:
    """The smallest classifier with probabilities."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, float)[:, 0]))
        return np.stack([1 - p, p], axis=1)

    def predict(self, rows):
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


def test_an_original_is_asked_for_labels_alone_unless_it_is_said():
    plain = as_original(Sigmoid())
    assert plain.query(ROWS).scores is None
    said = plain.with_scores().query(ROWS)
    assert said.labels.tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(said.scores, Sigmoid().predict_proba(ROWS), rtol=1e-6)
    assert plain.query(ROWS).scores is None  # the same object was not changed


@pytest.mark.parametrize("original", [lambda rows: rows[:, 0] > 0, ec.Original(lambda rows: ["a"] * len(rows), ["a"])])
def test_what_answers_labels_alone_is_refused(original):
    with pytest.raises(SettingError, match="scores: expected an original with a probability for each class"):
        as_original(original).with_scores()


def test_classes_that_were_renamed_have_no_scores():
    with pytest.raises(SettingError, match="scores"):
        as_original(Sigmoid(), classes=["no", "yes", "perhaps"]).with_scores()


@pytest.mark.parametrize(
    ("scores", "expected", "found"),
    [
        ([[0.5, np.nan], [0.5, 0.5]], "finite numbers", "nan"),
        ([[0.5, np.inf], [0.5, 0.5]], "finite numbers", "inf"),
        ([[0.5, 0.5], [0.9, 0.9]], "probabilities, which sum to one", r"\[0.9, 0.9\] in row 1"),
        ([[-0.5, 1.5], [0.5, 0.5]], "probabilities, which sum to one", "-0.5"),
        ([[1.0], [1.0]], "a score for each of 2 classes, 2 rows", r"shape \(2, 1\)"),
        ([[0.2, 0.3, 0.5]], "a score for each of 2 classes, 2 rows", r"shape \(1, 3\)"),
        ([["a", "b"], ["c", "d"]], "a table of numbers", "could not convert"),
    ],
)
def test_scores_that_are_none_say_what_was_expected_and_found(scores, expected, found):
    with pytest.raises(OriginalError, match=f"box's scores: expected {expected}, found.*{found}"):
        probabilities(scores, 2, CLASSES, "box")


def test_rounded_probabilities_are_made_to_sum_to_one():
    found = probabilities([[0.333, 0.668]], 1, CLASSES, "box")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


def test_where_two_scores_are_equal_either_may_be_the_label():
    tied = np.array([[0.5, 0.5], [0.5, 0.5]])
    refuse_other_labels(np.array(["no", "yes"]), tied, CLASSES)
    with pytest.raises(SettingError, match="in 1 of 2 rows"):
        refuse_other_labels(np.array(["no", "yes"]), np.array([[0.5, 0.5], [0.6, 0.4]]), CLASSES)


@pytest.mark.parametrize("classes", [["yes", "no"], ["no", "yes"]])
def test_a_function_of_scores_is_read_in_the_order_of_its_classes(classes, monkeypatch):
    order = [["no", "yes"].index(name) for name in classes]
    monkeypatch.setattr(sys.modules[__name__], "outputs", lambda rows: Sigmoid().predict_proba(rows)[:, order], False)
    original = open_original(f"{__name__}:outputs", classes, decode="scores")
    said = original.query(ROWS)
    assert said.labels.tolist() == original.answer(ROWS).tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(said.scores, Sigmoid().predict_proba(ROWS), rtol=1e-6)


def test_scores_need_the_names_of_their_classes():
    with pytest.raises(SettingError, match="classes: expected the labels in the order of the scores, found none"):
        open_original("http://localhost:1", protocol="instances", decode="scores")


def test_an_endpoint_of_scores_gives_both_in_one_request(httpserver: HTTPServer):
    asked = []

    def answer(request):
        rows = np.array(request.json["instances"], float)
        asked.append(len(rows))
        return Response(json.dumps({"predictions": Sigmoid().predict_proba(rows).tolist()}))

    httpserver.expect_request("/v1").respond_with_handler(answer)
    url = httpserver.url_for("/v1")
    said = open_original(url, ["no", "yes"], protocol="instances", decode="scores").query(ROWS)
    assert said.labels.tolist() == ["no", "yes", "yes"]
    np.testing.assert_allclose(said.scores, Sigmoid().predict_proba(ROWS), rtol=1e-6)
    assert sum(asked) == 3


def test_a_program_may_print_scores():
    code = (
        "import sys, math; next(sys.stdin)\n"
        "for line in sys.stdin:\n"
        "    p = 1 / (1 + math.exp(-float(line)))\n"
        "    print(f'{1 - p!r},{p!r}')"
    )
    original = open_original(
        f"cmd:{sys.executable} -c '{code.replace(chr(39), chr(34))}'", ["no", "yes"], decode="scores"
    )
    np.testing.assert_allclose(original.query(ROWS).scores, Sigmoid().predict_proba(ROWS), rtol=1e-6)


def test_scores_come_in_the_order_of_the_classes_whatever_that_is():
    class Backwards:
        classes_ = np.array(["yes", "no"])

        def predict(self, rows):
            return np.where(rows[:, 0] > 0, "yes", "no")

        def predict_proba(self, rows):
            return np.where(rows[:, :1] > 0, [[0.8, 0.2]], [[0.3, 0.7]])

    said = as_original(Backwards()).with_scores().query(np.array([[1.0], [-1.0]]))
    assert said.labels.tolist() == ["yes", "no"]
    assert np.allclose(said.scores, [[0.2, 0.8], [0.7, 0.3]])
