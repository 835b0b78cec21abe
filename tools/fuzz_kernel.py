"""Random trainings and answers by a build of the kernel that stops at the first wrong access or undefined operation.

python tools/fuzz_kernel.py --seconds 60        needs gcc, with its address and undefined-behaviour sanitizers
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import numpy as np

from bits import SOURCES, kernel
from understudy.engine import library
from understudy.engine.answers import Answers
from understudy.engine.training import ACTIVATIONS, LOSSES, ORDERS, PENALTIES, Groups, Method, Training
from understudy.errors import KernelError

SANITIZED = ("-g", "-ffp-contract=off", "-fPIC", "-shared", "-fsanitize=address,undefined", "-fno-sanitize-recover")
STRANGE = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-42, 0.0], np.float32)


class Case:
    """A training drawn at random: sizes from one up, every option, now and then numbers that are none."""

    def __init__(self, seed: int):
        rng = self.rng = np.random.default_rng(seed)
        most = int(rng.choice([3, 20, 70]))
        self.widths = tuple(
            rng.integers(1, most + 1, int(rng.choice([2, 3, 4, 6, 17], p=[0.2, 0.3, 0.3, 0.15, 0.05]))).tolist()
        )
        self.strange = rng.random() < 0.2
        self.rows = int(rng.choice([1, 2, 17, 100, 400]))
        self.theta = self.numbers(sum((a + 1) * b for a, b in zip(self.widths[:-1], self.widths[1:], strict=True)))
        self.X = self.numbers(self.rows, self.widths[0])
        self.targets = rng.random() < 0.2
        self.method = Method(
            batch=int(rng.choice([1, 2, 7, 16, 32, 33, 130])),
            rate=float(rng.choice([0, 1e-4, 0.01, 10])),
            loss="cross-entropy" if self.targets else str(rng.choice(LOSSES)),
            order=str(rng.choice(ORDERS)),
            activation=str(rng.choice(ACTIVATIONS)),
            penalty=str(rng.choice(PENALTIES)),
            lam=float(rng.choice([0, 0.1, 100])),
            epsilon=float(rng.choice([1e-8, 1e-3])),
            decay=float(rng.choice([0, 0.1])),
            anneal=float(rng.choice([0, 0.3, 1])),
            warm=int(rng.choice([0, 5, 1000])),
        )
        self.y = (
            self.numbers(self.rows, self.widths[-1]) if self.targets else rng.integers(0, self.widths[-1], self.rows)
        )
        self.weights = self.numbers(self.rows) if rng.random() < 0.3 else None
        self.groups = self.some_groups() if rng.random() < 0.5 else None
        self.pieces = [int(n) for n in rng.choice([0, 1, 3, 8], 3)]
        self.restart = rng.random() < 0.3
        self.seed = int(rng.integers(2**63))

    def numbers(self, *shape: int) -> np.ndarray:
        """Floats; in some cases with a few that are infinite, tiny or not numbers at all."""
        found = self.rng.normal(size=shape).astype(np.float32)
        if self.strange:
            at = self.rng.random(shape) < 0.05
            found[at] = self.rng.choice(STRANGE, int(at.sum()))
        return found

    def some_groups(self) -> Groups:
        """Few or many groups, with and without rows, and perhaps one more beside."""
        parts = int(self.rng.choice([1, 2, 9, self.rows]))
        counts = np.bincount(self.rng.integers(0, parts, self.rows), minlength=parts)
        groups = Groups.of(counts)
        more = self.rng.random() < 0.5
        return groups.beside(0, self.rows, float(self.rng.choice([0.1, 1, 5])), 2000) if more else groups

    def begun(self) -> Training:
        """The training before its first step."""
        options = {"steps": sum(self.pieces), "groups": self.groups, "weights": self.weights, "seed": self.seed}
        return Training(self.widths, self.theta, self.X, self.y, self.method, **options)  # type: ignore[arg-type]

    def trained(self, pieces: list[int]) -> np.ndarray:
        """The parameters after steps in so many pieces."""
        training = self.begun()
        for at, steps in enumerate(pieces):
            training.run(steps)
            if self.restart and at == len(pieces) - 1:
                training.restart()
        return training.theta

    def answered(self, theta: np.ndarray) -> None:
        """Answers for many numbers of rows; each row's is the same alone."""
        answers = Answers(self.widths, theta, self.method.activation)
        n = int(self.rng.choice([0, 1, 15, 16, 17, 63, 64, 65, 128, 200]))
        X = self.numbers(n, self.widths[0])
        found = answers(X)
        assert found.shape == (n, self.widths[-1])
        assert not ((found < 0) | (found > 1.001)).any(), "a probability outside of 0 to 1"
        for row in self.rng.choice(n, min(n, 3), replace=False):
            assert same(answers(X[row : row + 1])[0], found[row]), "another answer alone than in company"

    def refused(self) -> None:
        """What the kernel cannot compute with never reaches it."""
        which = int(self.rng.integers(5))
        if which == 0:
            self.y = np.append(self.y[:-1], self.widths[-1]) if self.y.ndim == 1 else self.y[:-1]
        elif which == 1:
            self.X = self.X[:, 1:]
        elif which == 2:
            self.groups = Groups(np.array([0]), np.array([self.rows + 1]), np.array([0]))
        elif which == 3:
            self.groups = Groups(np.array([0, 0]), np.array([self.rows]), np.array([0, 1]))
        else:
            self.theta = self.theta[:-1]
        try:
            self.begun()
        except KernelError:
            return
        raise AssertionError(f"corruption {which} was not refused")


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays agree in every bit, but for those of what is not a number."""
    return bool(((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))).all())


def tried(seed: int) -> None:
    """One case by every instruction set, which all have to agree."""
    case = Case(seed)
    found = {}
    for name in library.SETS:
        if library.use(name) == name:
            found[name] = case.trained(case.pieces)
            case.answered(found[name])
    if "AVX-512" in found:
        assert same(found["AVX2"], found["AVX-512"]), "instruction sets differ"
    if not case.restart:
        assert same(found[library.use()], case.trained([sum(case.pieces)])), "steps in pieces differ from steps at once"
    case.refused()


def child(path: Path, first: int, cases: int, seconds: float) -> None:
    """Try cases, and say which is at work: after a crash the last one named is the culprit."""
    start = time.monotonic()
    with kernel(path):
        for seed in count(first):
            if seed == first + cases or time.monotonic() - start > seconds:
                break
            print(seed, flush=True)
            tried(seed)


def main() -> None:
    """Build, and try cases in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--level", default="-O1", help="-O0 compiles faster, -O1 runs faster")
    parser.add_argument("--built", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.built:
        return child(arguments.built, arguments.first, arguments.cases, arguments.seconds)
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "kernel.so")
        subprocess.run(["gcc", arguments.level, *SANITIZED, "-o", built, *SOURCES], check=True)
        asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True).stdout
        # Python's and NumPy's own leaks are not ours; its small objects are watched too if malloc makes them.
        options = {"LD_PRELOAD": asan.strip(), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
        command = [sys.executable, __file__, *sys.argv[1:], "--built", str(built)]
        done = subprocess.run(command, env={**os.environ, **options}, stdout=subprocess.PIPE, text=True)
    tried_cases = done.stdout.split()
    if done.returncode:
        last = tried_cases[-1] if tried_cases else arguments.first
        sys.exit(f"case {last} failed: python tools/fuzz_kernel.py --cases 1 --first {last}")
    print(f"{len(tried_cases)} cases from {arguments.first} on: nothing found")
    return None


if __name__ == "__main__":
    main()
