"""Runs against a server that fails, in random mixes of all kinds of failures: do its rows keep to the sum announced?

Each mix is a share of failing requests up to 40 %, some of the kinds, a size of requests, how many run at once, and a
share for retries. A run that ends is resumed by the same call; one whose retries are used up, with the share that its
error asks for. Rows are counted by the server. The copy is compared with that of a healthy server, byte by byte.

    python benchmarks/failures.py [--mixes 200] [--most 0.4]
    python benchmarks/failures.py --needed              what share retries take, by the share of requests that fail
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import ectype as ec
from ectype.errors import OriginalError, QuotaError
from ectype.ledger import LEDGER, summarise_ledger
from ectype.original import Original
from ectype.original.http.factory import open_http
from ectype.original.http.rate_limit import RetryWaits
from ectype.plan.resolve import resolve
from ectype.runs.api import build_job, finish, run_job
from ectype.runs.extend import in_directory
from fault_server import PASSING, TEMPLATE, FaultyServer  # type: ignore[import-not-found]

SPACE = ec.Space.normal(3)
QUICK = RetryWaits(first=0.002, most=0.02, jitter=0.002)
# A request that stalls is given up after this; with it, a mix takes a second or two.
TIMEOUT = 0.3
# How often a run that ended is begun again.
MOST_CALLS = 40


@dataclass(frozen=True)
class Mix:
    """What goes wrong, how often, and how the server is asked."""

    seed: int
    share: float
    kinds: tuple[str, ...]
    request_rows: int
    concurrency: int
    retries: float | None

    @classmethod
    def drawn(cls, seed: int, most: float = 0.4) -> Mix:
        """A random one."""
        random = Random(seed)
        kinds = tuple(random.sample(PASSING, random.randint(1, len(PASSING))))
        retries = random.choice((None, None, 0.0, 0.1, 0.5, 1.0, 2.0))
        return cls(seed, random.uniform(0, most), kinds, random.choice((7, 20, 50)), random.randint(1, 4), retries)


@dataclass
class Outcome:
    """How a mix went: what the server received, what was announced, and how the run came to its end."""

    mix: Mix
    healthy: bytes
    calls: int = 0
    spent: int = 0
    """How often the retries were used up."""
    announced: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    """By the server, after every call."""
    counted: int = 0
    """By the ledger, in the end: at least as much."""
    copy: bytes = b""

    @property
    def faults(self) -> list[str]:
        """What should not be."""
        held = [got <= most for got, most in zip(self.received, self.announced, strict=True)]
        found = {
            f"received {self.received} beyond {self.announced}": all(held),
            f"the ledger counts {self.counted}, the server {self.received[-1]}": self.counted >= self.received[-1],
            f"another copy, or none, after {self.calls} calls": self.copy == self.healthy,
        }
        return [words for words, right in found.items() if not right]


def rings(rows: np.ndarray) -> list[int]:
    inside: list[int] = np.digitize((np.asarray(rows, float) ** 2).sum(axis=1), [1, 3]).tolist()
    return inside


def settings(retries: float | None = None) -> ec.Settings:
    return ec.Settings(budget=150, batch=50, schedule=20, certificate_n=150, seed=3, retries=retries, preset="fast")


def box(url: str, mix: Mix) -> Original:
    options = {"request_rows": mix.request_rows, "concurrency": mix.concurrency, "timeout": TIMEOUT}
    opened: Callable[..., Original] = open_http
    made = opened(url, [0, 1, 2], protocol="template", template=TEMPLATE, patience=QUICK, **options)
    return made.replace(name="rings")


def healthy(folder: Path) -> bytes:
    """The copy that a server without failures gives."""
    with FaultyServer(rings, share=0) as server:
        job = build_job(box(server.url, Mix.drawn(0)), SPACE, resolve(settings()))
        finish(run_job(in_directory(job, folder)))
    return (folder / "copy.safetensors").read_bytes()


def tried(mix: Mix, folder: Path, expected: bytes) -> Outcome:
    """A run against the mix, begun again until it is done."""
    outcome, retries = Outcome(mix, expected), mix.retries
    with FaultyServer(rings, mix.kinds, share=mix.share, seed=mix.seed) as server:
        while not outcome.copy and outcome.calls < MOST_CALLS:
            job = build_job(box(server.url, mix), SPACE, resolve(settings(retries)))
            outcome.calls += 1
            try:
                finish(run_job(in_directory(job, folder)))
                outcome.copy = (folder / "copy.safetensors").read_bytes()
            except QuotaError as error:
                outcome.spent += 1
                asked = re.search(r"retries=([0-9.]+)\)", str(error))
                retries = float(asked[1]) if asked else None
            except OriginalError:
                pass  # an outage: the same call goes on
            outcome.announced.append(job.allowance.total)
            outcome.received.append(server.asked)
    outcome.counted = summarise_ledger(folder / LEDGER).asked
    return outcome


def mixed(mixes: int, most: float) -> int:
    """All mixes; gives how many went wrong."""
    wrong, spent, whole, calls, shares = 0, 0, 0, 0, Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        expected = healthy(Path(name) / "healthy")
        for seed in range(1, mixes + 1):
            outcome = tried(Mix.drawn(seed, most), Path(name) / str(seed), expected)
            wrong += bool(outcome.faults)
            spent += bool(outcome.spent)
            whole += outcome.calls == 1
            calls += outcome.calls
            shares.update(outcome.mix.kinds)
            for fault in outcome.faults:
                print(f"{outcome.mix}: {fault}")
    print(f"{mixes} mixes of {len(PASSING)} kinds of failures, each kind in {min(shares.values())} mixes at least")
    print(f"rows beyond the sum announced, or another copy: {wrong}")
    print(f"runs done by the first call: {whole}; retries used up, and raised as asked: {spent}; calls in all: {calls}")
    return wrong


def needed(runs: int = 20) -> None:
    """What share of rows is sent again, by the share of requests that fail."""
    print("requests that fail   rows sent again, as a share: median, 95 of 100")
    with tempfile.TemporaryDirectory() as name:
        expected = healthy(Path(name) / "healthy")
        for share in (0.05, 0.1, 0.2, 0.3, 0.4):
            found = []
            for seed in range(runs):
                mix = Mix(seed, share, ("500", "reset", "truncated", "429"), 20, 4, 10.0)
                outcome = tried(mix, Path(name) / f"{share}-{seed}", expected)
                assert outcome.copy == expected
                planned = outcome.announced[0] / 11
                found.append(outcome.counted / planned - 1)
            print(f"{share:>18.0%}   {np.median(found):.2f}   {np.quantile(found, 0.95):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixes", type=int, default=200)
    parser.add_argument("--most", type=float, default=0.4, help="the largest share of requests that fail")
    parser.add_argument("--needed", action="store_true")
    options = parser.parse_args()
    if options.needed:
        needed()
    else:
        sys.exit(bool(mixed(options.mixes, options.most)))


if __name__ == "__main__":
    main()
