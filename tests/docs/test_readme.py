"""Every command and every example in the README is run here, or by .ci/run."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import understudy as us
from commands import run_command
from serving import Process

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.M | re.S)
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.strip().splitlines()]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
INSTALL = [command for command in COMMANDS if ".venv/bin/" in command]
TEST = [command for command in COMMANDS if ".venv-test/bin/" in command]
UNDERSTUDY = [command for command in COMMANDS if command.startswith("understudy ")]
# Benchmarks at full size take minutes; here they run at their smallest.
SMALL = {
    "benchmarks/engine.py": ["--quick", "--peers"],
    "benchmarks/spirals.py": ["--seeds", "1", "--variants", "one-shot"],
    "benchmarks/scale.py": ["--quick"],
    "benchmarks/ledger.py": ["--rows", "3000", "--rounds", "1"],
}
BENCHMARKS = [command for command in COMMANDS if command.startswith("python benchmarks/")]
MODULE = "def classifier(rows):\n    return (rows['end'] - rows['start'] > 3) & (rows['plan'] != 'basic')\n"


def test_every_command_belongs_to_a_test():
    assert sorted(COMMANDS) == sorted([*INSTALL, *TEST, *UNDERSTUDY, *BENCHMARKS])
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
    for command in UNDERSTUDY:
        if command.startswith("understudy serve "):
            with Process(*shlex.split(command)[2:], cwd=tmp_path) as server:
                assert us.open_original(server.model, protocol="v2").answer(frame.head(3)).shape == (3,)
            continue
        out = run_command(*shlex.split(command)[1:], cwd=tmp_path)
        assert out.returncode == 0, out.stderr


@pytest.mark.parametrize("command", BENCHMARKS)
def test_benchmarks(command):
    path = command.split()[1]
    subprocess.run([sys.executable, ROOT / path, *SMALL[path]], check=True, capture_output=True)


def test_ci_runs_the_test_command():
    assert "grep -m1 -F '.venv-test/bin/python -m pytest' README.md" in (ROOT / ".ci" / "run").read_text()
    assert ".venv-test/bin/python -m pytest" in TEST[0]


@pytest.mark.install
def test_the_install_command_on_a_fresh_machine(tmp_path):
    """A copy of the project, a new virtual environment, the command as it stands in the README."""
    ignore = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "*.egg-info", ".*_cache", "understudy-demo")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=ignore)
    out = subprocess.run(["bash", "-c", INSTALL[0]], cwd=tmp_path / "clone", capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert re.search(r"sequential +3000 +\d+ +0\.\d\d +(0\.99|1\.0)", out.stdout)  # queries, kept, eff, accuracy
    assert (tmp_path / "clone" / "understudy-demo" / "report.html").is_file()
