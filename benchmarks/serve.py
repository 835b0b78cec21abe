"""A served copy under load: errors, requests per second, latencies, the server's processor time, and its memory.

The command serves two copies, of two numbers and of six mixed columns. Many clients on keep-alive connections ask both
for single rows; one client alone does; and four ask for a thousand rows at once while a fifth looks whether the server
is alive. An answer that is not the copy's counts as an error.

    python benchmarks/serve.py
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

import ectype as ec
from ectype.original.protocols import V2
from ectype.types import Frame, Json, Label

MIXED = """{"columns": [
 {"name": "age", "kind": "integer", "low": 18, "high": 90},
 {"name": "income", "kind": "float", "quantiles": [9000, 21000, 30000, 43000, 160000], "missing": 0.1},
 {"name": "owner", "kind": "boolean"},
 {"name": "region", "kind": "category", "levels": ["north", "south", "east", "west"], "missing": 0.05},
 {"name": "grade", "kind": "ordered", "levels": ["D", "C", "B", "A"]},
 {"name": "jobs", "kind": "integer", "values": [0, 1, 2, 3, 5]}
]}"""
# Different questions, so that no answer is another's.
QUESTIONS = 500
# What is asked before anything is measured, as a share of what is measured then.
WARM_UP = 0.1
BATCH = 1000


def rich(rows: Frame) -> np.ndarray:
    score = rows["income"].fillna(25000) / 20000 + 0.02 * (rows["age"] - 40) + np.where(rows["region"] == "west", -1, 0)
    return np.where(score > 1.5, "grant", np.where(score > 0.5, "ask", "refuse"))


def disc(rows: np.ndarray) -> np.ndarray:
    return (rows**2).sum(axis=1) < 1


PROBLEMS = {"numbers": (disc, ec.Space.normal(2)), "mixed": (rich, ec.Space.from_json(MIXED))}


@dataclass
class Tally:
    errors: int = 0
    seconds: list[float] = field(default_factory=list)

    def at(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return round(1e3 * ordered[min(int(share * len(ordered)), len(ordered) - 1)], 3)


@dataclass(frozen=True)
class Question:
    raw: bytes
    expected: list[Label] | None


def questions(result: ec.Result, url: str, rows: int, n: int) -> list[Question]:
    """Requests as they go over the wire, and the labels that the copy gives."""
    space, target = result.space, urlsplit(url)
    found = []
    for seed in range(n):
        asked = space.present(space.sample(rows, np.random.default_rng([1, seed])))
        body = V2().encode(asked, str(seed))
        head = f"POST {target.path}/infer HTTP/1.1\r\nHost: {target.netloc}\r\nContent-Type: application/json\r\n"
        raw = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        found.append(Question(raw, result.copy.predict(asked).tolist()))
    return found


async def client(url: str, asked: Iterator[Question], tally: Tally) -> None:
    """Ask one question after the other on one connection."""
    target = urlsplit(url)
    reader, writer = await asyncio.open_connection(target.hostname, target.port)
    for question in asked:
        clock = perf_counter()
        writer.write(question.raw)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await reader.readexactly(size)
        tally.seconds.append(perf_counter() - clock)
        right = question.expected is None or json.loads(body)["outputs"][0]["data"] == question.expected
        tally.errors += not (head.startswith(b"HTTP/1.1 200 ") and right)
    writer.close()
    await writer.wait_closed()


async def load(url: str, asked: list[Question], clients: int, n: int) -> tuple[Tally, float, Tally]:
    """n questions from so many clients, how long all of them took, and no health checks."""
    tally, clock = Tally(), perf_counter()
    places = [cycle(asked[at % len(asked) :] + asked[: at % len(asked)]) for at in range(clients)]
    shares = [n // clients + (at < n % clients) for at in range(clients)]
    await asyncio.gather(*(client(url, islice(q, share), tally) for q, share in zip(places, shares, strict=True)))
    return tally, perf_counter() - clock, Tally()


async def with_health(url: str, asked: list[Question], clients: int, n: int) -> tuple[Tally, float, Tally]:
    """The same, while somebody looks whether the server is alive."""
    done, health = asyncio.Event(), Tally()
    raw = f"GET /v2/health/live HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode()

    def until_done() -> Iterator[Question]:
        while not done.is_set():
            yield Question(raw, None)

    looking = asyncio.create_task(client(url, until_done(), health))
    tally, seconds, _ = await load(url, asked, clients, n)
    done.set()
    await looking
    return tally, seconds, health


@contextmanager
def served(result: ec.Result) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = result.save(Path(folder) / "copy")
        command = [sys.executable, "-m", "ectype", "serve", str(path), "--port", "0", "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.communicate(timeout=30)
            assert process.returncode == 0


def process(url: str) -> tuple[float, float]:
    """The server's memory in MB, and the processor time that it has used."""
    with urlopen(url.partition("/v2")[0] + "/metrics") as answer:
        values = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines())
    return float(values["process_resident_memory_bytes"]) / 2**20, float(values["process_cpu_seconds_total"])


def measured(name: str, clients: int, n: int) -> list[Json]:
    original, space = PROBLEMS[name]
    result = ec.copy_classifier(original, space, method="one-shot", budget=1000, certificate_n=0)
    with served(result) as url:
        single, many = questions(result, url, 1, min(QUESTIONS, n)), questions(result, url, BATCH, 8)
        cases = [(single, 1, clients, n), (single, 1, 1, n // 10), (many, BATCH, 4, max(n // 100, 4))]
        return [{"columns": name, **_case(url, *case)} for case in cases]


def _case(url: str, asked: list[Question], rows: int, clients: int, n: int) -> Json:
    asyncio.run(load(url, asked, clients, max(int(WARM_UP * n), clients)))
    memory, cpu = process(url)
    tally, seconds, health = asyncio.run(
        with_health(url, asked, clients, n) if rows > 1 else load(url, asked, clients, n)
    )
    after, cpu_after = process(url)
    return {
        "clients": clients,
        "rows": rows,
        "requests": n,
        "errors": tally.errors + n - len(tally.seconds),
        "per_second": round(n / seconds),
        "p50_ms": tally.at(0.5),
        "p99_ms": tally.at(0.99),
        "cpu_ms": round(1e3 * (cpu_after - cpu) / n, 3),
        "before_mb": round(memory, 1),
        "after_mb": round(after, 1),
        **({"health_p50_ms": health.at(0.5), "health_p99_ms": health.at(0.99)} if health.seconds else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    found = [row for name in options.problems for row in measured(name, options.clients, options.requests)]
    if options.json:
        print(json.dumps(found))
        return
    shown = [name for name in found[0] if not name.startswith("health")]
    print("".join(f"{name:>11}" for name in shown))
    for row in found:
        print("".join(f"{row[name]:>11}" for name in shown))
    for row in found:
        if "health_p50_ms" in row:
            print(f"{row['columns']}: health checks meanwhile {row['health_p50_ms']} ms, p99 {row['health_p99_ms']} ms")


if __name__ == "__main__":
    main()
