"""A fleet of made originals of several kinds, a tenth of them endpoints that never answer well: time, limits, kills.

The same table is copied by one local process and by two workers of an engine, and by two of which one is killed
half-way, and then the driver; the copies have to be the same, byte by byte. Rows are counted where they arrive, second
by second. A second run should ask its checks alone. `--overhead` takes the time of units that do nothing, and of an
original of 20 ms a row on one worker and on two. Ratios need two cores that are free.

    python benchmarks/fleet.py [--models 200] [--budget 300] [--rate 1000] [--engine local]
    python benchmarks/fleet.py --overhead
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

import ectype as ec
from ectype.fleet import FleetStatus, read_fleet, run_fleet
from ectype.workers import open_engine, run_jobs

if TYPE_CHECKING:
    from fault_server import FaultyServer  # type: ignore[import-not-found]

# Names that workers find originals by.
MODULE = """
import os
from pathlib import Path

import numpy as np

def __getattr__(name):
    if not name.startswith("m"):
        raise AttributeError(name)
    seed = int(name[1:])
    rng, kind = np.random.default_rng(seed), seed % 4
    w = rng.normal(size=(4, 6))
    if kind == 0:
        return lambda rows: (np.asarray(rows) @ w[:, :3]).argmax(axis=1)
    if kind == 1:
        return lambda rows: ((np.asarray(rows) - w[:, 0]) ** 2).sum(axis=1) < 5
    if kind == 2:
        return lambda rows: np.tanh(np.asarray(rows) @ w).sum(axis=1) > 0
    import joblib
    from sklearn.ensemble import RandomForestClassifier
    file = Path(__file__).with_name(f"forest-{seed}.joblib")
    if not file.exists():
        X = rng.normal(size=(300, 4))
        model = RandomForestClassifier(10, random_state=seed).fit(X, np.sin(2 * X[:, 0]) + X[:, 1] > 0)
        joblib.dump(model, file.with_suffix(f".{os.getpid()}"))
        os.replace(file.with_suffix(f".{os.getpid()}"), file)
    return joblib.load(file).predict

def slow(rows):
    import time
    time.sleep(0.02 * len(rows))
    return np.asarray(rows)[:, 0] > 0
"""
# Rows of a check.
CHECK = 60
FILES = ("copy.safetensors", "copy.json", "space.json")
DRIVER = """
import sys
from ectype.fleet import read_fleet, run_fleet
from ectype.workers import open_engine

if __name__ == "__main__":
    engine, pids = open_engine(sys.argv[2], 2), ()
    for state in run_fleet(read_fleet("FLEET.toml"), sys.argv[1], engine):
        pids = pids or tuple(engine.pids.values())
        print(state.name, *pids, flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """What came of a run of the fleet."""

    seconds: float
    cpu: float
    """Seconds of this process, servers included, and of the workers."""
    outlook: FleetStatus

    @property
    def told(self) -> str:
        return ", ".join(f"{n} {state}" for state, n in self.outlook.counts.items())


def main() -> None:
    options = parse()
    if options.overhead:
        overhead()
        return
    with tempfile.TemporaryDirectory() as name, served() as (healthy, broken):
        folder = Path(name)
        os.chdir(folder)
        (folder / "made.py").write_text(MODULE)
        (folder / "driver.py").write_text(DRIVER)
        write_table(folder, options, healthy.url, broken.url)
        one, two = ran(folder, "one", "local", 1), ran(folder, "two", options.engine, 2)
        print(f"one worker    {one.seconds:7.1f} s   {one.told}")
        print(f"two workers   {two.seconds:7.1f} s   {two.told}   {one.seconds / two.seconds:.2f} times as fast")
        print(f"rows in the busiest second of the host: {busiest(healthy)} of {options.rate}")
        before = two.outlook.spent.rows
        again = ran(folder, "two", options.engine, 2)
        print(
            f"a second run  {again.seconds:7.1f} s   {again.seconds / two.seconds:.1%} of the first, "
            f"{again.outlook.spent.rows - before} rows; CPU {again.cpu:.1f} s, {again.cpu / two.cpu:.1%} of the first"
        )
        killed(folder, options.engine)
        last = ran(folder, "killed", options.engine, 2)
        checked = CHECK * sum(state.did == "checked" for state in last.outlook.states)
        twice = last.outlook.spent.rows - checked - before
        said = f"{checked} rows checked, {twice} of {before} asked twice"
        print(f"after kills   {last.seconds:7.1f} s   {last.told}, {said}")
        done = [state.name for state in one.outlook.states if state.copy]
        print(f"the same bytes: {sum(alike(folder, name) for name in done)} of {len(done)}")


@contextmanager
def served() -> Iterator[tuple[FaultyServer, FaultyServer]]:
    """An endpoint that answers, and one that does not."""
    # Not at the top: workers import this file too, and have no use for a server.
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from fault_server import FaultyServer

    with FaultyServer(decide, share=0.0) as healthy, FaultyServer(decide, ["500", "garbage"], share=1.0) as broken:
        yield healthy, broken


def decide(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows, float)[:, 0] + np.asarray(rows, float)[:, 1] ** 2 > 1


def write_table(folder: Path, options: argparse.Namespace, healthy: str, broken: str) -> None:
    """A tenth are endpoints out of order, a tenth others, and the rest in Python."""
    lines = [f'[limits.hosts]\n"127.0.0.1" = {options.rate}\n']
    preset = "fast" if options.quick else "default"
    lines.append(f'[defaults]\nspace = "normal:4"\nbudget = {options.budget}\ncertificate_n = 300\ncheck = {CHECK}\n')
    lines.append(f'preset = "{preset}"\n')
    for i in range(options.models):
        remote = {0: broken, 3: healthy}.get(i % 10)
        about = (
            f'original = "made:m{i}"' if remote is None else f'original = "{remote}/v2/models/m{i}"\nprotocol = "v2"'
        )
        lines.append(f'[[model]]\nname = "m{i}"\n{about}\n' + ("attempts = 2\n" if remote else ""))
    (folder / "FLEET.toml").write_text("\n".join(lines))


def ran(folder: Path, out: str, engine: str, workers: int) -> Ran:
    fleet, clock, before = read_fleet(folder / "FLEET.toml"), perf_counter(), cpu()
    for _ in run_fleet(fleet, folder / out, open_engine(engine, workers)):
        pass
    return Ran(perf_counter() - clock, cpu() - before, FleetStatus.of(fleet, folder / out))


def cpu() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def killed(folder: Path, engine: str) -> None:
    """Kill a worker after a tenth of the models, and the driver after a fifth, or after the first and the second."""
    models = len(read_fleet(folder / "FLEET.toml").models)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    driver = subprocess.Popen(
        [sys.executable, "driver.py", "killed", engine], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert driver.stdout is not None
    for count, line in enumerate(driver.stdout, 1):
        if count == max(1, models // 10):
            os.kill(int(line.split()[1]), signal.SIGKILL)
        if count == max(2, models // 5):
            driver.kill()
            break
    driver.communicate()


def busiest(server: FaultyServer) -> int:
    """The most rows that arrived within a second."""
    arrived = sorted((seen.at, len(seen.rows)) for seen in server.log)
    most, inside, first = 0, 0, 0
    for at, n in arrived:
        inside += n
        while arrived[first][0] <= at - 0.999:
            inside -= arrived[first][1]
            first += 1
        most = max(most, inside)
    return most


def alike(folder: Path, name: str) -> bool:
    found = [
        [(folder / out / name / "copy-1" / file).read_bytes() for file in FILES] for out in ("one", "two", "killed")
    ]
    return found[0] == found[1] == found[2]


@dataclass(frozen=True)
class Nothing:
    """A unit that takes no time."""

    task: int


class Line:
    """Units one after the other."""

    def __init__(self, n: int):
        self._left = deque(map(Nothing, range(n)))

    def take(self, slot: int) -> Nothing | None:
        return self._left.popleft() if self._left else None

    def put_back(self, job: Nothing) -> None:
        self._left.appendleft(job)


def same(task: int) -> int:
    return task


def overhead(units: int = 300) -> None:
    for name in ("local", "dask"):
        with open_engine(name, 1) as engine:
            list(run_jobs(Line(5), engine, same))
            clock = perf_counter()
            list(run_jobs(Line(units), engine, same))
            print(f"{name:<6} {1000 * (perf_counter() - clock) / units:6.2f} ms for a unit that does nothing")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "heavy.py").write_text(MODULE)
        sys.path.insert(0, folder)
        rows, seconds = ec.Space.normal(4).sample(200, np.random.default_rng(0)), {}
        for workers in (1, 2):
            original = ec.open_original("heavy:slow", engine="local", workers=workers)
            original.answer(rows[:4])
            clock = perf_counter()
            original.answer(rows)
            seconds[workers] = perf_counter() - clock
        print(f"20 ms a row: two workers {seconds[1] / seconds[2]:.2f} times as fast as one")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A fleet of made originals.")
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--budget", type=int, default=300)
    parser.add_argument("--rate", type=float, default=1000, help="rows a second to the endpoints")
    parser.add_argument("--engine", choices=("local", "dask"), default="local", help="of two workers")
    parser.add_argument("--quick", action="store_true", help="small networks")
    parser.add_argument("--overhead", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
