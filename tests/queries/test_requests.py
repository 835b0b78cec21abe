import threading

import numpy as np
import pandas as pd
import pytest

from ectype.errors import OriginalError, OutageError
from ectype.original import Original
from ectype.queries import Queries
from ectype.space import Space

ROWS = np.arange(100.0).reshape(100, 1)
LINE = Space.uniform(0, 100, 1)


def asked(predict, **options):
    queries = Queries(Original(predict, name="box", **options), LINE, {"training": 1000})
    return queries.query_labels("training", ROWS)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_requests_are_of_the_size_that_the_original_takes(concurrency):
    sizes = []
    answers = asked(lambda rows: sizes.append(len(rows)) or rows[:, 0] > 50, request_rows=7, concurrency=concurrency)
    assert sorted(sizes) == [2] + [7] * 14
    assert answers.tolist() == (ROWS[:, 0] > 50).tolist()


def test_as_many_requests_are_under_way_as_the_original_allows():
    together = threading.Barrier(4, timeout=30)  # breaks unless four come at once

    def predict(rows):
        together.wait()
        return rows[:, 0] > 50

    assert asked(predict, request_rows=25, concurrency=4).sum() == 49


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("poison", [0, 37, 99])
def test_the_row_to_blame_is_found_and_named(concurrency, poison):
    sizes = []

    def predict(rows):
        sizes.append(len(rows))
        if poison in rows[:, 0]:
            raise RuntimeError("cannot take this")
        return rows[:, 0] > 50

    with pytest.raises(OriginalError, match=rf"cannot take this, for the row \[{poison}.0\] alone; keep such rows out"):
        asked(predict, request_rows=20, concurrency=concurrency)
    assert len(sizes) < 30


def test_a_row_of_a_frame_is_named_by_its_columns():
    def predict(rows):
        if (rows["city"] == "Nice").any():
            raise RuntimeError("no such city")
        return [1] * len(rows)

    frame = pd.DataFrame({"city": ["Bonn"] * 9 + ["Nice"] * 1})
    space = Space.from_data(frame, floor=1)
    queries = Queries(Original(predict, name="box"), space, {"training": 10})
    with pytest.raises(OriginalError, match=r"no such city, for the row \{'city': 'Nice'\} alone"):
        queries.query_labels("training", space.read(frame, "test"))


def test_a_failure_of_all_rows_is_the_originals_and_no_rows():
    calls = []
    with pytest.raises(OriginalError, match="labels for 100 rows of 1 columns, found RuntimeError: out of order"):
        asked(lambda rows: calls.append(1) or (_ for _ in ()).throw(RuntimeError("out of order")))
    assert len(calls) < 20


def test_a_failure_that_passes_is_none():
    failures = iter([True, False])

    def predict(rows):
        if next(failures, False):
            raise RuntimeError("once")
        return rows[:, 0] > 50

    assert asked(predict, request_rows=50).sum() == 49


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_outage_is_not_searched_for_a_row(concurrency):
    calls = []

    def predict(rows):
        calls.append(len(rows))
        raise OutageError("box", "an answer", "nothing")

    with pytest.raises(OutageError):
        asked(predict, request_rows=10, concurrency=concurrency)
    assert len(calls) <= concurrency
