"""What many models cost, measured, and a night of ten thousand of them, simulated.

First, copies of made originals of several sizes: CPU seconds of a copy, a check and a refresh, bytes of a copy and of
its ledger, and a power law fitted to them; then the driver: units that do nothing, turns given at its gate, states
written. From these, a discrete-event simulation of a nightly refresh: workers take models as a fleet does, hosts have
limits, a share of originals has changed, some are out, and workers die. What a killed worker had computed is lost; what
it had paid for is not.

    python benchmarks/nightly.py [--quick] [--json]
    python benchmarks/nightly.py --simulate [--models 10000] [--workers 64]
"""

from __future__ import annotations

import argparse
import heapq
import json
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import ectype as ec
from ectype.fleet import ModelState
from ectype.fleet._quotas import FleetLimits, RequestScheduler, SpendLog
from ectype.fleet._rate_limit_server import RateLimitClient, RateLimitServer
from ectype.fleet._state_store import ModelFolder
from ectype.refresh import Refresh
from ectype.refresh._refresh import SHARE

# Rows of the certificate of every copy here, and of a check.
HELD_OUT, CHECK = 2000, 300


@dataclass(frozen=True)
class Cost:
    """What a copy of so many answers took."""

    d: int
    budget: int
    copy_s: float
    check_s: float
    refresh_s: float
    copy_bytes: int
    ledger_bytes_a_row: float


def made(d: int, turned: float = 0.0) -> ec.Original:
    """A random network of three classes; turned a little, it answers otherwise."""
    rng = np.random.default_rng(d)
    first, last = rng.normal(size=(d, 12)) / np.sqrt(d), rng.normal(size=(12, 3))
    bias = turned * rng.normal(size=3)
    return ec.Original(lambda rows: (np.tanh(2 * rows @ first) @ last + bias).argmax(axis=1), [0, 1, 2], name="made")


def measured(d: int, budget: int) -> Cost:
    space = ec.Space.normal(d)
    with tempfile.TemporaryDirectory() as name:
        run = Path(name) / "run"
        clock = process_time()
        ec.copy_classifier(made(d), space, budget=budget, certificate_n=HELD_OUT, progress=False, out=run)
        copied = process_time() - clock
        clock = process_time()
        Refresh.of(run, made(d), {}, Path(name) / "other", None, CHECK).checked()
        checked = process_time() - clock
        clock = process_time()
        ec.refresh(run, made(d, 0.8), out=Path(name) / "fresh", progress=False)
        refreshed = process_time() - clock
        size = sum((run / file).stat().st_size for file in ("copy.json", "copy.safetensors"))
        ledger = (run / "ledger.sqlite").stat().st_size / (budget + HELD_OUT)
    return Cost(d, budget, copied, checked, refreshed, size, ledger)


def fitted(costs: Sequence[Cost], what: str) -> tuple[float, float, float]:
    """a, b, c of a * budget^b * d^c, by least squares of logarithms."""
    known = np.array([[1.0, np.log(cost.budget), np.log(cost.d)] for cost in costs])
    a, b, c = np.linalg.lstsq(known, np.log([getattr(cost, what) for cost in costs]), rcond=None)[0]
    return float(np.exp(a)), float(b), float(c)


@dataclass(frozen=True)
class Driver:
    """What the one process that drives can do in a second."""

    turns: float
    states: float


def driver(seconds: float) -> Driver:
    """Turns given to two threads over real sockets, and states written durably, for so many seconds each."""
    with tempfile.TemporaryDirectory() as name:
        purse = SpendLog(Path(name), FleetLimits())
        with RateLimitServer(RequestScheduler(FleetLimits(), purse), lambda model, words: None) as server:
            counts = Counter[int]()
            threads = [threading.Thread(target=passing, args=(server, counts, i, seconds)) for i in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        written, clock = 0, perf_counter()
        while perf_counter() - clock < seconds:
            ModelFolder(Path(name), f"m{written % 50}").write(ModelState("m", note="x" * 100))
            written += 1
        return Driver(sum(counts.values()) / seconds, written / seconds)


def passing(server: RateLimitServer, counts: Counter[int], i: int, seconds: float) -> None:
    with RateLimitClient(server.access, "m") as client:
        clock = perf_counter()
        while perf_counter() - clock < seconds:
            client.enter(100)
            client.leave(100)
            counts[i] += 1


@dataclass(frozen=True)
class Night:
    """What a night is like; times are in seconds, and those of work are of the tables in docs/scale.md."""

    models: int = 10_000
    workers: int = 64
    hosts: int = 20
    host_rows: float = 500.0
    """Rows a second that a host allows."""
    row: float = 0.002
    """Until a row is answered, in requests of a hundred, four at once."""
    changed: float = 0.03
    """The share of originals that changed."""
    out: float = 0.01
    """The share that are out, which takes a while to find."""
    patience: float = 60.0
    deaths: float = 0.02
    """Of a worker in an hour; it is back after `restart`."""
    restart: float = 20.0
    check_s: float = 0.01
    refresh_s: float = 7.2
    unit_s: float = 0.0125
    """The driver's own work for a unit, which is done one after the other."""
    budget: int = 3000
    seed: int = 0

    @property
    def refresh_rows(self) -> int:
        return round(SHARE * self.budget) + HELD_OUT


@dataclass
class Outcome:
    """What came of a night."""

    hours: float = 0.0
    busy: float = 0.0
    wasted: float = 0.0
    rows: int = 0
    driver: float = 0.0
    turns_a_second: float = 0.0
    peak_states: int = 0
    peak_commits: int = 0
    deaths: int = 0
    _written: Counter[int] = field(default_factory=Counter, repr=False)
    _commits: Counter[int] = field(default_factory=Counter, repr=False)


def simulated(night: Night) -> Outcome:
    """One night: every model is checked, and refreshed if it changed."""
    rng, found = np.random.default_rng(night.seed), Outcome()
    host_of = rng.integers(0, night.hosts, night.models)
    fate = rng.random(night.models)
    waiting = [deque(np.flatnonzero(host_of == host).tolist()) for host in range(night.hosts)]
    at_work, free_at = [0] * night.hosts, [0.0] * night.hosts
    ends: list[tuple[float, int, int]] = []
    driver_free, busy, wasted, now = 0.0, 0.0, 0.0, 0.0
    idle = list(range(night.workers))
    while idle or ends:
        while idle and any(waiting):
            host = min((h for h in range(night.hosts) if waiting[h]), key=lambda h: (at_work[h], -len(waiting[h])))
            model, worker = waiting[host].popleft(), idle.pop()
            driver_free = max(driver_free, now) + night.unit_s
            at_work[host] += 1
            rows, seconds = _work(night, float(fate[model]))
            # The host gives its turns in order; a worker computes while others ask.
            asked = max(driver_free, free_at[host] - rows / night.host_rows) + rows * night.row / 4
            free_at[host] = max(free_at[host], driver_free) + rows / night.host_rows
            end = max(asked, free_at[host]) + seconds
            while rng.random() < 1 - np.exp(-night.deaths * (end - driver_free) / 3600):
                lost = float(rng.random()) * seconds
                wasted, found.deaths, end = wasted + lost, found.deaths + 1, end + lost + night.restart
            busy += end - driver_free
            found.rows += rows
            found._written[int(end)] += 1
            for second in range(int(driver_free), int(end) + 1):
                found._commits[second] += max(1, round(rows / 100 / max(1.0, end - driver_free)))
            heapq.heappush(ends, (end, worker, host))
        if not ends:
            break
        now, worker, host = heapq.heappop(ends)
        at_work[host] -= 1
        idle.append(worker)
    found.hours, found.busy = now / 3600, busy / (night.workers * now)
    found.wasted = wasted / busy
    found.driver = night.models * night.unit_s / now
    found.turns_a_second = found.rows / 100 / now
    found.peak_states, found.peak_commits = max(found._written.values()), max(found._commits.values())
    return found


def _work(night: Night, fate: float) -> tuple[int, float]:
    """The rows that a model takes, and the seconds of computing: a check, an outage, or a refresh."""
    if fate < night.out:
        return 20, night.patience
    if fate < night.out + night.changed:
        return 50 + night.refresh_rows, night.check_s + night.refresh_s
    return CHECK, night.check_s


# Changes of the night; models and workers as multiples.
SCENES: dict[str, dict[str, float]] = {
    "as above": {},
    "half of the hosts' limits": {"host_rows": 250.0},
    "a tenth changed": {"changed": 0.1},
    "ten times the models": {"models": 10},
    "and ten times the workers": {"models": 10, "workers": 10},
    "and hosts without limits": {"models": 10, "workers": 10, "host_rows": 1e9},
    "and answers at once": {"models": 10, "workers": 10, "host_rows": 1e9, "row": 0.0},
    "workers that die every hour": {"deaths": 1.0},
}


def main() -> None:
    options = parse()
    if options.simulate:
        simulate(options)
        return
    sizes = [(5, 300), (5, 1000)] if options.quick else [(d, n) for d in (5, 20) for n in (300, 1000, 3000, 10_000)]
    costs, found = [measured(*size) for size in sizes], driver(0.2 if options.quick else 3.0)
    fits = {} if options.quick else {what: fitted(costs, what) for what in ("copy_s", "refresh_s", "copy_bytes")}
    if options.json:
        print(json.dumps({"costs": [asdict(cost) for cost in costs], "driver": asdict(found), "fits": fits}))
        return
    print("columns  budget  copy s  check s  refresh s  copy kB  ledger bytes a row")
    for cost in costs:
        print(
            f"{cost.d:7}{cost.budget:8}{cost.copy_s:8.2f}{cost.check_s:9.3f}{cost.refresh_s:11.2f}"
            f"{cost.copy_bytes / 1000:9.0f}{cost.ledger_bytes_a_row:20.0f}"
        )
    for what, (a, b, c) in fits.items():
        print(f"{what}: {a:.3g} * budget^{b:.2f} * columns^{c:.2f}")
    print(f"driver: {found.turns:.0f} turns a second, {found.states:.0f} states written a second")


def simulate(options: argparse.Namespace) -> None:
    print("night                             hours  busy  wasted   rows  driver  turns/s  states/s  commits/s  deaths")
    for name, changes in SCENES.items():
        sizes = {key: round(changes.get(key, 1) * getattr(options, key)) for key in ("models", "workers")}
        night = replace(Night(), **{**changes, **sizes})
        found = simulated(night)
        print(
            f"{name:<32}{found.hours:7.2f}{found.busy:6.0%}{found.wasted:8.2%}{found.rows / 1e6:6.1f}M"
            f"{found.driver:8.1%}{found.turns_a_second:9.0f}{found.peak_states:10}{found.peak_commits:11}{found.deaths:8}"
        )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What many models cost.")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
