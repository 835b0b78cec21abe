"""A parallel run with and without --keep, under steady load, beside an original that fails a tenth of the time.

The command serves a copy; single rows come at a fixed rate, each another one, whatever the answers take, and the time
of an answer counts from when its request was due. Servers with and without --keep take turns, beside the same original
over HTTP, which is a process of its own and notes what it answered. What was kept is then compared with that, row by
row.

    python benchmarks/keeping.py
    python benchmarks/keeping.py --kills 20        SIGKILL at random moments, and go on in the same directory
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from urllib.request import urlopen

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import ectype as ec
from ectype.ledger import LEDGER, read_answers
from ectype.types import Json
from fault_server import FaultyServer  # type: ignore[import-not-found]

SPACE = ec.Space.normal(8)
FAULTS, SHARE = ("500", "503", "drop", "reset", "truncated", "cut", "nan", "few"), 0.1
CLIENTS = 8
COLUMNS = (
    "keep",
    "requests",
    "errors",
    "p50_ms",
    "p99_ms",
    "answered",
    "kept",
    "lost",
    "wrong",
    "mb_serving",
    "mb_after",
)

Answered = dict[bytes, int]
"""What an original answered, by the bytes of a row."""


def decided(rows: np.ndarray) -> list[int]:
    inside: list[int] = np.digitize((np.asarray(rows, float) ** 2).sum(axis=1), [5, 9]).tolist()
    return inside


# --- the original, in a process of its own ----------------------------------------------------------------------------


def answering(pipe: Connection) -> None:
    """Be the original until told to stop; whenever asked, tell which rows were answered whole."""
    with FaultyServer(decided, FAULTS, SHARE) as server:
        pipe.send(server.url)
        while pipe.recv():
            whole = [np.array(seen.rows) for seen in list(server.log) if seen.fault is None]
            pipe.send({row.tobytes(): label for rows in whole for row, label in zip(rows, decided(rows), strict=True)})


class Original:
    def __init__(self) -> None:
        self._pipe, other = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(target=answering, args=(other,))
        self._process.start()
        self.url: str = self._pipe.recv()

    def answered(self) -> Answered:
        self._pipe.send(True)
        found: Answered = self._pipe.recv()
        return found

    def stop(self) -> None:
        self._pipe.send(False)
        self._process.join()


# --- the copy, served ---------------------------------------------------------------------------------------------


@contextmanager
def served(copy: Path, original: Original, kept: Path | None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command beside the original; gives its process and port."""
    command = [sys.executable, "-m", "ectype", "serve", str(copy), "--port", "0", "--json"]
    command += ["--shadow", original.url, "--protocol", "instances", "--classes", "0,1,2"]
    command += [] if kept is None else ["--keep", str(kept)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["port"]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def told(port: int) -> Json:
    with urlopen(f"http://127.0.0.1:{port}/shadow") as answer:
        found: Json = json.load(answer)
    return found


async def settled(port: int) -> Json:
    """What the parallel run says, once no row waits."""
    while (found := told(port))["waiting"]:
        await asyncio.sleep(0.1)
    return found


async def client(
    port: int, rows: np.ndarray, expected: np.ndarray, start: float, every: float
) -> tuple[list[float], int]:
    """Ask about one row after the other, each when it is due: seconds from then on, and answers that are not right."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken, wrong = list[float](), 0
    for k, row in enumerate(rows):
        due = start + k * every
        await asyncio.sleep(max(0.0, due - perf_counter()))
        body = json.dumps([row.tolist()]).encode()
        writer.write(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        found = json.loads(await reader.readexactly(size))
        taken.append(perf_counter() - due)
        wrong += found.get("predictions") != [expected[k]]
    writer.close()
    return taken, wrong


async def load(port: int, rows: np.ndarray, expected: np.ndarray, rate: float) -> tuple[list[float], int]:
    """Rows at a rate, from several clients who take turns."""
    start, every = perf_counter() + 0.1, CLIENTS / rate
    shares = [slice(at, None, CLIENTS) for at in range(CLIENTS)]
    asked = (client(port, rows[part], expected[part], start + at / rate, every) for at, part in enumerate(shares))
    found = await asyncio.gather(*asked)
    return [seconds for taken, _ in found for seconds in taken], sum(wrong for _, wrong in found)


# --- what is measured -------------------------------------------------------------------------------------------------


def round_of(
    copy: ec.Result, folder: Path, original: Original, kept: Path | None, n: int, rate: float, seed: int
) -> Json:
    rows = SPACE.sample(n, np.random.default_rng([7, seed]))
    before = original.answered()
    with served(folder / "copy", original, kept) as (_, port):
        taken, wrong = asyncio.run(load(port, rows, copy.copy.predict(rows), rate))
        said = asyncio.run(settled(port))
    answered = {row: label for row, label in original.answered().items() if row not in before}
    return {
        "keep": "no" if kept is None else "yes",
        "requests": n,
        "errors": wrong,
        "p50_ms": round(1e3 * float(np.quantile(taken, 0.5)), 2),
        "p99_ms": round(1e3 * float(np.quantile(taken, 0.99)), 2),
        "answered": len(answered),
        "failed": said["failed"],
        **({} if kept is None else compared(kept, answered, said["keep"]["bytes"])),
    }


def compared(kept: Path, answered: Answered, serving: int) -> Json:
    """The rows in a directory beside those that an original answered."""
    found = read(kept)
    size = sum(file.stat().st_size for file in kept.iterdir())
    return {
        "kept": len(found),
        "lost": len(answered.keys() - found.keys()),
        "wrong": sum(answered.get(row) != label for row, label in found.items()),
        "mb_serving": round(serving / 1e6, 1),
        "mb_after": round(size / 1e6, 2),
    }


def read(kept: Path) -> Answered:
    rows, said = read_answers(kept / LEDGER).get("traffic", (np.empty((0, SPACE.d)), None))
    return {} if said is None else {row.tobytes(): int(label) for row, label in zip(rows, said.labels, strict=True)}


def killed(copy: ec.Result, folder: Path, original: Original, kills: int, rate: float) -> Json:
    """Kill the server at random moments under load, and start it again in the same directory.

    `gone` are rows that were there after one kill and not after the next; `most_under_way` were answered and not kept.
    """
    kept, moments, worst = folder / "killed", random.Random(0), 0
    gone = wrong = 0
    sure: Answered = {}
    for seed in range(kills):
        rows = SPACE.sample(int(4 * rate), np.random.default_rng([8, seed]))
        with served(folder / "copy", original, kept) as (process, port):
            asyncio.run(
                _until_killed(process, load(port, rows, copy.copy.predict(rows), rate), moments.uniform(0.1, 3))
            )
        found, answered = (read(kept) if (kept / LEDGER).is_file() else {}), original.answered()
        gone += len(sure.keys() - found.keys())
        wrong += sum(answered.get(row) != label for row, label in found.items())
        mine = {row.tobytes() for row in rows} & answered.keys()
        worst, sure = max(worst, len(mine - found.keys())), found
    return {"kills": kills, "kept": len(sure), "gone": gone, "wrong": wrong, "most_under_way": worst}


async def _until_killed(
    process: subprocess.Popen[str], asking: Coroutine[object, object, object], seconds: float
) -> None:
    work = asyncio.create_task(asking)
    await asyncio.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    with suppress(OSError, asyncio.IncompleteReadError):
        await work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=2, help="turns with and without --keep")
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--kills", type=int, default=0, help="kill the server so often, instead")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    how: Json = {"to": "mlp", "preset": "fast", "method": "one-shot", "budget": 500}
    copy = ec.copy_classifier(decided_array, SPACE, certificate_n=0, **how)
    original = Original()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            copy.save(folder / "copy")
            if options.kills:
                print(json.dumps(killed(copy, folder, original, options.kills, options.rate)))
                return
            n = int(options.seconds * options.rate)
            turns = [(k, kept) for k in range(options.rounds) for kept in (None, folder / f"kept-{k}")]
            found = [
                round_of(copy, folder, original, kept, n, options.rate, seed) for seed, (_, kept) in enumerate(turns)
            ]
    finally:
        original.stop()
    shown(found, options.json)


def shown(found: list[Json], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found))
        return
    print("".join(f"{name:>11}" for name in COLUMNS))
    for row in found:
        print("".join(f"{row.get(name, '-'):>11}" for name in COLUMNS))
    for name in ("p50_ms", "p99_ms"):
        kept, not_kept = (np.median([row[name] for row in found if row["keep"] == keep]) for keep in ("yes", "no"))
        print(f"{name}: {kept / not_kept:.2f} times that without --keep")


def decided_array(rows: np.ndarray) -> np.ndarray:
    return np.array(decided(rows))


if __name__ == "__main__":
    main()
