"""Limits that many share: windows, the log of spending, and the rate limit server that workers ask."""

import json
import os
import socket
import threading
from collections import deque
from contextlib import ExitStack
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ectype.errors import DirectoryError, OutageError, SharedQuotaError
from ectype.fleet import read_spent, states
from ectype.fleet._quotas import FleetLimits, RateWindow, RequestScheduler, SpendLog, Spent, _digest
from ectype.fleet._rate_limit_server import RateLimitClient, RateLimitServer

REQUESTS = st.lists(
    st.tuples(st.integers(1, 5), st.floats(0, 3), st.floats(0, 1)),  # rows, seconds until its answer, when it arrives
    min_size=1,
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(REQUESTS, st.sampled_from([0.4, 1.0, 5.0, 7.5]), st.integers(1, 4))
def test_no_window_at_the_host_has_more_rows_than_it_may(requests, rate, at_once):
    """Whenever rows arrive between being let in and being answered, on however many connections."""
    window, now, arrived = RateWindow(rate), 0.0, []
    waiting, under_way = deque(requests), []
    while waiting or under_way:
        back = min(under_way, default=None)
        n = min(waiting[0][0], window.most) if waiting else 0
        wait = window.wait(n, now) if waiting and len(under_way) < at_once else None
        if wait is not None and (back is None or now + wait <= back[0]):
            now += wait
            if wait == 0:
                _, seconds, when = waiting.popleft()
                window.enter(n)
                under_way.append((now + seconds, n))
                arrived.append((now + when * seconds, n))
        else:
            under_way.remove(back)
            now = max(now, back[0])
            window.leave(back[1], now)
    for start, _ in arrived:
        there = sum(n for at, n in arrived if start <= at < start + window.seconds - 1e-6)
        assert there <= max(rate * window.seconds, 1) + 1e-9


def test_what_was_spent_outlives_whoever_spent_it(tmp_path):
    limits = FleetLimits(queries=100, cost=1.0)
    spend_log = SpendLog(tmp_path, limits)
    spend_log.pay(60, 0.01)
    assert read_spent(tmp_path) == Spent("", 60, 0.6)  # while the other has it open, as if that was killed
    again = SpendLog(tmp_path, limits)
    with pytest.raises(SharedQuotaError, match=r"at most 100 in all, found 60 made and 50 more to make"):
        again.pay(50, 0.0)
    with pytest.raises(
        SharedQuotaError, match=r"cost: expected at most 1 in all, found 0.6 spent and 0.8 more to spend"
    ):
        again.pay(40, 0.02)
    again.pay(40, 0.01)
    assert read_spent(tmp_path).rows == 100


def test_a_new_day_has_a_limit_of_its_own(tmp_path):
    (tmp_path / "spent.json").write_text('{"span": "2020-01-01", "rows": 90, "cost": 3.0}')
    spend_log = SpendLog(tmp_path, FleetLimits(queries=100, per="day"))
    spend_log.pay(50, 0.0)
    assert spend_log.spent.rows == 50
    assert len(spend_log.spent.span) == 10


class Clock:
    """A clock that is set by hand."""

    def __init__(self, time):
        self.time = time

    def __call__(self):
        return datetime.fromisoformat(self.time)


@pytest.mark.parametrize("starts", [False, True])
def test_a_clock_that_goes_back_and_forth_does_not_open_a_day_again(tmp_path, starts):
    """Whatever the clock's time zone, and also where each payment is that of a driver that starts anew."""
    clock = Clock("2026-11-18T12:00:00+00:00")
    limits = FleetLimits(queries=100, per="day")
    spend_log = SpendLog(tmp_path, limits, clock)
    for time, rows, left in (
        ("2026-11-18T12:00:00+00:00", 60, 40),
        ("2026-11-17T12:00:00+00:00", 100, 0),
        ("2026-11-18T23:59:59+00:00", 30, 10),
        ("2026-11-19T01:00:00+09:00", 10, 0),  # still the 18th in UTC
        ("2026-11-18T19:30:00-05:00", 70, 30),  # the 19th there
        ("2026-11-17T23:00:00+00:00", 0, 0),
        ("2026-10-25T00:30:00+00:00", 70, 30),  # clocks in Europe go back: an hour comes twice, and the day does not
        ("2026-10-25T02:30:00+01:00", 20, 10),
        ("2026-11-19T10:00:00+00:00", 0, 30),
    ):
        clock.time = time
        spend_log = SpendLog(tmp_path, limits, clock) if starts else spend_log
        if rows:
            spend_log.pay(rows, 0.0)
        with pytest.raises(SharedQuotaError, match=f"found {100 - left} made and {left + 1} more to make"):
            spend_log.charge(left + 1, 0.0)


def test_days_add_up_to_months_and_to_all(tmp_path):
    """So another `per` finds what was spent before."""
    clock = Clock("2026-10-31T12:00:00+00:00")
    for time in ("2026-10-31T12:00:00+00:00", "2026-11-01T12:00:00+00:00", "2026-11-18T12:00:00+00:00"):
        clock.time = time
        SpendLog(tmp_path, FleetLimits(queries=30, per="day"), clock).pay(30, 0.5)
    with pytest.raises(SharedQuotaError, match="at most 70 a month, found 60 made and 11 more"):
        SpendLog(tmp_path, FleetLimits(queries=70, per="month"), clock).pay(11, 0.0)
    with pytest.raises(SharedQuotaError, match="at most 100 in all, found 90 made and 11 more"):
        SpendLog(tmp_path, FleetLimits(queries=100), clock).pay(11, 0.0)
    with pytest.raises(SharedQuotaError, match="cost: expected at most 50 a month, found 30 spent and 21 more"):
        SpendLog(tmp_path, FleetLimits(cost=50.0, per="month"), clock).pay(1, 21.0)
    SpendLog(tmp_path, FleetLimits(queries=70, per="month"), clock).pay(10, 0.0)
    assert read_spent(tmp_path) == Spent("2026-11", 70, 30.0)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda text: "", "an empty file"),
        (lambda text: text[: len(text) // 2], "Unterminated string|Expecting|delimiter"),
        (lambda text: text.replace("60", "10"), "other content than its checksum is of"),
        (lambda text: "[1]", "other content"),
        (lambda text: "[" * 100_000, "nested more than 64 deep"),
        (lambda text: '{"span": "", "rows": -5, "cost": 0.0}', "a day that is no number of rows"),
        (lambda text: '{"span": [], "rows": 5, "cost": 0.0}', "unhashable"),
        (lambda text: '{"span": 5, "rows": 5, "cost": 0.0}', "days: 0: expected str, found 5"),
        (lambda text: '{"span": "", "rows": true, "cost": 0.0}', "a day that is no number of rows"),
        (lambda text: f'{{"span": "", "rows": 5, "cost": {10**400}}}', "a whole number of 1329 bits"),
        (lambda text: '{"span": "", "rows": 5, "cost": NaN}', "the number nan"),
    ],
)
def test_what_was_spent_is_not_forgotten_because_its_file_is_damaged(tmp_path, damage, found):
    SpendLog(tmp_path, FleetLimits(queries=100)).pay(60, 0.0)
    file = tmp_path / "spent.json"
    file.write_text(damage(file.read_text()))
    with pytest.raises(DirectoryError, match=rf"spent\.json: expected rows and cost by day.*{found}.*remove it"):
        SpendLog(tmp_path, FleetLimits(queries=100))
    with pytest.raises(DirectoryError, match="restore it from a backup"):
        read_spent(tmp_path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(DirectoryError, match="found something that is no file"):  # and nothing waits for it
        read_spent(tmp_path)
    for leads_to in ("unmounted/spent.json", "spent.json"):
        file.unlink()
        file.symlink_to(leads_to)
        with pytest.raises(DirectoryError, match="found something that is no file"):
            read_spent(tmp_path)


def test_every_row_is_on_disk_before_it_is_let_in(tmp_path, monkeypatch):
    """File and folder are synced, and threads that pay at the same time share it."""
    synced = []
    real = os.fsync

    def fsync(descriptor):
        real(descriptor)
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append(read_spent(tmp_path).rows if name == str(tmp_path) else "file")

    monkeypatch.setattr(os, "fsync", fsync)
    scheduler = RequestScheduler(FleetLimits(), SpendLog(tmp_path, FleetLimits(queries=1000)))
    scheduler.enter("a", "", 10, 0.0)
    assert synced == ["file", 10]
    threads = [threading.Thread(target=scheduler.enter, args=("b", "", 5, 0.0)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_spent(tmp_path).rows == 110
    assert synced.count("file") <= 21
    assert scheduler.rows == {"a": 10, "b": 100}


def test_rows_that_cannot_be_written_down_are_not_let_in(tmp_path):
    folder = tmp_path / "fleet"
    folder.mkdir()
    scheduler = RequestScheduler(FleetLimits({"slow": 2}), SpendLog(folder, FleetLimits({"slow": 2})))
    folder.rmdir()
    with pytest.raises(DirectoryError, match=r"spent\.json"):
        scheduler.enter("a", "slow", 2, 0.0)
    folder.mkdir()
    assert read_spent(folder).rows == 0


@pytest.fixture
def gate(tmp_path):
    told = []
    spend_log = SpendLog(tmp_path, FleetLimits({"slow": 2}, queries=50))
    scheduler = RequestScheduler(FleetLimits({"slow": 2}, queries=50), spend_log)
    with RateLimitServer(scheduler, lambda name, words: told.append((name, words))) as server, ExitStack() as opened:
        server.scheduler, server.told = scheduler, told
        server.client = lambda *about: opened.enter_context(RateLimitClient(server.access, *about))
        yield server


def test_a_worker_is_let_in_told_of_limits_and_refused_beyond_them(gate):
    near, far = gate.client("near"), gate.client("far", "slow")
    assert (near.most(), far.most()) == (None, 2)
    near.enter(40)
    near.leave(40)
    near.tell("half way")
    with pytest.raises(SharedQuotaError, match="at most 50 in all, found 40 made and 11 more"):
        near.enter(11)
    with pytest.raises(SharedQuotaError, match="at most 2 rows at once, found 3"):
        far.enter(3)
    far.enter(2)
    assert gate.scheduler.rows == {"near": 40, "far": 2}
    assert gate.told == [("near", "half way")]


def test_a_worker_that_is_gone_gives_its_turn_back(gate):
    """Its rows may have arrived: they count for a window, and then another may send."""
    gone, next_one = gate.client("gone", "slow"), gate.client("next", "slow")
    gone.enter(2)
    entered = threading.Event()

    def enter():
        next_one.enter(2)
        entered.set()

    waiting = threading.Thread(target=enter, daemon=True)
    waiting.start()
    assert not entered.is_set()
    gone._mine.line.close()
    assert entered.wait(20)


def test_nothing_is_sent_that_cannot_be_written_down(tmp_path):
    """And the worker is told why, as often as it tries; it is not a limit that was reached."""
    spend_log = SpendLog(tmp_path, FleetLimits(queries=100))
    (tmp_path / "spent.json").mkdir()
    with (
        RateLimitServer(RequestScheduler(FleetLimits({"*": 50}), spend_log), lambda name, words: None) as server,
        RateLimitClient(server.access, "model", "near") as client,
    ):
        for _ in range(2):
            with pytest.raises(OutageError, match=r"spent\.json: .*a directory of that name is there") as caught:
                client.enter(40)
            assert not isinstance(caught.value, SharedQuotaError)
        (tmp_path / "spent.json").rmdir()
        client.enter(10)
    assert read_spent(tmp_path).rows == 90  # those that were refused too, as nobody knows better


def test_no_driver_no_turn(gate):
    client, late = gate.client("early", "slow"), gate.client("late", "slow")
    client.enter(2)
    said = []

    def enter():
        with pytest.raises((OutageError, SharedQuotaError), match="a driver that gives turns") as caught:
            late.enter(2)
        said.append(caught)

    waiting = threading.Thread(target=enter)
    waiting.start()
    gate.__exit__()
    waiting.join(20)
    assert len(said) == 1
    with pytest.raises(OutageError, match="a driver that gives turns"):
        gate.client("later").enter(1)


def test_who_does_not_know_the_secret_is_not_heard(gate):
    with (
        RateLimitClient(gate.access._replace(key="guess"), "mallory") as mallory,
        pytest.raises(OutageError, match="a driver that gives turns"),
    ):
        mallory.most()
    with socket.create_connection(gate.access[:2]) as plain, plain.makefile("rb") as stream:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"challenge" in stream.readline()
        assert stream.readline() == b""
    assert gate.scheduler.rows == {}


@pytest.mark.parametrize(
    ("days", "found"),
    [
        ({"2026-11-17": [1, 10**400]}, "a whole number of 1329 bits"),
        ({"2026-11-17": [1, 1e308], "2026-11-18": [1, 1e308]}, "days whose costs add up to no number"),
    ],
)
def test_costs_beyond_all_numbers_are_refused(tmp_path, days, found):
    content = {"span": "", "days": days}
    (tmp_path / "spent.json").write_text(json.dumps({**content, "sha256": _digest(content)}))
    with pytest.raises(DirectoryError, match=found):
        read_spent(tmp_path)


def test_a_file_of_what_was_spent_that_is_mostly_a_hole_is_not_read(tmp_path):
    (tmp_path / "spent.json").write_text("{}")
    os.truncate(tmp_path / "spent.json", 2**40)
    with pytest.raises(DirectoryError, match=r"a file of at most \d+ bytes, found 1099511627776"):
        read_spent(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"state": "odd"}, "expected one of failed, limited"),
        ({"checked": "no date"}, "Invalid isoformat"),
        ({"checked": "2026-01-01T00:00:00"}, "expected a time in UTC"),
        ({"fidelity": {"x": 1}}, "unexpected keyword argument 'x'"),
        ({"fidelity": {"estimate": "a", "lower": 1.0, "confidence": None, "n": 1}}, "estimate: expected float"),
    ],
)
def test_a_state_that_no_fleet_has_written_is_refused(tmp_path, wrong, found):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "state.json").write_text(json.dumps({"name": "one", **wrong}))
    with pytest.raises(DirectoryError, match=rf"the state of a model.*{found}"):
        states(tmp_path)
