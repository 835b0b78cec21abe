import contextlib
import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ectype as ec
from ectype.errors import DirectoryError, EctypeError
from ectype.runs.directory import FILES
from problems import disc


@pytest.fixture(scope="module")
def result():
    original = ec.Original(lambda rows: np.where(disc(rows), "in", "out"), name="disc")
    return ec.copy_classifier(original, ec.Space.normal(2), budget=200, schedule=20, certificate_n=300)


def test_load_gives_the_same_result_back(result, tmp_path, rng):
    result.save(tmp_path / "copy")
    again = ec.load(tmp_path / "copy")
    rows = rng.normal(size=(500, 2))
    np.testing.assert_array_equal(again.copy.predict_proba(rows), result.copy.predict_proba(rows))
    assert again.copy.predict(rows).dtype == result.copy.predict(rows).dtype
    for part in ("certificate", "history", "space", "settings", "queries", "stopped", "seconds", "peak_mb", "versions"):
        assert getattr(again, part) == getattr(result, part)
    assert sorted(os.listdir(tmp_path / "copy")) == [
        "copy.json", "copy.safetensors", "history.jsonl", "run.json", "space.json",
    ]  # fmt: skip


def test_saving_the_same_run_again_replaces_it_and_leaves_no_litter(result, tmp_path):
    result.save(tmp_path / "copy")
    result.save(tmp_path / "copy")
    assert os.listdir(tmp_path) == ["copy"]


def test_a_failed_save_leaves_what_was_there(result, tmp_path, monkeypatch):
    result.save(tmp_path / "copy")
    before = (tmp_path / "copy" / "run.json").read_bytes()
    monkeypatch.setattr("ectype.runs.result._write_json", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(DirectoryError, match="a directory that can be written, found disk full"):
        result.save(tmp_path / "copy")
    assert os.listdir(tmp_path) == ["copy"]
    assert (tmp_path / "copy" / "run.json").read_bytes() == before
    assert not [name for name in os.listdir(tmp_path / "copy") if name.startswith(".")]
    with pytest.raises(DirectoryError, match="disk full"):
        result.save(tmp_path / "new")
    assert os.listdir(tmp_path) == ["copy"]


def test_other_files_in_the_directory_stay(result, tmp_path):
    result.save(tmp_path / "copy")
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    result.save(tmp_path / "copy")
    assert (tmp_path / "copy" / "notes.txt").read_text() == "mine"


def test_no_pickle_is_written(result, tmp_path):
    result.save(tmp_path / "copy")
    for path in (tmp_path / "copy").iterdir():
        assert not path.read_bytes().startswith(b"\x80")


def test_a_flipped_byte_is_found(result, tmp_path):
    path = result.save(tmp_path / "copy") / "copy.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(DirectoryError, match=r"copy\.safetensors: expected sha256"):
        ec.load(tmp_path / "copy")


@pytest.mark.parametrize("name", ["run.json", "copy.json", "copy.safetensors", "space.json", "history.jsonl"])
@pytest.mark.parametrize("damage", [None, b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"format": 1}'])
def test_a_damaged_directory_is_an_error_of_ectype(result, tmp_path, name, damage):
    path = result.save(tmp_path / "copy") / name
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(EctypeError) as caught:
        ec.load(tmp_path / "copy")
    assert str(tmp_path) in str(caught.value)


def test_a_newer_format_says_so(result, tmp_path):
    path = result.save(tmp_path / "copy") / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    with pytest.raises(DirectoryError, match="format: expected 2 or 1, found 99; use the ectype that wrote it"):
        ec.load(tmp_path / "copy")


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory):
    return result.save(tmp_path_factory.mktemp("saved") / "copy")


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(FILES), st.binary(max_size=60), st.integers(0, 2**31), st.booleans())
def test_any_damage_gives_a_typed_error_or_a_result(saved, name, junk, at, cut):
    path = saved / name
    whole = path.read_bytes()
    try:
        content = bytearray(whole)
        at %= len(content)
        content[at : at + len(junk)] = junk
        path.write_bytes(bytes(content[:at]) if cut else bytes(content))
        with contextlib.suppress(EctypeError):
            assert isinstance(ec.load(saved).kept, int)
    finally:
        path.write_bytes(whole)
