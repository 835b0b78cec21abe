"""Where the time of a run goes, by part: copies of a cheap original with 2, 30 and 166 columns.

`default` is the blend, `network` the network that learns from round to round, `fast` the preset of this name.

The original is a quadratic form in numbers that depend on each other, the space is learned from 1000 rows of them, and
the seed is another in every round. Milliseconds of work, medians of the rounds; the first copy of a process, which
imports, is not counted. Parts do not overlap: `steps` are the kernel's, `training` is what else a round of training
does, `choosing` has the copy's answers for the candidates in it, `other` is all that has no name here.

    python benchmarks/profile_run.py [--json] [--columns 2 30 166] [--kinds default network fast] [--rounds 9]
                                     [--certificate 2000] [--calls 20]

--calls prints the functions that take most instead, by cProfile, which makes small ones look larger than they are.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core: work that is handed around is not work
PARTS = (
    "steps", "training", "making", "sampling", "encoding", "distinct", "choosing", "asking", "dropping", "certificate",
    "other",
)  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {"default": {}, "network": {"delta": 1e-300}, "fast": {"preset": "fast"}}
ROWS = 1000
Copy = Callable[[int], Any]
"""Makes a copy with this seed."""


class Clock:
    """Seconds of work by part; a part that calls another is not charged for it."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._parts = ["other"]
        self._since = process_time()

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, whose time is charged to a part."""

        def measured(*arguments: Any, **options: Any) -> Any:
            self._charge()
            self._parts.append(part)
            try:
                return call(*arguments, **options)
            finally:
                self._charge()
                self._parts.pop()

        return measured

    def read(self) -> dict[str, float]:
        """What was spent since it was last read."""
        self._charge()
        found = {part: self.spent[part] for part in PARTS}
        self.spent.clear()
        return found

    def _charge(self) -> None:
        now = process_time()
        self.spent[self._parts[-1]] += now - self._since
        self._since = now


@contextmanager
def watched(clock: Clock) -> Iterator[None]:
    """While this lasts, the functions that runs are made of are timed."""
    from ectype._kernel import KernelTraining
    from ectype.algorithm.training import Trainer
    from ectype.methods import sequential
    from ectype.methods.asker import RoundAsker
    from ectype.original import Original
    from ectype.runs import assembly, pipeline
    from ectype.runs.pipeline import CopySelector
    from ectype.space import FeatureView, SeenRows, Space

    functions: list[tuple[Any, str, str]] = [
        (KernelTraining, "run", "steps"),
        (Space, "sample", "sampling"),
        (FeatureView, "__call__", "encoding"),
        (SeenRows, "new", "distinct"),
        (SeenRows, "add", "distinct"),
        (Original, "answer", "asking"),
        (Trainer, "__call__", "training"),
        (RoundAsker, "_chosen", "choosing"),
        (CopySelector, "so_far", "certificate"),
        (pipeline, "select_copy", "making"),
        (assembly, "explain", "certificate"),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in functions]
    paper: Any = sequential
    drop = paper.drop_compressed
    for owner, name, part in functions:
        setattr(owner, name, clock.timed(part, getattr(owner, name)))
    paper.drop_compressed = lambda *given: clock.timed("dropping", drop(*given))
    try:
        yield
    finally:
        paper.drop_compressed = drop
        for owner, name, call in before:
            setattr(owner, name, call)


def copying(d: int, kind: str, options: argparse.Namespace) -> Copy:
    """What makes copies with so many columns."""
    import numpy as np

    import ectype as ec

    rng = np.random.default_rng(d)
    rows = rng.standard_normal((ROWS, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / d**0.5)
    form = rng.standard_normal((d, d)) / d
    cut = np.median(((rows @ form) * rows).sum(axis=1))
    original = ec.Original(lambda asked: ((asked @ form) * asked).sum(axis=1) > cut, classes=[False, True])
    space = ec.Space.from_data(rows)

    def copy(seed: int) -> Any:
        return ec.copy_classifier(
            original,
            space,
            budget=options.queries,
            certificate_n=options.certificate,
            repeat=0,
            seed=seed,
            **KINDS[kind],
        )

    return copy


def measure(d: int, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of work by part, medians of the rounds."""
    copy, clock, rounds = copying(d, kind, options), Clock(), list[dict[str, float]]()
    copy(0)
    for seed in range(1, options.rounds + 1):
        with watched(clock):
            clock.read()
            copy(seed)
            rounds.append(clock.read())
    parts = {part: round(1e3 * median(one[part] for one in rounds), 1) for part in PARTS}
    return {"columns": d, "kind": kind, **parts, "all": round(1e3 * median(sum(one.values()) for one in rounds), 1)}


def calls(d: int, kind: str, options: argparse.Namespace) -> None:
    """Print the functions that take most of a second copy."""
    copy, profile = copying(d, kind, options), cProfile.Profile()
    copy(0)
    profile.runcall(copy, 1)
    print(f"{d} columns, {kind}")
    pstats.Stats(profile, stream=sys.stdout).strip_dirs().sort_stats("tottime").print_stats(options.calls)


def table(rows: list[dict[str, Any]]) -> str:
    """A line for each part, a column for each kind of run."""
    heads = [f"{row['kind']} {row['columns']}" for row in rows]
    lines = [f"{'ms of work':<12}" + "".join(f"{head:>13}" for head in heads)]
    for part in (*PARTS, "all"):
        lines.append(f"{part:<12}" + "".join(f"{row[part]:>13.1f}" for row in rows))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the time of a run goes, by part.")
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 30, 166], metavar="D")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--certificate", type=int, default=0, metavar="N", help="rows that certify the copy")
    parser.add_argument("--rounds", type=int, default=9, help="copies of each kind, after a first")
    parser.add_argument("--calls", type=int, metavar="N", help="print N functions by cProfile instead")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    kinds = [(d, kind) for kind in options.kinds for d in options.columns]
    if options.calls:
        for d, kind in kinds:
            calls(d, kind, options)
        return
    rows = []
    for d, kind in kinds:
        print(f"{d} columns, {kind}", file=sys.stderr, flush=True)
        rows.append(measure(d, kind, options))
    print(json.dumps(rows) if options.json else table(rows))


if __name__ == "__main__":
    main()
