"""Temporary folders of killed processes, and what is never taken for one."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from ectype._common.atomic_io import COMMITTED, atomic_file, current, roll_forward, write_text
from ectype.errors import DirectoryError

# A process that is at work on a file, and waits.
AT_WORK = """
import sys
from pathlib import Path
from ectype._common.atomic_io import atomic_file
with atomic_file(Path(sys.argv[1])) as part:
    part.write_text("half")
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def at_work(tmp_path):
    command = [sys.executable, "-c", AT_WORK, tmp_path / "other.txt"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process


def test_what_a_killed_process_left_is_removed_and_what_one_works_on_is_not(tmp_path, at_work):
    theirs = [tmp_path / name for name in (".unfinished-notes", ".unfinished-abcd_123.txt", ".unfinished-Notes123")]
    for path in theirs:
        path.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("kept")
    (tmp_path / ".unfinished-abcd1234").symlink_to(elsewhere)
    there = {*tmp_path.iterdir()}
    write_text(tmp_path / "mine.txt", "whole")
    assert {*tmp_path.iterdir()} == there | {tmp_path / "mine.txt"}
    at_work.send_signal(signal.SIGKILL)
    at_work.wait()
    write_text(tmp_path / "mine.txt", "whole again")
    assert {path.name for path in tmp_path.iterdir()} == {
        "mine.txt", "elsewhere", ".unfinished-abcd1234", *(path.name for path in theirs)
    }  # fmt: skip
    assert (elsewhere / "kept").read_text() == "kept"


def test_a_process_at_work_ends_well_whatever_others_write_beside(tmp_path, at_work):
    for number in range(20):
        write_text(tmp_path / f"{number}.txt", "whole")
    at_work.communicate("go on\n")
    assert at_work.returncode == 0
    assert (tmp_path / "other.txt").read_text() == "half"


def test_where_there_are_no_locks_files_are_written_and_nothing_is_taken_for_left(tmp_path, monkeypatch):
    def flock(descriptor, operation):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    (tmp_path / ".unfinished-abcd1234").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", flock)
        write_text(tmp_path / "mine.txt", "whole")
        assert (tmp_path / ".unfinished-abcd1234").is_dir()
    assert (tmp_path / "mine.txt").read_text() == "whole"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_replaced(tmp_path, make):
    make(tmp_path / "mine.txt")
    with pytest.raises(DirectoryError, match="of that name is there"):
        write_text(tmp_path / "mine.txt", "whole")
    assert not (tmp_path / "mine.txt").is_file()


def test_an_error_leaves_what_was_there(tmp_path):
    write_text(tmp_path / "mine.txt", "old")

    def fail():
        with atomic_file(tmp_path / "mine.txt") as part:
            part.write_text("new")
            raise InterruptedError("stopped")

    with pytest.raises(DirectoryError, match="stopped"):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("mine.txt", "old")]


def test_files_are_not_taken_from_where_a_link_leads(tmp_path):
    """A directory of a stranger's may have a link of that name: nothing behind it is read or moved."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "run.json").write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / COMMITTED).symlink_to(secrets)
    assert current(run / "run.json") == run / "run.json"
    roll_forward(run)
    assert [path.name for path in secrets.iterdir()] == ["run.json"]
