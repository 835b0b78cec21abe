"""How long a person waits before anything happens: importing the package, and the command's help and version.

    python benchmarks/start.py

Medians of several fresh processes, in seconds that passed and seconds of work; an empty interpreter beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from statistics import median
from time import perf_counter

COMMANDS = {
    "python": ["-c", "pass"],
    "import ectype": ["-c", "import ectype"],
    "ectype --help": ["-m", "ectype", "--help"],
    "ectype --version": ["-m", "ectype", "--version"],
    "ectype copy --help": ["-m", "ectype", "copy", "--help"],
}


def measure(arguments: list[str]) -> tuple[float, float]:
    """Seconds that passed and seconds of work of one process."""
    before, clock = os.times(), perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    passed, after = perf_counter() - clock, os.times()
    return passed, sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a person waits before anything happens.")
    parser.add_argument("--rounds", type=int, default=15, help="processes of each kind, one kind after the other")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(options.rounds):
        for name, arguments in COMMANDS.items():
            taken[name].append(measure(arguments))
    found = {
        name: {"seconds": round(median(one[0] for one in all_), 3), "work": round(median(one[1] for one in all_), 3)}
        for name, all_ in taken.items()
    }
    if options.json:
        print(json.dumps(found))
        return
    print(f"{'':<24}{'seconds':>8}{'work':>8}")
    for name, row in found.items():
        print(f"{name:<24}{row['seconds']:>8.3f}{row['work']:>8.3f}")


if __name__ == "__main__":
    main()
