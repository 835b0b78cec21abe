"""A ledger's file that somebody else made: whatever SQL, pipes or lengths are in it, reading it ends in a sentence."""

import json
import os
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.errors import DirectoryError, IntegrityError
from ectype.ledger import LEDGER
from ectype.ledger import _connections as connections
from ectype.ledger import _hash_chain as hash_chain
from ectype.ledger._hash_chain import begin
from problems import disc

PLANE = ec.Space.normal(2)
SETTINGS = {"budget": 90, "batch": 30, "certificate_n": 60, "preset": "fast", "repeat": 0}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("files") / "run"
    ec.copy_classifier(ec.Original(disc, name="disc"), PLANE, out=out, **SETTINGS)
    return out


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def sql(run, *statements):
    with closing(sqlite3.connect(run / LEDGER, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
ADDED = {
    "the trigger 'more'": ["CREATE TRIGGER more AFTER INSERT ON labels BEGIN DELETE FROM answers; END"],
    "the view 'more'": ["CREATE VIEW more AS SELECT 1"],
    "the index 'more'": ["CREATE INDEX more ON requests (n)"],
    "the table 'more'": ["CREATE TABLE more (x)"],
    "the table 'sqlite_stat1'": ["ANALYZE"],
    "the table 'labels', which has another definition": ["ALTER TABLE labels ADD COLUMN more AS (code + 1)"],
    "the view 'answers'": ["DROP TABLE answers", f"CREATE VIEW answers AS {ENDLESS} i AS request, 1, x'00' FROM n"],
    "the view 'chain'": ["DROP TABLE chain", f"CREATE VIEW chain AS {ENDLESS} i AS batch, '[]', '' FROM n"],
    "the view 'meta'": ["DROP TABLE meta", f"CREATE VIEW meta AS {ENDLESS} i AS key, '' FROM n"],
}


@pytest.mark.parametrize("found", ADDED)
def test_what_is_no_table_of_ours_is_noticed_and_never_run(run, found):
    sql(run, *ADDED[found])
    for read in (ledger.verify_ledger, ledger.summarise_ledger, ledger.read_answers, ledger.chain_anchor):
        with pytest.raises(IntegrityError, match="the tables of a ledger and nothing else, found") as error:
            read(run / LEDGER)
        assert found in str(error.value)


def test_the_command_says_so_and_what_is_left(run, tmp_path):
    sql(run, *ADDED["the trigger 'more'"])
    done = run_command("ledger", "verify", run)
    assert done.returncode == 2
    assert "found the trigger 'more'; answers to 150 rows are as they were written: restore it" in done.stderr
    done = run_command("ledger", run, "--salvage", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert ledger.summarise_ledger(tmp_path / "new" / LEDGER).answered == 150


def test_of_a_ledger_without_its_answers_nothing_is_left(run):
    sql(run, *ADDED["the view 'answers'"])
    done = run_command("ledger", run)
    assert done.returncode == 2
    assert "nothing of it can be used: restore it from a backup" in done.stderr


def test_nothing_is_written_through_a_trigger(run):
    before = ledger.summarise_ledger(run / LEDGER).answered
    sql(run, "CREATE TRIGGER more AFTER INSERT ON requests BEGIN DELETE FROM answers; END")
    with pytest.raises(IntegrityError, match="found the trigger 'more'"):
        ec.copy_classifier(ec.Original(disc, name="disc"), PLANE, out=run, **{**SETTINGS, "budget": 120})
    sql(run, "DROP TRIGGER more")
    assert ledger.summarise_ledger(run / LEDGER).answered == before


def test_reading_ends_after_as_many_steps_as_a_ledger_can_take(run, monkeypatch):
    """Whatever makes SQLite go on, as pages that refer to each other may."""
    monkeypatch.setattr(connections, "STEPS", 10**6)
    monkeypatch.setattr(connections, "ASKED_AFTER", 10**4)
    with (
        connections.open_for_reading(run / LEDGER) as connection,
        pytest.raises(sqlite3.OperationalError, match="interrupted"),
    ):
        connection.execute(f"{ENDLESS} count(*) FROM n")
    assert ledger.summarise_ledger(run / LEDGER).answered == 150


# --- what is no file of its length ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-head", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_regular_file_is_not_waited_for(run, suffix, kind):
    file = run / f"{LEDGER}{suffix}"
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    with pytest.raises(DirectoryError, match=r"ledger, found nothing|no regular file"):
        ledger.summarise_ledger(run / LEDGER)
    assert run_command("ledger", run).returncode == 2


def test_a_file_that_is_longer_than_it_says(run):
    os.truncate(run / LEDGER, 2**40)
    with pytest.raises(IntegrityError, match=r"a file of at most .* bytes, as it says, found 1099511627776"):
        ledger.summarise_ledger(run / LEDGER)


def test_a_file_that_says_to_be_as_long_as_it_is_but_is_mostly_a_hole(run):
    """Its pages would be copied to look for what is left of it."""
    content = bytearray((run / LEDGER).read_bytes())
    page, size = int.from_bytes(content[16:18], "big"), 2**40
    content[28:32] = (size // page).to_bytes(4, "big")
    content[92:96] = content[24:28]  # by which SQLite takes the number of pages for valid
    (run / LEDGER).write_bytes(content)
    os.truncate(run / LEDGER, size)
    with pytest.raises(IntegrityError, match="a file that is no hole, found 1099511627776 bytes, of which"):
        ledger.summarise_ledger(run / LEDGER)


def test_definitions_that_never_end_are_not_read_to_their_end(run):
    """Every page of the tree of definitions has the one below it as its child 400 times, eight levels deep."""
    endless(run / LEDGER)
    with pytest.raises(IntegrityError, match="found interrupted"):
        ledger.summarise_ledger(run / LEDGER)
    assert run_command("ledger", run).returncode == 2


def endless(path):
    """A database of one table, the index of which is defined again and again: 400**8 times."""
    path.unlink()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("CREATE TABLE t (x UNIQUE)")
        defined = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema").fetchall()
    content = path.read_bytes()
    table, index = (record(row) for row in defined)
    pages = [leaf([table, index]), leaf([index])]  # pages 4 and 5; 2 and 3 are of the table itself
    for below in range(5, 13):
        pages.append(inner([below] * 400))
    head = bytearray(inner([4, 13], 100))
    head[:100] = content[:100]
    head[28:32] = (3 + len(pages)).to_bytes(4, "big")
    path.write_bytes(bytes(head) + content[PAGE:] + b"".join(pages))


PAGE = 4096


def record(row):
    """A row as SQLite keeps it: the types of its columns, each in a byte, and their values."""
    texts = {value: value.encode() for value in row if isinstance(value, str)}
    types = [0 if v is None else 1 if isinstance(v, int) else 13 + 2 * len(texts[v]) for v in row]
    values = [b"" if v is None else bytes([v]) if isinstance(v, int) else texts[v] for v in row]
    return bytes([1 + len(types), *types]) + b"".join(values)


def leaf(records):
    return node(13, [bytes([len(row), number]) + row for number, row in enumerate(records, 1)])


def inner(children, start=0):
    cells = [child.to_bytes(4, "big") + b"\1" for child in children[:-1]]
    return node(5, cells, children[-1].to_bytes(4, "big"), start)


def node(kind, cells, more=b"", start=0):
    """A page of a tree: its kind, where its cells are, and these at its end."""
    places = [PAGE - sum(map(len, cells[: at + 1])) for at in range(len(cells))]
    counts = len(cells).to_bytes(2, "big") + (places[-1]).to_bytes(2, "big") + b"\0"
    head = bytes(start) + bytes([kind, 0, 0]) + counts + more + b"".join(at.to_bytes(2, "big") for at in places)
    return head + bytes(PAGE - len(head) - sum(map(len, cells))) + b"".join(reversed(cells))


# --- rows that no run has written, with a chain that fits -------------------------------------------------------------


def rechained(run, *statements):
    """Change rows, and have the chain and run.json fit."""
    from mutated_directories import rechain, sealed

    with closing(sqlite3.connect(run / LEDGER, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(*statement)
        rechain(connection)
    sealed(run, others=True)


def nan(columns, value=np.nan):
    return np.full(columns, value).tobytes()


ROWS = "SELECT length(rows) FROM requests WHERE id = 1"
WRONG = {
    "rows of NaN": ("UPDATE requests SET rows = ? WHERE id = 1", nan),
    "infinite rows": ("UPDATE requests SET rows = ? WHERE id = 1", lambda n: nan(n, np.inf)),
    "other columns": ("UPDATE requests SET rows = ? WHERE id = 1", lambda n: np.zeros(2 * n).tobytes()),
    "a text for rows": ("UPDATE requests SET rows = ? WHERE id = 1", lambda n: "x" * n),
    "rows without number": ("UPDATE requests SET n = ? WHERE id = 1", lambda n: -1),
    "a number in words": ("UPDATE requests SET n = ? WHERE id = 1", lambda n: "many"),
    "an endless time": ("UPDATE requests SET announced = ? WHERE id = 1", lambda n: 9e999),
    "unknown codes": (
        "UPDATE answers SET codes = ? WHERE request = 1",
        lambda n: np.full(n // 2, 7, np.int32).tobytes(),
    ),
    "codes below zero": ("UPDATE answers SET codes = ? WHERE request = 1", lambda n: nan(n // 4)),
    "deep labels": ("UPDATE labels SET value = ? WHERE code = 0", lambda n: "[" * 100_000 + "]" * 100_000),
    "a list of labels": ("UPDATE labels SET value = ? WHERE code = 0", lambda n: "[1, 2]"),
    "no label": ("UPDATE labels SET value = ? WHERE code = 0", lambda n: "null"),
    "the same label": ("UPDATE labels SET value = ? WHERE code = 0", lambda n: "true"),
    "labels in other places": ("UPDATE labels SET code = ? WHERE code = 0", lambda n: 2),
    "a network of NaN": ("UPDATE rounds SET theta = ?", lambda n: np.full(9, np.nan, np.float32).tobytes()),
    "a network of another size": ("UPDATE rounds SET theta = ?", lambda n: bytes(40)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_rows_that_no_run_has_written_are_bad_input(run, tmp_path, wrong):
    statement, value = WRONG[wrong]
    with closing(sqlite3.connect(run / LEDGER)) as connection:
        columns = connection.execute(ROWS).fetchone()[0] // 8
    rechained(run, (statement, (value(columns),)))
    done = run_command("remake", run, "--out", tmp_path / "new", "--to", "linear")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("ectype: ")
    assert str(run / LEDGER) in done.stderr


def test_the_helper_changes_nothing_by_itself(run, tmp_path):
    rechained(run)
    assert hash_chain.TABLES.keys() <= {name for (name,) in tables(run)}
    assert json.loads((run / "run.json").read_text())["ledger"]["batch"] == 1
    done = run_command("remake", run, "--out", tmp_path / "new", "--to", "linear")
    assert done.returncode == 0, done.stderr


def tables(run):
    with closing(sqlite3.connect(run / LEDGER)) as connection:
        return connection.execute("SELECT name FROM sqlite_schema").fetchall()


# --- what other commands read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "ended"),
    [
        ("{}", None),
        ("7", None),
        ('{"for": [1], "original": "x"}', None),
        ('{"for": "x", "original": "x"}', '"soon"'),
        ('{"for": "x", "original": "x"}', "1e15"),
        ("[" * 100_000 + "]" * 100_000, None),
    ],
)
def test_sessions_that_nobody_has_held(run, about, ended):
    path = run / ledger.SESSIONS
    rows = [("meta", ("session 1", about)), *([] if ended is None else [("meta", ("ended 1", ended))])]
    with closing(connections.connect(path)) as connection:
        begin(connection, {"format": ledger.LEDGER_FORMAT, "settings": {}, "space": PLANE.to_json()}, rows)
    done = run_command("ledger", run)
    assert done.returncode == 2, done.stderr
    assert f"{ledger.SESSIONS}: expected" in done.stderr


@pytest.mark.parametrize("settings", ['{"dropped": 5}', '{"dropped": [["x"]]}', '{"classes": 5}', '{"classes": [[]]}'])
def test_answers_of_a_directory_whose_settings_are_none(run, tmp_path, settings):
    given = shutil.copytree(run, tmp_path / "given")
    (given / "run.json").unlink()
    rechained(given, ("UPDATE meta SET value = ? WHERE key = 'settings'", (settings,)))
    done = run_command("remake", run, "--out", tmp_path / "new", "--to", "linear", "--answers", given)
    assert done.returncode == 2, done.stderr
    assert "expected the settings of a run or of kept traffic" in done.stderr


def test_a_round_of_training_that_is_a_number(run):
    rechained(run, ("UPDATE rounds SET about = '3' WHERE t = 0", ()))
    with pytest.raises(IntegrityError, match="expected the rounds of this run"):
        ec.copy_classifier(ec.Original(disc, name="disc"), PLANE, out=run, **{**SETTINGS, "budget": 120})


@pytest.mark.parametrize("content", ["family,size" + "," * 2**21, "family,size\n" + "x" * 200_000, "family\ntree\n"])
def test_a_frontier_that_is_none(run, tmp_path, content):
    (run / "frontier.csv").write_text(content)
    done = run_command("remake", run, "--out", tmp_path / "new", "--take", 1)
    assert done.returncode == 2, done.stderr
    assert "frontier.csv" in done.stderr


def test_many_labels_of_which_one_is_long_are_refused_before_an_array_is_made(run):
    """As an array, each takes as much as the longest."""
    with closing(sqlite3.connect(run / LEDGER)) as connection, connection:
        connection.execute("DELETE FROM labels")
        known = [*(f'"{code:06}"' for code in range(100_000)), f'"{"x" * 1000}"']
        connection.executemany("INSERT INTO labels VALUES (?, ?)", enumerate(known))
    rechained(run)
    with pytest.raises(IntegrityError, match="100001 labels of up to 1000 characters, which take more than"):
        ledger.summarise_ledger(run / LEDGER)


def test_a_batch_of_any_number_of_rows_can_be_read(tmp_path):
    """The line of a batch is one JSON document, and the reader bounds what is in one."""
    path = tmp_path / LEDGER
    rows = [("failures", (number, 1, 0.0, "x")) for number in range(1, 2501)]
    with closing(connections.connect(path)) as connection:
        begin(connection, {"format": ledger.LEDGER_FORMAT, "settings": {}, "space": PLANE.to_json()}, rows)
    assert ledger.verify_ledger(path).batches == 3
