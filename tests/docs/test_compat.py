"""The script that copies what other people's servers serve, as far as it runs without them, and its document."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "compat" / "servers.py"


def call(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def servers():
    spec = importlib.util.spec_from_file_location("servers", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["servers"] = module  # where NamedTuple looks its annotations up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["servers"]


def test_it_explains_itself():
    done = call("--help")
    assert done.returncode == 0
    assert "mlserver, mlflow" in done.stdout


def test_a_server_it_does_not_know():
    done = call("triton")
    assert done.returncode == 2
    assert "mlserver, mlflow, bentoml, litserve were expected, found triton" in done.stderr


def test_the_document_names_the_command_and_each_server(servers):
    text = (ROOT / "docs" / "background" / "compatibility.md").read_text()
    assert "$ python compat/servers.py" in text
    for name, about in servers.SERVERS.items():
        for case in about.cases:
            assert any(line.split()[:1] == [name] and case in line.split() for line in text.splitlines())


def test_ports_are_free_and_differ(servers):
    ports = servers.free_ports(3)
    assert len(set(ports)) == 3
    with socket.socket() as one:
        one.bind((servers.HOST, ports[0]))


def test_a_server_is_awaited_and_ended_with_all_it_started(servers, tmp_path):
    (port,) = servers.free_ports(1)
    code = (
        "import http.server, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        f"http.server.test(http.server.SimpleHTTPRequestHandler, port={port}, bind='127.0.0.1')\n"
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, start_new_session=True, **quiet)
    try:
        servers.wait(f"http://{servers.HOST}:{port}/", process, 30)
    finally:
        servers.end(process)
    assert process.returncode == -signal.SIGTERM
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"  # at most not yet collected


def test_a_server_that_ends_early_is_not_awaited(servers):
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"], start_new_session=True)
    process.wait(30)
    with pytest.raises(servers.Failure, match="exit code 7"):
        servers.wait(f"http://{servers.HOST}:{servers.free_ports(1)[0]}/", process, 30)
    servers.end(process)


def test_a_command_that_fails_is_quoted(servers):
    with pytest.raises(servers.Failure, match="exit code 3\nwhy it did"):
        servers.run([sys.executable, "-c", "import sys; print('why it did', file=sys.stderr); sys.exit(3)"])
    assert servers.run([sys.executable, "-c", "print(1)"]) == "1\n"


def test_commands_are_shown_without_folders(servers):
    assert servers.shown(["/a/b/python", "copy", "http://h:1/v2/models/m"]) == "python copy http://h:1/v2/models/m"


def test_servers_listen_at_home_only(servers, tmp_path):
    (tmp_path / "served").mkdir()
    python = tmp_path / "venv" / "bin" / "python"
    for server in ("mlflow", "bentoml"):
        command = servers.start_command(server, python, tmp_path, [1, 2, 3])
        assert command[command.index("--host") + 1] == servers.HOST
    assert f'host="{servers.HOST}"' in servers.SERVICES["litserve"]
    servers.start_command("mlserver", python, tmp_path, [1, 2, 3])
    settings = json.loads((tmp_path / "served" / "settings.json").read_text())
    assert (settings["host"], settings["http_port"]) == (servers.HOST, 1)


def test_the_environment_of_a_server_is_its_own(servers, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    found = servers.surroundings(tmp_path / "bin" / "python")
    assert "PYTHONPATH" not in found
    assert found["PATH"].split(os.pathsep)[0] == str(tmp_path / "bin")


def test_the_table_shows_what_is_there_and_why_something_is_not(servers):
    good = {"server": "mlflow", "version": "3", "python": "3.11", "model": "array", "protocol": "mlflow"}
    rows = [
        {**good, "asked": 9, "alike": 9, "lower": 0.51, "outcome": "ok", "packages": {"mlflow": "3"}},
        {"server": "mlserver", "model": "frame", "protocol": "v2", "outcome": "failed", "why": "out of order"},
    ]
    text = servers.report(rows)
    assert text.splitlines()[1].split() == ["mlflow", "3", "3.11", "array", "mlflow", "9", "9", "0.5100", "ok"]
    assert text.splitlines()[2].split() == ["mlserver", "-", "-", "frame", "v2", "-", "-", "-", "failed"]
    assert "mlserver, frame: out of order" in text
