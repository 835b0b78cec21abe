"""Commands that are killed with SIGKILL at random moments, and given once more: `copy` that goes on, and `remake`.

A run of `--first` queries to a real server, which counts rows, goes on to `--queries`. Once undisturbed; then `--kills`
times from the same start, killed at a random moment of the time that took, and the same command again. Likewise a
remake of the first run, which writes for a moment alone: every second kill is in that moment. What is counted:

  before, between, after   kills before the first new answer was in the ledger, before the last, and later; of a remake,
                           before something was written, before all was, and later
  again                    rows that were in the ledger when it was killed, and were asked once more
  twice                    the most rows of one kill that were under way, and were asked once more
  gone                     rows that were in the ledger when it was killed, and are not at the end
  other                    ends with other bytes of the copy than the undisturbed command's
  left                     files or folders of a killed command that are there at the end

The server takes its time for each request of 10 rows, as originals do, so that asking is most of the first command.

    python benchmarks/kills.py [--kills 20] [--first 200] [--queries 600] [--preset fast] [--to tree]
                               [--only copy|remake]
"""

from __future__ import annotations

import argparse
import json
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
from faulty import FaultyServer  # type: ignore[import-not-found]
from understudy.errors import DirectoryError
from understudy.portable import UNFINISHED
from understudy.queries.ledger import NAME, answers
from understudy.types import Json

COPY = ("copy.safetensors", "copy.json")
D, CERTIFICATE, AT_ONCE, SECONDS = 5, 100, 10, 0.1


def decide(rows: Any) -> Any:
    sleep(SECONDS)
    rows = np.asarray(rows, float)
    return (np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] > 0.3).astype(int) + (rows[:, 3] > 1)


def started(words: Sequence[object]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "understudy", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ended(words: Sequence[object], within: float | None = None, once: Callable[[], object] = lambda: True) -> int:
    """The exit code of a command; it is killed if it takes longer, once something has come to pass."""
    process = started(words)
    while not once() and process.poll() is None:
        sleep(0.001)
    with suppress(subprocess.TimeoutExpired):
        return process.wait(within)
    process.kill()
    return process.wait()


def done(words: Sequence[object]) -> float:
    """The seconds that a command took to its good end."""
    clock = perf_counter()
    code = ended(words)
    if code:
        sys.exit(f"kills.py: exit code {code} of {' '.join(map(str, words))}")
    return perf_counter() - clock


def known(run: Path) -> set[bytes]:
    """The rows that a ledger has answers to."""
    with suppress(DirectoryError):  # it was not there yet
        return {row.tobytes() for rows, _ in answers(run / NAME).values() for row in np.ascontiguousarray(rows)}
    return set()


def being_written(folder: Path) -> bool:
    """Whether a directory is in the making here."""
    return any(folder.glob(f"{UNFINISHED}*"))


def content(folder: Path, names: Sequence[str] = COPY) -> list[bytes]:
    return [(folder / name).read_bytes() for name in names]


@dataclass
class Trials:
    """One command, killed again and again."""

    server: FaultyServer
    place: Path
    moments: random.Random

    def gone_on(self, first: Path, words: Sequence[object], kills: int) -> Json:
        """A run that goes on."""
        whole, begun = shutil.copytree(first, self.place / "whole"), known(first)
        seconds = done([*words, "--out", whole])
        every = known(whole)
        found: Json = dict.fromkeys(("before", "between", "after", "again", "twice", "gone", "other", "left"), 0)
        for number in range(kills):
            run, before = shutil.copytree(first, self.place / f"run-{number}"), len(self.server.log)
            ended([*words, "--out", run], self.moments.uniform(0, seconds))
            there = known(run)
            found["before" if there == begun else "after" if there == every else "between"] += 1
            done([*words, "--out", run])
            asked = Counter(np.array(row, float).tobytes() for seen in self.server.log[before:] for row in seen.rows)
            twice = {row for row, n in asked.items() if n > 1}
            found["again"] += len(there & (twice | (begun & asked.keys())))
            found["twice"] = max(found["twice"], len(twice))
            found["gone"] += len(there - known(run)) + (known(run) != every)
            found["other"] += content(run) != content(whole)
            found["left"] += len({*run.iterdir()} - {run / file.name for file in whole.iterdir()})
        return {"command": "copy", "kills": kills, "seconds": round(seconds, 1), **found}

    def remade(self, first: Path, words: Sequence[object], kills: int) -> Json:
        """A run made of another's answers."""
        folder, names = self.place / "remade", sorted(file.name for file in first.iterdir())
        source, asked, every = content(first, names), len(self.server.log), known(first)
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
            found["gone"] += known(run) != every
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("copy", "remake"), help="one of the two")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--first", type=int, default=200, help="queries of the run that is there")
    parser.add_argument("--queries", type=int, default=600, help="queries of the run that goes on")
    parser.add_argument("--preset", default="fast", help="of the run that goes on")
    parser.add_argument("--to", default="tree", help="the family of the remake")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with FaultyServer(decide, share=0.0) as server, tempfile.TemporaryDirectory() as name:
        place, first = Path(name), Path(name) / "first"
        copy: list[object] = ["copy", f"{server.url}/v2/models/m", "--protocol", "v2", "--classes", "0,1,2"]
        copy += ["--request-rows", AT_ONCE, "--concurrency", 2]
        copy += ["--space", f"normal:{D}", "--certificate-n", CERTIFICATE, "--repeat", 0, "--preset", options.preset]
        done([*copy, "--budget", options.first, "--out", first])
        trials = Trials(server, place, random.Random(options.seed))
        if options.only != "remake":
            found = trials.gone_on(first, [*copy, "--budget", options.queries], options.kills)
            print(json.dumps(found), flush=True)
        if options.only != "copy":
            found = trials.remade(first, ["remake", first, "--to", options.to], options.kills)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
