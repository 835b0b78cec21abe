"""The script with the clients of others, as far as it runs without them, and its document."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENTS = ("tritonclient", "kserve", "mlserver", "open-inference", "curl")


def call(name, *arguments):
    script = ROOT / "compat" / name
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, timeout=60)


def test_the_scripts_explain_themselves_and_know_their_clients():
    done = call("clients.py", "--help")
    assert (done.returncode, ", ".join(CLIENTS) in " ".join(done.stdout.split())) == (0, True)
    assert call("clients.py", "netscape").returncode == 2
    assert call("schemas.py", "--help").returncode == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_the_document_has_every_client_and_none_that_fails(client):
    lines = (ROOT / "docs" / "background" / "compatibility.md").read_text().splitlines()
    rows = [line.split() for line in lines if line.startswith(client + " ")]
    assert rows
    assert all(row[-1] == "ok" for row in rows if row[0] == client and "v2" not in row and "mlflow" not in row)
