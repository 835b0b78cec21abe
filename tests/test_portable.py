"""What the package does on a system without the modules of Linux and macOS, such as Windows; in fresh processes."""

import subprocess
import sys
import textwrap

import pytest

from ectype._common.portable import lock_folder, peak_mb, require_module, write_at_start
from ectype.errors import SettingError

# Before anything of ours is imported: what Windows lacks is gone, and folders cannot be opened.
WINDOWS = """
import os, signal, sys
import fcntl as real
import shutil, subprocess, tempfile  # which decide by what they find when they are imported
import multiprocessing.util, platform, socket, threading, uuid

for name in ("fcntl", "resource", "grp", "pwd", "termios", "tty", "pty", "syslog", "readline", "posix_ipc"):
    sys.modules[name] = None
for name in ("pwrite", "pread", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "fork", "killpg", "getuid", "geteuid"):
    delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGHUP", "pthread_sigmask"):
    delattr(signal, name)
opened = os.open
def opens(path, flags, *more, **named):
    if os.path.isdir(path) and not flags & getattr(os, "O_TMPFILE", 0):
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, flags, *more, **named)
os.open = opens
shutil._use_fd_functions = False  # there, folders are removed by name
"""
# What Windows has in place of fcntl: the lock of a range of a file, which a second descriptor cannot have.
MSVCRT = """
import types
windows = sys.modules["msvcrt"] = types.ModuleType("msvcrt")
windows.LK_NBLCK = 2
windows.locking = lambda descriptor, mode, n: real.flock(descriptor, real.LOCK_EX | real.LOCK_NB)
"""
COPY = """
import warnings
from pathlib import Path
import numpy as np
import ectype as ec

def disc(rows):
    return (rows**2).sum(axis=1) < 1

quick = dict(preset="fast", budget=60, certificate_n=40, repeat=0)
kept = ec.copy_classifier(disc, ec.Space.normal(2), **quick)
assert kept.peak_mb is None and kept.summary()["peak_mb"] is None
kept.save("saved")
rows = np.zeros((1, 2))
assert ec.load("saved").copy.predict(rows).tolist() == kept.copy.predict(rows).tolist()
result = ec.copy_classifier(disc, ec.Space.normal(2), **quick, out="run")
assert ec.load("run").peak_mb is None
assert "Peak memory" not in result.report("page.html").read_text()
more = ec.copy_classifier(disc, ec.Space.normal(2), **{**quick, "budget": 100}, out="run")
assert more.queries["training"] == 100
tree = ec.remake("run", to="tree", out="deep/tree")
ec.export(tree.copy, "tree.sql")
names = sorted(path.name for path in Path("run").iterdir())
files = ["copy.json", "copy.safetensors", "history.jsonl", "ledger.sqlite", "run.json", "space.json"]
assert names == files, names
"""


def fresh(code, cwd):
    """Run code in a process of its own, with warnings as errors."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_every_module_is_imported_without_what_windows_lacks(tmp_path):
    code = """
    import pkgutil, importlib
    import ectype
    for one in pkgutil.walk_packages(ectype.__path__, "ectype."):
        if one.name not in ("ectype.__main__", "ectype._kernel.kernel"):  # the command, and a library in C
            importlib.import_module(one.name)
    """
    done = fresh(WINDOWS + textwrap.dedent(code), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_copy_is_made_saved_resumed_and_remade(tmp_path):
    done = fresh(WINDOWS + MSVCRT + COPY, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_second_process_cannot_write_to_a_run_there_either(tmp_path):
    code = """
    from ectype.errors import DirectoryError
    from ectype._common.atomic_io import folder_lock
    with folder_lock(Path(".")):
        names = [path.name for path in Path(".").iterdir()]
        assert names == [".unfinished-lock"], names
        try:
            ec.copy_classifier(disc, ec.Space.normal(2), **quick, out=".")
        except DirectoryError as error:
            assert "found another process that writes to it" in str(error), error
        else:
            raise AssertionError("it wrote")
    assert not list(Path(".").iterdir())
    """
    done = fresh(WINDOWS + MSVCRT + COPY.partition("kept =")[0] + textwrap.dedent(code), tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_system_without_any_locks_is_told_what_to_see_to(tmp_path):
    code = """
    with warnings.catch_warnings(record=True, action="always") as said:
        ec.copy_classifier(disc, ec.Space.normal(2), **quick, out="run")
    assert ["no other process write to run" in str(one.message) for one in said] == [True], said
    """
    done = fresh(WINDOWS + COPY.partition("kept =")[0] + textwrap.dedent(code), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("ec.open_original('cmd:cat')", "cmd:, which waits for the pipes of a program: expected Linux or macOS"),
        ("ec.open_original('m.onnx')", "onnxruntime, which runs a model in a process with bounds: expected Linux or m"),
        ("main(['serve', 'run'])", "serve, which is ended by signals: expected Linux or macOS, where it works, found"),
    ],
)
def test_what_cannot_work_there_says_so_when_it_is_used(tmp_path, what, said):
    (tmp_path / "run").mkdir()
    model = "import onnx; from onnx import helper as h, TensorProto as t; onnx.save(h.make_model(h.make_graph(["
    model += "h.make_node('ArgMax', ['x'], ['y'], axis=1, keepdims=0)], 'g', [h.make_tensor_value_info('x', t.FLOAT, "
    model += "[None, 2])], [h.make_tensor_value_info('y', t.INT64, [None])])), 'm.onnx')\n"
    code = f"{model if 'onnx' in what else ''}import ectype as ec\nfrom ectype.cli import main\n{what}\n"
    done = fresh(WINDOWS + code, tmp_path)
    assert done.returncode != 0
    assert said in done.stderr


def test_here_everything_is_there(tmp_path):
    assert peak_mb() > 1
    require_module("fcntl", "a lock", "nothing")
    with pytest.raises(SettingError, match="a moon: expected Linux or macOS, where it works, found linux; look up"):
        require_module("no_such_module", "a moon", "look up")
    with lock_folder(tmp_path) as ours, lock_folder(tmp_path) as again:
        assert (ours, again) == (True, False)
    with open(tmp_path / "file", "wb+") as file:
        file.write(b"abcdef")
        file.flush()
        write_at_start(file.fileno(), b"xy")
        assert (tmp_path / "file").read_bytes() == b"xycdef"
