"""How far one copy reaches: 1,000 features, 100 classes, 100,000 one-shot queries; and memory by points kept.

Every size runs in a process of its own, so that its peak memory is its own. The original is a random linear classifier.

    python benchmarks/scale.py [--json] [--quick]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

# features, classes, points kept
SIZES = [(100, 100, n) for n in (12_500, 25_000, 50_000, 100_000)] + [(1000, 100, 100_000)]
QUICK = [(20, 5, 1000), (20, 5, 2000)]


def run(d: int, n_c: int, n: int) -> dict[str, Any]:
    import numpy as np

    import ectype as ec

    weights = np.random.default_rng(0).normal(size=(d, n_c))
    original = ec.Original(lambda rows: (rows @ weights).argmax(axis=1), classes=range(n_c))
    result = ec.copy_classifier(
        original, ec.Space.normal(d), method="one-shot", preset="fast", budget=n, schedule=2, certificate_n=0
    )
    return {
        "features": d,
        "classes": n_c,
        "kept": result.kept,
        "seconds": round(result.seconds, 1),
        "peak_mb": round(result.peak_mb or 0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Copies of growing size, each in its own process.")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run(*options.one)))
        return
    rows = []
    for size in QUICK if options.quick else SIZES:
        print(f"features, classes, points: {size}", file=sys.stderr, flush=True)
        command = [sys.executable, __file__, "--one", *map(str, size)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    if options.json:
        print(json.dumps(rows))
        return
    print("".join(f"{name:>10}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:>10}" for value in row.values()))


if __name__ == "__main__":
    main()
