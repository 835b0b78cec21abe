"""The results of a sweep: what is finished stays, whatever happens to the process; other settings are refused."""

import csv
import json
import subprocess
import sys

import pytest

from ectype.errors import DirectoryError
from ectype_paper.store import NAME, open_store, read_store, unit_of
from ectype_paper.unit_table import export
from ectype_paper.units import Unit

SETTINGS = {"iterations": 3, "epochs": 10}


def record(problem="iris", delta=1e-6, repetition=0, method="sequential", **more):
    curves = {"accuracies": [0.5, 0.9], "fidelities": [0.5, 0.95], "kept": [100, 150], "rhos": [0.5, 0.1]}
    unit = {"problem": problem, "space": "normal", "method": method, "delta": delta, "repetition": repetition}
    unit |= {"memory": "automatic", "points": None}
    return {**unit, "accuracy": 0.9, **curves, "data": "abc", "versions": {"numpy": "2"}, **more}


def fill(folder, n, settings=SETTINGS):
    with open_store(folder, settings) as store:
        for repetition in range(len(store.records), n):
            store.add(record(repetition=repetition))


def test_what_was_added_is_there_again(tmp_path):
    fill(tmp_path / "store", 3)
    fill(tmp_path / "store", 5)
    settings, records = read_store(tmp_path / "store")
    assert settings == SETTINGS
    assert records == [record(repetition=repetition) for repetition in range(5)]
    assert unit_of(records[4]) == Unit("iris", "normal", "sequential", 1e-6, 4)


@pytest.mark.parametrize("torn", [b'{"problem": "ir', b"{", b'{"problem": "iris"}', b"\xff\xfe"])
def test_a_line_that_was_never_finished_is_dropped(tmp_path, torn):
    fill(tmp_path, 2)
    whole = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(whole + torn)
    assert len(read_store(tmp_path)[1]) == 2
    fill(tmp_path, 3)
    assert [line["repetition"] for line in read_store(tmp_path)[1]] == [0, 1, 2]
    assert (tmp_path / NAME).read_bytes().startswith(whole)


@pytest.mark.parametrize(
    ("at", "line", "says"),
    [
        (1, b"{broken", r"units.jsonl, line 2: expected a line of JSON.* remove the line"),
        (1, b"[1]", r"line 2: expected a JSON object, found list"),
        (2, b"{}", r"line 3: expected the record of a unit, found no 'problem'"),
        (0, b"{}", r"line 1: expected the settings of a sweep"),
        (0, b'{"format": 99, "settings": {}}', r"line 1: expected the settings of a sweep, in format 1"),
    ],
)
def test_a_corrupt_line_is_named_and_nothing_is_lost(tmp_path, at, line, says):
    fill(tmp_path, 3)
    lines = (tmp_path / NAME).read_bytes().splitlines()
    lines[at] = line
    content = b"\n".join(lines) + b"\n"
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(DirectoryError, match=says):
        fill(tmp_path, 4)
    assert (tmp_path / NAME).read_bytes() == content


def test_other_settings_are_refused_with_the_difference_named(tmp_path):
    fill(tmp_path, 1)
    with pytest.raises(
        DirectoryError, match=r"epochs 10 \(now 20\), max_kept None \(now 500\); choose another directory"
    ):
        fill(tmp_path, 2, {**SETTINGS, "epochs": 20, "max_kept": 500})
    assert len(read_store(tmp_path)[1]) == 1


def test_other_data_is_refused(tmp_path):
    fill(tmp_path, 1)
    with open_store(tmp_path, SETTINGS) as store:
        store.refuse_other_data({"iris": "abc", "wine": "xyz"})
        with pytest.raises(DirectoryError, match=r"iris with the hash abc \(now xyz\)"):
            store.refuse_other_data({"iris": "xyz"})


def test_one_process_writes_at_a_time(tmp_path):
    with open_store(tmp_path, SETTINGS) as store:
        store.add(record())
        with pytest.raises(DirectoryError, match="another process that writes to it"), open_store(tmp_path, SETTINGS):
            pass
    fill(tmp_path, 2)


def test_where_nothing_was_finished_nothing_is_left(tmp_path):
    with open_store(tmp_path / "a" / "b", SETTINGS):
        pass
    assert not (tmp_path / "a").exists()
    with pytest.raises(ZeroDivisionError), open_store(tmp_path / "a" / "b", SETTINGS):
        raise ZeroDivisionError
    assert not (tmp_path / "a").exists()


def test_what_was_finished_stays_when_the_wait_for_the_disk_is_interrupted(tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    with open_store(tmp_path, SETTINGS) as store:
        monkeypatch.setattr("os.fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.add(record())
    assert read_store(tmp_path)[1] == [record()]


def test_directories_of_others_and_missing_stores(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DirectoryError, match=r"a new or empty directory, or a store, found \['mine.txt'\]"):
        fill(tmp_path, 1)
    with pytest.raises(DirectoryError, match="a directory that can be written"):
        fill(tmp_path / "mine.txt", 1)
    with pytest.raises(DirectoryError, match="a store that a sweep wrote, found nothing"):
        read_store(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_disk_that_is_full_is_an_error_and_the_store_stays_whole(tmp_path):
    """The size of a file is limited, as by a full disk, so that the second record fits in part only."""
    fill(tmp_path, 1)
    size = (tmp_path / NAME).stat().st_size
    code = f"""
import resource, signal
from test_store import SETTINGS, open_store, record
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open_store({str(tmp_path)!r}, SETTINGS) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 40}, {size + 40}))
    store.add(record(repetition=1))
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=__file__.rpartition("/")[0], capture_output=True, text=True)
    assert "DirectoryError" in out.stderr
    assert "only 40 of" in out.stderr
    fill(tmp_path, 2)
    assert len(read_store(tmp_path)[1]) == 2


def test_the_compact_table(tmp_path):
    records = [record("wine"), record(delta=1e-8), record(repetition=1), record()]
    records.append(record(method="one-shot", delta=None, conv=None))
    path = export([{"conv": 0.123456789, **entry} for entry in records], tmp_path / "units.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["problem"], row["method"], row["delta"]) for row in rows] == [
        ("iris", "one-shot", ""),
        ("iris", "sequential", "1e-06"),
        ("iris", "sequential", "1e-08"),
        ("wine", "sequential", "1e-06"),
    ]
    assert [row["conv"] for row in rows] == ["", ".1235 .1235", ".1235", ".1235"]
    assert [row["repetition"] for row in rows] == ["0", "0 1", "0", "0"]
    assert {row["kept"] for row in rows} == {"150", "150 150"}
    assert not {"accuracies", "rhos", "versions"} & set(rows[0])
    assert [entry.name for entry in tmp_path.iterdir()] == ["units.csv"]


def test_records_are_plain_json(tmp_path):
    with open_store(tmp_path, SETTINGS) as store, pytest.raises(ValueError, match="Out of range float"):
        store.add(record(accuracy=float("nan")))
    fill(tmp_path, 1)
    assert all(json.loads(line) for line in (tmp_path / NAME).read_text().splitlines())


def test_units_of_other_iterations_are_others_and_old_records_have_none(tmp_path):
    with open_store(tmp_path, SETTINGS) as store:
        store.add(record())
        store.add(record(iterations=100))
    old, new = read_store(tmp_path)[1]
    assert (unit_of(old).iterations, unit_of(new).iterations) == (None, 100)
    with export([old, new], tmp_path / "units.csv").open(newline="") as file:
        assert [row["iterations"] for row in csv.DictReader(file)] == ["", "100"]
