"""Real traffic that is kept: which rows, which columns, how many, and what a server does that cannot keep them."""

import os
import re
import resource
import signal
import stat
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from in_process_server import HTTP, metrics, saved, tensor
from test_shadow import matrix, offered, settled

import ectype as ec
from ectype import ledger
from ectype.cli.serve import command
from ectype.errors import DirectoryError, OutageError, SettingError
from ectype.serve import TrafficSettings
from ectype.serve._inference import InferenceModel
from ectype.serve._masking import Masking
from ectype.serve._representable import representable
from ectype.serve._row_parser import RowParser
from ectype.serve._shadow import Shadow, presented
from ectype.serve._tensors import Tensor
from ectype.serve._traffic_log import OUTCOMES, TrafficLog
from fault_server import FaultyServer
from problems import loans
from server_process import Process

pytestmark = pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")
# Faults that pass at once: before an answer, in the middle of it, and answers that are none.
QUICK = ("drop", "500", "503", "truncated", "cut", "nan", "few", "garbage", "reset")


def sloped(rows):
    return np.where(np.asarray(rows, float)[:, 0] > 0, "up", "down").tolist()


def steep(rows):
    return np.where(np.asarray(rows, float)[:, 0] > 1, "up", "down").tolist()


@contextmanager
def keeping(copy, directory, original=sloped, **options):
    shadow = Shadow(
        lambda: ec.Original(original, name="box", request_rows=8), copy, keep=TrafficSettings(directory, **options)
    )
    try:
        yield shadow, InferenceModel(copy, "m", "1", 500)
    finally:
        shadow.stop(5)


def outcomes(**counts):
    return dict.fromkeys(OUTCOMES, 0) | counts


def kept(directory):
    rows, said = ledger.read_answers(directory / ledger.LEDGER)["traffic"]
    return rows, said.labels.tolist()


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_answered_rows_are_kept_each_time_they_come(plane, tmp_path):
    rows, folder = np.random.default_rng(1).normal(size=(20, 2)), tmp_path / "new" / "traffic"
    with keeping(plane, folder) as (shadow, model):
        offered(shadow, model, matrix(rows))
        offered(shadow, model, matrix(rows[:5]))
        found = settled(shadow)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert ledger.settings_of(folder / ledger.LEDGER) == {
            "original": "box",
            "fingerprint": None,
            "classes": None,
            "space": plane.space.digest,
            "kept": "traffic",
            "dropped": [],
        }
    assert (found["rows"], found["keep"]["rows"], found["keep"]["repeated"]) == (25, 25, 5)
    assert found["keep"]["outcomes"] == outcomes(kept=25)
    assert ec.Space.load(folder / "space.json") == plane.space
    there, labels = kept(folder)
    np.testing.assert_array_equal(there, np.concatenate([rows, rows[:5]]))
    assert labels == sloped(there)
    with keeping(plane, folder) as (shadow, model):
        offered(shadow, model, matrix(rows[:1] + 1))
        assert settled(shadow)["keep"]["rows"] == 26
    assert len(kept(folder)[0]) == 26
    summary = ledger.summarise_ledger(folder / ledger.LEDGER)
    assert (summary.answered, summary.maybe_paid, summary.by_purpose) == (26, 0, {"traffic": 26})


def test_nothing_is_left_where_nothing_was_kept(plane, tmp_path):
    with keeping(plane, tmp_path / "traffic"):
        assert (tmp_path / "traffic" / "space.json").is_file()
    assert not (tmp_path / "traffic").exists()


def test_rows_that_the_space_cannot_say_are_not_kept(lending, tmp_path):
    """An unknown level, and a fraction of a whole number; nor a value that the original was asked in another form."""
    frame = loans(6, 5)[0].assign(region=["north", "Atlantis", "south", "north", "east", "south"], jobs=1.0)
    cells = {name: [None if pd.isna(v) else v for v in frame[name].astype(object)] for name in frame}
    cells["age"][2] = 30.5
    kinds = {"age": "FP64", "owner": "BOOL", "region": "BYTES", "grade": "BYTES", "employer": "BYTES"}
    with keeping(lending, tmp_path / "traffic", lambda rows: ["grant"] * len(rows)) as (shadow, model):
        offered(shadow, model, [tensor(name, cells[name], kinds.get(name, "FP64")) for name in frame])
        found = settled(shadow)
    assert found["rows"] == 6
    assert found["keep"]["outcomes"] == outcomes(kept=4, unsayable=2)
    rows, labels = kept(tmp_path / "traffic")
    pd.testing.assert_frame_equal(
        lending.space.present(rows),
        lending.space.present(lending.space.read(frame.iloc[[0, 3, 4, 5]], "rows")),
    )
    assert labels == ["grant"] * 4


def test_a_value_that_came_in_another_form_than_was_asked_is_not_kept():
    """One unknown level, and the original is asked with what came: the number 1, where the level is a word."""
    space = ec.Space.from_json('{"columns": [{"name": "a", "kind": "category", "levels": ["1", "2"], "missing": 0.1}]}')

    def said(*values):
        rows = RowParser(space)([Tensor("a", (len(values),), list(values))])
        return presented(rows, space)["a"].tolist(), representable(rows, space).tolist()

    assert said("1", 1) == (["1", "1"], [True, True])
    assert said("1", 1, "x", None) == (["1", 1, "x", None], [True, False, False, True])


@pytest.mark.parametrize(("option", "values"), [("without", 0), ("masked", 10)])
def test_columns_are_left_out_or_kept_to_a_tenth(plane, tmp_path, option, values):
    rows, folder = np.random.default_rng(1).normal(size=(200, 2)), tmp_path / "traffic"
    with keeping(plane, folder, **{option: ("x0",)}) as (shadow, model):
        for at in range(0, 200, 50):
            offered(shadow, model, matrix(rows[at : at + 50]))
        assert settled(shadow)["keep"]["outcomes"] == outcomes(kept=200)
    there, labels = kept(folder)
    assert labels == sloped(rows)
    np.testing.assert_array_equal(there[:, 1], rows[:, 1])
    assert len(np.unique(there[~np.isnan(there[:, 0]), 0])) == values
    settings = ledger.settings_of(folder / ledger.LEDGER)
    assert (settings["dropped"], settings.get("masked", [])) == (["x0"], ["x0"] * (option == "masked"))
    content = b"".join(file.read_bytes() for file in folder.iterdir())
    assert not any(value.tobytes() in content for value in rows[:, 0])
    with pytest.raises(DirectoryError, match="dropped"), keeping(plane, folder, without=("x1",)):
        pass


def test_dates_whole_numbers_and_gaps_are_masked_to_values_of_the_space():
    space = ec.Space.from_json("""{"columns": [
      {"name": "born", "kind": "date", "low": "1950-01-01", "high": "2010-01-01", "missing": 0.2},
      {"name": "jobs", "kind": "integer", "values": [0, 1, 7], "shares": [0.5, 0.3, 0.2]},
      {"name": "city", "kind": "category", "levels": ["Bonn", "Nice"]}]}""")
    rows = space.sample(500, np.random.default_rng(0))
    masked = Masking(space, masked=["jobs", "born"])(rows)
    assert len(np.unique(masked[~np.isnan(masked[:, 0]), 0])) == 10
    assert (np.isnan(masked[:, 0]) == np.isnan(rows[:, 0])).all()
    assert {*masked[:, 1]} <= {0.0, 1.0, 7.0}
    assert np.nanmax(np.abs(masked[:, 0] - rows[:, 0])) < 0.06 * (space.columns[0].high - space.columns[0].low)
    np.testing.assert_array_equal(space.read(space.present(masked), "rows"), masked)
    for choice, reason in (
        ({"without": ["age"]}, "columns among"),
        ({"masked": ["city"]}, "--keep-without city"),
        ({"without": ["city", "born"], "masked": ["jobs"]}, "a column that is kept"),
    ):
        with pytest.raises(SettingError, match=reason):
            Masking(space, **choice)


# --- limits, and what cannot be written -----------------------------------------------------------------------------


def test_beyond_a_limit_rows_are_counted_and_not_kept(plane, tmp_path, caplog):
    rows, folder = np.random.default_rng(1).normal(size=(30, 2)), tmp_path / "traffic"
    with keeping(plane, folder, rows=10) as (shadow, model):
        for at in range(0, 30, 6):
            offered(shadow, model, matrix(rows[at : at + 6]))
        found = settled(shadow)["keep"]
    assert (found["rows"], found["outcomes"]) == (10, outcomes(kept=10, row_limit=20))
    np.testing.assert_array_equal(kept(folder)[0], rows[:10])
    assert caplog.text.count("--keep-rows") == 1
    with keeping(plane, folder, days=1e-9) as (shadow, model):
        offered(shadow, model, matrix(rows))
        assert settled(shadow)["keep"]["outcomes"] == outcomes(day_limit=30)
    assert caplog.text.count("--keep-days") == 1
    with keeping(plane, folder, rows=100) as (shadow, model):
        offered(shadow, model, matrix(rows[10:]))
        assert settled(shadow)["keep"]["rows"] == 30
    np.testing.assert_array_equal(kept(folder)[0], rows)


def test_a_disk_that_is_full_for_a_while(plane, tmp_path, caplog):
    rows, all_of = np.random.default_rng(1).normal(size=(5000, 2)), np.ones(5000, bool)
    directory = TrafficLog(TrafficSettings(tmp_path / "traffic"), ec.Original(sloped), plane.space, pause=0)
    add = lambda n: directory.add(rows[:n], all_of[:n], np.array(sloped(rows[:n])))  # noqa: E731
    add(10)
    directory._ledger.writer._connection.execute("PRAGMA max_page_count = 14")
    add(5000)
    add(5000)
    assert directory.summary()["failing"]
    directory._ledger.writer._connection.execute("PRAGMA max_page_count = 10000")
    add(20)
    found = directory.summary()
    directory.close()
    assert (found["failing"], found["outcomes"]) == (False, outcomes(kept=30, unwritten=10_000))
    assert [record.message.split(":")[1].strip() for record in caplog.records] == [
        "no rows are kept, the copy goes on answering",
        str(tmp_path / "traffic"),
    ]
    np.testing.assert_array_equal(kept(tmp_path / "traffic")[0], np.concatenate([rows[:10], rows[:20]]))


def test_a_directory_that_cannot_be_written_is_a_warning(plane, tmp_path, caplog):
    folder = tmp_path / "traffic"
    folder.mkdir(mode=0o500)
    folder = Path("/sys/ectype") if os.geteuid() == 0 else folder  # root may write to all others
    with keeping(plane, folder) as (shadow, model):
        for _ in range(3):
            offered(shadow, model, matrix([[1.0, 2.0]]))
        found = settled(shadow)
    assert (found["rows"], found["keep"]["failing"]) == (3, True)
    assert found["keep"]["outcomes"] == outcomes(unwritten=3)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_labels_of_two_types_do_not_end_it(plane, tmp_path):
    answers = iter([["up"], [1], ["down"]])
    with keeping(plane, tmp_path / "traffic", lambda rows: next(answers)) as (shadow, model):
        for at in range(3):
            offered(shadow, model, matrix([[float(at), 0.0]]))
            settled(shadow)
        summary = shadow.summary()
        assert summary["keep"]["outcomes"] == outcomes(kept=2)
        assert (summary["rows"], summary["failed"]) == (2, 1)  # such an answer is none
    assert kept(tmp_path / "traffic")[1] == ["up", "down"]


# --- one directory, one original, one writer ------------------------------------------------------------------------


def test_what_belongs_to_something_else_is_refused(plane, lending, tmp_path):
    with keeping(plane, tmp_path / "traffic") as (shadow, model):
        offered(shadow, model, matrix([[1.0, 2.0]]))
        settled(shadow)
        with pytest.raises(DirectoryError, match="another process"), keeping(plane, tmp_path / "traffic"):
            pass
    before = kept(tmp_path / "traffic")[1]
    original = ec.Original(sloped, name="another box")
    with pytest.raises(DirectoryError, match="original 'box' \\(now 'another box'\\)"):
        TrafficLog(TrafficSettings(tmp_path / "traffic"), original, plane.space)
    with pytest.raises(DirectoryError, match="another space"), keeping(lending, tmp_path / "traffic"):
        pass
    with pytest.raises(DirectoryError, match="kept traffic alone"):
        TrafficLog(TrafficSettings(saved(plane, tmp_path / "run")), original, plane.space)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(DirectoryError, match="other files"), keeping(plane, tmp_path / "mine"):
        pass
    with pytest.raises(DirectoryError, match="kept 'traffic'"):
        ec.copy_classifier(lambda rows: rows[:, 0] > 0, plane.space, budget=100, out=tmp_path / "traffic")
    assert kept(tmp_path / "traffic")[1] == before


def test_an_original_that_comes_back_as_another_teaches_no_more(plane, tmp_path, caplog):
    def broken(rows):
        raise OutageError("box", "an answer", "nothing")

    opened = iter([ec.Original(broken, fingerprint="a"), ec.Original(sloped, fingerprint="b")])
    shadow = Shadow(lambda: next(opened), plane, pause=0.01, keep=TrafficSettings(tmp_path / "traffic"))
    model = InferenceModel(plane, "m", "1", 500)
    for _ in range(2):
        offered(shadow, model, matrix([[1.0, 0.0]]))
        found = settled(shadow)
    shadow.stop(5)
    assert found["keep"]["outcomes"] == outcomes(unwritten=1)
    assert "another file of the original" in caplog.text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--keep", "x"], "an original, since --keep is given"),
        (["--keep-rows", "5"], "a directory, since --keep-rows is given"),
        (["--keep-masked", "x0"], "a directory, since --keep-masked is given"),
        (["--keep", "x", "--keep-rows", "0"], "--keep-rows"),
        (["--keep", "x", "--keep-days", "0"], "--keep-days"),
        (["--keep", "x", "--keep-without", "z", "--shadow", "test_keeping:sloped"], "columns among"),
    ],
)
def test_bad_options(plane, tmp_path, monkeypatch, options, reason):
    monkeypatch.chdir(tmp_path)
    saved(plane, tmp_path / "m")
    with pytest.raises(ec.errors.EctypeError, match=reason) as error:
        CliRunner().invoke(command, ["m", *options], catch_exceptions=False, standalone_mode=False)
    assert error.value.exit_code == 2
    assert not (tmp_path / "x").exists()


# --- the command ----------------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_loses_nothing_that_it_kept(plane, tmp_path):
    """A real original that fails a tenth of the time; SIGKILL, then SIGTERM."""
    saved(plane, tmp_path / "m")
    rows, folder, sure = np.random.default_rng(1).normal(size=(240, 2)), tmp_path / "traffic", 0
    with FaultyServer(sloped, QUICK) as box:
        for stage, last in enumerate((signal.SIGKILL, signal.SIGTERM)):
            served = shadowed(tmp_path / "m", box, folder)
            try:
                served.wait_until_ready()
                assert len(asked(served, rows[120 * stage : 120 * stage + 120])) == 120
                told = awaited(served, lambda n: n.get('ectype_keep_rows_total{outcome="kept"}', 0) >= 40)
                sure += int(told['ectype_keep_rows_total{outcome="kept"}'])
                served.signal(last)
                assert served.ended()[0] == (0 if last == signal.SIGTERM else -signal.SIGKILL)
            finally:
                served.kill()
            there, labels = kept(folder)
            assert sure <= len(there) <= 120 * (stage + 1)
            sure = len(there)
            assert labels == sloped(there)
            assert {row.tobytes() for row in there} <= {row.tobytes() for row in rows}
            assert len(np.unique(there, axis=0)) == len(there)
    assert ledger.summarise_ledger(folder / ledger.LEDGER).maybe_paid == 0


def test_a_server_whose_disk_is_full_goes_on(plane, tmp_path):
    saved(plane, tmp_path / "m")
    rows, folder = np.random.default_rng(1).normal(size=(300, 2)), tmp_path / "traffic"
    with FaultyServer(sloped, share=0) as box, shadowed(tmp_path / "m", box, folder) as served:
        asked(served, rows[:100])
        awaited(served, lambda n: n["ectype_kept_rows"] == 100)
        soft, hard = resource.prlimit(served.pid, resource.RLIMIT_FSIZE)
        size = (folder / "ledger.sqlite-wal").stat().st_size
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (size, hard))
        assert asked(served, rows[100:]) == plane.predict(rows[100:]).tolist()
        found = awaited(served, lambda n: n["ectype_shadow_waiting_rows"] == 0)
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (soft, hard))
        assert found["ectype_keep_failing"] == 1
        assert (
            found['ectype_keep_rows_total{outcome="kept"}'] + found['ectype_keep_rows_total{outcome="unwritten"}']
            == 300
        )
        served.signal(signal.SIGTERM)
        code, _, errors = served.ended()
    assert code == 0
    assert len(re.findall("^keeping: ", errors, flags=re.M)) == 1
    np.testing.assert_array_equal(kept(folder)[0][:100], rows[:100])
    assert kept(folder)[1] == sloped(kept(folder)[0])


def shadowed(model, box, folder):
    """A server beside an original over HTTP, ready to be asked."""
    options = ("--shadow", f"{box.url}/v2/models/box", "--protocol", "v2", "--request-rows", "20", "--keep", folder)
    return Process(model, *options)


def asked(served, rows):
    """The copy's answers, in requests of one row and of several."""
    parts = [rows[at : at + 10] for at in range(0, len(rows), 10)]
    return [
        label
        for part in parts
        for label in HTTP.post(served.url + "/predict", json=part.tolist()).json()["predictions"]
    ]


def awaited(served, enough):
    """The metrics, as soon as they are such."""
    return next(found for _ in range(10_000) if enough(found := metrics(served)))
