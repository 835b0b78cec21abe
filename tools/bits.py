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

from understudy.engine import library
from understudy.engine.answers import ROWS, Answers
from understudy.engine.training import ACTIVATIONS, Groups, Method, Training

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "src" / "understudy" / "engine"
SOURCES = tuple(ENGINE / name for name in ("kernel.c", "trees.c", "radial.c"))
DRIVER = Path(__file__).with_name("driver.c")
FLAGS = ("-ffp-contract=off", "-fvisibility=hidden")
# What every build has to give. It changes with the kernel's arithmetic or the cases below, and with nothing else.
EXPECTED = "16605c39271470a44f2cf8f0c4ce1d45b643243f31aacd8d795672b36d0d888f"


class Case(NamedTuple):
    """A training, then the answers of what it made."""

    widths: tuple[int, ...]
    method: Method
    rows: int = 100
    steps: int = 60
    targets: bool = False
    weighted: bool = False
    groups: tuple[int, ...] = ()
    restart: bool = False


CASES = (
    Case((1, 2), Method(batch=1), rows=1),
    Case((2, 5, 3), Method(batch=200, rate=0.01, loss="cross-entropy", order="shuffled", warm=10), rows=90),
    Case((2, 64, 32, 10, 2), Method(rate=0.002, order="shuffled", anneal=0.5), groups=(30, 0, 69, 1)),
    Case((30, 64, 32, 10, 4), Method(rate=0.01, penalty="bounded", lam=0.3, decay=0.01, anneal=1.0), groups=(40, 60)),
    Case((7, 19, 33, 17, 21), Method(batch=17, penalty="norm", lam=0.05, activation="mish", loss="cross-entropy")),
    Case((17, 16, 40), Method(batch=33, activation="mish", rate=0.003, warm=20), weighted=True, restart=True),
    Case((5, 40, 3), Method(batch=24, loss="cross-entropy", decay=0.1, rate=0.01), targets=True, weighted=True),
    Case((3, 130, 70, 2), Method(batch=64, rate=0.1, penalty="bounded", lam=2.0, epsilon=1e-3), rows=70, restart=True),
    Case((4, 8, 8, 8, 8, 8, 8, 3), Method(batch=5, rate=0.02, order="shuffled", activation="mish"), rows=7),
)


def uniform(seed: int, *shape: int) -> np.ndarray:
    """Numbers from -1 to 1, by raw bits of a generator: those will not change from one NumPy to the next."""
    raw = np.random.PCG64(seed).random_raw(int(np.prod(shape)))
    return ((raw >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)).reshape(shape)


def begun(case: Case, seed: int) -> tuple[Training, np.ndarray]:
    """A training of the case, before its first step; and its rows."""
    size = sum((a + 1) * b for a, b in zip(case.widths[:-1], case.widths[1:], strict=True))
    theta = uniform(seed, size) * np.float32(0.4)
    X = uniform(seed + 100, case.rows, case.widths[0]) * np.float32(3)
    y: np.ndarray = (np.abs(X[:, 0]) * 1000).astype(np.int32) % case.widths[-1]
    if case.targets:
        y = np.abs(uniform(seed + 200, case.rows, case.widths[-1]))
    weights = np.abs(uniform(seed + 300, case.rows)) if case.weighted else None
    groups = Groups.of(np.array(case.groups)) if case.groups else None
    options = {"steps": case.steps, "groups": groups, "weights": weights, "seed": seed}
    return Training(case.widths, theta, X, y, case.method, **options), X  # type: ignore[arg-type]


def digest() -> str:
    """The hash of parameters and answers of all cases."""
    total = hashlib.sha256()
    for seed, case in enumerate(CASES):
        training, X = begun(case, seed)
        training.run(case.steps // 2)
        if case.restart:
            training.restart()
        training.run(case.steps - case.steps // 2)
        total.update(training.theta.tobytes())
        total.update(Answers(case.widths, training.theta, case.method.activation)(X).tobytes())
    return total.hexdigest()


@contextmanager
def kernel(path: Path) -> Iterator[None]:
    """Compute with another build of the kernel meanwhile."""
    before, library.PATH = library.PATH, path
    library.library.cache_clear()
    try:
        yield
    finally:
        library.PATH = before
        library.library.cache_clear()


def zig(target: str) -> list[str]:
    """The compiler for a platform; without a target it would build for the processor at hand."""
    return [sys.executable, "-m", "ziglang", "cc", "-target", target]


def compiled(compiler: list[str], out: Path, level: str = "-O3") -> Path:
    """The kernel as a library, by a compiler."""
    subprocess.run([*compiler, level, *FLAGS, "-fPIC", "-shared", "-o", out, *SOURCES], check=True)
    return out


def written() -> bytes:
    """All cases as the driver reads them: the arrays, the numbers, and what else to call the kernel with."""
    parts = []
    for seed, case in enumerate(CASES):
        training, _ = begun(case, seed)
        for name in library.POINTERS:
            array = training._arrays.get(name)
            data = b"" if array is None else array.tobytes()
            parts += [struct.pack("<q", len(data)), data]
        parts.append(bytes(training._job)[len(library.POINTERS) * ct.sizeof(ct.c_void_p) :])
        more = case.steps, case.restart, case.rows, ACTIVATIONS.index(case.method.activation), ROWS
        parts.append(struct.pack("<5q", *more))
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
        found = {name: digest() for name in sets if library.use(name) == name}
    for name, value in found.items():
        print(f"{name}: {value} {'as expected' if value == EXPECTED else f'expected {EXPECTED}'}")
    sys.exit({*found.values()} != {EXPECTED})


if __name__ == "__main__":
    main()
