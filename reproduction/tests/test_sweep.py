"""The sweep: which units, in which order; workers and drivers that are killed; and the command."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from commands import run_command
from ectype.errors import SettingError, SpaceError, WorkerError
from ectype.workers._dask import DaskCluster
from ectype.workers._process_pool import ProcessPool
from ectype_paper import FAMILY_OF
from ectype_paper.store import NAME, open_store, read_store, unit_of
from ectype_paper.sweep import PlannedUnit, UnitOutcome, UnitQueue, outcomes, plan, problem_names, sweep, units, weight
from ectype_paper.unit_table import read_table
from ectype_paper.units import DELTAS, Unit, UnitTask, paper_settings
from optional_packages import needs
from processes import shown_on_a_terminal

COMMAND = [sys.executable, "-m", "ectype", "paper", "sweep"]
# The command as it is at a terminal, where it hears Ctrl-C; and with a line for every unit, after it was kept.
HEARS = "signal.signal(signal.SIGINT, signal.default_int_handler); progress.EVERY = 0; cli.main()"
IMPORTS = "import signal, ectype.cli as cli, ectype_paper.unit_progress as progress"
TALKING = [sys.executable, "-c", f"{IMPORTS}; {HEARS}", "paper", "sweep"]
SMALL = ["--iterations", "2", "--epochs", "5", "--deltas", "1e-4,1e-6"]
ENGINES = {"local": ProcessPool, "dask": DaskCluster}


def call(*arguments):
    return run_command("paper", "sweep", *arguments)


# Which units, in which order


def test_the_units_are_the_papers():
    every = units(problem_names(None), ["sequential", "one-shot"], DELTAS, runs=3, space="normal")
    assert len(every) == len(set(every)) == 8 * (12 + 1) * 3
    assert {unit.delta for unit in every if unit.method == "one-shot"} == {None}
    assert len(units(["iris", "wine"], ["pure", "online", "pure"], [1e-6, 1e-6], runs=2, space="learned")) == 8


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((["sequence"], [1e-6], 1, "normal"), "method: expected one of 'sequential', 'one-shot'"),
        ((["pure"], [1.0], 1, "normal"), "delta: expected a number from 0 to below 1, found 1.0"),
        ((["pure"], [1e-6], 0, "normal"), "runs: expected a whole number of at least 1"),
        ((["pure"], [1e-6], 1, "uniform"), "space: expected one of 'normal', 'learned'"),
    ],
)
def test_units_that_are_none(arguments, says):
    with pytest.raises(SettingError, match=says):
        units(["iris"], *arguments)


def test_problems_by_name(tmp_path):
    (tmp_path / "index.csv").write_text("name\niris\nmagic\ncongressional-voting\nodd\n")
    everything = problem_names(tmp_path)
    assert "magic" in everything
    assert "twonorm" in everything  # built in
    assert not {"congressional-voting", "odd"} & set(everything)
    assert problem_names(tmp_path, ["magic", "iris", "magic"]) == ("magic", "iris")
    with pytest.raises(SettingError, match=r"listed in .*index.csv, found 'bank'; without a folder there are"):
        problem_names(tmp_path, ["iris", "bank"])
    with pytest.raises(SettingError, match="a problem that is built in, found 'magic'"):
        problem_names(None, ["magic"])
    with pytest.raises(SpaceError, match=r"odd.csv.gz"):
        problem_names(tmp_path, ["odd"])
    assert "congressional-voting" in FAMILY_OF


def planned(problem, weight, repetition=0):
    return PlannedUnit(UnitTask(Unit(problem, "normal", "pure", None, repetition), {}, None, ""), weight)


def test_repetitions_come_first_then_large_problems_and_slots_stay_with_theirs():
    tasks = [planned(name, weight, r) for name, weight in (("small", 1), ("large", 5)) for r in (0, 0, 1)]
    waiting = UnitQueue([*tasks, planned("middle", 9)])

    def take(slot):
        one = waiting.take(slot)
        return one and (one.task.unit.repetition, one.task.unit.problem)

    assert [take(0), take(1)] == [(0, "large"), (0, "middle")]  # one slot at each
    assert [take(0), take(1)] == [(0, "large"), (0, "small")]
    waiting.put_back(planned("middle", 9))  # its worker died
    assert take(0) == (0, "middle")  # most left of this repetition
    assert take(0) == (0, "small")
    assert [take(0), take(0), take(0)] == [(1, "small"), (1, "large"), None]


def test_weights_grow_with_what_a_unit_costs():
    settings = paper_settings()
    costs = [
        weight(Unit("iris", "normal", method, delta, 0), 4, settings)
        for method, delta in [("one-shot", None), ("sequential", 5e-4), ("sequential", 1e-10), ("pure", None)]
    ]
    assert costs == sorted(costs)
    wide = weight(Unit("musk-1", "normal", "pure", None, 0), 166, settings)
    assert wide > 1.5 * costs[-1]
    assert weight(Unit("iris", "normal", "sequential", 0.0, 0), 4, settings) == costs[-1]


def test_what_is_in_the_store_is_not_planned_again(tmp_path):
    wanted = units(["iris", "wine"], ["pure"], [], runs=2, space="normal")
    with open_store(tmp_path, {}) as store:
        everything = plan(wanted, store, paper_settings(), None)
        assert [one.weight for one in everything] == sorted((one.weight for one in everything), reverse=True)
        digest = {one.task.unit.problem: one.task.digest for one in everything}
        store.add(record(Unit("iris", "normal", "pure", None, 1), digest["iris"]))
        left = {one.task.unit for one in plan(wanted, store, paper_settings(), None)}
    assert left == set(wanted) - {Unit("iris", "normal", "pure", None, 1)}


def record(unit, digest=""):
    return {**unit.__dict__, "data": digest}


# Workers that die. These calls take the place of `run` in real workers, and leave a trace of every start.


def traced(task):
    """Note a start, and how many there were of this unit."""
    place = Path(task.folder)
    (place / f"{task.unit.repetition}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return len(list(place.glob(f"{task.unit.repetition}-*")))


def meet(pipe, mode):
    """A pipe opens when there is somebody at its other end."""
    open(pipe, mode).close()


def first_is_killed(task):
    """Unit 0 is killed in its first attempt while unit 1 is under way; unit 1 ends after unit 0 has begun again."""
    starts, place = traced(task), Path(task.folder).parent
    if task.unit.repetition == 0:
        if starts == 1:
            meet(place / "under-way", "r")
            os.kill(os.getpid(), signal.SIGKILL)
        meet(place / "again", "w")
    if task.unit.repetition == 1:
        meet(place / "under-way", "w")
        meet(place / "again", "r")
    return record(task.unit)


def always_killed(task):
    traced(task)
    if task.unit.repetition == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return record(task.unit)


def raises(task):
    if task.unit.repetition == 1:
        raise SettingError("unit", "luck", "none")
    return record(task.unit)


def tasks(folder, n):
    return [PlannedUnit(UnitTask(Unit("iris", "normal", "pure", None, r), {}, str(folder), ""), 1.0) for r in range(n)]


def starts(folder):
    return Counter(int(path.name.split("-")[0]) for path in folder.iterdir())


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "dask":
        needs("distributed")
    with ENGINES[request.param](2) as started:
        yield started


def test_a_worker_killed_half_way_costs_only_its_own_unit(tmp_path, engine):
    folder = tmp_path / "starts"
    folder.mkdir()
    for name in ("under-way", "again"):
        os.mkfifo(tmp_path / name)
    found = list(outcomes(tasks(folder, 5), engine, first_is_killed))
    assert {outcome.unit.repetition for outcome in found if outcome.record} == set(range(5))
    assert starts(folder) == {0: 2, 1: 1, 2: 1, 3: 1, 4: 1}


def test_a_unit_that_kills_its_worker_three_times_is_reported_and_the_rest_goes_on(tmp_path, engine):
    found = {outcome.unit.repetition: outcome for outcome in outcomes(tasks(tmp_path, 5), engine, always_killed)}
    assert set(found) == set(range(5))
    assert [repetition for repetition, outcome in found.items() if outcome.record is None] == [1]
    assert "died" in found[1].error
    assert starts(tmp_path)[1] == 3


def test_a_unit_that_fails_is_reported_and_the_rest_goes_on(tmp_path, engine):
    found = {outcome.unit.repetition: outcome for outcome in outcomes(tasks(tmp_path, 4), engine, raises)}
    assert found[1] == UnitOutcome(found[1].unit, None, "SettingError: unit: expected luck, found none", 1.0)
    assert [r for r in found if found[r].record] == [r for r in found if r != 1]


def test_real_units_survive_the_death_of_a_worker(tmp_path, engine):
    """A worker is killed from outside; the records are those of a sweep in which nobody died."""
    settings = paper_settings(iterations=2, epochs=5)
    wanted = units(["iris"], ["pure", "online"], [], runs=4, space="normal")
    with open_store(tmp_path, settings) as store:
        todo, killed = plan(wanted, store, settings, None), None
        for _ in outcomes_kept(todo, store, engine):
            if killed is None:
                killed = list(engine.pids.values())[1]
                os.kill(killed, signal.SIGKILL)
    records = read_store(tmp_path)[1]
    assert Counter(map(unit_of, records)) == Counter(wanted)
    from ectype_paper.units import run

    alone = run(next(one.task for one in todo if one.task.unit == wanted[1]))
    kept = next(found for found in records if unit_of(found) == wanted[1])
    assert {**kept, "seconds": 0, "cpu": 0, "times": []} == {**alone, "seconds": 0, "cpu": 0, "times": []}


def outcomes_kept(todo, store, engine):
    """`sweep` on an engine that is started already."""
    from ectype_paper.units import run

    for outcome in outcomes(todo, engine, run):
        store.add(outcome.record)
        yield outcome


def test_a_cluster_that_is_lost_half_way_is_an_error_and_what_is_finished_is_kept(tmp_path):
    needs("distributed")
    script = tmp_path / "cluster.py"
    script.write_text(
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    options = {'host': '127.0.0.1', 'dashboard_address': '127.0.0.1:0'}\n"
        "    cluster = LocalCluster(n_workers=1, threads_per_worker=1, **options)\n"
        "    print(cluster.scheduler_address, flush=True)\n"
        "    input()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    cluster = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    )
    try:
        with DaskCluster(scheduler=cluster.stdout.readline().strip()) as engine:
            found = outcomes(tasks(tmp_path, 3), engine, second_ends_the_cluster)
            assert next(found).unit.repetition == 0
            with pytest.raises(WorkerError, match="the connection to them was lost; what is finished is kept"):
                next(found)
    finally:
        cluster.kill()
        cluster.communicate()


def second_ends_the_cluster(task):
    """A worker's parent is the process of the scheduler here."""
    if task.unit.repetition == 1:
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return record(task.unit)


# The command


def test_the_command_runs_resumes_and_extends(tmp_path):
    arguments = ["--out", tmp_path / "store", "--problems", "iris", *SMALL, "--workers", 1]
    first = call(*arguments, "--runs", 1)
    assert first.returncode == 0, first.stderr
    assert "3 units, 0 of them finished before" in first.stderr
    assert "3/3 units" in first.stderr
    assert "3 of 3 units are in" in first.stdout
    lines = (tmp_path / "store" / NAME).read_bytes()
    second = call(*arguments, "--runs", 2, "--methods", "sequential,one-shot,online", "--json")
    document = json.loads(second.stdout)
    assert (document["units"], document["before"], document["ran"], document["failed"]) == (8, 3, 5, {})
    assert set(document["seconds"]) == {"sequential", "one-shot", "online"}
    assert (tmp_path / "store" / NAME).read_bytes().startswith(lines)
    methods = Counter(one["method"] for one in read_table(document["csv"]))
    assert methods == {"sequential": 4, "one-shot": 2, "online": 2}
    third = call(*arguments, "--runs", 2, "--json")
    assert json.loads(third.stdout)["ran"] == 0
    elsewhere = ["--out", tmp_path / "other", *arguments[2:], "--known", document["csv"]]
    assert json.loads(call(*elsewhere, "--runs", 2, "--json").stdout)["units"] == 0
    assert json.loads(call(*elsewhere, "--runs", 3, "--json").stdout)["ran"] == 3
    other = call(*arguments, "--runs", 2, "--epochs", 6)
    assert other.returncode == 2
    assert "expected a store of the same settings, found one with epochs 5 (now 6)" in other.stderr


def test_a_sweep_killed_half_way_keeps_every_finished_unit_and_runs_none_again(tmp_path):
    arguments = ["--out", tmp_path, "--problems", "iris", *SMALL, "--runs", "5", "--workers", "2"]
    process = subprocess.Popen([*TALKING, *map(str, arguments)], stderr=subprocess.PIPE, text=True)
    path = tmp_path / NAME
    reads_until(process.stderr, "4/15 units")
    process.kill()
    process.wait()
    process.stderr.close()
    with path.open("ab") as file:
        file.write(b'{"problem": "iris", "spa')  # as if it had been killed in the middle of a line
    kept = [unit_of(found) for found in read_store(tmp_path)[1]]
    assert 4 <= len(kept) < 15, "it was to be killed half-way"
    before = path.read_bytes()
    wait_for_the_lock(tmp_path)  # its workers end by themselves
    out = call(*arguments, "--json")
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout)["before"] == len(kept)
    assert json.loads(out.stdout)["ran"] == 15 - len(kept)
    whole = path.read_bytes()
    assert whole.startswith(before[: before.rfind(b"\n") + 1])
    found = [unit_of(found) for found in read_store(tmp_path)[1]]
    assert found[: len(kept)] == kept
    assert len(found) == len(set(found)) == 15


def reads_until(stream, start):
    """Read lines until one begins like this."""
    assert any(line.startswith(start) for line in stream), "it ended before"


def wait_for_the_lock(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.close(descriptor)


@pytest.mark.parametrize("name", ENGINES)
def test_ctrl_c_is_exit_code_130_and_keeps_what_is_finished(tmp_path, name):
    if name == "dask":
        needs("distributed")
    # So many that their lines are more than a pipe holds: it cannot be done before it is interrupted.
    many = ["--iterations", "2", "--epochs", "5", "--methods", "online", "--runs", "3000", "--workers", "1"]
    command = [*TALKING, "--out", str(tmp_path / "store"), "--problems", "iris", "--engine", name, *many]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    reads_until(process.stderr, "1/3000 units")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers hear it too
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert len(read_table(tmp_path / "store" / "units.csv")) == len(read_store(tmp_path / "store")[1]) >= 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--problems", "magic"], "a problem that is built in, found 'magic'; without a folder there are breast"),
        (["--data", "nowhere"], "nowhere/index.csv: expected a readable list of problems"),
        (["--deltas", "1e-4,small"], "--deltas: expected numbers with commas between them, found 'small'"),
        (["--methods", "sequence"], "method: expected one of"),
        (["--epochs", "0"], "--epochs: expected a whole number of at least 1"),
        (["--workers", "0"], "workers: expected a whole number of at least 1"),
        (["--scheduler", "tcp://127.0.0.1:1"], "add --engine dask"),
        (
            ["--engine", "dask", "--scheduler", "nowhere", "--problems", "iris"],
            "expected a Dask scheduler at 'nowhere'",
        ),
    ],
)
def test_bad_input_is_exit_code_2_and_nothing_is_written(tmp_path, arguments, says):
    if "dask" in arguments:
        needs("distributed")
    out = call("--out", tmp_path / "store", *arguments)
    assert out.returncode == 2
    assert says in out.stderr
    assert "Traceback" not in out.stderr
    assert not (tmp_path / "store").exists()


def test_units_that_fail_are_exit_code_1_and_run_again_next_time(tmp_path, monkeypatch):
    """wine's original is of xgboost, which a module of that name in the way keeps from being imported."""
    (tmp_path / "xgboost.py").write_text("raise ImportError('in the way')\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = ["--out", tmp_path / "store", "--problems", "iris,wine", "--methods", "online", "--runs", 1, "--json"]
    small = ["--iterations", "2", "--epochs", "5", "--workers", "1"]
    out = run_command("paper", "sweep", *arguments, *small, cwd=tmp_path)
    assert out.returncode == 1, out.stderr
    document = json.loads(out.stdout)
    assert document["ran"] == 1
    assert list(document["failed"]) == ["wine normal online run 0"]
    assert "pip install xgboost-cpu" in document["failed"]["wine normal online run 0"]
    assert len(read_store(tmp_path / "store")[1]) == 1


def test_a_terminal_gets_a_bar_with_the_time_left(tmp_path):
    small = ["--iterations", "2", "--epochs", "5", "--methods", "online", "--runs", "3", "--workers", "1"]
    arguments = ["--out", tmp_path / "store", "--problems", "iris", *small]
    shown = shown_on_a_terminal([*COMMAND, *map(str, arguments)])
    assert b"3/3" in shown
    assert b"left 0:00" in shown


def test_a_sweep_of_nothing_starts_nothing(tmp_path):
    with open_store(tmp_path, {}) as store:
        assert list(sweep([], store, engine=None)) == []
