"""Random trainings, trees, rows and answers by a kernel that stops at the first wrong access or undefined operation.

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

from bits import SOURCES, kernel, sums
from ectype._kernel import (
    ACTIVATIONS,
    DISCRETE_MARGINAL,
    NORMAL_MARGINAL,
    QUANTILE_MARGINAL,
    Boosting,
    BoostingSettings,
    KernelTraining,
    Marginal,
    NetworkInference,
    PiecewiseLinear,
    RbfKernel,
    RowGroups,
    RowSampler,
    TrainingMethod,
    TreeEnsemble,
)
from ectype._kernel import _ffi as ffi
from ectype._kernel._training import LOSSES, ORDERS, PENALTIES
from ectype._kernel._trees import ExtraTreesBuilder, bin_columns
from ectype.errors import KernelError

CHECKS = "-fsanitize=address,undefined,float-cast-overflow"
SANITIZED = ("-g", "-ffp-contract=off", "-fPIC", "-shared", CHECKS, "-fno-sanitize-recover")
# Arrays of floats that are given for trees.
POISONED = ("X", "targets", "weights")
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
        self.made = self.some_pieces() if rng.random() < 0.4 else None
        self.X = self.numbers(self.rows, self.columns)
        self.targets = rng.random() < 0.2
        self.method = TrainingMethod(
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

    @property
    def columns(self) -> int:
        """The inputs that rows have, before pieces of them are made."""
        return self.widths[0] if self.made is None else self.made.columns

    def some_pieces(self) -> PiecewiseLinear:
        """Some of the inputs are pieces of the others."""
        columns = int(self.rng.integers(1, self.widths[0] + 1))
        n = self.widths[0] - columns
        low = self.rng.normal(size=n)
        return PiecewiseLinear(
            columns, self.rng.integers(0, columns, n), low, low + self.rng.exponential(size=n) + 1e-3
        )

    def some_groups(self) -> RowGroups:
        """Few or many groups, with and without rows, and perhaps one more beside."""
        parts = int(self.rng.choice([1, 2, 9, self.rows]))
        counts = np.bincount(self.rng.integers(0, parts, self.rows), minlength=parts)
        groups = RowGroups.of(counts)
        more = self.rng.random() < 0.5
        return groups.beside(0, self.rows, float(self.rng.choice([0.1, 1, 5])), 2000) if more else groups

    def begun(self) -> KernelTraining:
        """The training before its first step."""
        options = {"steps": sum(self.pieces), "groups": self.groups, "weights": self.weights, "seed": self.seed}
        given = self.widths, self.theta, self.X, self.y, self.method
        return KernelTraining(*given, pieces=self.made, **options)  # type: ignore[arg-type]

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
        answers = NetworkInference(self.widths, theta, self.method.activation, self.made)
        n = int(self.rng.choice([0, 1, 15, 16, 17, 63, 64, 65, 128, 200]))
        X = self.numbers(n, self.columns)
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
            self.groups = RowGroups(np.array([0]), np.array([self.rows + 1]), np.array([0]))
        elif which == 3:
            self.groups = RowGroups(np.array([0, 0]), np.array([self.rows]), np.array([0, 1]))
        else:
            self.theta = self.theta[:-1]
        try:
            self.begun()
        except KernelError:
            return
        raise AssertionError(f"corruption {which} was not refused")


class TreeFuzz:
    """Rows, labels and plans for trees drawn at random: constant and tied inputs, absent classes, extreme weights."""

    def __init__(self, seed: int):
        rng = self.rng = np.random.default_rng([seed, 1])
        self.n, self.d = int(rng.choice([1, 2, 3, 17, 100, 400])), int(rng.choice([1, 2, 5, 20, 70]))
        if rng.random() < 0.02:
            self.n, self.d = 70_000, 1
        self.n_c = int(rng.choice([2, 3, 10, 40]))
        self.X = np.stack([self.column() for _ in range(self.d)], axis=1).astype(np.float32)
        self.soft = rng.random() < 0.3
        self.y = self.targets() if self.soft else self.labels()
        self.weights = self.some_weights() if rng.random() < 0.4 else None
        self.directions = rng.integers(-1, 2, self.d) if rng.random() < 0.3 else None
        self.base = rng.normal(size=1 if self.n_c == 2 else self.n_c) * 10 if rng.random() < 0.3 else None
        self.how = BoostingSettings(
            rounds=int(rng.choice([0, 1, 4])),
            leaves=int(rng.choice([2, 3, 8, 31, 1000])),
            depth=int(rng.choice([0, 0, 1, 3])),
            rate=float(rng.choice([0.1, 1, -1, 1e6])),
            l2=float(rng.choice([0, 1, 1e-30, 1e30])),
            least=float(rng.choice([0, 1e-3, 1, 1e9])),
            share=float(rng.choice([1e-9, 0.5, 1])),
            bins=int(rng.choice([2, 3, 100, 255, 1000])),
        )
        self.leaves = int(rng.choice([1, 2, 5, 2**31 - 1]))
        self.seed = int(rng.integers(2**63))

    def column(self) -> np.ndarray:
        """One input: smooth, constant, tied, or of numbers at the ends of what there is."""
        kind = self.rng.integers(5)
        if kind == 0:
            return np.full(self.n, self.rng.normal())
        if kind == 1:
            return self.rng.integers(0, 3, self.n).astype(float)
        if kind == 2:
            return self.rng.choice(STRANGE[3:], self.n)
        return self.rng.normal(size=self.n)

    def labels(self) -> np.ndarray:
        """Of all classes, of a few, or of one."""
        known = self.rng.integers(0, self.n_c, int(self.rng.choice([1, 2, self.n_c])))
        return self.rng.choice(known, self.n)

    def targets(self) -> np.ndarray:
        """Probabilities; or zeros and ones in any number."""
        if self.rng.random() < 0.3:
            return self.rng.integers(0, 2, (self.n, self.n_c)).astype(np.float32)
        return self.rng.dirichlet(np.full(self.n_c, 0.3), self.n).astype(np.float32)

    def some_weights(self) -> np.ndarray:
        """Usual ones, or some that are nothing, nearly so, or nearly infinite."""
        usual = self.rng.exponential(size=self.n)
        rare = self.rng.random(self.n) < 0.2
        return np.where(rare, self.rng.choice([0, 1e-44, 1e-38, 1e20, 3e38], self.n), usual)

    def boosting(self) -> Boosting:
        """Boosting before its first round."""
        options = {"base": self.base, "weights": self.weights, "directions": self.directions, "seed": self.seed}
        return Boosting(self.X, self.y, self.n_c, self.how, **options)  # type: ignore[arg-type]

    def builder(self) -> ExtraTreesBuilder:
        """A place for random trees."""
        options = {"depth": self.how.depth, "directions": self.directions, "seed": self.seed}
        return ExtraTreesBuilder(self.X, self.y, self.n_c, leaves=self.leaves, **options)  # type: ignore[arg-type]

    def boosted(self) -> None:
        """Rounds at once, and a little at a time."""
        at_once, in_pieces = self.boosting(), self.boosting()
        in_pieces._work = int(self.rng.choice([1, 1000, 10**6]))
        at_once.run(self.how.rounds)
        for _ in range(self.how.rounds):
            in_pieces.run(1)
        assert same(at_once.scores, in_pieces.scores), "rounds in pieces differ from rounds at once"
        grown = at_once.grown
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(grown, in_pieces.grown, strict=True))
        starts = np.cumsum(grown.sizes) - grown.sizes
        trees = [[part[a : a + n] for part in grown[:-1]] for a, n in zip(starts, grown.sizes, strict=True)]
        if trees:
            self.said(sums(trees, 1, self.d), 1)

    def planted(self) -> None:
        """Random trees; if nothing is in their way, they explain all rows that differ."""
        builder = self.builder()
        trees = [builder.tree(number) for number in range(2)]
        for feature, _, left, right, values in trees:
            inner = np.flatnonzero(feature >= 0)
            assert (left[inner] > inner).all(), "a child before its parent"
            assert (right[inner] < len(feature)).all(), "a child that is not there"
            assert ((values >= 0) & (values <= 1 + 1e-6)).all(), "a share outside of 0 to 1"
        found = self.said(sums(trees, self.n_c, self.d), self.n_c)
        free = self.directions is None and not self.how.depth and self.leaves > self.n and not self.soft
        if free and len(np.unique(self.X, axis=0)) == self.n:
            assert (found.argmax(axis=1) == self.y).all(), "rows that random trees do not explain"

    def said(self, of: TreeEnsemble, classes: int) -> np.ndarray:
        """What trees say of their rows, and of some that are strange."""
        n = int(self.rng.choice([0, 1, 7, 8, 9, 100, 600]))
        strange = self.rng.choice(np.append(STRANGE, np.float32(0.5)), (n, self.d))
        of(strange, np.zeros((n, classes)))
        of._piece = int(self.rng.choice([1, 100, 10**6]))
        return of(self.X, np.zeros((self.n, classes)))

    def poisoned(self) -> None:
        """Numbers that are none, put where Python would have refused them: the kernel goes on, whatever comes of it."""
        edges, kept = bin_columns(self.X, 255)[1], (self.X, self.y)
        self.X, self.y = self.X.copy(), self.y.copy()
        boosting, builder = self.boosting(), self.builder()
        self.X, self.y = kept
        given = boosting.scores, *(job._arrays.get(name) for job in (boosting, builder) for name in POISONED)
        for array in given:
            if array is not None and self.rng.random() < 0.7:
                array[self.rng.random(array.shape) < 0.2] = self.rng.choice(STRANGE)
        boosting.run(self.how.rounds)
        builder.tree(0)
        rows, bins = self.rng.choice(STRANGE, (9, self.d)), np.empty((9, self.d), np.uint8)
        at = (ffi.address(array) for array in (rows, edges, bins))
        ffi.library().bins_of(next(at), 9, self.d, *at)

    def near(self) -> None:
        """Sums of radial functions; a row's are the same alone."""
        gamma = float(self.rng.choice([0, 1e-30, 0.1, 1e30]))
        X = self.rng.normal(size=(int(self.rng.choice([0, 1, 9])), self.d)).astype(np.float32)
        X[self.rng.random(X.shape) < 0.1] = self.rng.choice(STRANGE)
        centres = self.X[:600]
        radial = RbfKernel(centres, self.rng.normal(size=(len(centres), self.n_c)), gamma)
        found = radial(X)
        for row, alone in zip(X, found, strict=True):
            assert same(radial(row[None])[0], alone), "other sums alone than in company"

    def refused(self) -> None:
        """What the kernel cannot compute with never reaches it."""
        which = int(self.rng.integers(5))
        if which == 0:
            self.y = np.full(self.n, self.n_c)
        elif which == 1:
            self.X = np.full_like(self.X, self.rng.choice(STRANGE[:3]))
        elif which == 2:
            self.directions = np.zeros(self.d + 1, int)
        elif which == 3:
            self.y = np.zeros((self.n, self.n_c + 1))
        else:
            self.y = self.y[:-1]
        for make in (self.boosting, self.builder):
            try:
                make()
            except KernelError:
                continue
            raise AssertionError(f"corruption {which} was not refused")


class Table:
    """Columns drawn at random: every kind, extreme values, gaps, and correlations of which some are none."""

    def __init__(self, seed: int):
        rng = self.rng = np.random.default_rng([seed, 2])
        columns = [self.column() for _ in range(int(rng.choice([1, 2, 7, 8, 9, 33, 100])))]
        scores = len(columns) + sum(column.missing is not None for column in columns)
        self.rows = RowSampler(columns, self.correlation(scores) if rng.random() < 0.7 else None)
        self.seed = int(rng.integers(2**64, dtype=np.uint64))

    def column(self) -> Marginal:
        """One distribution."""
        rng, kind = self.rng, int(self.rng.choice([NORMAL_MARGINAL, QUANTILE_MARGINAL, DISCRETE_MARGINAL]))
        n = (
            2
            if kind == NORMAL_MARGINAL
            else int(rng.choice([2, 3, 17, 257]) if kind == QUANTILE_MARGINAL else rng.choice([1, 2, 3, 100]))
        )
        values = np.sort(rng.normal(size=n)) * float(rng.choice([0, 1e-300, 1, 2.0**52, 1e300]))
        ends = np.cumsum(rng.dirichlet(np.ones(n)))[:-1] if kind == DISCRETE_MARGINAL else np.empty(0)
        low, high = np.sort(rng.normal(size=2)).tolist() if rng.random() < 0.2 else (-np.inf, np.inf)
        missing = float(rng.normal()) if rng.random() < 0.2 else None
        return Marginal(kind, values, ends, rng.random() < 0.3, low, high, missing)

    def correlation(self, size: int) -> np.ndarray:
        """One that there is, of scores of which some are sums of others; or numbers that are none."""
        if self.rng.random() < 0.2:
            return np.where(
                np.eye(size, dtype=bool), 1, self.rng.normal(size=(size, size)) * self.rng.choice([1, 1e200])
            )
        parts = self.rng.normal(size=(size, int(self.rng.choice([1, 3, size]))))
        return np.clip(np.corrcoef(parts @ parts.T + 1e-9), -1, 1) if size > 1 else np.ones((1, 1))

    def drawn(self) -> None:
        """Rows by every instruction set, at once and in pieces: all the same."""
        n = int(self.rng.choice([0, 1, 31, 32, 33, 100]))
        with np.errstate(all="ignore"):
            found = [self.rows(n, self.seed) for name in ffi.SETS if ffi.use(name) == name]
        self.rows._piece = int(self.rng.choice([1, 5, 32, 64]))
        for other in (*found[1:], self.rows(n, self.seed)):
            assert same(found[0], other), "other rows by other instructions, or in pieces"
        more = self.rows(n + 7, self.seed)
        assert same(more[:n], found[0]), "other rows in other company"


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays agree in every bit, but for those of what is not a number."""
    kind = np.uint32 if a.dtype == np.float32 else np.uint64
    return bool(((a.view(kind) == b.view(kind)) | (np.isnan(a) & np.isnan(b))).all())


def tried(seed: int) -> None:
    """A training by every instruction set, which all have to agree; then trees, and rows."""
    case = Case(seed)
    found = {}
    for name in ffi.SETS:
        if ffi.use(name) == name:
            found[name] = case.trained(case.pieces)
            case.answered(found[name])
    if "AVX-512" in found:
        assert same(found["AVX2"], found["AVX-512"]), "instruction sets differ"
    if not case.restart:
        assert same(found[ffi.use()], case.trained([sum(case.pieces)])), "steps in pieces differ from steps at once"
    case.refused()
    fuzz = TreeFuzz(seed)
    for part in (fuzz.boosted, fuzz.planted, fuzz.near, fuzz.poisoned, fuzz.refused):
        part()
    Table(seed).drawn()


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
