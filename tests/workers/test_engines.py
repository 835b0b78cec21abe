"""What units run on: local processes and Dask, workers that die, schedulers that are not there."""

import json
import multiprocessing
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import BrokenExecutor
from http.client import HTTPException
from multiprocessing.connection import Connection

import pytest

from ectype.errors import SettingError
from ectype.workers import open_engine
from ectype.workers._dask import CONNECT, DaskCluster
from ectype.workers._process_pool import ProcessPool
from optional_packages import needs

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def about():
    """What a call sees of the worker it runs in."""
    return os.getpid(), sorted(os.sched_getaffinity(0)), [os.environ.get(name) for name in VARIABLES]


def die():
    os.kill(os.getpid(), 9)


def stays(pipe):
    """Stay until somebody opens the pipe to write, and read it."""
    with open(pipe) as stream:
        return stream.read()


def test_local_workers_are_processes_pinned_to_a_core_and_a_thread_each(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    cores = sorted(os.sched_getaffinity(0))
    with ProcessPool(3) as engine:
        assert engine.slots == 3
        found = [engine.submit(slot, about).result(60) for slot in range(3)]
        assert [pid for pid, _, _ in found] == [engine.pids[slot] for slot in range(3)]
    assert [affinity for _, affinity, _ in found] == [[cores[slot % len(cores)]] for slot in range(3)]
    assert all(threads == ["1", "1"] for _, _, threads in found)
    assert not any(name in os.environ for name in VARIABLES)
    # Others may have workers still: originals that are not yet collected.
    assert not {pid for pid, _, _ in found} & {child.pid for child in multiprocessing.active_children()}


def test_one_thread_holds_libraries_that_came_later_too_and_lets_go_of_all():
    script = """
import threadpoolctl
from ectype.workers import one_thread

def threads():
    return [library["num_threads"] for library in threadpoolctl.threadpool_info()]

def told():
    before = threads()
    with one_thread():
        within = threads()
    print(json.dumps([before, within, threads()]))

import json, numpy
told()
import sklearn.utils._openmp_helpers
told()
"""
    two = {**os.environ, **dict.fromkeys(VARIABLES, "2")}
    said = subprocess.run([sys.executable, "-c", script], env=two, capture_output=True, text=True, check=True).stdout
    found = [json.loads(line) for line in said.splitlines()]
    assert 0 < len(found[0][0]) < len(found[1][0])
    for before, within, after in found:
        assert within == [1] * len(before)
        assert after == before
    assert max(found[1][0]) == 2


def test_a_local_worker_that_dies_takes_no_other_with_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ProcessPool(2) as engine:
        survivor = engine.submit(1, stays, tmp_path / "pipe")
        with pytest.raises(BrokenExecutor):
            engine.submit(0, die).result(60)
        with pytest.raises(BrokenExecutor):
            engine.submit(0, about).result(60)
        before = dict(engine.pids)
        engine.renew(0)
        (tmp_path / "pipe").write_text("still here")
        assert survivor.result(60) == "still here"
        assert engine.submit(0, about).result(60)[0] == engine.pids[0] != before[0]
        assert engine.pids[1] == before[1]


def test_local_workers_end_at_once_with_their_engine():
    with ProcessPool(2) as engine:
        for slot in range(2):
            engine.submit(slot, signal.pause)  # it never ends by itself
        pids = list(engine.pids.values())
    assert not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes that are not its children")
def test_local_workers_end_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(
        "import signal\nfrom ectype.workers._process_pool import ProcessPool\n"
        "if __name__ == '__main__':\n"
        "    with ProcessPool(2) as engine:\n"
        "        engine.submit(0, signal.pause)\n"
        "        print(*engine.pids.values(), flush=True)\n"
        "        signal.pause()\n"
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    pids = list(map(int, process.stdout.readline().split()))
    assert all(map(alive, pids))
    ends = [os.pidfd_open(pid) for pid in pids]
    process.kill()
    process.communicate()
    for end in ends:
        assert select.select([end], [], [], 60)[0], "it goes on without its parent"
        os.close(end)
    assert not any(map(alive, pids))


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(
        "from ectype.workers._process_pool import ProcessPool\nwith ProcessPool(1) as engine:\n    pass\n"
    )
    out = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert out.returncode == 1
    assert 'a script needs `if __name__ == "__main__":`' in out.stderr


def test_engines_by_name():
    assert isinstance(open_engine("local", 1), ProcessPool)
    assert isinstance(open_engine("dask", 1), DaskCluster)
    for arguments, says in [
        (("ray",), "engine: expected one of 'local', 'dask', found 'ray'"),
        (("local", 0), "workers: expected a whole number of at least 1"),
        (("local", 1, "tcp://127.0.0.1:1"), "add --engine dask"),
        (("dask", 2, "tcp://127.0.0.1:1"), "workers: expected nothing, with a scheduler, found 2"),
    ]:
        with pytest.raises(SettingError, match=says):
            open_engine(*arguments)


def test_dask_may_be_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SettingError, match=r'pip install "ectype\[dask\]"'), DaskCluster(1):
        pass


def test_dask_workers_are_local_processes_of_one_thread_that_nobody_else_reaches(monkeypatch):
    needs("distributed")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with DaskCluster(2) as engine:
        assert engine.slots == 2
        assert len({*engine.pids.values(), os.getpid()}) == 3
        pid, affinity, threads = engine.submit(0, about).result(60)
        assert pid in engine.pids.values()
        assert len(affinity) == 1
        assert threads == ["1", "1"]
        pids = list(engine.pids.values())
        places = [place for pid in (os.getpid(), *pids) for place in listening(pid)]
        assert len(places) >= 3
        assert {place.ip for place in places} == {"127.0.0.1"}
        for place in places:  # no dashboard, and nothing else to look at
            with pytest.raises((OSError, HTTPException)):
                urllib.request.urlopen(f"http://127.0.0.1:{place.port}/status", timeout=5)
    assert not any(map(alive, pids))


def listening(pid):
    psutil = pytest.importorskip("psutil")
    return [found.laddr for found in psutil.Process(pid).net_connections("tcp") if found.status == psutil.CONN_LISTEN]


@pytest.fixture
def silent():
    """A server that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def refused(address):
    needs("distributed")
    with pytest.raises(SettingError) as caught, DaskCluster(scheduler=address, connect=0.5):
        pass
    assert f"--scheduler: expected a Dask scheduler at {address!r}" in str(caught.value)
    return str(caught.value)


def test_a_scheduler_that_is_not_there_is_an_error_after_a_while():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert "nothing that answered within 0.5 s" in refused(f"tcp://127.0.0.1:{free.getsockname()[1]}")


def test_a_server_that_is_no_scheduler_is_an_error_after_a_while(silent):
    assert CONNECT < 15  # unless said otherwise
    assert "nothing that answered within 0.5 s" in refused(silent)


@pytest.mark.parametrize("address", ["nonsense", "http://127.0.0.1:80", "tcp://127.0.0.1:port", ""])
def test_addresses_that_are_none(address):
    assert "ValueError" in refused(address)


def answers_no_more():
    """From the next answer on, the worker is killed when a part of what it says was sent."""

    def cut(pipe, message):
        os.write(pipe.fileno(), struct.pack("!i", len(message)) + message[:10])
        die()

    Connection.send_bytes = cut


class Refuses(Exception):
    """An error that cannot be sent."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def fails():
    raise Refuses(1, 2)


def test_what_cannot_be_sent_is_told_in_words():
    with ProcessPool(1) as engine:
        with pytest.raises(RuntimeError, match="Refuses: 1 and 2"):
            engine.submit(0, fails).result(60)
        with pytest.raises((TypeError, RuntimeError), match="pickle"):
            engine.submit(0, threading.Lock).result(60)
        with pytest.raises((TypeError, AttributeError), match="pickle"):
            engine.submit(0, lambda: 1).result(60)
        assert engine.submit(0, about).result(60)[0] == engine.pids[0]  # and it goes on


def test_a_worker_that_dies_in_the_middle_of_its_answer_is_noticed():
    with ProcessPool(1) as engine:
        engine.submit(0, answers_no_more).result(60)
        with pytest.raises(BrokenExecutor):
            engine.submit(0, about).result(60)


CLUSTER = """
from distributed import LocalCluster, Security
if __name__ == "__main__":
    options = {"host": "127.0.0.1", "protocol": "tls", "dashboard_address": "127.0.0.1:0", "security": Security()}
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, **options)
    print(cluster.scheduler_address, flush=True)
    input()
"""


def test_a_scheduler_is_reached_by_tls_with_dasks_own_settings(tmp_path):
    """The workers of a cluster that only talks to those whom an authority vouches for."""
    needs("distributed")
    import dask
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "ec.pem")
    names = {"ca-file": "ca.pem", "client.cert": "ec.pem", "scheduler.cert": "ec.pem", "worker.cert": "ec.pem"}
    tls = {f"distributed.comm.tls.{name}": str(tmp_path / file) for name, file in names.items()}
    told = {f"DASK_{name.upper().replace('-', '_').replace('.', '__')}": value for name, value in tls.items()}
    (tmp_path / "cluster.py").write_text(CLUSTER)
    environment = {**os.environ, **told, "PYTHONPATH": os.pathsep.join(sys.path)}
    cluster = subprocess.Popen(
        [sys.executable, tmp_path / "cluster.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    try:
        address = cluster.stdout.readline().strip()
        assert address.startswith("tls://127.0.0.1:")
        with dask.config.set(tls), DaskCluster(scheduler=address) as engine:
            assert engine.submit(0, about).result(60)[0] in engine.pids.values()
            assert engine.address == "127.0.0.1"
        assert "TLS" in refused(address)  # to those without a certificate
    finally:
        cluster.kill()
        cluster.communicate()
