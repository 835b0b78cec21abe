"""The command as people call it, by its exit codes and what it prints; in a process of its own where that matters."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command as call
from ectype.cli.progress import follow
from ectype.runs.result import Record
from processes import shown_on_a_terminal

COMMAND = [sys.executable, "-m", "ectype"]
ORIGINALS = """
import numpy as np

def disc(rows):
    return np.where((rows**2).sum(axis=1) < 1, "in", "out")

def frames(rows):
    return (rows["age"] > 50) & (rows["plan"] != "pro") & (rows["zone"] < 9) & (rows["grade"] != "none")

def broken(rows):
    raise RuntimeError("out of order")

def pressed(rows):
    raise KeyboardInterrupt

left = 250
def soon(rows):
    global left
    left -= len(rows)
    if left < 0:
        raise KeyboardInterrupt
    return disc(rows)

def chatty(rows):
    print("asked", len(rows))
    return disc(rows)
"""


def in_a_process(*arguments, cwd):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(ORIGINALS)
    return tmp_path


def test_help_and_version_import_nothing_heavy():
    """How long they take is measured by benchmarks/start.py: on a busy machine a test could only guess."""
    heavy = "{'numpy', 'jax', 'sklearn', 'scipy', 'pandas', 'matplotlib', 'pydantic', 'rich'}"
    code = (
        "import sys, ectype, ectype.cli\n"
        "try: ectype.cli.main([sys.argv[1]])\n"
        "except SystemExit as end: assert end.code == 0\n"
        f"heavy = {heavy} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    shown = {
        option: subprocess.run([sys.executable, "-c", code, option], check=True, capture_output=True, text=True).stdout
        for option in ("--help", "--version")
    }
    assert "Copy a classifier you can only query" in shown["--help"]
    assert "entitled to copy" in shown["--help"]
    assert shown["--version"] == f"ectype, version {ec.__version__}\n"


def test_another_package_may_give_a_command(monkeypatch):
    assert "Run the experiments of the paper." in call("--help").stdout
    assert "table4" in call("paper", "--help").stdout
    monkeypatch.setattr("ectype.cli.find_spec", lambda package: None)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **chosen: ())
    assert "Run the experiments of the paper." not in call("--help").stdout
    missing = call("paper", "fig1")
    assert missing.returncode == 2
    assert "the package ectype-paper, found none that is installed; pip install ./reproduction" in missing.stderr
    assert "No such command 'papers'" in call("papers").stderr


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.outside = []

    def handle_starttag(self, tag, attributes):
        self.outside += [v for k, v in attributes if k in ("src", "href", "xlink:href") and v and v[0] != "#"]


def test_the_demo_end_to_end(tmp_path):
    """The main job at full size, held to what it must reach."""
    out = in_a_process("demo", "--json", cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    document = json.loads(out.stdout)
    assert document["queries"] == {"training": 3000, "certificate": 5000, "repeat": 160}
    assert document["certificate"]["lower"] >= 0.985
    assert document["certificate"]["confidence"] == 0.95
    assert document["accuracy"] >= 0.99
    assert document["peak_mb"] > 0
    assert set(document["methods"]) == {"all kept", "sequential", "one-shot", "online"}
    bounded = document["methods"]["sequential"]
    assert bounded["kept"] <= 0.15 * 3000
    assert bounded["certificate"]["lower"] >= 0.97
    assert "iteration 6/6" in out.stderr
    assert "iteration 30/30" in out.stderr
    page = (tmp_path / document["report"]).read_text()
    links = Links()
    links.feed(page)
    assert not links.outside
    assert "default-src &#39;none&#39;" in page
    for words in (
        "accuracy on test data",
        "Plain boosting",
        "Decisions over the plane",
        "Methods side by side",
        "|Sₜ|",
    ):
        assert words in page
    assert len(page) < 400_000
    assert ec.load(tmp_path / document["out"]).certificate.lower == document["certificate"]["lower"]


def test_a_report_that_cannot_be_written_loses_no_copy(folder):
    """A directory is in its place, as it were a full disk: the copy is there, and the same command goes on from it."""
    arguments = ("copy", "mine:disc", "--space", "normal:2", "--out", "run", "--budget", 100, "--preset", "fast")
    assert call(*arguments, "--certificate-n", 50, cwd=folder).returncode == 0
    (folder / "run" / "report.html").unlink()
    (folder / "run" / "report.html").mkdir()
    out = call(*arguments, "--certificate-n", 50, cwd=folder)
    assert out.returncode == 3
    assert "run/report.html: expected a file that can be written" in out.stderr
    assert "the copy is in run; make room, and `ectype report run` writes its page" in out.stderr
    assert "Traceback" not in out.stderr
    assert ec.load(folder / "run").copy.classes_.tolist() == ["in", "out"]
    refused = call("report", "run", cwd=folder)
    assert refused.returncode == 2
    assert "expected a file that can be written" in refused.stderr
    (folder / "run" / "report.html").rmdir()
    assert call(*arguments, "--certificate-n", 50, cwd=folder).returncode == 0


def test_copy_writes_a_run_that_report_and_load_read(folder):
    arguments = ("copy", "mine:disc", "--space", "normal:2", "--out", "run", "--budget", 500, "--json")
    out = in_a_process(*arguments, cwd=folder)
    assert out.returncode == 0, out.stderr
    document = json.loads(out.stdout)
    assert set(document) >= {"queries", "kept", "certificate", "out", "seconds", "peak_mb", "stopped"}
    assert (
        "at most 500 queries for training, 2000 for the certificate, 50 again and 638 if requests fail, 3188 in all"
        in out.stderr
    )
    names = {"run.json", "space.json", "history.jsonl", "copy.json", "copy.safetensors", "report.html", "ledger.sqlite"}
    assert set(os.listdir(folder / "run")) == names
    copy = ec.load(folder / "run").copy
    assert copy.predict([[0.0, 0.0], [4.0, 4.0]]).tolist() == ["in", "out"]
    again = json.loads(call(*arguments, cwd=folder).stdout)
    assert again["certificate"] == document["certificate"]
    report = json.loads(call("report", "run", "--json", cwd=folder).stdout)
    assert report["report"] == "run/report.html"


def test_people_get_words(folder):
    out = call("copy", "mine:disc", "--space", "uniform:-2:2:2", "--out", "run", "--budget", 100, "--method",
               "one-shot", "--layers", "16,8", cwd=folder)  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert ec.load(folder / "run").copy.model.mlp.hidden == (16, 8)
    assert "A copy of mine:disc: mlp taught by a blend" in out.stdout
    assert re.search(r"gives the original's label on 9\d\.\d+% of 2000 fresh rows of the space;", out.stdout)
    assert re.search(r" 100 +0\.9\d\d\d\n", out.stdout)
    assert "its report is run/report.html" in out.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["copy", "mine:disc", "--space", "normal:2", "--out", "run", "--budget", "50", "--batch", "100"],
            2,
            "at least one batch of 100",
        ),
        (["copy", "mine:disc", "--space", "normal:0", "--out", "run"], 2, "columns above zero"),
        (["copy", "mine:disc", "--space", "none.json", "--out", "run"], 2, "a readable space.json"),
        (["copy", "mine:absent", "--space", "normal:2", "--out", "run"], 2, "something called absent in mine"),
        (["copy", "mine:disc", "--space", "normal:2", "--out", "run", "--to", "svm"], 2, "'svm' is not"),
        (["copy", "mine:disc", "--space", "normal:2", "--out", "run", "--method", "magic"], 2, "'magic' is not"),
        (["report", "nowhere"], 2, "expected a file of a finished run, found nothing"),
        (["demo", "--budget", "-1"], 2, "at least 1"),
        (["dance"], 2, "No such command"),
    ],
)
def test_exit_codes_and_messages(folder, arguments, code, message):
    out = call(*arguments, cwd=folder)
    assert out.returncode == code
    assert message in out.stderr
    assert "Traceback" not in out.stderr
    assert out.stdout == ""
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == ["mine.py"]


def test_an_original_that_fails_is_exit_code_3_and_keeps_the_ledger(folder):
    out = call("copy", "mine:broken", "--space", "normal:2", "--out", "run", cwd=folder)
    assert out.returncode == 3
    assert "RuntimeError: out of order" in out.stderr
    assert "nothing was answered yet, and the same command tries again" in out.stderr
    assert [path.name for path in (folder / "run").iterdir()] == ["ledger.sqlite"]


@pytest.mark.parametrize(
    ("original", "said"),
    [
        ("pressed", "interrupted; nothing was answered yet, and the same command tries again"),
        ("soon", "interrupted; what was answered is kept, and the same command goes on from there"),
    ],
)
def test_an_interrupt_says_what_is_kept_only_if_something_was_answered(folder, original, said):
    copy = ("copy", f"mine:{original}", "--space", "normal:2", "--preset", "fast", "--certificate-n", "200")
    out = call(*copy, "--budget", "300", "--out", "run", cwd=folder)
    assert (out.returncode, out.stderr.splitlines()[-1]) == (130, f"ectype: {said}")


def test_an_interrupt_before_the_first_answer_says_that_none_is_kept(folder):
    call("copy", "mine:disc", "--space", "normal:2", "--preset", "fast", "--budget", "60", "--out", "run", cwd=folder)
    out = call("certify", "run", "mine:pressed", "--n", "50", cwd=folder)
    assert out.returncode == 130
    expected = "ectype: interrupted; nothing was answered yet, and the same command tries again"
    assert out.stderr.splitlines()[-1] == expected


def test_a_refused_directory_is_refused_before_anything_is_announced(folder):
    copy = ("copy", "mine:disc", "--space", "normal:2", "--preset", "fast", "--certificate-n", "50", "--out", "run")
    assert call(*copy, "--budget", "60", cwd=folder).returncode == 0
    for other in (
        ("--budget", "90", "--seed", "3"),
        ("--budget", "90", "--to", "tree"),
        (
            "--budget",
            "30",
        ),
    ):
        out = call(*copy, *other, cwd=folder)
        assert out.returncode == 2
        assert "will be asked" not in out.stderr
        assert "it goes on" not in out.stderr
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    out = call(*copy[:-1], "full", cwd=folder)
    assert (out.returncode, "will be asked" in out.stderr) == (2, False)


def test_a_space_from_a_table_and_the_ledger_of_its_run(folder):
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "plan": rng.choice(["basic", "plus", "pro"], n),
            "zone": rng.integers(1, 4, n),
            "grade": rng.choice(["low", "mid", "high"], n),
            "id": [f"person-{k}" for k in range(n)],
        }
    )
    frame.to_csv(folder / "data.csv", index=False)
    describe = ["space", "data.csv", "--out", "space.json", "--drop", "id", "--category", "zone", "--ordered",
                "grade=low,mid,high", "--rule", "if plan == 'basic' then age >= 30"]  # fmt: skip
    out = call(*describe, "--json", cwd=folder)
    assert out.returncode == 0, out.stderr
    document = json.loads(out.stdout)
    assert document["columns"] == {"age": "integer", "plan": "category", "zone": "category", "grade": "ordered"}
    assert document["break_rules"] == int(((frame["plan"] == "basic") & (frame["age"] < 30)).sum())
    shown = call(*describe, cwd=folder).stdout
    assert re.search(r"grade +ordered +low < mid < high", shown)
    space = ec.Space.load(folder / "space.json")
    assert space.present(space.sample(5, rng)).dtypes["zone"] == "int64"
    out = call("copy", "mine:frames", "--space", "space.json", "--out", "run", "--budget", 200, "--certificate-n", 100,
               "--json", cwd=folder)  # fmt: skip
    assert out.returncode == 0, out.stderr
    ledger = json.loads(call("ledger", "run", "--price", 0.5, "--json", "--export", "all.csv", cwd=folder).stdout)
    assert ledger["asked"] == ledger["answered"] == sum(ledger["by_purpose"].values()) == 306 - ledger["saved"]
    assert ledger["saved"] > 0  # rows that were drawn twice, of so few there are
    assert (ledger["maybe_paid"], ledger["repeated"], ledger["cost"]) == (0, 6, 0.5 * ledger["asked"])
    asked = pd.read_csv(folder / "all.csv")
    assert list(asked.columns) == ["age", "plan", "zone", "grade", "request", "purpose", "answered", "label"]
    assert (asked["label"] == ((asked["age"] > 50) & (asked["plan"] != "pro"))).all()
    assert call("ledger", "run", "--export", "all.parquet", cwd=folder).returncode == 0
    assert len(pd.read_parquet(folder / "all.parquet")) == ledger["asked"]
    assert re.search(r"no answer, maybe paid +0", call("ledger", "run", cwd=folder).stdout)
    assert call("ledger", "nowhere", cwd=folder).returncode == 2
    assert call("space", "data.csv", "--out", "s.json", "--drop", "ids", cwd=folder).returncode == 2


def test_stored_answers_are_copied_and_run_out(folder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=600), "b": rng.choice(["x", "y"], 600)})
    frame.assign(label=np.where((frame["a"] > 0) & (frame["b"] == "x"), "yes", "no")).to_csv(
        folder / "answers.csv", index=False
    )
    out = call("copy", "answers.csv", "--out", "run", "--budget", 400, "--certificate-n", 200, "--json", cwd=folder)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout)["certificate"]["estimate"] > 0.95
    out = call("copy", "answers.csv", "--out", "more", "--budget", 500, "--certificate-n", 200, cwd=folder)
    assert out.returncode == 2
    assert "stored answers for 700 queries, found a table of 600; lower the budget" in out.stderr
    assert not (folder / "more").exists()
    out = call("copy", "answers.csv", "--out", "more", "--label", "y", cwd=folder)
    assert out.returncode == 2
    assert "a column 'y' with the answers" in out.stderr


def test_what_the_original_prints_is_not_on_stdout(folder):
    out = call("copy", "mine:chatty", "--space", "normal:2", "--out", "run", "--budget", 100, "--classes", "in,out",
               "--json", cwd=folder)  # fmt: skip
    assert json.loads(out.stdout)["out"] == "run"
    assert "asked 40" in out.stderr  # the first of the batches


def test_a_module_that_cannot_be_imported(folder):
    (folder / "bad.py").write_text("raise RuntimeError('model file missing')")
    out = call("copy", "bad:model", "--space", "normal:2", "--out", "run", cwd=folder)
    assert out.returncode == 2
    assert "RuntimeError: model file missing" in out.stderr


@pytest.mark.usefixtures("small_lesson")
def test_a_target_that_is_missed_is_exit_code_1(folder):
    out = call("copy", "mine:disc", "--space", "normal:2", "--out", "run", "--budget", 100, "--target", 0.9999,
               "--json", cwd=folder)  # fmt: skip
    assert out.returncode == 1
    assert json.loads(out.stdout)["stopped"] == "budget"
    assert "2000 held-out rows can show 0.9985 at most, if all agree" in out.stderr
    assert "the target 0.9999 was not reached: 2000 held-out rows are too few to show it" in out.stderr
    assert json.loads(out.stdout)["diagnosis"]["cause"] == "certificate"


def test_a_directory_with_another_run_is_refused(folder):
    arguments = ["copy", "mine:disc", "--space", "normal:2", "--out", "run", "--budget", "100", "--certificate-n", "50"]
    assert call(*arguments, cwd=folder).returncode == 0
    out = call(*arguments, "--seed", 4, cwd=folder)
    assert out.returncode == 2
    assert "found a run with seed 0 (now 4)" in out.stderr


def test_ctrl_c_is_exit_code_130_and_keeps_what_was_answered(folder):
    arguments = [
        "copy",
        "mine:disc",
        "--space",
        "normal:2",
        "--out",
        "run",
        "--certificate-n",
        "0",
        "--budget",
        "90000",
    ]
    # As at a terminal: a test run started in the background inherits an ignored Ctrl-C.
    heard = "import signal, ectype.cli as c; signal.signal(signal.SIGINT, signal.default_int_handler); c.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", heard, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    first = process.stderr.readline()  # printed before anything is asked
    assert "will be asked" in first
    assert "iteration" in process.stderr.readline()  # under way
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; what was answered is kept" in rest
    assert [path.name for path in (folder / "run").iterdir()] == ["ledger.sqlite"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_is_not_lost_in_a_destructor():
    class Pressed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)  # what this raises is dropped by Python

    shown = []

    def run():
        for iteration in range(5):
            if iteration == 2:
                Pressed()
            shown.append(iteration)
            yield Record(iteration, *[0.0] * (len(fields(Record)) - 1))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            follow("sequential", run(), 5)
        assert shown == [0, 1, 2]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_terminal_gets_a_progress_bar(folder):
    arguments = ["copy", "mine:disc", "--space", "normal:2", "--out", "run", "--budget", "300", "--preset", "fast"]
    shown = shown_on_a_terminal([*COMMAND, *arguments], cwd=folder)
    assert b"3/3" in shown
    assert "━".encode() in shown
