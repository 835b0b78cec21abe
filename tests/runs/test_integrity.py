"""Bytes that can be trusted: what was edited or damaged in a run's directory is found, and said where."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import ectype as ec
from commands import run_command, run_program
from ectype import ledger
from ectype.errors import DirectoryError, EctypeWarning, IntegrityError
from ectype.ledger import Ledger

SPACE = ec.Space.normal(2)
SETTINGS = {"budget": 150, "batch": 50, "certificate_n": 100, "schedule": 10, "layers": (6,), "seed": 1}
TOOL = Path(__file__).parents[2] / "tools" / "damage.py"


def original(asked=None):
    def predict(rows):
        if asked is not None:
            asked.append(len(rows))
        return np.where((rows**2).sum(axis=1) < 1, "inside", "outside")

    return ec.Original(predict, ["inside", "outside"], request_rows=25, name="disc")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "run"
    ec.copy_classifier(original(), SPACE, **SETTINGS, out=out)
    return out


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def edited(path, old, new):
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


def sql(run, *statements):
    """Edit a ledger as anyone can."""
    with sqlite3.connect(run / ledger.LEDGER) as connection:
        for statement in statements:
            connection.execute(*statement)
    connection.close()


# --- edits ------------------------------------------------------------------------------------------------------------


def swap_classes(run):
    edited(run / "copy.json", '"inside",\n   "outside"', '"outside",\n   "inside"')


def raise_the_bound(run):
    content = json.loads((run / "run.json").read_text())
    content["certificate"]["lower"] = 0.9999
    (run / "run.json").write_text(json.dumps(content, indent=1))


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (swap_classes, r"copy\.json: classes: expected sha256"),
        (raise_the_bound, r"run\.json: certificate: expected sha256"),
        (lambda run: edited(run / "run.json", '"seed": 1', '"seed": 2'), r"run\.json: settings: expected sha256"),
        (lambda run: edited(run / "space.json", '"x0"', '"x9"'), r"space\.json: columns: expected sha256"),
        (lambda run: edited(run / "history.jsonl", '"iteration": 1', '"iteration": 7'), r"history\.jsonl: line 2: exp"),
        (lambda run: edited(run / "run.json", '"checksums"', '"checksumz"'), r"run\.json: checksums: expected"),
        (lambda run: (run / "history.jsonl").write_text(""), r"history\.jsonl: expected sha256"),
    ],
)
def test_an_edited_file_is_refused_by_name_and_place(run, edit, where):
    edit(run)
    with pytest.raises(IntegrityError, match=where):
        ec.load(run)


def flip_codes(run):
    codes = sqlite3.connect(run / ledger.LEDGER).execute("SELECT codes FROM answers WHERE request = 3").fetchone()[0]
    sql(run, ("UPDATE answers SET codes = ? WHERE request = 3", ((1 - np.frombuffer(codes, np.int32)).tobytes(),)))


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        (flip_codes, "table answers, request 3: expected the row that was written, found another"),
        (
            lambda run: sql(run, ("UPDATE labels SET value = '\"in\"' WHERE code = 0",)),
            "table labels, code 0: expected",
        ),
        (
            lambda run: sql(run, ("UPDATE meta SET value = '{}' WHERE key = 'space'",)),
            "table meta, key space: expected",
        ),
        (lambda run: sql(run, ("DELETE FROM answers WHERE request = 2",)), "table answers, request 2: .* found none"),
        (lambda run: sql(run, ("INSERT INTO failures VALUES (9, 1, 0.0, 'x')",)), "table failures, id 9"),
        (lambda run: sql(run, ("UPDATE chain SET entries = '[]' WHERE batch = 2",)), "batch 2: expected a batch that"),
        (lambda run: sql(run, ("DELETE FROM chain WHERE batch > 2",)), "batches of rows, as run.json says, found 2"),
    ],
)
def test_an_edited_ledger_is_refused_by_table_and_row(run, edit, where):
    edit(run)
    for read in (
        ledger.summarise_ledger,
        ledger.read_answers,
        ledger.read_answers_and_round,
        lambda path: Ledger(path, {}, SPACE),
    ):
        with pytest.raises(IntegrityError, match=where):
            read(run / ledger.LEDGER)


def test_a_ledger_of_another_moment_does_not_pass_for_this_one(run, tmp_path):
    """A whole ledger, with a chain of its own, from a run with another seed."""
    ec.copy_classifier(original(), SPACE, **{**SETTINGS, "seed": 2}, out=tmp_path / "other")
    shutil.copy(tmp_path / "other" / ledger.LEDGER, run / ledger.LEDGER)
    # How many batches there are depends on how fast the disk is.
    other = r"(batch \d+: expected sha256 \w+|expected \d+ batches of rows), as run\.json says"
    with pytest.raises(IntegrityError, match=other):
        ledger.summarise_ledger(run / ledger.LEDGER)


def test_other_rows_with_the_same_crc_are_found_by_run_json(tmp_path):
    """The chain has large values by their CRC, which can be forged."""
    box = ec.Original(lambda rows: rows[:, 0] > 0, [False, True])
    ec.copy_classifier(box, SPACE, budget=1000, preset="fast", certificate_n=100, out=tmp_path / "run")
    path = tmp_path / "run" / ledger.LEDGER
    connection = sqlite3.connect(path)
    number, rows = connection.execute("SELECT id, rows FROM requests WHERE length(rows) > 4096").fetchone()
    connection.close()
    forged = b"anything" + rows[8:-4]
    forged += forge(zlib.crc32(rows), zlib.crc32(forged))
    assert zlib.crc32(forged) == zlib.crc32(rows)
    sql(tmp_path / "run", ("UPDATE requests SET rows = ? WHERE id = ?", (forged, number)))
    with pytest.raises(IntegrityError, match=r"ledger\.sqlite: rows and answers: expected sha256"):
        ledger.summarise_ledger(path)


def forge(wanted, start):
    """Four bytes that bring a CRC from one value to another: it is linear, so that its bits are equations."""

    def after(four):
        return zlib.crc32(four.to_bytes(4, "little"), start)

    rows = [(after(1 << bit) ^ after(0), 1 << bit) for bit in range(32)]
    left, answer = wanted ^ after(0), 0
    for bit in range(32):
        pivot = next(row for row in rows if row[0] >> bit & 1)
        rows = [(a ^ pivot[0], b ^ pivot[1]) if a >> bit & 1 else (a, b) for a, b in rows if (a, b) != pivot]
        if left >> bit & 1:
            left, answer = left ^ pivot[0], answer ^ pivot[1]
    return answer.to_bytes(4, "little")


# --- damaged ledgers --------------------------------------------------------------------------------------------------

ANSWERED = 105  # of six requests, the last of which killed it
KILLED = """
import os, signal, sys
from test_integrity import *
asked = []
def predict(rows):
    asked.append(rows)
    if len(asked) > 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return original().predict(rows)
box = ec.Original(predict, ["inside", "outside"], request_rows=25, name="disc")
ec.copy_classifier(box, SPACE, **SETTINGS, out=sys.argv[1])
"""


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory):
    """A run that was killed in the middle, with all that SQLite leaves then."""
    out = tmp_path_factory.mktemp("killed") / "run"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, out], env=environment, check=False)
    assert done.returncode == -9
    assert {file.name for file in out.iterdir()} == {
        f"{ledger.LEDGER}{suffix}" for suffix in ("", *ledger.BESIDE_LEDGER)
    }
    return out


@pytest.fixture
def killed(killed_once, tmp_path):
    return shutil.copytree(killed_once, tmp_path / "killed")


def test_a_killed_run_is_unfinished_and_not_damaged(killed):
    assert ledger.summarise_ledger(killed / ledger.LEDGER).answered == ANSWERED
    asked = []
    with pytest.warns(EctypeWarning, match="rows were under way when this run was stopped"):
        ec.copy_classifier(original(asked), SPACE, **SETTINGS, out=killed)
    assert sum(asked) == sum(ec.load(killed).queries.values()) - ANSWERED
    assert not {f"{ledger.LEDGER}{suffix}" for suffix in ledger.BESIDE_LEDGER} & {
        file.name for file in killed.iterdir()
    }


def cut(file, keep):
    file.write_bytes(file.read_bytes()[: int(keep * file.stat().st_size)])


WHOLE = {
    "cut": lambda run: cut(run / ledger.LEDGER, 0.6),
    "of zero bytes": lambda run: cut(run / ledger.LEDGER, 0),
    "no database": lambda run: (run / ledger.LEDGER).write_bytes(b"once upon a time " * 999),
    "zeros": lambda run: (run / ledger.LEDGER).write_bytes(bytes(99999)),
    "without a table": lambda run: sql(run, ("DROP TABLE answers",)),
    "without meta": lambda run: sql(run, ("DROP TABLE meta",)),
    "of wrong types": lambda run: sql(run, ("UPDATE requests SET n = 'many', rows = 7 WHERE id = 1",)),
    "of wrong lengths": lambda run: sql(run, ("UPDATE answers SET codes = x'0102' WHERE request = 1",)),
    "of unknown codes": lambda run: sql(run, ("UPDATE answers SET codes = zeroblob(100) + 1 WHERE request = 1",)),
    "of no JSON": lambda run: sql(run, ("UPDATE labels SET value = 'in'",)),
    "of another format": lambda run: sql(run, ("UPDATE meta SET value = '99' WHERE key = 'format'",)),
}
KILLED_RUNS = {
    "without its log": lambda run: (run / f"{ledger.LEDGER}-wal").unlink(),
    "with half a log": lambda run: cut(run / f"{ledger.LEDGER}-wal", 0.5),
    "with an empty log": lambda run: cut(run / f"{ledger.LEDGER}-wal", 0),
    "with half a head": lambda run: cut(run / f"{ledger.LEDGER}-head", 0.5),
}


@pytest.mark.parametrize("damage", WHOLE)
@pytest.mark.parametrize("commands", [["ledger"], ["card"], ["frontier"]])
def test_a_damaged_ledger_of_a_finished_run_is_bad_input(run, damage, commands):
    WHOLE[damage](run)
    done = run_command(*commands, run)
    assert done.returncode == 2, done.stderr
    assert str(run / ledger.LEDGER) in done.stderr
    assert "restore it from a backup" in done.stderr or "use the ectype that wrote it" in done.stderr
    assert ec.load(run).kept == 150  # what needs no ledger goes on


@pytest.mark.parametrize("damage", KILLED_RUNS)
def test_a_damaged_log_of_a_killed_run_is_bad_input_and_nothing_is_asked(killed, damage):
    KILLED_RUNS[damage](killed)
    done = run_command("ledger", killed)
    assert done.returncode == 2
    assert "it to go on" in done.stderr or "to go on" in done.stderr or "restore it" in done.stderr
    asked = []
    with pytest.raises(DirectoryError):
        ec.copy_classifier(original(asked), SPACE, **SETTINGS, out=killed)
    assert not asked


@pytest.mark.parametrize("damage", ["cut", "without meta", "of wrong types", "of wrong lengths", "of no JSON"])
def test_a_damaged_ledger_of_version_0_1_is_bad_input_too(tmp_path, damage):
    run = shutil.copytree(Path(__file__).with_name("version_0_1") / "run", tmp_path / "run")
    WHOLE[damage](run)
    for command in ("ledger", "card"):
        done = run_command(command, run)
        assert done.returncode == 2, done.stderr
        assert str(run / ledger.LEDGER) in done.stderr


def test_the_rest_of_a_damaged_ledger_is_salvaged_and_the_run_goes_on(killed, tmp_path):
    cut(killed / f"{ledger.LEDGER}-wal", 0.75)  # how requests share transactions varies
    said = run_command("ledger", killed).stderr
    left = int(said.partition("answers to ")[2].split()[0])
    assert 0 < left < ANSWERED
    assert f"`ectype ledger {killed} --salvage NEW`" in said
    done = run_command("ledger", killed, "--salvage", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert f"answers to {left} rows" in done.stdout
    assert ledger.summarise_ledger(tmp_path / "new" / ledger.LEDGER).answered == left
    asked = []
    with pytest.warns(EctypeWarning, match="rows were under way when this run was stopped"):
        result = ec.copy_classifier(original(asked), SPACE, **SETTINGS, out=tmp_path / "new")
    assert sum(asked) == sum(result.queries.values()) - left
    done = run_command("ledger", killed, "--salvage", tmp_path / "new")
    assert done.returncode == 2
    assert "a new or empty directory" in done.stderr


# --- any damage -------------------------------------------------------------------------------------------------------


def test_random_damage_is_found_or_changes_nothing():
    """`python tools/damage.py` tries 10,000; its outcome is in docs/runs.md."""
    done = run_program(TOOL, "--trials", 300, "--seed", 20)
    assert done.returncode == 0, done.stdout
    assert "300 damages, 0 missed" in done.stdout
