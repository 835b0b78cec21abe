"""Fleets at work: real workers and endpoints, failures that stay where they are, kills, limits, refreshes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from commands import run_command
from ectype._common.portable import UNFINISHED
from ectype.fleet import FleetStatus, ModelState, read_fleet, read_spent, run_fleet
from ectype.ledger import read_sessions
from ectype.workers._process_pool import ProcessPool
from fault_server import FaultyServer
from processes import children_of, command_of

MODELS = """
import numpy as np

def disc(rows):
    return np.where((np.asarray(rows) ** 2).sum(axis=1) < 1.4, "in", "out")

def half(rows):
    return np.asarray(rows)[:, 0] > 0

def stripes(rows):
    return (np.floor(np.asarray(rows)[:, 1]) % 2).astype(int)
"""
DEFAULTS = '[defaults]\nspace = "normal:2"\nbudget = 150\ncertificate_n = 200\npreset = "fast"\ncheck = 40\n'
FILES = ("copy.safetensors", "copy.json", "space.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "fleetmodels.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder, *models, head=""):
    entries = [f'[[model]]\nname = "{name}"\noriginal = "{original}"\n{more}' for name, original, more in models]
    (folder / "FLEET.toml").write_text(head + DEFAULTS + "\n".join(entries))
    return folder / "FLEET.toml"


class Started:
    """An engine that was started before and goes on afterwards: starting processes is most of what these tests do."""

    def __init__(self, engine, slots=2):
        self._engine, self.slots = engine, slots
        self.address, self.submit, self.renew = engine.address, engine.submit, engine.renew

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.fixture(scope="module")
def workers():
    with ProcessPool(2) as engine:
        yield engine


@pytest.fixture
def ran(workers):
    def run(table, out, slots=2, **options):
        fleet = read_fleet(table)
        states = list(run_fleet(fleet, out, Started(workers, slots), **options))
        return {state.name: state for state in states}, FleetStatus.of(fleet, out)

    return run


def near(*names):
    return [(name, f"fleetmodels:{name}", "") for name in names]


def disc(rows):
    return np.where((np.asarray(rows, float) ** 2).sum(axis=1) < 1.4, "in", "out")


def bytes_of(out, name):
    return [(out / name / "copy-1" / file).read_bytes() for file in FILES]


def test_a_model_fails_alone_and_workers_give_the_bytes_of_one_process(folder, ran):
    with FaultyServer(disc, share=0.0) as healthy, FaultyServer(disc, ["500"], share=1.0) as broken:
        served = [
            ("served", f"{healthy.url}/v2/models/m", 'protocol = "v2"\n'),
            ("broken", f"{broken.url}/v2/models/m", 'protocol = "v2"\nattempts = 1\n'),
        ]
        table = written(folder, *near("disc", "half", "stripes"), *served, ("lost", "fleetmodels:nothing", ""))
        states, outlook = ran(table, folder / "two")
        assert {name: state.state for name, state in states.items()} == {
            **dict.fromkeys(("disc", "half", "stripes", "served"), "done"),
            **dict.fromkeys(("broken", "lost"), "failed"),
        }
        assert "500" in states["broken"].note
        assert "something called nothing" in states["lost"].note
        assert outlook.exit_code == 3
        assert [state.name for state in outlook.states][:2] == ["broken", "lost"]
        ran(table, folder / "one", slots=1)
    for name in ("disc", "half", "stripes", "served"):
        assert bytes_of(folder / "two", name) == bytes_of(folder / "one", name)
    page = (folder / "two" / "index.html").read_text()
    assert page.index("broken") < page.index('href="disc/copy-1/report.html"')
    assert "2 of 6 need attention" in page


def test_a_second_run_asks_its_checks_alone_and_a_change_is_found_and_refreshed(folder, ran):
    with FaultyServer(disc, share=0.0) as server:
        table = written(folder, ("served", f"{server.url}/v2/models/m", 'protocol = "v2"\n'))
        states, _ = ran(table, folder / "out", slots=1)
        before = len(server.log)
        again, outlook = ran(table, folder / "out", slots=1)
        assert (again["served"].did, again["served"].state, outlook.exit_code) == ("checked", "done", 0)
        assert sum(len(seen.rows) for seen in server.log[before:]) == 40
        assert again["served"].fidelity == states["served"].fidelity
        server.decide = lambda rows: np.where(np.asarray(rows, float)[:, 0] > 0.3, "in", "out")
        found, outlook = ran(table, folder / "out", slots=1)
        assert (found["served"].state, outlook.exit_code) == ("changed", 1)
        assert "answers changed" in found["served"].note
        assert found["served"].copy == "served/copy-1"
        fresh, outlook = ran(table, folder / "out", slots=1, refresh=True)
        assert (fresh["served"].did, fresh["served"].state, fresh["served"].copy) == (
            "refreshed",
            "done",
            "served/copy-2",
        )
        assert (folder / "out/served/copy-2/report.html").is_file()
        last, _ = ran(table, folder / "out", slots=1)
        assert (last["served"].did, last["served"].copy) == ("checked", "served/copy-2")


def test_a_table_that_asks_for_more_goes_on_and_one_that_asks_for_another_family_remakes(folder, ran):
    asked = 'budget = {}\nto = "{}"\n'
    head, model = "[limits]\nqueries = 1000\n", ("disc", "fleetmodels:disc", asked.format(150, "mlp"))
    ran(written(folder, model, head=head), folder / "out", slots=1)
    before = read_spent(folder / "out").rows
    more = ("disc", "fleetmodels:disc", asked.format(300, "mlp"))
    states, _ = ran(written(folder, more, head=head), folder / "out", slots=1)
    assert (states["disc"].did, states["disc"].queries, states["disc"].copy) == ("went on", 300, "disc/copy-1")
    after = read_spent(folder / "out").rows
    assert 150 <= after - before <= 160  # and those that are asked again
    tree = ("disc", "fleetmodels:disc", asked.format(300, "tree"))
    states, _ = ran(written(folder, tree, head=head), folder / "out", slots=1)
    assert (states["disc"].did, states["disc"].family, states["disc"].copy) == ("remade", "tree", "disc/copy-2")
    assert read_spent(folder / "out").rows == after
    other = ("disc", "fleetmodels:disc", asked.format(300, "tree") + "seed = 3\n")
    states, _ = ran(written(folder, other, head=head), folder / "out", slots=1)
    assert states["disc"].state == "failed"
    assert "a copy with another seed; give the model another name" in states["disc"].note
    assert states["disc"].copy == "disc/copy-2"  # which stays


def test_limits_hold_for_all_workers_together(folder, ran):
    with FaultyServer(disc, share=0.0) as server:
        served = [
            (f"m{i}", f"{server.url}/v2/models/m{i}", 'protocol = "v2"\nbudget = 60\ncost = 0.5\n') for i in (1, 2)
        ]
        head = '[limits]\nqueries = 500\n[limits.hosts]\n"127.0.0.1" = 150\n'
        states, outlook = ran(written(folder, *served, head=head), folder / "out")
        limited = [state for state in states.values() if state.state == "limited"]
        assert limited  # both, if they came along alike
        assert all("at most 500 in all" in state.note for state in limited)
        assert outlook.exit_code == 3
        asked = sum(len(seen.rows) for seen in server.log)
        assert asked == outlook.spent.rows <= 500
        assert outlook.spent.cost == asked / 2
        arrived = [(seen.at, len(seen.rows)) for seen in server.log]
        for start, _ in arrived:
            assert sum(n for at, n in arrived if start <= at < start + 0.999) <= 150
        head = head.replace("500", "5000").replace("150", "100000")
        states, outlook = ran(written(folder, *served, head=head), folder / "out")
        assert outlook.exit_code == 0
        assert all(states[state.name].did == "copied" for state in limited)
        lost = 60  # at most: a last batch that was announced and not sent
        assert sum(len(seen.rows) for seen in server.log) <= 2 * (60 + 200 + 16) + 300 + 40 + lost


DRIVER = """
import os
from ectype.fleet import read_fleet, run_fleet
from ectype.workers._process_pool import ProcessPool

if __name__ == "__main__":
    engine = ProcessPool(int(os.environ.get("WORKERS", 2)))
    tell = lambda name, words: print(name, *engine.pids.values(), flush=True)
    for state in run_fleet(read_fleet("FLEET.toml"), "out", engine, tell=tell):
        print(state.name, state.state, flush=True)
"""


@pytest.mark.parametrize("victim", ["worker", "driver"])
def test_kills_lose_nothing_that_was_paid_for(folder, ran, victim):
    """A worker or the driver is killed in the middle of a model; then the copy is that of an undisturbed fleet."""
    (folder / "driver.py").write_text(DRIVER)
    with FaultyServer(disc, share=0.0) as server:
        served = [(f"m{i}", f"{server.url}/v2/models/m{i}", 'protocol = "v2"\n') for i in (1, 2, 3)]
        table = written(folder, *served)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        driver = subprocess.Popen(
            [sys.executable, "driver.py"], stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
        )
        name, *pids = driver.stdout.readline().split()  # it has made a round
        os.kill(int(pids[0]) if victim == "worker" else driver.pid, signal.SIGKILL)
        driver.communicate(timeout=120)
        if victim == "driver":
            assert driver.returncode == -signal.SIGKILL
        states, outlook = ran(table, folder / "out")
        assert outlook.exit_code == 0
        asked = Counter(tuple(row) for seen in server.log if "m1" in seen.path for row in seen.rows)
        twice = sum(n - 1 for n in asked.values())
        ran(table, folder / "undisturbed")
        for model in ("m1", "m2", "m3"):
            assert bytes_of(folder / "out", model) == bytes_of(folder / "undisturbed", model)
    assert twice <= 16 + 40 + 4 * 100  # asked again on purpose, its check, and requests that were under way
    assert name in states


@pytest.mark.parametrize("victim", ["worker", "driver"])
def test_a_check_that_is_killed_goes_on_and_pays_nothing_twice(folder, ran, kills, victim):
    """At every fourth request of it, until it is done; what was under way then may have arrived, and is asked again."""
    (folder / "driver.py").write_text(DRIVER)
    options = 'protocol = "v2"\nrequest_rows = 10\nconcurrency = 1\ncheck = 200\n'
    with FaultyServer(disc, share=0.0) as server:
        table = written(folder, ("served", f"{server.url}/v2/models/m", options))
        assert ran(table, folder / "out", slots=1)[0]["served"].did == "copied"
        before, struck = len(server.log), []

        def deadly(rows):
            at = len(server.log) - before
            if len(struck) < kills and at == 4 * (len(struck) + 1):
                struck.append(at)
                workers = [pid for pid in children_of(driver.pid) if b"spawn_main" in command_of(pid)]
                for pid in workers if victim == "worker" else [driver.pid]:
                    os.kill(pid, signal.SIGKILL)
            return disc(rows)

        server.decide = deadly
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WORKERS": "1"}
        state = ModelState("served")
        while state.did != "checked":  # a model whose worker dies again and again fails, until the fleet runs again
            driver = subprocess.Popen([sys.executable, "driver.py"], cwd=folder, env=environment)
            assert driver.wait(120) in (0, -signal.SIGKILL)
            state = FleetStatus.of(read_fleet(table), folder / "out").states[0]
        assert (len(struck), state.state) == (kills, "done")
        asked = Counter(tuple(row) for seen in server.log[before:] for row in seen.rows)
        assert "answers are taken from" in state.note
        assert len(asked) == 200
        assert asked.total() - 200 <= 10 * kills
        assert max(asked.values()) <= 1 + kills
        found = json.loads(run_command("ledger", folder / "out/served/copy-1", "--json", cwd=folder).stdout)
        assert [(one["for"], one["rows"]) for one in found["sessions"]] == [("check", 200)]
        before = len(server.log)
        ran(table, folder / "out", slots=1)  # tomorrow it is asked again
        assert sum(len(seen.rows) for seen in server.log[before:]) == 200


@pytest.mark.parametrize("refresh", [False, True])
def test_models_that_were_checked_before_a_kill_are_not_checked_again(folder, kills, refresh, ran):
    """A fleet whose driver is killed after each of its models: the next start goes on with those that are left."""
    (folder / "driver.py").write_text(DRIVER.replace(", tell=", f", refresh={refresh}, tell="))
    options = 'protocol = "v2"\nrequest_rows = 10\nconcurrency = 1\n'
    names = [f"m{number}" for number in range(1 + kills)]
    with FaultyServer(disc, share=0.0) as server:
        table = written(folder, *[(name, f"{server.url}/v2/models/{name}", options) for name in names])
        ran(table, folder / "out")
        before, environment = len(server.log), {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WORKERS": "1"}
        for _ in range(kills):
            driver = subprocess.Popen(
                [sys.executable, "driver.py"], cwd=folder, env=environment, stdout=subprocess.PIPE
            )
            while b" done" not in driver.stdout.readline():
                pass
            driver.kill()
            driver.communicate()
        states, _ = ran(table, folder / "out", slots=1, refresh=refresh)
        asked = Counter((seen.path, tuple(row)) for seen in server.log[before:] for row in seen.rows)
        assert len(states) <= 1
        assert len(asked) == 40 * len(names)
        assert asked.total() - len(asked) <= 10 * kills  # what was under way at the kill
        before = len(server.log)
        assert len(ran(table, folder / "out", refresh=refresh)[0]) == len(names)  # tomorrow all are asked again
        assert sum(len(seen.rows) for seen in server.log[before:]) == 40 * len(names)


@pytest.mark.parametrize("changed", [False, True])
def test_a_refresh_goes_on_with_a_check_that_was_interrupted(folder, ran, changed):
    """And comes to the copy of one that asked all of it itself."""
    options = 'protocol = "v2"\nrequest_rows = 10\nconcurrency = 1\nattempts = 1\ncheck = 100\nrepeat = 0\n'
    with FaultyServer(disc, ["500"], share=0.0) as server:
        table = written(folder, ("served", f"{server.url}/v2/models/m", options))
        ran(table, folder / "out", slots=1)
        shutil.copytree(folder / "out", folder / "undisturbed")
        if changed:
            server.decide = lambda rows: np.where(np.asarray(rows, float)[:, 0] > 0.3, "in", "out")
        before, server.plan = len(server.log), [None] * 3 + ["500"] * 9
        assert ran(table, folder / "out", slots=1)[0]["served"].state == "failed"
        server.plan = []
        (begun,) = read_sessions(folder / "out/served/copy-1")
        assert (begun.rows, begun.ended) == (30, None)
        done = ran(table, folder / "out", slots=1, refresh=True)[0]["served"]
        assert (done.did, "30 answers are taken from" in done.note) == ("refreshed" if changed else "checked", True)
        answered = [seen for seen in server.log[before:] if seen.fault is None]
        asked, start = Counter(tuple(row) for seen in answered for row in seen.rows), len(server.log)
        ran(table, folder / "undisturbed", slots=1, refresh=True)
        assert asked == Counter(tuple(row) for seen in server.log[start:] for row in seen.rows)
    (ended,) = read_sessions(folder / "out/served/copy-1")
    assert ended.ended is not None
    if changed:
        for name in FILES:
            copies = [folder / place / "served/copy-2" / name for place in ("out", "undisturbed")]
            assert copies[0].read_bytes() == copies[1].read_bytes()


def test_a_check_that_an_outage_interrupted_goes_on_and_says_of_when_its_answers_are(folder, ran):
    options = 'protocol = "v2"\nrequest_rows = 10\nattempts = 1\ncheck = 100\n'
    with FaultyServer(disc, ["500"], share=0.0) as server:
        table = written(folder, ("served", f"{server.url}/v2/models/m", options))
        ran(table, folder / "out", slots=1)
        before, server.plan = len(server.log), [None] * 3 + ["500"] * 9
        failed, _ = ran(table, folder / "out", slots=1)
        assert failed["served"].state == "failed"
        (begun,) = read_sessions(folder / "out/served/copy-1")
        server.plan = []
        done, _ = ran(table, folder / "out", slots=1)
        assert done["served"].did == "checked"
        assert done["served"].checked == begun.as_json()["first"]
        answered = [seen for seen in server.log[before:] if seen.fault is None]
        asked = Counter(tuple(row) for seen in answered for row in seen.rows)
        assert (len(asked), max(asked.values())) == (100, 1)


def test_the_command(folder):
    table = written(folder, *near("half"), ("lost", "fleetmodels:nothing", ""))
    first = run_command("fleet", table, "--out", "out", "--workers", 1, cwd=folder)
    assert first.returncode == 3, first.stderr
    most = re.search(
        r"2 models: at most (\d+) queries for first copies and 0 for checks", " ".join(first.stderr.split())
    )
    asked = json.loads(run_command("fleet", "status", "out", "--json", cwd=folder).stdout)
    assert 0 < sum(model["queries"] for model in asked["models"]) < int(most[1])
    assert "1/2 half: copied, done, fidelity" in first.stderr
    assert "2/2 lost: failed: original: expected something called nothing" in first.stderr
    assert "1 of 2 need attention" in first.stdout
    status = run_command("fleet", "status", "out", "--json", cwd=folder)
    document = json.loads(status.stdout)
    assert [(model["name"], model["state"]) for model in document["models"]] == [("lost", "failed"), ("half", "done")]
    assert document["counts"] == {"failed": 1, "done": 1}
    written(folder, *near("half"))
    again = run_command("fleet", "refresh", table, "--out", "out", "--workers", 1, "--json", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["models"][0]["did"] == "checked"
    nothing = run_command("fleet", "status", "nowhere", cwd=folder)
    assert (nothing.returncode, "run `ectype fleet` first" in nothing.stderr) == (2, True)
    assert run_command("fleet", "missing.toml", "--out", "other", cwd=folder).returncode == 2
    assert not (folder / "other").exists()


def test_models_are_checked_no_more_often_than_they_are_to_be(folder, ran):
    table = written(folder, ("half", "fleetmodels:half", 'every = "1d"\n'))
    assert ran(table, folder / "out", slots=1)[0]["half"].did == "copied"
    for place in ("out", "out/half"):  # as a driver leaves them that was killed while it wrote
        (folder / place / f"{UNFINISHED}abc.json").write_text("{")
    assert ran(table, folder / "out", slots=1)[0] == {}
    assert not [*(folder / "out").rglob(f"{UNFINISHED}*")]
    state = json.loads((folder / "out/half/state.json").read_text())
    (folder / "out/half/state.json").write_text(json.dumps({**state, "checked": "2020-01-01T00:00:00+00:00"}))
    assert ran(table, folder / "out", slots=1)[0]["half"].did == "checked"
