"""Commands in processes that lack what they usually have: outputs, room, a directory, memory, or the time to end.

`tools/starved_environments.py` runs every command in thirty such environments.
"""

import os
import signal
import subprocess
import sys

import pytest

import ectype as ec
from ectype import ledger
from ectype._common.portable import UNFINISHED

ORIGINAL = """
import sys
import numpy as np

def disc(rows):
    return np.where((rows**2).sum(axis=1) < 1, "für", "wider →")

def leaves(rows):
    sys.exit("no\\x1b[31m more")
"""
COPY = (
    "copy", "mine:disc", "--space", "normal:2", "--preset", "fast", "--certificate-n", "50", "--budget", "200",
    "--repeat", "0", "--out", "run",
)  # fmt: skip
# A process that is killed when it moves a file to a place of that name, which is where a command's own work ends.
KILLED = """
import os, signal, sys
from ectype.cli import main

usual = os.replace

def replace(source, place):
    if str(place) == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)
    usual(source, place)

os.replace = replace
main(sys.argv[2:])
"""
# A process that moves a file there once it is told to.
WAITING = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "print('ready', flush=True), sys.stdin.readline()")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(ORIGINAL, encoding="utf-8")
    return tmp_path


def starved(folder, words, streams="", before=""):
    """How a command ends in a shell that does something before, and gives it other streams."""
    script = f'{before}\n"$@" {streams}'
    words = ["bash", "-c", script, "_", sys.executable, "-m", "ectype", *map(str, words)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "mine.py").write_text(ORIGINAL, encoding="utf-8")
    done = starved(folder, COPY)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        (">&-", 0, "warning: standard output is closed: what it would show is lost"),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        ("> /dev/full", 3, "standard output: expected room to write, found [Errno 28] No space left on device; what"),
        ("2> /dev/full", 0, ""),
        ("> /dev/full 2>&1", 3, ""),
        ("| true; exit ${PIPESTATUS[0]}", 0, ""),
    ],
)
def test_a_copy_is_whole_whatever_becomes_of_what_it_prints(folder, streams, code, said):
    done = starved(folder, COPY, streams)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert ec.load(folder / "run").queries["training"] == 198


@pytest.mark.parametrize("words", [COPY, ("ledger", "run"), ("space", "rows.csv", "--out", "space.json")])
def test_a_directory_that_is_gone_is_said(folder, words):
    done = starved(folder, words, before="mkdir gone; cd gone; rmdir ../gone")
    assert done.returncode == 2
    assert done.stderr == (
        "ectype: the working directory: expected one that is there, found No such file or directory; "
        "change to another directory, and run the same command again\n"
    )


def test_too_little_memory_is_said_before_anything_is_asked(folder):
    done = starved(folder, COPY, before="ulimit -v 204800")
    assert done.returncode == 3
    assert "ectype: the system: expected at least 512 MB of address space, found 200 MB; allow" in done.stderr
    assert not (folder / "run").exists()
    assert starved(folder, ("--help",), before="ulimit -v 204800").returncode == 0
    assert starved(folder, COPY).returncode == 0


def test_too_few_open_files_are_said_and_what_was_paid_is_kept(folder):
    done = starved(folder, COPY, before="ulimit -n 10")
    assert done.returncode == 3, done.stderr
    assert "expected more open files, found " in done.stderr
    assert "allow it more (ulimit -n)" in done.stderr
    assert starved(folder, COPY).returncode == 0
    assert ledger.summarise_ledger(folder / "run" / ledger.LEDGER).repeated == 0


def test_an_original_that_ends_the_process_is_heard(folder):
    words = [word.replace("disc", "leaves") for word in COPY]
    done = starved(folder, words)
    assert done.returncode == 1
    assert done.stderr.endswith("ectype: no\\x1b[31m more\n")


@pytest.mark.parametrize("command", ["export", "compact"])
def test_what_a_killed_command_left_is_removed_by_the_next_and_what_one_works_on_is_not(made, tmp_path, command):
    run = tmp_path / "run"
    subprocess.run(["cp", "-r", made, run], check=True)
    words, place = {
        "export": (["export", run, tmp_path / "copy.c"], tmp_path / "copy.c"),
        "compact": (["ledger", "compact", run], run / ".committed"),
    }[command]
    beside = place.parent

    def left():
        return {path.name for path in beside.iterdir() if path.name.startswith(UNFINISHED)}

    process = [sys.executable, "-c", KILLED, place, *words]
    assert subprocess.run(process, capture_output=True, check=False).returncode == -signal.SIGKILL
    of_killed = left()
    assert len(of_killed) == 1
    process[2] = WAITING
    with subprocess.Popen(process, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as at_work:
        assert at_work.stdout.readline() == "ready\n"
        of_living = left()
        assert len(of_living) == 1
        assert not of_living & of_killed
        other = beside / "other.rules" if command == "export" else beside / "card.md"
        another = ["export", run, other, "--format", "c"] if command == "export" else ["card", run]
        assert starved(tmp_path, another).returncode == 0
        assert other.exists()
        assert left() == of_living
        at_work.communicate("go on\n")
    assert at_work.returncode == 0
    assert not left()
    assert ec.load(run).queries["training"] == 198
