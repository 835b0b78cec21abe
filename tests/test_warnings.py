"""Warnings point at the line that a user wrote, through whatever lies between it and what is warned of."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

import ectype as ec
from ectype.errors import EctypeWarning
from ectype.plan.settings import Settings
from ectype.runs.api import copy_steps

pytestmark = pytest.mark.usefixtures("small_lessons")
SPACE = ec.Space.normal(2)
LITTLE = {"budget": 60, "certificate_n": 60, "repeat": 0}


def always(rows):
    return np.zeros(len(rows), int)


def caught_from(call):
    """The warnings of a call, each with the text of the line that it points at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    ours = [one for one in caught if one.category is EctypeWarning]
    assert ours
    return [(one.filename, Path(one.filename).read_text().splitlines()[one.lineno - 1].strip()) for one in ours]


def copied():
    ec.copy_classifier(always, SPACE, preset="fast", **LITTLE)


def stepped():
    for _ in copy_steps(always, SPACE, Settings(preset="fast", **LITTLE)):
        pass


def fitted():
    ec.SequentialCopy(always, space=SPACE, **LITTLE).fit(np.zeros((5, 2)))


def within_another_library():
    copier = ec.SequentialCopy(DecisionTreeClassifier(), space=ec.Space.uniform(5, 6, 2), **LITTLE)
    X = np.random.default_rng(0).normal(size=(60, 2))
    cross_val_score(clone(copier), X, (X[:, 0] > 0).astype(int), cv=2, error_score="raise")


def predicted():
    frame = pd.DataFrame({"city": ["Bonn", "Nice"] * 20, "age": np.arange(40)})
    copy = ec.copy_classifier(lambda rows: rows["city"] == "Bonn", ec.Space.from_data(frame), preset="fast", **LITTLE)
    copy.copy.predict(frame.assign(city="Rome"))


def in_a_thread():
    thread = threading.Thread(target=copied)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (copied, "ec.copy_classifier(always"),
        (stepped, "for _ in copy_steps(always"),
        (fitted, "ec.SequentialCopy(always"),
        (within_another_library, "cross_val_score("),
        (predicted, "copy.copy.predict(frame"),
        (in_a_thread, "ec.copy_classifier(always"),
    ],
)
def test_a_warning_points_at_the_line_of_the_user(call, line):
    for filename, text in caught_from(call):
        assert filename == __file__
        assert text.startswith(line)
