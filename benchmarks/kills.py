"""Commands that are killed with SIGKILL at random moments, and given once more.

A real server counts rows. `copy` goes on from a run of `--first` queries to one of `--queries`; `certify` asks about
`--asked` fresh rows; `check` is a fleet of one model that asks as many rows again, whose driver is killed; `refresh`
does so too, finds a change and copies anew; `remake` makes another copy. Each once undisturbed; then `--kills` times
from the same start, killed at a random moment of the time that took, and the same command again. A remake writes for a
moment alone: every second kill is in that moment. What is counted:

  before, between, after   kills before the first new answer was in the ledger, before the last, and later; of a remake,
                           before something was written, before all was, and later
  again                    rows that were in the ledger when it was killed, and were asked once more
  twice                    the most rows of one kill that were under way, and were asked once more
  gone                     rows that were in the ledger when it was killed, and are not at the end
  other                    ends with another outcome than the undisturbed command's: bytes of a copy, a certificate, or
                           what a fleet says of its model
  left                     files or folders of a killed command that are there at the end

The server takes its time for each request of 10 rows, as originals do, so that asking is most of these commands.

    python benchmarks/kills.py [--kills 20] [--first 200] [--queries 600] [--asked 300] [--preset fast] [--to tree]
                               [--only copy|certify|check|refresh|remake]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from ectype._common.portable import UNFINISHED
from ectype.errors import DirectoryError
from ectype.ledger import LEDGER, SESSIONS, read_answers, read_sessions
from ectype.types import Json
from fault_server import FaultyServer  # type: ignore[import-not-found]

COPY = ("copy.safetensors", "copy.json")
D, CERTIFICATE, AT_ONCE, SECONDS = 5, 100, 10, 0.1


def decide(rows: Any) -> Any:
    sleep(SECONDS)
    rows = np.asarray(rows, float)
    return (np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] > 0.3).astype(int) + (rows[:, 3] > 1)


def otherwise(rows: Any) -> Any:
    """The same original after a change."""
    return np.where(np.asarray(rows, float)[:, 4] > 0.5, 2, decide(rows))


def started(words: Sequence[object], out: Path | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ectype", *map(str, words)]
    with open(os.devnull if out is None else out, "wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)


def ended(
    words: Sequence[object],
    within: float | None = None,
    once: Callable[[], object] = lambda: True,
    out: Path | None = None,
) -> int:
    """The exit code of a command; it is killed if it takes longer, once something has come to pass."""
    process = started(words, out)
    while not once() and process.poll() is None:
        sleep(0.001)
    with suppress(subprocess.TimeoutExpired):
        return process.wait(within)
    process.kill()
    return process.wait()


def done(words: Sequence[object], out: Path | None = None) -> float:
    """The seconds that a command took to its good end."""
    clock = perf_counter()
    code = ended(words, out=out)
    if code:
        sys.exit(f"kills.py: exit code {code} of {' '.join(map(str, words))}")
    return perf_counter() - clock


def known(ledger: Path) -> set[bytes]:
    """The rows that a ledger has answers to."""
    with suppress(DirectoryError):  # it was not there yet
        return {row.tobytes() for rows, _ in read_answers(ledger).values() for row in np.ascontiguousarray(rows)}
    return set()


def being_written(folder: Path) -> bool:
    """Whether a directory is in the making here."""
    return any(folder.glob(f"{UNFINISHED}*"))


def _files(folder: Path) -> set[Path]:
    """All files and folders, by their names from there."""
    return {file.relative_to(folder) for file in folder.rglob("*")}


def _has_ended(ledger: Path) -> bool:
    """Whether what was asked about a run has come to its end."""
    return all(entry.ended is not None for entry in read_sessions(ledger.parent))


def content(folder: Path, names: Sequence[str] = COPY) -> list[bytes]:
    return [(folder / name).read_bytes() for name in names]


@dataclass(frozen=True)
class Command:
    """A command that asks, in a folder of its own that begins as a copy of another."""

    name: str
    words: Callable[[Path], Sequence[object]]
    ledger: str
    """Where what it asks is written, in the folder."""
    outcome: Callable[[Path], object]


def commands(copy: Sequence[object], url: Sequence[object], options: argparse.Namespace) -> list[Command]:
    """Those that ask."""
    n = options.asked

    def certificate(folder: Path) -> object:
        return json.loads((folder / "out.json").read_text())["certificate"]

    def checked(folder: Path) -> object:
        (model,) = json.loads((folder / "out.json").read_text())["models"]
        return [model[key] for key in ("did", "state", "fidelity")]

    refreshed = ["--check", n, "--budget", n + 100]
    return [
        Command(
            "copy",
            lambda folder: [*copy, "--budget", options.queries, "--out", folder / "run"],
            f"run/{LEDGER}",
            lambda folder: content(folder / "run"),
        ),
        Command(
            "certify",
            lambda folder: ["certify", folder / "run", *url, "--n", n, "--json"],
            f"run/{SESSIONS}",
            certificate,
        ),
        Command(
            "check",
            lambda folder: ["fleet", folder / "FLEET.toml", "--out", folder / "fleet", "--workers", 1, "--json"],
            f"fleet/m/copy-1/{SESSIONS}",
            checked,
        ),
        Command(
            "refresh",
            lambda folder: ["refresh", folder / "run", *url, "--out", folder / "new", *refreshed],
            f"new/{LEDGER}",
            lambda folder: content(folder / "new"),
        ),
    ]


@dataclass
class Trials:
    """One command, killed again and again."""

    server: FaultyServer
    place: Path
    moments: random.Random

    def killed(self, first: Path, command: Command, kills: int) -> Json:
        """A command that asks."""
        whole, begun = shutil.copytree(first, self.place / command.name / "whole"), known(first / command.ledger)
        start = len(self.server.log)
        seconds = done(command.words(whole), whole / "out.json")
        every, usual = known(whole / command.ledger), self._asked(start)  # some are asked again on purpose
        found: Json = dict.fromkeys(("before", "between", "after", "again", "twice", "gone", "other", "left"), 0)
        for number in range(kills):
            folder, before = shutil.copytree(first, whole.parent / str(number)), len(self.server.log)
            words, ledger = command.words(folder), folder / command.ledger
            ended(words, self.moments.uniform(0, seconds), out=folder / "out.json")
            there = known(ledger)
            found["before" if there == begun else "after" if there == every else "between"] += 1
            over = there == every and command.name in ("certify", "check") and _has_ended(ledger)
            if not over:  # else it asks anew
                done(words, folder / "out.json")
            twice = {row for row, n in self._asked(before).items() if n > usual[row]}
            found["again"] += len(there & twice)
            found["twice"] = max(found["twice"], len(twice))
            found["gone"] += len(there - known(ledger)) + (known(ledger) != every)
            found["other"] += not over and command.outcome(folder) != command.outcome(whole)
            found["left"] += len(_files(folder) - _files(whole))
        return {"command": command.name, "kills": kills, "seconds": round(seconds, 1), **found}

    def _asked(self, since: int) -> Counter[bytes]:
        """How often each row came since then."""
        return Counter(np.array(row, float).tobytes() for seen in self.server.log[since:] for row in seen.rows)

    def remade(self, first: Path, words: Sequence[object], kills: int) -> Json:
        """A run made of another's answers."""
        folder, names = self.place / "remade", sorted(file.name for file in first.iterdir())
        source, asked, every = content(first, names), len(self.server.log), known(first / LEDGER)
        seconds = done([*words, "--out", folder / "whole"])
        writing = self._writing([*words, "--out", folder / "timed"], folder)
        found: Json = dict.fromkeys(("before", "between", "after", "again", "twice", "gone", "other", "left"), 0)
        for number in range(kills):
            run, before = folder / f"run-{number}", {*folder.iterdir()}
            if number % 2:
                ended([*words, "--out", run], self.moments.uniform(0, writing), lambda: being_written(folder))
            else:
                ended([*words, "--out", run], self.moments.uniform(0, seconds))
            new = {*folder.iterdir()} - before
            found["after" if (run / "run.json").is_file() else "between" if new else "before"] += 1
            done([*words, "--out", run])
            found["gone"] += known(run / LEDGER) != every
            found["other"] += content(run) != content(folder / "whole")
            found["left"] += len({*folder.iterdir()} - before) - 1
        found["again"] = len(self.server.log) - asked
        found["gone"] += content(first, names) != source
        return {"command": "remake", "kills": kills, "seconds": round(seconds, 1), **found}

    def _writing(self, words: Sequence[object], folder: Path) -> float:
        """The seconds in which a remake writes."""
        process, clock = started(words), 0.0
        while process.poll() is None and not (clock and not being_written(folder)):
            clock = clock or (perf_counter() if being_written(folder) else 0.0)
            sleep(0.001)
        found = perf_counter() - clock
        process.wait()
        return found


def main() -> None:
    names = ("copy", "certify", "check", "refresh", "remake")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=names, help="one of them")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--first", type=int, default=200, help="queries of the run that is there")
    parser.add_argument("--queries", type=int, default=600, help="queries of the run that goes on")
    parser.add_argument("--asked", type=int, default=300, help="rows of a certificate, and of a check")
    parser.add_argument("--preset", default="fast", help="of the run that goes on")
    parser.add_argument("--to", default="tree", help="the family of the remake")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    wanted = names if options.only is None else (options.only,)
    with FaultyServer(decide, share=0.0) as server, tempfile.TemporaryDirectory() as name:
        first = Path(name) / "first"
        url: list[object] = [f"{server.url}/v2/models/m", "--protocol", "v2", "--classes", "0,1,2"]
        url += ["--request-rows", AT_ONCE, "--concurrency", 2]
        more = ["--space", f"normal:{D}", "--certificate-n", CERTIFICATE, "--repeat", 0, "--preset", options.preset]
        copy, trials = ["copy", *url, *more], Trials(server, Path(name), random.Random(options.seed))
        first.mkdir()
        (first / "FLEET.toml").write_text(table(server.url, options))
        done([*copy, "--budget", options.first, "--out", first / "run"])
        if "check" in wanted:
            done(["fleet", first / "FLEET.toml", "--out", first / "fleet", "--workers", 1])
        for command in commands(copy, url, options):
            if command.name in wanted:
                server.decide = otherwise if command.name == "refresh" else decide
                print(json.dumps(trials.killed(first, command, options.kills)), flush=True)
        if "remake" in wanted:
            found = trials.remade(first / "run", ["remake", first / "run", "--to", options.to], options.kills)
            print(json.dumps(found), flush=True)


def table(url: str, options: argparse.Namespace) -> str:
    """The table of a fleet of one model."""
    return f"""[[model]]
name = "m"
original = "{url}/v2/models/m"
protocol = "v2"
classes = [0, 1, 2]
request_rows = {AT_ONCE}
concurrency = 2
space = "normal:{D}"
certificate_n = {CERTIFICATE}
repeat = 0
preset = "{options.preset}"
budget = {options.first}
check = {options.asked}
"""


if __name__ == "__main__":
    main()
