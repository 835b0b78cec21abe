"""A directory that is written over is the old one or the new one, whole, whenever the process is killed or power fails.

A process is killed with SIGKILL before each of its calls that change the disk, one after the other: opening a file to
write, making, renaming and removing, and `fsync`. What a power cut leaves is told from the order of `fsync` and rename.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import os, shutil, signal, sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
import numpy as np
import ectype as ec
from ectype._common.atomic_io import COMMITTED, current, atomic_folder, write_text
from ectype._common.portable import UNFINISHED
from ectype import ledger
from ectype.runs.compact import compact
from ectype.runs.directory import finished

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate"}

def observed(before):
    \"\"\"Have `before(call, arguments)` called before each call that changes the disk.\"\"\"
    def fsync(descriptor):  # which is not audited; nothing here is to survive a power cut
        before("os.fsync", (descriptor,))
    os.fsync = fsync
    def hook(event, arguments):
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES):
            before(event, arguments)
    sys.addaudithook(hook)

def forked(work):
    \"\"\"How a child ends that does the work.\"\"\"
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def killed(work, last):
    \"\"\"How a child ends that is killed before the call of that number.\"\"\"
    left = last
    def before(event, arguments):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    def counted():
        observed(before)
        work()
    return forked(counted)

def content(folder, names):
    return {name: current(folder / name).read_bytes() for name in names if current(folder / name).exists()}

def made(folder, seed, **more):
    box = ec.Original(lambda rows: (rows**2).sum(axis=1) < 1, [False, True], name="disc")
    quick = {"preset": "fast", "budget": 200, "certificate_n": 50, "repeat": 0}
    return ec.copy_classifier(box, ec.Space.normal(2), **quick, seed=seed, **more)

place = Path(sys.argv[1])
run = made(place, 0, out=place / "run")
FILES = sorted(path.name for path in (place / "run").iterdir())
other = made(place, 1)
other = replace(other, settings=run.settings, seconds=0.0)
SAVED = [name for name in FILES if name != ledger.LEDGER]

def begun(folder):
    \"\"\"Another folder of the same name, so that what is written has the same bytes.\"\"\"
    shutil.rmtree(folder, ignore_errors=True)
    if "OVER" in WHAT:
        shutil.copytree(place / "run", folder)
    return folder

def page(folder):
    folder.mkdir(exist_ok=True)
    write_text(folder / "report.html", "new" * 9)

def tree(folder):
    shutil.rmtree(folder, ignore_errors=True)
    with atomic_folder(folder) as part:
        (part / "report.html").write_text("new" * 9)
        (part / "deep").mkdir()

WHAT = sys.argv[2]
work, names = {
    "save": (other.save, SAVED),
    "save OVER": (other.save, SAVED),
    "compact OVER": (compact, FILES),
    "page": (page, ["report.html"]),
    "page OVER": (page, ["report.html", *FILES]),
    "folder": (tree, ["report.html"]),
}[WHAT]
"""

KILLED = """
folder = begun(place / "target")
old = content(folder, names)
work(folder)
new = content(folder, names)
assert old != new and len(new) == len(names), (old.keys(), new.keys())
kinds, number, code = [], 0, None
while code != 0:
    folder = begun(place / "target")
    code = killed(lambda: work(folder), number)
    assert code in (0, -signal.SIGKILL), code
    found = content(folder, names)
    kinds.append("new" if found == new else "old" if found == old else "neither")
    if "run.json" in found:
        assert ec.load(folder).checked
    if ledger.LEDGER in found and "run.json" in found:
        assert ledger.verify_ledger(folder / ledger.LEDGER).anchors
    work(folder)
    assert content(folder, names) == new or "compact" in WHAT, number
    left = [path for path in (*folder.iterdir(), *place.iterdir()) if path.name.startswith((UNFINISHED, COMMITTED))]
    assert not left, (number, left)
    number += 1
print(json.dumps(kinds))
"""

ORDER = """
folder = begun(place / "target")
synced, waiting, seen = set(), [], []

def before(event, arguments):
    if event == "open":
        with suppress(FileNotFoundError):
            synced.discard(os.stat(arguments[0]).st_ino)
    elif event == "os.fsync":
        found = os.fstat(arguments[0]).st_ino
        synced.add(found)
        waiting[:] = [folder for folder in waiting if folder != found]
    elif event == "os.rename":
        source, target = map(Path, arguments[:2])
        for path in (source, *source.rglob("*")):
            assert os.stat(path).st_ino in synced, f"{path} is renamed, and was not synced"
        seen.append(target.name)
        waiting.append(os.stat(target.parent).st_ino)

observed(before)
work(folder)
assert not waiting, "a folder was not synced after a rename in it"
print(json.dumps(seen))
"""


def answered(code, *arguments):
    script = textwrap.dedent(f"import json\n{PRELUDE}{code}")
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WRITTEN = ["save", "save OVER", "compact OVER", "page", "page OVER", "folder"]


@pytest.mark.parametrize("what", WRITTEN)
def test_killed_before_every_call_it_is_the_old_or_the_new(tmp_path, what):
    kinds = answered(KILLED, tmp_path, what)
    assert len(kinds) > 4
    new = kinds.index("new")
    assert new > 0
    assert kinds == ["old"] * new + ["new"] * (len(kinds) - new)  # from one moment on it is the new one


@pytest.mark.parametrize("what", WRITTEN)
def test_what_is_renamed_was_synced_and_its_folder_is_synced_after(tmp_path, what):
    renamed = answered(ORDER, tmp_path, what)
    expected = {"save": "run.json", "compact": "ledger.sqlite", "page": "report.html", "folder": "target"}
    assert expected[what.split()[0]] in renamed
