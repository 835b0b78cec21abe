"""One number that stands for every bit of the engine's results: the same on all processors with fused multiply-add.

    python tools/bits.py                                                            here, by every instruction set
    python tools/bits.py --target aarch64-linux-musl --emulator qemu-aarch64-static

The second builds a program for another platform by zig (pip install ziglang), and runs it by an emulator.
"""

from __future__ import annotations

import argparse
import ctypes as ct
import hashlib
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ectype._kernel import (
    ACTIVATIONS,
    DISCRETE_MARGINAL,
    LEAF,
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
from ectype._kernel._inference import ROWS
from ectype._kernel._sampler import LEAST, copula_loadings
from ectype._kernel._trees import ExtraTreesBuilder

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "src" / "ectype" / "_kernel"
SOURCES = tuple(ENGINE / name for name in ("kernel.c", "answers.c", "trees.c", "radial.c", "rows.c"))
DRIVER = Path(__file__).with_name("driver.c")
FLAGS = ("-ffp-contract=off", "-fvisibility=hidden")
# What every build has to give. It changes with the kernel's arithmetic or the cases below, and with nothing else.
EXPECTED = "2eedca2620402976ca72d2d66ca929bbe8b6a9866053bf613f7f974c5294ce7c"


class Case(NamedTuple):
    """A training, then the answers of what it made."""

    widths: tuple[int, ...]
    method: TrainingMethod
    rows: int = 100
    steps: int = 60
    targets: bool = False
    weighted: bool = False
    groups: tuple[int, ...] = ()
    restart: bool = False
    pieces: int = 0


CASES = (
    Case((1, 2), TrainingMethod(batch=1), rows=1),
    Case((2, 5, 3), TrainingMethod(batch=200, rate=0.01, loss="cross-entropy", order="shuffled", warm=10), rows=90),
    Case((2, 64, 32, 10, 2), TrainingMethod(rate=0.002, order="shuffled", anneal=0.5), groups=(30, 0, 69, 1)),
    Case(
        (30, 64, 32, 10, 4),
        TrainingMethod(rate=0.01, penalty="bounded", lam=0.3, decay=0.01, anneal=1.0),
        groups=(40, 60),
    ),
    Case(
        (7, 19, 33, 17, 21), TrainingMethod(batch=17, penalty="norm", lam=0.05, activation="mish", loss="cross-entropy")
    ),
    Case((17, 16, 40), TrainingMethod(batch=33, activation="mish", rate=0.003, warm=20), weighted=True, restart=True),
    Case((5, 40, 3), TrainingMethod(batch=24, loss="cross-entropy", decay=0.1, rate=0.01), targets=True, weighted=True),
    Case(
        (3, 130, 70, 2),
        TrainingMethod(batch=64, rate=0.1, penalty="bounded", lam=2.0, epsilon=1e-3),
        rows=70,
        restart=True,
    ),
    Case((4, 8, 8, 8, 8, 8, 8, 3), TrainingMethod(batch=5, rate=0.02, order="shuffled", activation="mish"), rows=7),
    Case((45, 20, 3), TrainingMethod(batch=33, rate=0.005, loss="cross-entropy", decay=0.01), pieces=40),
    Case((23, 16, 2), TrainingMethod(batch=16, rate=0.01, order="shuffled", activation="mish"), pieces=7),
)


class TreeCase(NamedTuple):
    """Trees by boosting and at random, of the same rows, their answers, and those of radial functions."""

    rows: int
    inputs: int
    classes: int
    how: BoostingSettings
    targets: bool = False
    weighted: bool = False
    directed: bool = False
    based: bool = False
    leaves: int = 2**31 - 1
    depth: int = 0


TREE_CASES = (
    TreeCase(1, 1, 2, BoostingSettings(rounds=2)),
    TreeCase(300, 4, 2, BoostingSettings(rounds=20)),
    TreeCase(
        200,
        3,
        5,
        BoostingSettings(rounds=6, leaves=5, depth=2, rate=0.3, share=1.0),
        targets=True,
        weighted=True,
        leaves=60,
    ),
    TreeCase(
        500,
        17,
        3,
        BoostingSettings(rounds=10, leaves=40, l2=0.1, least=0.5, bins=16),
        weighted=True,
        based=True,
        depth=5,
    ),
    TreeCase(700, 5, 2, BoostingSettings(rounds=15, share=1.0, l2=0.0), directed=True, based=True),
    TreeCase(600, 3, 2, BoostingSettings(rounds=10, share=0.7), targets=True, directed=True, leaves=200),
    TreeCase(70_000, 2, 2, BoostingSettings(rounds=3), leaves=50),
)
TREES = 3


class Table(NamedTuple):
    """Random rows: the kinds of their columns, and how."""

    columns: str
    rows: int = 100
    dependent: bool = True
    gaps: int = 0


TABLES = (
    Table("n", rows=1, dependent=False),
    Table("ncsi", dependent=False, gaps=2),
    Table("ccs", rows=33),
    Table("ncsiicsnnc" * 4, rows=70, gaps=7),
    Table("cnsi" * 31, rows=257),
)


def uniform(seed: int, *shape: int) -> np.ndarray:
    """Numbers from -1 to 1, by raw bits of a generator: those will not change from one NumPy to the next."""
    raw = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    return ((raw >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape)


def begun(case: Case, seed: int) -> tuple[KernelTraining, np.ndarray]:
    """A training of the case, before its first step; and its rows."""
    size = sum((a + 1) * b for a, b in zip(case.widths[:-1], case.widths[1:], strict=True))
    theta = uniform(seed, size) * np.float32(0.4)
    columns = case.widths[0] - case.pieces
    X = uniform(seed + 100, case.rows, columns) * np.float32(3)
    y: np.ndarray = (np.abs(X[:, 0]) * 1000).astype(np.int32) % case.widths[-1]
    if case.targets:
        y = np.abs(uniform(seed + 200, case.rows, case.widths[-1]))
    weights = np.abs(uniform(seed + 300, case.rows)) if case.weighted else None
    groups = RowGroups.of(np.array(case.groups)) if case.groups else None
    pieces = None
    if case.pieces:
        low = uniform(seed + 400, case.pieces) * np.float32(3)
        high = low + np.abs(uniform(seed + 500, case.pieces)) + np.float32(0.01)
        pieces = PiecewiseLinear(columns, np.arange(case.pieces) % columns, low, high)
    options = {"steps": case.steps, "groups": groups, "weights": weights, "pieces": pieces, "seed": seed}
    return KernelTraining(case.widths, theta, X, y, case.method, **options), X  # type: ignore[arg-type]


class TreeSetup(NamedTuple):
    """The builders of an ensemble before any tree grows, its rows, and other rows for inference."""

    boosting: Boosting
    builder: ExtraTreesBuilder
    radial: RbfKernel
    X: np.ndarray
    rows: np.ndarray


def prepare_trees(ensemble: TreeCase, seed: int) -> TreeSetup:
    """Prepare an ensemble, before its first tree."""
    shape, outputs = (ensemble.rows, ensemble.inputs), 1 if ensemble.classes == 2 else ensemble.classes
    X, rows = uniform(seed + 600, *shape), uniform(seed + 700, 99, ensemble.inputs)
    y: np.ndarray = np.floor(X[:, 0] * 3 + X[:, -1] * X[:, -1]).astype(np.int32) % ensemble.classes
    if ensemble.targets:
        y = np.abs(uniform(seed + 800, ensemble.rows, ensemble.classes))
    weights = np.abs(uniform(seed + 900, ensemble.rows)) if ensemble.weighted else None
    base = uniform(seed + 1000, ensemble.rows, outputs) if ensemble.based else None
    directions = np.arange(ensemble.inputs) % 3 - 1 if ensemble.directed else None
    boosting = Boosting(
        X, y, ensemble.classes, ensemble.how, base=base, weights=weights, directions=directions, seed=seed
    )
    builder = ExtraTreesBuilder(
        X, y, ensemble.classes, leaves=ensemble.leaves, depth=ensemble.depth, directions=directions, seed=seed
    )
    centres = X[:300]
    radial = RbfKernel(centres, uniform(seed + 1100, len(centres), ensemble.classes), 0.7)
    return TreeSetup(boosting, builder, radial, X, rows)


def sums(trees: list[list[np.ndarray]], classes: int, inputs: int) -> TreeEnsemble:
    """Trees that grew at random, as they answer."""
    sizes = np.array([len(tree[0]) for tree in trees])
    starts = np.cumsum(sizes) - sizes
    feature, threshold, left, right, values = (np.concatenate(parts) for parts in zip(*trees, strict=True))
    own, shift = np.arange(len(feature)), np.repeat(starts, sizes)
    below = np.stack([left + shift, right + shift], axis=1)
    children = np.where((feature == LEAF)[:, None], own[:, None], below)
    return TreeEnsemble(feature, threshold, children, values, starts, np.zeros(len(trees), int), classes, inputs)


def laid_out(table: Table, seed: int) -> tuple[RowSampler, np.ndarray | None]:
    """A table before its first row, and the correlation of its scores; some of them are sums of others."""
    columns = [marginal(kind, seed + 1200 + j) for j, kind in enumerate(table.columns)]
    columns[: table.gaps] = [column._replace(missing=0.4) for column in columns[: table.gaps]]
    if not table.dependent:
        return RowSampler(columns), None
    scores = len(columns) + table.gaps
    parts = np.round(uniform(seed + 1300, scores, 9).astype(np.float64) * 64)  # whole numbers have exact sums
    product = (parts[:, None] * parts).sum(axis=2)
    product[np.arange(scores), np.arange(scores)] += 500 * (np.arange(scores) % 3)
    size = np.diag(product)
    correlation = product / np.sqrt(size[:, None] * size)
    return RowSampler(columns, correlation), correlation


def marginal(kind: str, seed: int) -> Marginal:
    """A distribution: normal, a curve, steps, or whole numbers with bounds."""
    values = np.cumsum(np.abs(uniform(seed, 1 + seed % 40)).astype(np.float64))
    if kind == "n":
        return Marginal(NORMAL_MARGINAL, np.array([values[0], values[-1]]))
    if kind == "s":
        return Marginal(DISCRETE_MARGINAL, values, values[:-1] / values[-1])
    curve = np.append(-values[-1], values) * 3
    return Marginal(QUANTILE_MARGINAL, curve, whole=kind == "i", low=curve[0] / 2 if kind == "i" else -np.inf)


def of_networks() -> Iterator[np.ndarray]:
    """Parameters and answers."""
    for seed, case in enumerate(CASES):
        training, X = begun(case, seed)
        training.run(case.steps // 2)
        if case.restart:
            training.restart()
        training.run(case.steps - case.steps // 2)
        yield training.theta
        yield NetworkInference(case.widths, training.theta, case.method.activation, training._pieces)(X)


def of_woods() -> Iterator[np.ndarray]:
    """Bins, scores and nodes of boosting; nodes and answers of random trees; answers of radial functions."""
    for seed, ensemble in enumerate(TREE_CASES):
        boosting, builder, radial, _, rows = prepare_trees(ensemble, seed)
        boosting.run(ensemble.how.rounds)
        yield from (boosting._arrays["binned"], boosting.scores, *boosting._grown.values())  # type: ignore[misc]
        trees = [builder.tree(number) for number in range(TREES)]
        yield from (array for tree in trees for array in tree)
        yield sums(trees, ensemble.classes, ensemble.inputs)(rows, np.zeros((len(rows), ensemble.classes)))
        yield radial(rows)


def of_tables() -> Iterator[np.ndarray]:
    """Factors of correlations, and random rows."""
    for seed, table in enumerate(TABLES):
        rows, correlation = laid_out(table, seed)
        if correlation is not None:
            yield from copula_loadings(correlation, len(correlation))
        yield rows(table.rows, seed)


def digest() -> str:
    """The hash of all of these."""
    total = hashlib.sha256()
    for array in (*of_networks(), *of_woods(), *of_tables()):
        total.update(array.tobytes())
    return total.hexdigest()


@contextmanager
def kernel(path: Path) -> Iterator[None]:
    """Compute with another build of the kernel meanwhile."""
    before, ffi.PATH = ffi.PATH, path
    ffi.library.cache_clear()
    try:
        yield
    finally:
        ffi.PATH = before
        ffi.library.cache_clear()


def zig(target: str) -> list[str]:
    """The compiler for a platform; without a target it would build for the processor at hand."""
    return [sys.executable, "-m", "ziglang", "cc", "-target", target]


def compiled(compiler: list[str], out: Path, level: str = "-O3") -> Path:
    """The kernel as a library, by a compiler."""
    subprocess.run([*compiler, level, *FLAGS, "-fPIC", "-shared", "-o", out, *SOURCES], check=True)
    return out


def record(kind: str, arrays: list[np.ndarray | None], numbers: bytes) -> bytes:
    """Something to compute, as the driver reads it: what, the numbers, and the arrays."""
    parts = [kind.encode(), struct.pack("<2q", len(numbers), len(arrays)), numbers]
    for array in arrays:
        data = b"" if array is None else array.tobytes()
        parts += [struct.pack("<q", len(data)), data]
    return b"".join(parts)


def numbers(job: ct.Structure) -> bytes:
    """What a job has beside its pointers."""
    pointers = sum(kind is ct.c_void_p for _, kind in job._fields_)  # type: ignore[misc]
    return bytes(job)[pointers * ct.sizeof(ct.c_void_p) :]


def written() -> bytes:
    """All cases, as the driver reads them."""
    parts = []
    for seed, case in enumerate(CASES):
        training, _ = begun(case, seed)
        of = training._pieces
        arrays = [training._arrays.get(name) for name in ffi.POINTERS[:-1]]
        arrays += [None] * 3 if of is None else [of.column, of.slope, of.shift]
        more = case.steps, case.restart, case.rows, ACTIVATIONS.index(case.method.activation), ROWS
        counts = case.widths[0] - case.pieces, case.pieces
        parts.append(record("n", arrays, numbers(training._job) + struct.pack("<7q", *more, *counts)))
    for seed, ensemble in enumerate(TREE_CASES):
        boosting, builder, radial, X, rows = prepare_trees(ensemble, seed)
        grown = boosting._arrays
        names = [name for name, kind in ffi.BoostingStruct._fields_ if kind is ct.c_void_p]
        arrays = [X, *(grown.get(name) for name in names[1:])]
        trees = ensemble.how.rounds * boosting.outputs
        parts.append(record("b", arrays, numbers(boosting._job) + struct.pack("<q", trees)))
        names = [name for name, kind in ffi.ExtraTreesStruct._fields_ if kind is ct.c_void_p]
        arrays = [*(builder._arrays.get(name) for name in names), rows]
        parts.append(record("p", arrays, numbers(builder._job) + struct.pack("<2q", TREES, len(rows))))
        about = struct.pack("<4qd", radial._apart, ensemble.inputs, ensemble.classes, len(rows), radial._gamma)
        parts.append(record("r", [radial._centres, radial._weights, rows], about))
    for seed, table in enumerate(TABLES):
        drawn, correlation = laid_out(table, seed)
        drawn._job.seed = seed
        names = [name for name, kind in ffi.SamplingStruct._fields_ if kind is ct.c_void_p]
        arrays = [*(drawn._arrays.get(name) for name in names), correlation]
        parts.append(record("d", arrays, numbers(drawn._job) + struct.pack("<qd", table.rows, LEAST)))
    return b"".join(parts)


def emulated(compiler: list[str], emulator: list[str], level: str = "-O3") -> str:
    """The hash by a program of its own, built by a cross compiler and run by an emulator."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "driver.exe")
        command = [*compiler, level, *FLAGS, "-static", f"-I{ENGINE}", "-o", str(program), str(DRIVER)]
        subprocess.run(command, check=True)
        out = subprocess.run([*emulator, program], input=written(), stdout=subprocess.PIPE, check=True).stdout
    return hashlib.sha256(out).hexdigest()


def main() -> None:
    """Print hashes, and whether they are as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", help="a platform, as zig names it")
    parser.add_argument("--emulator", default="", help="what runs programs of that platform")
    arguments = parser.parse_args()
    if arguments.target:
        found = {arguments.target: emulated(zig(arguments.target), arguments.emulator.split())}
    else:
        sets = ("AVX2", "AVX-512") if platform.machine() in ("x86_64", "AMD64") else ("plain",)
        found = {name: digest() for name in sets if ffi.use(name) == name}
    for name, value in found.items():
        print(f"{name}: {value} {'as expected' if value == EXPECTED else f'expected {EXPECTED}'}")
    sys.exit({*found.values()} != {EXPECTED})


if __name__ == "__main__":
    main()
