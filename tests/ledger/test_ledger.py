import contextlib
import os
import sqlite3
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ectype import ledger
from ectype.errors import DirectoryError, EctypeError, OriginalError
from ectype.ledger import Ledger, Purpose
from ectype.original import Original
from ectype.space import RowIndex, Space, first_occurrences, row_hashes
from problems import ask_through

LINE = Space.normal(2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def counting(asked):
    return Original(lambda rows: asked.append(rows) or np.where(rows[:, 0] > 0, "yes", "no"), request_rows=30)


def test_identical_rows_are_never_asked_twice(path, rng):
    asked, rows = [], rng.normal(size=(100, 2))
    doubled = np.concatenate([rows, rows[:50], [[0.0, 1.0], [-0.0, 1.0]]])
    with Ledger(path, {"seed": 1}, LINE) as book:
        first = ask_through(book, counting(asked), LINE, doubled, "training")
        assert sum(map(len, asked)) == 102
        np.testing.assert_array_equal(first, np.where(doubled[:, 0] > 0, "yes", "no"))
        np.testing.assert_array_equal(
            ask_through(book, counting(asked), LINE, rows[::-1], "certificate"), first[:100][::-1]
        )
        assert sum(map(len, asked)) == 102
    with Ledger(path, {"seed": 1}, LINE) as book:
        np.testing.assert_array_equal(ask_through(book, counting(asked), LINE, rows, "training"), first[:100])
        assert sum(map(len, asked)) == 102
        for _ in range(2):
            ask_through(book, counting(asked), LINE, rows[:5], Purpose.REPEAT)
            assert sum(map(len, asked)) == 107
    found = ledger.summarise_ledger(path)
    assert (found.asked, found.answered, found.maybe_paid, found.saved, found.repeated) == (107, 107, 0, 255, 5)
    assert found.labels == {label: int((first == label)[[*range(100), 150, 151]].sum()) for label in ("yes", "no")}
    table = ledger.query_table(path, ledger.space_of(path))
    assert len(table) == 107
    assert (table["label"] == np.where(table["x0"] > 0, "yes", "no")).all()


def test_discrete_rows_with_equal_keys_are_told_apart(path):
    grid = np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), axis=-1).reshape(-1, 2)
    box = Original(lambda rows: (rows[:, 0] * 40 + rows[:, 1]).astype(int))
    with Ledger(path, {}, LINE) as book:
        for _ in range(2):
            np.testing.assert_array_equal(ask_through(book, box, LINE, grid, "training"), grid[:, 0] * 40 + grid[:, 1])
    assert ledger.summarise_ledger(path).asked == 1600
    assert len(np.unique(row_hashes(grid))) == 1600


@pytest.mark.parametrize("shift", [0, 8, 44])
def test_rows_that_are_the_same_are_found_whatever_place_their_keys_come_to(rng, shift):
    twice = 0
    for n in (0, 1, 2, 3, 9, 40, 500):
        for _ in range(30):
            # Without a shift keys differ in their last bits only, and all come to the same place.
            keys = rng.integers(3 * n * n + 1, size=n).astype(np.uint64) << np.uint64(shift)
            rows, seen = keys.astype(float)[:, None], keys.tolist()
            assert first_occurrences(rows, keys).tolist() == [seen.index(key) for key in seen]
            twice += len(set(seen)) < n
    assert 0 < twice < 7 * 30


def test_rows_with_gaps_are_known_again(path):
    asked, rows = [], np.array([[np.nan, 1.0], [np.nan, 2.0], [np.nan, 1.0]])
    with Ledger(path, {}, LINE) as book:
        box = Original(lambda rows: asked.append(len(rows)) or (rows[:, 1] > 1).astype(int))
        assert ask_through(book, box, LINE, rows, "training").tolist() == [0, 1, 0]
    assert asked == [2]


def test_rows_in_any_order_of_memory_are_kept_as_they_are(path, rng):
    asked, rows = [], np.asfortranarray(rng.normal(size=(70, 2)))
    with Ledger(path, {}, LINE) as book:
        ask_through(book, counting(asked), LINE, rows, "training")
    np.testing.assert_array_equal(ledger.query_table(path, LINE)[["x0", "x1"]], rows)
    np.testing.assert_array_equal(np.concatenate(asked), rows)


def test_what_was_answered_before_a_failure_is_kept(path, rng):
    asked, rows = [], rng.normal(size=(100, 2))

    def failing(part):
        if len(asked) == 2:
            raise RuntimeError("down")
        asked.append(part)
        return part[:, 0] > 0

    with Ledger(path, {}, LINE) as book, pytest.raises(OriginalError, match="down"):
        ask_through(book, Original(failing, request_rows=30), LINE, rows, "training")
    found = ledger.summarise_ledger(path)
    assert (found.answered, found.asked >= 90) == (60, True)
    again = []
    with Ledger(path, {}, LINE) as book:
        ask_through(book, Original(lambda part: again.append(part) or part[:, 0] > 0), LINE, rows, "training")
    np.testing.assert_array_equal(np.concatenate(again), rows[60:])


def test_an_announcement_is_on_disk_before_the_request_is_sent(path, rng):
    seen = []

    def predict(rows):
        other = sqlite3.connect(path)
        stored = b"".join(
            blob for (blob,) in other.execute("SELECT rows FROM requests WHERE id NOT IN (SELECT request FROM answers)")
        )
        other.close()
        seen.append(rows.tobytes() in stored)
        return rows[:, 0] > 0

    with Ledger(path, {}, LINE) as book:
        ask_through(book, Original(predict, request_rows=10), LINE, rng.normal(size=(95, 2)), "training")
    assert seen == [True] * 10


def test_labels_keep_their_type_and_must_be_of_one(path):
    answers = iter([[1, 0], [2, 1], ["a", "b"]])
    box = Original(lambda rows: next(answers))
    rows = np.arange(12.0).reshape(6, 2)
    with Ledger(path, {}, LINE) as book:
        assert ask_through(book, box, LINE, rows[:2], "training").tolist() == [1, 0]
        assert ask_through(book, box, LINE, rows[2:4], "training").tolist() == [2, 1]
        with pytest.raises(OriginalError, match="labels of one type"):
            ask_through(book, box, LINE, rows[4:], "training")
    with Ledger(path, {}, LINE) as book:
        assert ask_through(book, box, LINE, rows[:4], "training").tolist() == [1, 0, 2, 1]


def test_rounds_are_kept(path):
    theta = np.arange(5, dtype=np.float32)
    with Ledger(path, {}, LINE) as book:
        assert book.round(0) is None
        book.keep_round(0, theta, {"risk": 0.5})
    with Ledger(path, {}, LINE) as book:
        found, about = book.round(0)
        np.testing.assert_array_equal(found, theta)
        assert about == {"risk": 0.5}
        assert book.round(1) is None


def test_a_full_disk_is_an_error_and_no_wrong_answer(path, rng):
    with Ledger(path, {}, LINE) as book:
        book.writer._connection.execute("PRAGMA max_page_count = 12")
        with pytest.raises(DirectoryError, match="full"):
            ask_through(book, counting([]), LINE, rng.normal(size=(100_000, 2)), "training")
    found = ledger.summarise_ledger(path)
    assert 0 < found.answered <= found.asked < 100_000


def test_answers_from_elsewhere_are_recorded_each_time_they_came(path, rng):
    rows, labels = rng.normal(size=(5, 2)), np.array(["yes", "no", "yes", "no", "no"])
    with Ledger(path, {}, LINE) as book:
        assert book.begun is None
        assert book.record(rows, labels, "traffic") == 0
        first = book.begun
        assert book.record(rows[[0, 0, 1]], labels[[0, 0, 1]], "traffic") == 3
    with Ledger(path, {}, LINE) as book:
        assert (book.counts.answered, book.begun) == (8, first)
        again = np.concatenate([rows[:1], [[9.0, 9.0], [9.0, 9.0]]])
        assert book.record(again, np.array(["yes", "maybe", "maybe"]), "traffic") == 2
        with pytest.raises(OriginalError, match="one type"):
            book.record(rows, np.arange(5), "traffic")
        assert ask_through(book, counting([]), LINE, rows, "training").tolist() == labels.tolist()
    kept, said = ledger.read_answers(path)["traffic"]
    np.testing.assert_array_equal(kept, np.concatenate([rows, rows[[0, 0, 1]], again]))
    assert said.labels.tolist() == ["yes", "no", "yes", "no", "no", "yes", "yes", "no", "yes", "maybe", "maybe"]
    found = ledger.summarise_ledger(path)
    assert (found.requests, found.answered, found.maybe_paid, found.lost) == (3, 11, 0, 0)


def test_a_ledger_goes_on_recording_once_there_is_room_again(path, rng):
    """What could not be written is not there, and neither is the label that only it had."""
    rows = rng.normal(size=(50_000, 2))
    with Ledger(path, {}, LINE) as book:
        book.record(rows[:10], np.full(10, "yes"), "traffic")
        book.writer._connection.execute("PRAGMA max_page_count = 20")
        for _ in range(2):
            with pytest.raises(DirectoryError, match="full"):
                book.record(rows, np.full(len(rows), "no"), "traffic")
            book.mend()
        book.writer._connection.execute("PRAGMA max_page_count = 10000")
        book.record(rows[:3], np.full(3, "maybe"), "traffic")
        book.record(rows, np.full(len(rows), "no"), "traffic")
    kept, said = ledger.read_answers(path)["traffic"]
    np.testing.assert_array_equal(kept, np.concatenate([rows[:10], rows[:3], rows]))
    assert said.labels.tolist() == ["yes"] * 10 + ["maybe"] * 3 + ["no"] * len(rows)


def test_a_ledger_that_was_killed_before_it_was_begun_is_none_yet(path):
    sqlite3.connect(path).close()
    path.touch()
    assert ledger.settings_of(path) is None
    with Ledger(path, {"seed": 1}, LINE):
        assert ledger.settings_of(path) == {"seed": 1}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200), st.integers(0, 2**31), st.booleans())
def test_a_damaged_ledger_is_a_typed_error_or_a_ledger(tmp_path, junk, at, cut):
    path = tmp_path / f"{os.urandom(6).hex()}.sqlite"
    with Ledger(path, {"seed": 1}, LINE) as book:
        ask_through(book, counting([]), LINE, np.random.default_rng(0).normal(size=(50, 2)), "training")
    content = bytearray(path.read_bytes())
    at %= len(content)
    content[at : at + len(junk)] = junk
    path.write_bytes(bytes(content[:at]) if cut else bytes(content))
    for read in (ledger.summarise_ledger, ledger.settings_of, lambda p: ledger.query_table(p, LINE)):
        with contextlib.suppress(EctypeError):
            read(path)
    with contextlib.suppress(EctypeError), Ledger(path, {"seed": 1}, LINE) as book:
        answers = ask_through(book, counting([]), LINE, np.random.default_rng(1).normal(size=(20, 2)), "training")
        assert set(answers) <= {"yes", "no"}


def test_an_index_finds_every_key_in_the_first_request_that_had_it(rng):
    index, first = RowIndex(), {}
    for number in range(1, 200):
        keys = rng.integers(0, 3000, 20).astype(np.uint64)
        index.add(keys, number)
        for key in keys.tolist():
            first.setdefault(key, number)
        where, numbers = index.find(np.arange(3000, dtype=np.uint64))
        assert dict(zip(where.tolist(), numbers.tolist(), strict=True)) == first
    lengths = [len(keys) for keys, _ in index._runs]
    assert sum(lengths) == 199 * 20
    assert all(longer >= 2 * shorter for longer, shorter in pairwise(lengths))
