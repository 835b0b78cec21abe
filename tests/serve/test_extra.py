"""Without the libraries of the extra `serve`: help is there, and what is served says what to install."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for name in ("httptools", "prometheus_client", "uvicorn", "uvloop"):
    sys.modules[name] = None  # as if it were not installed
from ectype.cli import main
main(sys.argv[1:])
"""
SERVICE = """
import sys
sys.modules["prometheus_client"] = None
from ectype.serve import service
service("my-copy")
"""


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)


def test_help_needs_no_server():
    done = run(WITHOUT, "serve", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--max-rows" in done.stdout


@pytest.mark.parametrize("options", [(), ("--grpc-port", "0")])
def test_the_command_names_the_extra(options, tmp_path):
    done = run(WITHOUT, "serve", str(tmp_path), *options)
    assert (done.returncode, done.stdout) == (2, "")
    expected = "serve: expected the library prometheus_client, found none"
    assert done.stderr.startswith(f"ectype: {expected}")
    assert 'pip install "ectype[serve]"' in done.stderr


def test_a_service_names_it_too():
    done = run(SERVICE)
    assert "SettingError: service: expected the library prometheus_client, found none" in done.stderr
    assert 'pip install "ectype[serve]"' in done.stderr
