"""Killed with SIGKILL while a run goes on, or is made anew: nothing paid is lost, and the same call ends alike.

`benchmarks/kills.py` kills the commands at random moments.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest

import ectype as ec
from ectype import ledger
from ectype._common.atomic_io import atomic_folder
from ectype._common.portable import UNFINISHED

# Rows are written down by the original itself. The process is killed before it answers more than so many, or before a
# file or folder is moved to a place of that name, or removed from it.
SCRIPT = """
import os, signal, sys
import ectype as ec

folder, what, out, most, place = sys.argv[1:]
left = int(most)

def inside(rows):
    global left
    left -= len(rows)
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    with open(f"{folder}/asked", "a") as book:
        book.writelines(f"{row.tobytes().hex()}\\n" for row in rows)
    return (rows**2).sum(axis=1) < 1

def watched(function):
    def call(*arguments, **named):
        if place and f"{function.__name__} {arguments[-1]}".startswith(place):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call

os.replace, os.rmdir = watched(os.replace), watched(os.rmdir)
if what == "remake":
    ec.remake(f"{folder}/first", out=out, to="mlp")
else:
    box = ec.Original(inside, [False, True], request_rows=20, name="disc")
    ec.copy_classifier(
        box, ec.Space.normal(2), budget=int(what), batch=100, preset="fast", certificate_n=100, repeat=0, out=out
    )
"""


def ended(folder, what, out, most=10**9, place=""):
    """The exit code of a process that makes a run, or goes on with it, or makes it anew."""
    words = [sys.executable, "-c", SCRIPT, *map(str, (folder, what, out, most, place))]
    return subprocess.run(words, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"}).returncode


def asked(folder):
    """How often each row was asked since the last call."""
    book = folder / "asked"
    found = Counter(book.read_text().split()) if book.exists() else Counter()
    book.unlink(missing_ok=True)
    return found


def known(run):
    """The rows that a run's ledger has answers to."""
    return {row.tobytes().hex() for rows, _ in ledger.read_answers(run / ledger.LEDGER).values() for row in rows}


def files(run):
    return {file.name: file.read_bytes() for file in run.iterdir()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run with 200 answers, the same gone on to 500, and remade."""
    path = tmp_path_factory.mktemp("killed")
    assert ended(path, 200, path / "first") == 0
    shutil.copytree(path / "first", path / "further")
    assert asked(path).total() == 300
    assert ended(path, 500, path / "further") == 0
    assert asked(path).total() == 300
    ec.remake(path / "first", out=path / "remade", to="mlp")
    return path


@pytest.mark.parametrize(("most", "place"), [(0, ""), (130, ""), (10**9, "copy.json"), (10**9, "run.json")])
def test_a_run_that_is_killed_while_it_goes_on(folder, tmp_path, most, place):
    run = shutil.copytree(folder / "first", tmp_path / "run")
    assert ended(folder, 500, run, most, place and f"replace {run / place}") == -signal.SIGKILL
    answered = known(run)
    assert len(answered) >= 300 + min(most // 20 * 20, 300) - 20  # one answer may be on its way to the disk
    if place:  # the new copy is whole already, and still being moved
        assert ec.load(run).queries["training"] == 500
    else:
        assert files(run)["run.json"] == files(folder / "first")["run.json"]
    assert ended(folder, 500, run) == 0
    found = asked(folder)
    twice = {row for row, n in found.items() if n > 1}
    assert len(found) == 300
    assert len(twice) <= 20
    assert not twice & answered
    assert answered <= known(run) == known(folder / "further")
    for name in ("copy.safetensors", "copy.json"):
        assert files(run)[name] == files(folder / "further")[name]
    assert not [*run.glob(f"{UNFINISHED}*")]


@pytest.mark.parametrize("place", [f"rmdir OUT/remade/{UNFINISHED}", f"replace OUT/{UNFINISHED}", "replace OUT/remade"])
def test_a_remake_that_is_killed(folder, tmp_path, place):
    """While it is seen whether the folder can be written; and while files are moved in it, and then the whole."""
    before, out = files(folder / "first"), tmp_path / "out" / "remade"
    assert ended(folder, "remake", out, place=place.replace("OUT", str(out.parent))) == -signal.SIGKILL
    assert not (out / "run.json").exists()
    assert files(folder / "first") == before
    ec.remake(folder / "first", out=out, to="mlp")
    assert not asked(folder)
    assert known(out) == known(folder / "first")
    assert files(folder / "first") == before
    for name in ("copy.safetensors", "copy.json"):
        assert files(out)[name] == files(folder / "remade")[name]
    assert [file.name for file in out.parent.iterdir()] == ["remade"]
    assert not [*out.glob(f"{UNFINISHED}*")]


def test_a_folder_that_somebody_is_at_work_on_is_not_removed(tmp_path):
    with atomic_folder(tmp_path / "new") as folder:
        with atomic_folder(tmp_path / "new"):
            pass
        assert folder.is_dir()
        (folder / "a").write_text("b")
        (tmp_path / "new").rmdir()
    assert files(tmp_path / "new") == {"a": b"b"}
