"""What the command meets outside: full and read-only disks, symbolic links, terminals, spreadsheets, signals, keys."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command as call
from ectype import ledger
from ectype._common.manifest import KEY_VARIABLE, Key
from ectype.errors import DirectoryError

pytestmark = pytest.mark.usefixtures("small_lessons")

ORIGINAL = """
import numpy as np

asked = []

def disc(rows):
    asked.append(len(rows))
    return np.where((rows**2).sum(axis=1) < 1, "in", "out")

def evil(rows):
    return np.where(rows[:, 0] < 1, "\\x1b]0;owned\\x07\\x1b[2Jbad", "=cmd()")
"""
COPY = ("--space", "normal:2", "--preset", "fast", "--certificate-n", 100, "--budget", 300)
ESCAPES = ("\x1b", "\x07", "\x9b")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(ORIGINAL)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "mine.py").write_text(ORIGINAL)
    done = call("copy", "mine:disc", *COPY, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


# --- disks ------------------------------------------------------------------------------------------------------------


@contextmanager
def disk(path, size):
    """A file system of its own, of so many bytes; skipped where that takes rights that a test does not have."""
    path.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("only root may mount a small disk here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def remount(path, options):
    subprocess.run(["mount", "-o", f"remount,{options}", path], check=True, capture_output=True)


def test_a_full_disk_is_no_loss_and_the_same_command_goes_on(folder):
    arguments = ("copy", "mine:disc", *COPY[:-1], 30_000, "--out", "disk/run")
    with disk(folder / "disk", "900k"):
        full = call(*arguments, cwd=folder)
        assert full.returncode == 3, full.stderr
        assert "make room" in full.stderr
        assert "the same command again: what was answered is kept" in full.stderr
        kept = ledger.summarise_ledger(folder / "disk" / "run" / ledger.LEDGER).answered
        assert kept
        again = call(*arguments, cwd=folder)
        assert again.returncode == 3, again.stderr
        remount(folder / "disk", "size=64m")
        done = call(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
        found = ledger.summarise_ledger(folder / "disk" / "run" / ledger.LEDGER)
        assert found.answered == sum(ec.load(folder / "disk" / "run").queries.values())


@pytest.mark.parametrize("log", [False, True])
def test_an_archive_that_is_read_only_is_read(made, folder, log):
    with disk(folder / "disk", "16m"):
        archive = shutil.copytree(made, folder / "disk" / "run")
        if log:  # as a run leaves it that was killed right after it was finished
            book = ledger.Ledger(archive / ledger.LEDGER, {}, ec.Space.normal(2))
            book.keep_round(99, np.zeros(3, np.float32), {})
            book.settle()
            for suffix in ("", *ledger.BESIDE_LEDGER):
                shutil.copy(archive / f"{ledger.LEDGER}{suffix}", folder)
            book.close()
            for suffix in ("", *ledger.BESIDE_LEDGER):
                shutil.copy(folder / f"{ledger.LEDGER}{suffix}", archive)
            assert (archive / f"{ledger.LEDGER}-wal").stat().st_size
        remount(folder / "disk", "ro")
        before = {file.name: file.read_bytes() for file in archive.iterdir()}
        asked = json.loads(call("ledger", archive, "--json").stdout)
        assert asked["answered"] == sum(ec.load(archive).queries.values())
        for command, name in (("card", "card.md"), ("report", "page.html")):
            done = call(command, archive, "--out", folder / name)
            assert done.returncode == 0, done.stderr
            assert (folder / name).stat().st_size
            refused = call(command, archive)
            assert refused.returncode == 2
            assert "Read-only file system" in refused.stderr
        certified = call("certify", archive, "mine:disc", "--n", 50, cwd=folder)
        assert certified.returncode == 0, certified.stderr
        assert "answers are kept in memory alone" in " ".join(certified.stderr.split())
        assert ledger.read_answers_and_round(archive / ledger.LEDGER)[1] == (99 if log else 2)
        assert {file.name: file.read_bytes() for file in archive.iterdir()} == before


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [ledger.LEDGER, *(f"{ledger.LEDGER}{suffix}" for suffix in ledger.BESIDE_LEDGER)])
def test_a_ledger_is_not_written_through_a_link(folder, name):
    (folder / "run").mkdir()
    (folder / "victim").write_bytes(b"")
    (folder / "run" / name).symlink_to(folder / "victim")
    done = call("copy", "mine:disc", *COPY, "--out", "run", cwd=folder)
    assert done.returncode == 2
    assert "symbolic link" in done.stderr or "other files" in done.stderr
    assert (folder / "victim").read_bytes() == b""


def test_outputs_replace_a_link_and_leave_what_it_leads_to(made, folder):
    run = shutil.copytree(made, folder / "run")
    for name in ("copy.json", "run.json", "report.html", "card.md"):
        (folder / name).write_text("mine")
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(folder / name)
    (run / "run.json").unlink()
    outputs = {
        run / "report.html": ("copy", "mine:disc", *COPY, "--out", run),
        run / "card.md": ("card", run),
        folder / "queries.csv": ("ledger", run, "--export", folder / "queries.csv"),
        folder / "made.sql": ("export", run, folder / "made.onnx"),
    }
    (folder / "victim").write_text("mine")
    for link in (folder / "queries.csv", folder / "made.onnx"):
        link.symlink_to(folder / "victim")
    for arguments in outputs.values():
        done = call(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert {(folder / name).read_text() for name in ("copy.json", "report.html", "card.md", "victim")} == {"mine"}
    assert not any(path.is_symlink() for path in (*run.iterdir(), folder / "queries.csv", folder / "made.onnx"))


def test_a_directory_that_is_a_link_is_where_it_leads(folder):
    (folder / "large").mkdir()
    (folder / "run").symlink_to(folder / "large")
    done = call("copy", "mine:disc", *COPY, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ec.load(folder / "large").kept


# --- terminals --------------------------------------------------------------------------------------------------------


class Rude(BaseHTTPRequestHandler):
    """An endpoint whose errors and labels would take over a terminal."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"error": "\x1b]0;owned\x07\x1b[2J", "raw": "\x9b31m"}, ensure_ascii=False).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_what_an_endpoint_says_does_not_reach_the_terminal_as_it_is(folder):
    server = HTTPServer(("127.0.0.1", 0), Rude)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/predict"
        done = call("copy", url, "--protocol", "instances", *COPY, "--out", "run", cwd=folder)
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 3
    assert "owned" in done.stderr
    assert not any(escape in done.stderr + done.stdout for escape in ESCAPES)


def test_labels_and_names_do_not_reach_the_terminal_as_they_are(folder):
    pd.DataFrame({"\x1b[31mred [bold]": ["\x1b[2J", "b"] * 60, "n": range(120)}).to_csv(
        folder / "rows.csv", index=False
    )
    for arguments in (
        ("copy", "mine:evil", *COPY, "--out", "run"),
        ("certify", "run", "mine:evil", "--n", 200),
        ("ledger", "run"),
        ("space", "rows.csv", "--out", "space.json"),
        ("space", "rows.csv", "--out", "space.json", "--drop", "\x1b[2Jnone"),
    ):
        done = call(*arguments, cwd=folder)
        assert done.returncode == (2 if "--drop" in arguments else 0), done.stderr
        assert not any(escape in done.stderr + done.stdout for escape in ESCAPES), arguments
        if arguments[0] == "space" and done.returncode == 0:
            assert "red [bold]" in done.stdout


# --- spreadsheets -----------------------------------------------------------------------------------------------------


def test_exports_hold_no_formula(folder):
    done = call("copy", "mine:evil", *COPY, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    call("ledger", "run", "--export", "queries.csv", cwd=folder)
    with open(folder / "queries.csv", newline="") as file:
        cells = list(csv.reader(file))
    labels = {row[cells[0].index("label")] for row in cells[1:]}
    assert "'=cmd()" in labels
    assert all(float(row[0]) > -9 for row in cells[1:])  # numbers below zero stay numbers
    assert any(row[0].startswith("-") for row in cells[1:])
    assert call("card", "run", cwd=folder).returncode == 0
    cells = [cell.strip() for cell in (folder / "run" / "card.md").read_text().split("|")]
    assert not any(cell.startswith("=") for cell in cells)


def test_names_of_columns_and_levels_are_no_formula_either(folder):
    space = ec.Space.from_data(pd.DataFrame({"=x": ["@a", "b"] * 40, "-y": np.linspace(-1, 1, 80)}))
    box = ec.Original(lambda rows: rows["-y"] > 0, [False, True])
    ec.copy_classifier(box, space, budget=100, preset="fast", certificate_n=50, out=folder / "run")
    call("ledger", folder / "run", "--export", folder / "queries.csv")
    frame = pd.read_csv(folder / "queries.csv")
    assert {"'=x", "'-y"} <= set(frame.columns)
    assert set(frame["'=x"]) == {"'@a", "b"}
    done = call("ledger", folder / "run", "--export", folder / "queries.parquet")
    if done.returncode == 0:  # with pyarrow: all as it is
        assert set(pd.read_parquet(folder / "queries.parquet")["=x"]) == {"@a", "b"}
    call("card", folder / "run")
    cells = [cell.strip() for cell in (folder / "run" / "card.md").read_text().split("|")]
    assert not any(cell.startswith(("=", "@")) for cell in cells)


# --- signals ----------------------------------------------------------------------------------------------------------


def test_sigterm_ends_a_copy_like_ctrl_c(folder):
    arguments = ["copy", "mine:disc", "--space", "normal:2", "--out", "run", "--preset", "fast",
                 "--batch", "100", "--certificate-n", "0", "--budget", "90000"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "ectype", *arguments], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    assert "will be asked" in process.stderr.readline()
    assert "iteration" in process.stderr.readline()  # under way
    process.send_signal(signal.SIGTERM)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "terminated; what was answered is kept, and the same command goes on from there" in rest
    assert os.listdir(folder / "run") == [ledger.LEDGER]
    found = ledger.summarise_ledger(folder / "run" / ledger.LEDGER)
    assert found.answered
    assert found.checked


# --- signatures -------------------------------------------------------------------------------------------------------

SECRET = "correct horse battery staple"


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SECRET)


def test_a_signed_run_is_checked_wherever_it_is_loaded(folder, key, monkeypatch):
    done = call("copy", "mine:disc", *COPY, "--out", "run", "--sign", cwd=folder)
    assert done.returncode == 0, done.stderr
    card = call("card", "run", cwd=folder)
    assert card.returncode == 0
    assert "Signature: checked, and valid." in (folder / "run" / "card.md").read_text()
    proof = json.loads(call("certify", "run", "mine:disc", "--n", 50, "--json", cwd=folder).stdout)
    assert (proof["checked"], proof["signature"]) == (True, "checked, and valid")
    monkeypatch.setenv(KEY_VARIABLE, "another key of many bytes")
    for arguments in (
        ("card", "run"),
        ("certify", "run", "mine:disc", "--n", 50),
        ("ledger", "run"),
        ("report", "run"),
    ):
        refused = call(*arguments, cwd=folder)
        assert refused.returncode == 2
        assert f"run.json: signature: expected a signature by the key in {KEY_VARIABLE}" in refused.stderr
    monkeypatch.delenv(KEY_VARIABLE)
    said = call("certify", "run", "mine:disc", "--n", 50, cwd=folder).stdout
    assert f"signature: not checked, as {KEY_VARIABLE} is not set" in said


def test_checksums_that_were_computed_anew_do_not_pass_with_a_key(folder, key):
    """Whoever edits a file can compute all checksums again, but not the signature."""
    from ectype._common.manifest import file_entry, seal

    call("copy", "mine:disc", *COPY, "--out", "run", "--sign", cwd=folder)
    path = folder / "run"
    edited = (path / "copy.json").read_bytes().replace(b'"in"', b'"on"')
    (path / "copy.json").write_bytes(edited)
    content = json.loads((path / "run.json").read_text())
    content["files"]["copy.json"] = file_entry("copy.json", edited)
    signature = content.pop("signature")
    del content["checksums"]
    (path / "run.json").write_text(json.dumps({**seal(content), "signature": signature}))
    with pytest.raises(DirectoryError, match="of other files"):
        ec.load(path)
    (path / "run.json").write_text(json.dumps(seal(content)))
    with pytest.raises(DirectoryError, match=f"a signature, as {KEY_VARIABLE} is set, found none"):
        ec.load(path)


def test_a_key_that_is_missing_or_short_is_bad_input_before_anything_is_asked(folder, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    done = call("copy", "mine:disc", *COPY, "--out", "run", "--sign", cwd=folder)
    assert done.returncode == 2
    assert f"{KEY_VARIABLE}: expected a key to sign with in the environment, found nothing" in done.stderr
    monkeypatch.setenv(KEY_VARIABLE, "short")
    done = call("copy", "mine:disc", *COPY, "--out", "run", "--sign", cwd=folder)
    assert done.returncode == 2
    assert "a key of at least 16 bytes" in done.stderr
    assert "short\n" not in done.stderr
    assert not (folder / "run").exists()


def test_a_result_is_signed_in_python(folder, key):
    result = ec.copy_classifier(lambda rows: rows[:, 0] > 0, ec.Space.normal(2), budget=100, preset="fast")
    assert ec.load(result.save(folder / "signed", Key.of_environment())).signature == "checked, and valid"
