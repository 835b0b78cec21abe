"""What is asked about a finished run, killed with SIGKILL and given again: nothing that was answered is paid twice.

`benchmarks/kills.py` kills the commands at random moments.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype._common.portable import lock_folder
from ectype.errors import DirectoryError, EctypeWarning, OutageError, QuotaError
from ectype.ledger import _session as session
from ectype.original import Original
from ectype.queries import Queries
from problems import ask_through

# Rows are written down by the original itself, which kills its process before it answers more than so many, once those
# that it answered are on disk.
ORIGINAL = """
import os, signal, sqlite3
from contextlib import closing
import numpy as np
import ectype as ec

left, book = int(os.environ.get("MOST", 10**9)), os.environ["BOOK"]

def disc(rows):
    global left
    left -= len(rows)
    if left < 0:
        while written_down() < len(open(book).readlines()):
            pass
        os.kill(os.getpid(), int(os.environ.get("SIGNAL", signal.SIGKILL)))
    with open(book, "a") as lines:
        lines.writelines(f"{row.tobytes().hex()}\\n" for row in np.asarray(rows, float))
    return (np.asarray(rows, float)[:, :2] ** 2).sum(axis=1) < 1.4

def written_down():
    with closing(sqlite3.connect("run/asked.sqlite")) as connection:
        return connection.execute("SELECT sum(n) FROM requests JOIN answers ON request = id").fetchone()[0]

box = ec.Original(disc, [False, True], request_rows=20)
"""
# What asks, in processes of their own: through Python, and through the command.
PYTHON = """
import json, sys
import ectype as ec
result = ec.load("run")
original = ec.open_original("mine:box")
"""
SCRIPTS = {
    "certify": 'print(ec.certify(result.copy, original, result.space, n=200, design="plain", run="run").as_json())',
    "cascade": "print(ec.cascade(result, original, agree=0.7, n=200).routing)",
    "page": 'result.report("page.html", original)',
}
COMMANDS = {
    "command": ["certify", "run", "mine:box", "--n", 100, "--data", "rows.csv", "--json"],
}
SPACE = ec.Space.normal(2)


@pytest.fixture(scope="module")
def made(tmp_path_factory, small_lessons):
    folder = tmp_path_factory.mktemp("session")
    (folder / "mine.py").write_text(ORIGINAL)
    pd.DataFrame(np.random.default_rng(5).normal(size=(100, 2)), columns=["x0", "x1"]).to_csv(
        folder / "rows.csv", index=False
    )
    disc = Original(lambda rows: (rows**2).sum(axis=1) < 1.4, name="disc")
    ec.copy_classifier(disc, SPACE, out=folder / "run", budget=100, certificate_n=100, preset="fast", repeat=0)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "here")


def started(folder, what, most=10**9, by=signal.SIGKILL, code=-signal.SIGKILL):
    """What a process prints that asks, or how it ended if it was killed; beside that, what it warns of."""
    environment = {**os.environ, "MOST": str(most), "BOOK": str(folder / "book"), "SIGNAL": str(int(by))}
    words = COMMANDS.get(what) and ["-m", "ectype", *map(str, COMMANDS[what])]
    words = words or ["-c", PYTHON + SCRIPTS[what]]
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, code), done.stderr
    return (done.returncode or done.stdout), done.stderr


def asked(folder, new=True):
    """How often each row was answered, since the book was begun; a new one is begun now, unless that is not wanted."""
    found = Counter((folder / "book").read_text().split())
    if new:
        (folder / "book").write_text("")
    return found


@pytest.mark.parametrize("what", [*SCRIPTS, *COMMANDS])
def test_kills_ask_nothing_twice_and_the_outcome_is_the_same(folder, kills, what):
    whole, _ = started(folder, what)
    page = (folder / "page.html").read_bytes() if what == "page" else b""
    undisturbed = asked(folder)
    assert max(undisturbed.values()) == 1
    for path in (folder / "run").glob(f"{ledger.SESSIONS}*"):
        path.unlink()
    for kill in range(1, kills + 1):
        assert started(folder, what, undisturbed.total() // (kills + 1))[0] == -signal.SIGKILL
        assert asked(folder, new=False).total() >= 20 * kill
    there = asked(folder, new=False).total()
    outcome, said = started(folder, what)
    assert f"{there} answers are taken from" in " ".join(said.split())
    assert "rows were under way" in said
    assert asked(folder) == undisturbed
    if what == "page":
        assert (folder / "page.html").read_bytes() == page
    elif what in COMMANDS:
        assert {**json.loads(outcome), "seconds": 0} == {**json.loads(whole), "seconds": 0}
    else:
        assert outcome == whole
    started(folder, what)  # it has ended: now it is asked anew, but for a cascade, whose original is known by its file
    assert asked(folder) == (undisturbed if what != "cascade" else Counter())


@pytest.mark.parametrize(
    ("by", "word", "code"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143)]
)
def test_a_command_that_is_asked_to_stop_says_what_is_kept(folder, by, word, code):
    kept = "what was answered is kept, and the same command goes on from there"
    ended, said = started(folder, "command", 50, by, code)
    assert (ended, said.splitlines()[-1]) == (code, f"ectype: {word}; {kept}")
    started(folder, "command")
    assert max(asked(folder).values()) == 1
    ended, said = started(folder, "command", 10, by, code)
    assert said.splitlines()[-1] == f"ectype: {word}; nothing was answered yet, and the same command tries again"


def test_what_was_paid_stays_on_record_and_is_shown(folder):
    assert started(folder, "command", 50)[0] == -signal.SIGKILL
    run = folder / "run"
    (one,) = json.loads(run_command("ledger", "run", "--json", cwd=folder)[1])["sessions"]
    assert (one["for"], one["original"], one["rows"], one["ended"]) == ("certify", "mine:box", 40, None)
    for what in ("command", "command", "cascade"):
        started(folder, what)
    found = json.loads(run_command("ledger", "run", "--price", 0.5, "--json", cwd=folder)[1])
    assert [(one["for"], one["rows"], one["ended"] is None) for one in found["sessions"]] == [
        ("certify", 200, False),
        ("certify", 200, False),
        ("cascade", 200, True),
    ]
    sent = found["since"]["by_purpose"]
    assert (sent["cascade"], sent["data"]) == (200, 200)
    assert 200 < sent["certificate"] <= 200 + 3 * 20  # and those that were under way at the kill
    assert found["cost"] == 0.5 * (found["asked"] + sum(sent.values()))
    assert "cascade, since" in run_command("ledger", "run", cwd=folder)[1]
    assert json.loads(run_command("ledger", "verify", "run", "--json", cwd=folder)[1])["since"]["rows"] == 600
    assert run_command("ledger", "compact", "run", cwd=folder).returncode == 0
    assert len(session.read_sessions(run)) == 3
    assert ec.load(run).certificate.n == 100


# --- in this process --------------------------------------------------------------------------------------------------


class Counting:
    """An original that counts the rows that it answers, and is out after so many."""

    def __init__(self, most=10**9):
        self.most, self.rows = most, []

    def __call__(self, rows):
        if len(self.rows) + len(rows) > self.most:
            raise OutageError("disc", "an answer", "nothing")
        self.rows.extend(row.tobytes() for row in np.ascontiguousarray(rows))
        return (rows**2).sum(axis=1) < 1.4

    def original(self, name="disc"):
        return Original(self, [False, True], request_rows=20, name=name)


def certified(path, counting, name="disc", **options):
    copy = ec.load(path).copy
    return ec.certify(copy, counting.original(name), SPACE, **{"n": 100, "run": path, "progress": False, **options})


@pytest.fixture
def interrupted(folder):
    """A run about which a certificate was begun: 40 of its 100 rows were answered."""
    with pytest.raises(OutageError):
        certified(folder / "run", Counting(40))
    return folder / "run"


@pytest.mark.parametrize(
    ("name", "options", "rows"),
    [
        ("disc", {}, 60),
        ("other", {}, 100),  # another original, of which nothing is known
        ("disc", {"n": 60}, 60),
        ("disc", {"seed": 1}, 100),
        ("disc", {"design": "plain"}, 100),
        ("disc", {"data": np.ones((3, 2))}, 101),
        ("disc", {"confidence": 0.9}, 60),
        ("disc", {"run": None}, 100),
    ],
)
@pytest.mark.filterwarnings("ignore::ectype.errors.EctypeWarning")
def test_only_the_same_session_is_gone_on_with(interrupted, name, options, rows):
    counting = Counting()
    certified(interrupted, counting, name, **options)
    assert len(counting.rows) == rows
    counting = Counting()
    certified(interrupted, counting)
    assert len(counting.rows) == (100 if rows == 60 and "n" not in options else 60)


def test_answers_of_a_week_ago_are_asked_for_again(interrupted, monkeypatch):
    monkeypatch.setattr(session, "SESSION_LIFETIME", 0.0)
    counting = Counting()
    certified(interrupted, counting)
    assert len(counting.rows) == 100
    assert [entry.rows for entry in session.read_sessions(interrupted)] == [40, 100]


def test_it_is_said_which_answers_are_of_before(interrupted):
    with pytest.warns(EctypeWarning, match=r"^40 answers are taken from .*asked.sqlite, the first of 20\S+; move it"):
        certified(interrupted, Counting())


def test_two_at_once_are_refused_before_either_pays_twice(interrupted):
    counting = Counting()
    with lock_folder(interrupted), pytest.raises(DirectoryError, match="another process that writes to it; wait until"):
        certified(interrupted, counting)
    assert not counting.rows


def test_a_session_in_which_nothing_was_asked_leaves_no_file(folder):
    class Refusing(Counting):
        def original(self, name="disc"):
            return Original(self, [False, True], d=3)

    with pytest.raises(ec.errors.EctypeError):
        certified(folder / "run", Refusing())
    assert not [*(folder / "run").glob("asked*")]
    with pytest.raises(DirectoryError, match="the directory of a run, found none"):
        certified(folder / "run", Counting(), run=folder / "nowhere")


@pytest.mark.parametrize("damage", ["bit", "cut", "empty", "older"])
def test_a_damaged_record_is_refused_with_what_to_do(interrupted, damage):
    file = interrupted / ledger.SESSIONS
    content = bytearray(file.read_bytes())
    if damage == "older":
        certified(interrupted, Counting(), name="another")
    content[-200] ^= damage == "bit"
    file.write_bytes(content[: {"cut": len(content) // 2, "empty": 0}.get(damage)])
    counting = Counting()
    with pytest.raises(DirectoryError, match=r"asked\.sqlite.*restore it from a backup, or move it and its -head away"):
        certified(interrupted, counting)
    assert not counting.rows
    for path in interrupted.glob("asked*"):
        path.rename(interrupted.parent / path.name)
    certified(interrupted, counting)
    assert len(counting.rows) == 100


def test_rows_that_differ_in_further_columns_alone_are_asked_each(folder):
    """They are one row of the space, and two questions."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["x0", "x1"])
    rows = pd.concat([frame, frame], ignore_index=True).assign(tier=[0.0] * 60 + [9.0] * 60)
    tiers = []

    def answer(rows):
        tiers.extend(rows.get("tier", ()))
        return rows["x0"] + rows.get("tier", 0) > 0

    space, original = ec.Space.from_data(frame), Original(answer, [False, True])
    copy = ec.copy_classifier(
        Original(lambda rows: rows["x0"] > 0, [False, True]), space, budget=100, preset="fast"
    ).copy
    with pytest.warns(EctypeWarning, match="the space lacks 'tier'"):
        kept = ec.certify(copy, original, space, n=20, data=rows, run=folder, progress=False)
    with pytest.warns(EctypeWarning, match="the space lacks 'tier'"):
        free = ec.certify(copy, original, space, n=20, data=rows, progress=False)
    assert sorted(tiers) == [0.0] * 120 + [9.0] * 120
    assert kept == free


# --- a run that takes over --------------------------------------------------------------------------------------------


def about_check(folder, counting, rows, ends=False):
    """Ask about rows in the session of a check, which is interrupted unless it ends."""
    with session.open_session(folder, "check", counting.original(), SPACE, {}, ends=ends) as found:
        Queries(counting.original(), SPACE, {"check": len(rows)}, found).query_labels("check", rows)


def test_a_run_whose_taking_over_was_killed_takes_over_the_rest(folder):
    """Each request is a transaction of its own: some may be there, and others not yet."""
    rows = np.random.default_rng(3).normal(size=(100, 2))
    about_check(folder / "run", Counting(), rows)
    (entry,) = session.read_sessions(folder / "run")
    with ledger.Ledger(folder / "new.sqlite", {}, SPACE) as to:
        to.record(rows[:30], (rows[:30] ** 2).sum(axis=1) < 1.4, "check")
    with ledger.Ledger(folder / "new.sqlite", {}, SPACE) as to:
        with pytest.warns(EctypeWarning, match="100 answers are taken from"):
            session.take_over_session(folder / "run", "check", Counting().original(), SPACE, {}, to)
        counting = Counting()
        found = ask_through(to, counting.original(), SPACE, rows, "check")
    assert not counting.rows
    assert found.tolist() == ((rows**2).sum(axis=1) < 1.4).tolist()
    (entry,) = session.read_sessions(folder / "run")
    assert entry.ended is not None


def test_what_is_too_old_is_not_taken_over(folder, monkeypatch):
    about_check(folder / "run", Counting(), np.ones((1, 2)))
    monkeypatch.setattr(session, "SESSION_LIFETIME", 0.0)
    with ledger.Ledger(folder / "new.sqlite", {}, SPACE) as to:
        session.take_over_session(folder / "run", "check", Counting().original(), SPACE, {}, to)
        assert to.empty
    assert [entry.ended for entry in session.read_sessions(folder / "run")] == [None]


def test_attempts_of_a_week_ago_that_nobody_answered_are_forgotten(folder, monkeypatch):
    """They used up rows that may be sent again: an original that was out for long is asked anew."""
    for _ in range(2):
        with pytest.raises(OutageError):
            certified(folder / "run", Counting(0), retries=0.2)
    with pytest.raises(QuotaError):
        certified(folder / "run", Counting(), retries=0)
    monkeypatch.setattr(session, "SESSION_LIFETIME", 0.0)
    counting = Counting()
    certified(folder / "run", counting, retries=0)
    assert len(counting.rows) == 100
