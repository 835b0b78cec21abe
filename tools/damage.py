"""Damage a run's files at random, one bit or one cut at a time: each damage is found, or changes nothing that is read.

Two runs are made: one that is finished, and one that was killed with SIGKILL at work, whose ledger has a write-ahead
log. For every trial one of their files is damaged, and all is read that a command could read: the copy and what it
answers, certificate, history, space, ledger, card; and the killed run is resumed with an original that must not be
asked again. What is read must be the same as before, or an error of ours (exit code 2 or 3). Anything else is a miss,
and an error of another kind would be exit code 70.

    python tools/damage.py
    python tools/damage.py --trials 300 --seed 1
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import ectype as ec
from ectype import ledger
from ectype.errors import EctypeError
from ectype.ledger import Purpose
from ectype.queries import Queries
from ectype.report import card
from ectype.runs.api import copy_steps, finish
from ectype.runs.directory import open_run
from ectype.runs.previous_run import PreviousRun

SETTINGS = ec.Settings(budget=240, batch=40, certificate_n=120, schedule=10, layers=(6,), seed=3)
SPACE = ec.Space.normal(3)
ROWS = np.random.default_rng(0).normal(size=(200, 3))
CLASSES = ["low", "middle", "high"]
# As many requests of a run are answered each time before it is killed.
KILLED_AFTER = 6


def rings(rows: np.ndarray) -> np.ndarray:
    """What is copied."""
    return np.array(CLASSES)[np.digitize((rows**2).sum(axis=1), [1, 4])]


def make(out: Path, killed: bool) -> None:
    """A run in a directory; to be killed in the middle of it, or whole."""
    asked = 0

    def original(rows: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += 1
        if killed and asked > KILLED_AFTER:
            os.kill(os.getpid(), signal.SIGKILL)
        return rings(rows)

    finish(copy_steps(ec.Original(original, CLASSES, request_rows=25, name="rings"), SPACE, SETTINGS, out=out))


def made(folder: Path) -> tuple[Path, Path]:
    """The two runs."""
    whole, killed = folder / "whole", folder / "killed"
    make(whole, killed=False)
    for _ in range(2):
        if killed.exists():
            ledger.summarise_ledger(killed / ledger.LEDGER)  # which moves its write-ahead log into the database
        done = subprocess.run([sys.executable, __file__, "--make-killed", killed], check=False)
        assert done.returncode == -signal.SIGKILL, done
    assert (killed / "ledger.sqlite-wal").stat().st_size
    for name in ("report.html", "card.md"):  # written for people, and never read
        (whole / name).write_text("a page")
    return whole, killed


def read_whole(out: Path) -> Iterator[object]:
    """All that can be read of a finished run."""
    result = ec.load(out)
    yield result.copy.predict_proba(ROWS).tobytes(), result.copy.classes_.tolist()
    yield repr((result.certificate, result.history, result.settings, result.queries, result.versions, result.tried))
    yield result.space.to_json(), repr((result.repeats, result.advice, result.diagnosis, result.refreshed))
    past = PreviousRun.of(out)
    yield past.rows.tobytes(), past.answers.tolist(), past.network.theta.tobytes(), past.t, past.held_out
    yield from read_ledger(out)
    yield re.sub(r"\| (ledger\.sqlite|run\.json) \|.*", "", card(out))  # hashes of the files as they are


def read_ledger(out: Path) -> Iterator[object]:
    """All that can be read of a ledger."""
    path = out / ledger.LEDGER
    yield ledger.settings_of(path), ledger.space_of(path).to_json(), repr(ledger.summarise_ledger(path))
    yield ledger.query_table(path, SPACE).to_csv()


def resume(out: Path) -> Iterator[object]:
    """What the ledger of a killed run says to rows that were answered, once it is open for more."""
    yield from read_ledger(out)
    path = out / ledger.LEDGER
    answered = ledger.read_answers(path)
    settings = ledger.settings_of(path) or {}

    def never(rows: np.ndarray) -> np.ndarray:
        raise RuntimeError(f"{len(rows)} rows are asked again")

    original = ec.Original(never, CLASSES, name="rings")
    with open_run(out, settings, SPACE) as book:
        for purpose, (rows, _) in answered.items():
            queries = Queries(original, SPACE, {Purpose(purpose): len(rows)}, book)
            yield purpose, rows.tobytes(), queries.query_labels(Purpose(purpose), rows).tolist()
        yield [(np.asarray(found[0]).tobytes(), found[1]) for t in range(9) if (found := book.round(t)) is not None]


Read = Callable[[Path], Iterator[object]]


def damage(rng: np.random.Generator, folder: Path) -> str:
    """Flip a bit or cut off the end of one file; gives what was done."""
    files = sorted(file for file in folder.iterdir() if file.stat().st_size)
    sizes = np.array([file.stat().st_size for file in files])
    # Half of the time any file is as likely, half of the time any byte.
    file = files[rng.choice(len(files), p=None if rng.random() < 0.5 else sizes / sizes.sum())]
    content = bytearray(file.read_bytes())
    at = int(rng.integers(len(content)))
    if rng.random() < 0.2:
        file.write_bytes(content[:at])
        return f"{file.name} cut at {at}"
    bit = int(rng.integers(8))
    content[at] ^= 1 << bit
    file.write_bytes(content)
    return f"{file.name} bit {bit} of byte {at}"


def outcome(read: Read, folder: Path, whole: list[object]) -> str:
    """What comes of reading damaged files."""
    try:
        return "unchanged" if list(read(folder)) == whole else "MISSED"
    except EctypeError as error:
        return "found" if error.exit_code in (2, 3) and "asked again" not in str(error) else "MISSED"
    except Exception as error:  # what the command would end with exit code 70 for
        return f"CRASHED: {type(error).__name__}: {error}"


def trials(runs: dict[Path, Read], n: int, seed: int, scratch: Path) -> Iterator[tuple[str, str, str]]:
    """Of each trial: the file, what was done, and what came of it."""
    rng, expected = np.random.default_rng(seed), {}
    for run, read in runs.items():
        shutil.copytree(run, scratch / "run")
        expected[run] = list(read(scratch / "run"))
        shutil.rmtree(scratch / "run")
    for _ in range(n):
        run = list(runs)[int(rng.integers(len(runs)))]
        shutil.copytree(run, scratch / "run")
        done = damage(rng, scratch / "run")
        yield f"{run.name}: {done.split()[0]}", done, outcome(runs[run], scratch / "run", expected[run])
        shutil.rmtree(scratch / "run")


def main() -> None:
    """Print by file how many damages were found and how many changed nothing; exit code 1 if one was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--make-killed", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make_killed:
        make(options.make_killed, killed=True)
        return
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # trials wait for no disk
    counts, bad = Counter[tuple[str, str]](), 0
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        whole, killed = made(Path(folder))
        (scratch := Path(folder) / "scratch").mkdir()
        for file, done, found in trials({whole: read_whole, killed: resume}, options.trials, options.seed, scratch):
            counts[file, found.split(":")[0]] += 1
            if found not in ("found", "unchanged"):
                bad += 1
                print(f"{file}: {done}: {found}", flush=True)
    for file in sorted({file for file, _ in counts}):
        print(f"{file:<28} {counts[file, 'found']:>6} found {counts[file, 'unchanged']:>6} unchanged")
    print(f"{options.trials} damages, {bad} missed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
