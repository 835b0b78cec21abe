"""The sum that is announced is hard, in rows that reach the original: whatever fails, and however a run ends."""

import json
import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import ectype as ec
from commands import run_command
from ectype import ledger
from ectype.errors import EctypeWarning, OriginalError, OutageError, QuotaError
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits
from ectype.plan.resolve import resolve
from ectype.queries import Allowance, Queries
from ectype.runs.api import build_job
from fault_server import FaultyServer
from problems import ask_through

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import failures

QUICK = RetryWaits(first=0.002, most=0.02, jitter=0.002)
SPACE = ec.Space.normal(2)
COPY = ("--space", "normal:2", "--protocol", "instances", "--classes", "0,1", "--budget", 200, "--certificate-n", 200,
        "--request-rows", 20, "--preset", "fast", "--batch", 50)  # fmt: skip


def positive(rows):
    return (np.asarray(rows, float)[:, 0] > 0).astype(int)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Short waits between attempts, of the command too."""
    monkeypatch.setattr("ectype.original.http.factory.PATIENCE", QUICK)


def announced(said):
    return int(re.search(r"(\d+) in all", said)[1])


def books(folder):
    return json.loads(run_command("ledger", folder, "--json").stdout)


def test_forty_percent_of_failures_keep_to_the_sum_and_are_shown(tmp_path):
    with FaultyServer(positive, ["500"], share=0.4, seed=1) as server:
        out = run_command("copy", server.url, "--out", "run", *COPY, "--json", "--retries", 2, cwd=tmp_path)
        assert out.returncode == 0, out.stderr
        assert 600 < server.asked <= announced(out.stderr) == 3 * 408
        failed = sum(len(seen.rows) for seen in server.log if seen.fault)
    rows = json.loads(out.stdout)["rows"]
    assert rows == {"announced": 1224, "asked": server.asked, "answered": 408, "maybe_paid": failed}
    found = books(tmp_path / "run")
    assert (found["asked"], found["answered"], found["maybe_paid"]) == (server.asked, 408, failed)
    assert sum(found["by_purpose"].values()) == server.asked
    shown = run_command("ledger", tmp_path / "run", "--price", 0.5).stdout
    assert re.search(rf"no answer, maybe paid +{failed}\n", shown)
    assert re.search(rf"cost so far, at most +{server.asked / 2}", shown)
    again = run_command("copy", server.url, "--out", "run", *COPY, cwd=tmp_path).stdout
    assert (
        f"Rows asked: {server.asked} of at most 510; 408 answered, {failed} without an answer and maybe paid." in again
    )


def test_retries_that_are_used_up_end_the_run_which_says_what_it_would_take(tmp_path):
    with FaultyServer(positive, ["500"], share=0.4, seed=1) as server:
        first = run_command("copy", server.url, "--out", "run", *COPY, "--retries", 0.1, cwd=tmp_path)
        assert first.returncode == 3
        assert re.search(r"at most 41 rows sent again, found \d+ sent and 20 more to send after", first.stderr)
        assert "what was answered is kept" in first.stderr
        asked = server.asked
        assert asked <= announced(first.stderr) == 449
        same = run_command("copy", server.url, "--out", "run", *COPY, "--retries", 0.1, cwd=tmp_path)
        assert (same.returncode, server.asked) == (3, asked)  # nothing was sent
        assert "20 more to send, which were sent before and not answered" in same.stderr
        for _ in range(20):
            share = re.search(r"--retries ([0-9.]+)", same.stderr)[1]
            same = run_command("copy", server.url, "--out", "run", *COPY, "--retries", share, cwd=tmp_path)
            assert server.asked <= announced(same.stderr)
            if same.returncode != 3:
                break
        assert same.returncode == 0, same.stderr
    with FaultyServer(positive, share=0) as server:
        assert run_command("copy", server.url, "--out", "other", *COPY, cwd=tmp_path).returncode == 0
    copies = [(tmp_path / name / "copy.safetensors").read_bytes() for name in ("run", "other")]
    assert copies[0] == copies[1]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    return failures.healthy(tmp_path_factory.mktemp("healthy") / "run")


@pytest.mark.parametrize("seed", range(1001, 1011))
def test_random_mixes_of_failures_keep_to_the_sum_and_to_the_copy(seed, healthy, tmp_path):
    """`python benchmarks/failures.py` tries 200 of them."""
    outcome = failures.tried(failures.Mix.drawn(seed), tmp_path / "run", healthy)
    assert outcome.faults == []


def test_halves_and_failures_of_functions_count_too(tmp_path):
    received, rng = [], np.random.default_rng(0)

    def box(rows):
        received.append(len(rows))
        if rng.random() < 0.4:
            raise RuntimeError("no luck")
        return positive(rows)

    original = ec.Original(box, [0, 1], request_rows=10, name="box")
    settings = ec.Settings(budget=100, batch=50, certificate_n=100, preset="fast", retries=0.5)
    most = build_job(original, SPACE, resolve(settings)).allowance.total
    assert most == 306
    with pytest.raises(OriginalError):
        ec.copy_classifier(original, SPACE, out=tmp_path / "run", **vars(settings))
    assert sum(received) <= most
    found = ledger.summarise_ledger(tmp_path / "run" / "ledger.sqlite")
    assert found.asked == sum(received)
    before = len(received)
    with pytest.raises(OriginalError):
        ec.copy_classifier(original, SPACE, **vars(settings))  # without a directory
    assert sum(received[before:]) <= most


@pytest.mark.parametrize("poison", [0, 1, 57, 99])
def test_a_row_is_found_by_as_many_rows_as_its_request_has(poison):
    received, rows = [], np.arange(100.0)[:, None]

    def box(part):
        received.append(len(part))
        if poison in part[:, 0]:
            raise RuntimeError("cannot take this")
        return part[:, 0] > 50

    queries = Queries(ec.Original(box, request_rows=100), ec.Space.normal(1), {"training": 100})
    with pytest.raises(OriginalError, match=rf"cannot take this, for the row \[{poison}.0\] alone"):
        queries.query_labels("training", rows)
    assert sum(received) <= 100 + 103


def test_an_original_that_cannot_answer_at_all_is_known_by_few_rows(tmp_path):
    received = []

    def box(rows):
        received.append(len(rows))
        raise RuntimeError("out of order")

    with pytest.raises(OriginalError, match="out of order"):
        ec.copy_classifier(box, SPACE, budget=500, out=tmp_path / "run")
    assert sum(received) == 23


def test_a_connection_that_was_refused_costs_nothing(tmp_path):
    with FaultyServer(positive, share=0) as server:
        url = server.url
    call = {"budget": 60, "certificate_n": 60, "out": tmp_path / "run", "preset": "fast", "retries": 0.0}
    box = open_http(url, [0, 1], protocol="instances", attempts=3, concurrency=1, patience=QUICK).replace(name="box")
    with pytest.raises(OutageError, match="Connection"):
        ec.copy_classifier(box, SPACE, **call)
    found = ledger.summarise_ledger(tmp_path / "run" / "ledger.sqlite")
    assert (found.asked, found.maybe_paid, found.failures) == (0, 0, {"connection": 3})
    with FaultyServer(positive, share=0) as server:
        box = open_http(server.url, [0, 1], protocol="instances", patience=QUICK).replace(name="box")
        ec.copy_classifier(box, SPACE, **call)
        assert server.asked == 123


def test_a_retry_is_on_disk_before_it_is_sent(tmp_path):
    seen = []

    def decide(rows):
        with closing(sqlite3.connect(tmp_path / "run" / "ledger.sqlite")) as file:
            announced = file.execute("SELECT coalesce(sum(n), 0) FROM requests").fetchone()[0]
            again = file.execute("SELECT coalesce(sum(n), 0) FROM attempts").fetchone()[0]
        seen.append((announced + again, server.asked))
        return positive(rows)

    with FaultyServer(decide, ["503"], share=0.3, seed=4) as server:
        box = open_http(server.url, [0, 1], protocol="instances", request_rows=20, concurrency=1, patience=QUICK)
        ec.copy_classifier(box, SPACE, budget=100, certificate_n=100, preset="fast", retries=3, out=tmp_path / "run")
    assert len(seen) > 11
    assert all(written >= received for written, received in seen)


def test_after_a_kill_the_run_says_by_how_much_it_may_go_beyond_its_sum(tmp_path):
    arrived, killed = threading.Barrier(4, timeout=30), threading.Event()

    def decide(rows):
        if len(server.log) > 6 and not killed.is_set():
            arrived.wait()
            killed.wait(30)
        return positive(rows)

    with FaultyServer(decide, share=0) as server:
        call = ["copy", server.url, "--out", tmp_path / "run", *COPY, "--retries", 0, "--concurrency", 3]
        process = subprocess.Popen([sys.executable, "-m", "ectype", *map(str, call)], stderr=subprocess.PIPE)
        arrived.wait()
        process.kill()
        assert announced(process.communicate()[1].decode()) == 408
        killed.set()
        found = books(tmp_path / "run")
        assert (found["maybe_paid"], found["lost"]) == (60, 60)
        done = run_command(*call)
        assert done.returncode == 0, done.stderr
        assert "60 rows were under way when this run was stopped" in done.stderr
        said = "at most 468 rows reach the original in all, 60 more than were announced"
        assert re.search(rf"^ectype: warning: .*{said}$", done.stderr, re.M)
        assert server.asked == books(tmp_path / "run")["asked"] == 468


def test_requests_that_were_announced_and_not_sent_are_taken_back(tmp_path):
    received = []

    def box(rows):
        received.append(len(rows))
        if len(received) == 9:
            raise OutageError("box", "an answer", "nothing")
        return positive(rows)

    with ledger.Ledger(tmp_path / "ledger.sqlite", {}, SPACE) as book, pytest.raises(OutageError):
        ask_through(
            book, ec.Original(box, request_rows=10), SPACE, np.random.default_rng(0).normal(size=(500, 2)), "training"
        )
    found = ledger.summarise_ledger(tmp_path / "ledger.sqlite")
    assert (found.asked, found.answered, found.maybe_paid, found.lost) == (90, 80, 10, 0)


def test_what_a_killed_run_lost_is_asked_again_and_warned_of_once(tmp_path):
    """Interrupted in the middle of a request: whether it was answered nobody knows."""
    received = []

    def box(rows):
        received.append(len(rows))
        if len(received) == 5:
            raise KeyboardInterrupt
        return positive(rows)

    original = ec.Original(box, [0, 1], request_rows=10, name="box")
    call = {"budget": 60, "certificate_n": 60, "out": tmp_path / "run", "preset": "fast", "retries": 0.0}
    with pytest.raises(KeyboardInterrupt):
        ec.copy_classifier(original, SPACE, **call)
    with pytest.warns(EctypeWarning, match="10 rows were under way .* at most 133 rows .* in all, 10 more than"):
        ec.copy_classifier(original, SPACE, **call)
    assert sum(received) == 133


@pytest.mark.parametrize("changed", [False, True])
def test_checks_and_certificates_keep_to_their_sums(changed, tmp_path):
    def other(rows):
        return (np.asarray(rows, float)[:, 0] > 0.3).astype(int) if changed else positive(rows)

    call = ("--protocol", "instances", "--classes", "0,1", "--request-rows", 20, "--concurrency", 1, "--retries", 2)
    with FaultyServer(positive, share=0) as server:
        assert run_command("copy", server.url, "--out", "run", *COPY, cwd=tmp_path).returncode == 0
    with FaultyServer(other, ["500", "truncated"], share=0.3, seed=2) as server:
        said = run_command("refresh", "run", server.url, *call, "--check", 60, "--budget", 100, "--deterministic",
                           cwd=tmp_path)  # fmt: skip
        assert said.returncode == 0, said.stderr
        assert said.stdout.startswith("changed" if changed else "unchanged")
        assert 60 < server.asked <= announced(said.stderr)
        before = server.asked
        proof = run_command("certify", "run", server.url, *call, "--n", 100, cwd=tmp_path)
        assert proof.returncode == 0, proof.stderr
        assert 100 < server.asked - before <= announced(proof.stderr) == 300
    with FaultyServer(other, ["500"], share=1) as server:
        refused = run_command("certify", "run", server.url, *call[:-1], 0.1, "--n", 100, cwd=tmp_path)
        assert (refused.returncode, server.asked) == (3, 20)
        assert "at most 10 rows sent again" in refused.stderr


def test_a_share_of_nothing_sends_nothing_again():
    with FaultyServer(positive, ["500"], share=1) as server:
        box = open_http(server.url, [0, 1], protocol="instances", request_rows=20, patience=QUICK, concurrency=1)
        with pytest.raises(QuotaError, match="at most 0 rows sent again, found 0 sent and 20 more to send after s"):
            ec.copy_classifier(box, SPACE, budget=100, retries=0)
        assert server.asked == 20


def test_an_allowance_has_room_for_some_requests():
    assert Allowance.of(5100, None, 100, 2000).total == 6375
    assert Allowance.of(408, None, 100, 200).total == 608
    assert Allowance.of(408, 0.0, 100, 200).total == 408


def test_an_original_in_this_process_is_asked_in_requests_that_the_share_can_send_again():
    """So the sum is about a quarter more than the queries, and a row that cannot be answered is still found."""
    seen = []

    def box(rows):
        seen.append(len(rows))
        if sum(seen) > 1000 and (rows[:, 0] > 2.5).any():
            raise ValueError("too far out")
        return positive(rows)

    call = {"budget": 300, "certificate_n": 2000, "preset": "fast"}
    most = build_job(ec.Original(box, [0, 1]), SPACE, resolve(ec.Settings(**call))).allowance
    assert most == (2346, 587)
    with pytest.raises(OriginalError, match=r"too far out, for the row \[.*\] alone"):
        ec.copy_classifier(ec.Original(box, [0, 1]), SPACE, **call)
    assert max(seen) <= most.retries
    assert sum(seen) <= most.total


@pytest.mark.parametrize("retries", [-0.1, float("nan"), "many", True])
def test_a_share_for_retries_is_a_number_from_zero(retries):
    with pytest.raises(ValueError, match="retries: expected a share from 0"):
        ec.copy_classifier(positive, SPACE, budget=100, retries=retries)
