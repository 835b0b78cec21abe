import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ectype.errors import BudgetError, OriginalError, SettingError
from ectype.original import CHUNK, Labels, Original, as_original, open_original
from ectype.queries import Queries
from ectype.space import Space

ROWS = np.arange(10.0).reshape(5, 2)


def original(answers, **options):
    return Original(lambda rows: answers, name="box", **options)


@pytest.mark.parametrize(
    ("answers", "classes"),
    [
        ([0, 1, 1, 0, 2], [0, 1, 2]),
        (["no", "yes", "yes", "no", "maybe"], ["maybe", "no", "yes"]),
        ([True, False, True, True, False], [False, True]),
        ([1.0, 2.0, 1.0, 1.0, 3.0], [1.0, 2.0, 3.0]),
        (np.array(["a", "b", "a", "a", "b"], dtype=object), ["a", "b"]),
        (pd.Series(["x", "y", "x", "x", "y"]), ["x", "y"]),
        ((-5, 7, -5, 7, 7), [-5, 7]),
        ([1, 2.0, 1, 1, 3], [1.0, 2.0, 3.0]),
        ([np.str_("a"), "b", "a", "a", "b"], ["a", "b"]),
    ],
)
def test_labels_of_any_type_are_mapped_and_mapped_back(answers, classes):
    found = original(answers).answer(ROWS)
    labels = Labels(found)
    codes = labels.encode(found)
    assert codes.dtype == np.int32
    back = labels.decode(codes)
    assert back.tolist() == list(answers)
    assert labels.classes.tolist() == classes
    assert type(back.tolist()[0]) is type(classes[0])


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([0, 1, float("nan"), 0, 1], "expected labels, found NaN in row 2"),
        (np.array([0, 1, np.nan, 0, 1]), "expected labels, found NaN in row 2"),
        (pd.Series(["a", "b", pd.NA, "a", "b"], dtype=object), "expected labels, found <NA> in row 2"),
        (np.ma.array([0, 1, 2, 3, 4], mask=[0, 0, 0, 1, 0]), "found a masked value in row 3"),
        ([1, "a", 1, "a", 1], "values of type int and str, where labels are all booleans, all numbers or all strings"),
        ([True, 1, False, 0, 1], "values of type bool and int"),
        ([b"a"] * 5, "values of type bytes"),
        ([date(2020, 1, 1)] * 5, "values of type date"),
        ([[1], [1, 2], [1], [1], [1]], "found rows of different lengths"),
        ([0, 1, None, 0, 1], "expected labels, found None in row 2"),
        ([0, 1, 1], "expected one label per row, 5 in all, found 3; check that it answers every row"),
        (1, "expected one label per row, 5 in all, found answers of shape ()"),
        ([[0.1, 0.9]] * 5, "found a table of shape (5, 2): scores or one-hot rows; say how"),
        ([0.1, 0.9, 0.3, 0.2, 0.7], "found fractions such as 0.1: scores or probabilities"),
        ([1j] * 5, "values of type complex"),
    ],
)
def test_answers_that_are_not_labels_are_refused(answers, message):
    with pytest.raises(OriginalError) as caught:
        original(answers).answer(ROWS)
    assert message in str(caught.value)
    assert "box's answers" in str(caught.value)


@pytest.mark.parametrize(
    ("answers", "found"),
    [([0, 1, 9, 0, 1], "found 9"), ([0, 1, -1, 0, 1], "found -1"), (["0", "1", "2", "0", "1"], "found '0'")],
)
def test_a_label_never_declared_is_refused(answers, found):
    box = original(answers, classes=[0, 1])
    with pytest.raises(OriginalError) as caught:
        box.declared.encode(box.answer(ROWS))
    assert "a label among [0, 1]" in str(caught.value)
    assert found in str(caught.value)
    assert "declare every class" in str(caught.value)


def test_a_column_of_labels_is_a_list_of_labels():
    assert original(np.array([["a"], ["b"], ["a"], ["a"], ["b"]])).answer(ROWS).tolist() == list("abaab")


def test_an_original_keeps_nothing_of_what_it_answered():
    box = original([1, 2, 3, 1, 2])
    box.answer(ROWS)
    assert box.declared is None


def test_an_original_that_raises_says_what_it_was_given():
    def broken(rows):
        raise RuntimeError("boom")

    with pytest.raises(
        OriginalError, match="broken: expected labels for 5 rows of 2 columns, found RuntimeError: boom"
    ):
        as_original(broken).answer(ROWS)


def test_estimators_declare_their_classes_and_width(rng):
    model = LogisticRegression().fit(rng.normal(size=(30, 2)), ["a", "b"] * 15)
    box = as_original(model)
    assert box.declared.classes.tolist() == ["a", "b"]
    assert (box.d, box.name) == (2, "LogisticRegression")
    assert as_original(box) is box
    assert as_original(box, classes=["a", "b", "c"]).declared.classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("model", [3, "model", None, LogisticRegression])
def test_what_cannot_be_an_original_is_refused(model):
    with pytest.raises(SettingError, match="a fitted estimator or a function"):
        as_original(model)


def test_several_outputs_at_once_are_refused(rng):
    model = DecisionTreeClassifier().fit(rng.normal(size=(20, 2)), rng.integers(0, 2, (20, 2)))
    with pytest.raises(SettingError, match="copy each output by itself"):
        as_original(model)


@pytest.mark.parametrize("classes", [[1, "a"], [None, 1], [object()], 5, [], [[1, 2], [3, 4]], [b"x"]])
def test_classes_that_cannot_be_labels_are_refused(classes):
    with pytest.raises(SettingError, match="classes: expected"):
        Labels(classes)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nocolon", "package.module:name"),
        ("a b:c", "package.module:name"),
        ("ectype.nowhere:x", "No module named"),
        ("ectype.toy_problems:nothing", "something called nothing in ectype.toy_problems"),
        (5, "package.module:name"),
    ],
)
def test_a_spec_that_names_nothing(spec, message):
    with pytest.raises(SettingError, match=message):
        open_original(spec)


def test_the_budget_is_hard_and_counted_by_row():
    asked = []
    box = Original(lambda rows: asked.append(len(rows)) or np.zeros(len(rows), int))
    queries = Queries(box, Space.normal(2), {"training": CHUNK + 100})
    rng = np.random.default_rng(0)
    assert sum(len(codes) for _, codes in queries.fresh("training", CHUNK + 50, rng)) == CHUNK + 50
    assert sum(asked) == CHUNK + 50
    with pytest.raises(BudgetError, match=f"at most {CHUNK + 100} queries, found {CHUNK + 50} made and 51 more"):
        next(queries.fresh("training", 51, rng))
    assert (queries.made["training"], sum(asked)) == (CHUNK + 50, CHUNK + 50)  # refused before anything was sent


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda labels: np.array(labels, object)])
def test_a_label_of_many_characters_is_refused(kind):
    box = Original(lambda rows: kind(["good"] * (len(rows) - 1) + ["x" * 1001]))
    with pytest.raises(OriginalError, match="a text of 1001 characters in row 2, where labels have at most 1000"):
        box.answer(np.zeros((3, 1)))
    assert Original(lambda rows: kind(["x" * 1000] * 3)).answer(np.zeros((3, 1))).dtype.itemsize == 4000


def test_a_label_of_5_mb_takes_no_more_memory_than_it_has():
    """An array of NumPy has room for the longest label in every row: it took 5 GB."""
    long = "x" * 5_000_000
    box = Original(lambda rows: ["good"] * (len(rows) - 1) + [long])
    tracemalloc.start()
    try:
        with pytest.raises(OriginalError, match="5000000 characters"):
            box.answer(np.zeros((250, 1)))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(SettingError, match="1001 characters"):
        Original(len, classes=["good", "x" * 1001])
