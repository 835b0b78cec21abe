"""Every command and every example in the README is run here, or by .ci/run."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import ROOT, commands

import ectype as ec
from commands import run_command
from server_process import Process

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.M | re.S)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.strip().splitlines()]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
INSTALL = [command for command in COMMANDS if ".venv/bin/" in command]
TEST = [command for command in COMMANDS if ".venv-test/bin/" in command]
OURS = [command for command in COMMANDS if command.startswith("ectype ")]
# The arguments of benchmarks are checked by test_docs.py, and test_benchmarks.py runs each at its smallest.
BENCHMARKS = [command for command in COMMANDS if command.startswith("python benchmarks/")]
MODULE = "def classifier(rows):\n    return (rows['end'] - rows['start'] > 3) & (rows['plan'] != 'basic')\n"


def test_every_command_belongs_to_a_test():
    assert sorted(COMMANDS) == sorted([*INSTALL, *TEST, *OURS, *BENCHMARKS])
    assert (len(INSTALL), len(TEST)) == (1, 1)


@pytest.mark.parametrize("code", PYTHON)
def test_python_examples(code, tmp_path):
    out = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert "['inside' 'outside']" in out.stdout


def test_commands_in_order(tmp_path):
    (tmp_path / "mymodels.py").write_text(MODULE)
    start, plans = np.arange(200) % 17, ["basic", "plus", "pro", "plus"] * 50
    frame = pd.DataFrame({"start": start, "end": start + np.arange(200) % 7, "plan": plans})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for command in OURS:
        if command.startswith("ectype serve "):
            with Process(*shlex.split(command)[2:], cwd=tmp_path) as server:
                assert ec.open_original(server.model, protocol="v2").answer(frame.head(3)).shape == (3,)
            continue
        out = run_command(*shlex.split(command)[1:], cwd=tmp_path)
        assert out.returncode == 0, out.stderr


def test_it_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_ci_runs_the_test_command():
    assert "grep -m1 -F '.venv-test/bin/python -m pytest' README.md" in (ROOT / ".ci" / "run").read_text()
    assert ".venv-test/bin/python -m pytest" in TEST[0]


@pytest.mark.install
def test_the_install_command_on_a_fresh_machine(tmp_path):
    """A copy of the project, a new virtual environment, the command as it stands in the README."""
    ignore = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "*.egg-info", ".*_cache", "ectype-demo", "_build")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=ignore)
    out = typed(INSTALL[0], tmp_path / "clone")
    assert re.search(r"sequential +3000 +\d+ +0\.\d\d +(0\.99|1\.0)", out)  # queries, kept, eff, accuracy
    assert (tmp_path / "clone" / "ectype-demo" / "report.html").is_file()


def test_the_tutorial(tmp_path, monkeypatch):
    """Its commands in order, in a copy of examples/; those that install are the README's, which the test above has."""
    make, activate, install, *steps = commands("tutorial.md")
    assert install.endswith('".[onnx]"')  # it exports ONNX
    install = install.replace("pip", ".venv/bin/pip", 1).replace('".[onnx]"', ".")
    assert [make, install] == INSTALL[0].split(" && ")[:2]
    assert activate == ". .venv/bin/activate"
    assert len(steps) <= 12 - 3
    assert not any("&&" in step or ";" in step for step in steps)  # which would be several
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "loans.py", tmp_path / "examples")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    out = typed("\n".join(steps).replace("8080", port), tmp_path)
    assert '{"predictions":["yes"]}' in out
    assert ec.load(tmp_path / "examples" / "loans-copy").certificate.lower > 0.93
    assert (tmp_path / "examples" / "loans.onnx").is_file()


def typed(script, folder):
    """What commands say that are typed one after the other, the first that fails being the last."""
    done = subprocess.run(["bash", "-e", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
