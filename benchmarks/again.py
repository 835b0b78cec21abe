"""Answers used again: a run that goes on, or is given answers of another, beside one that asks for all at once.

Each original is copied with `--first` queries, and the same run then goes on to `--queries`; another run is given the
first one's answers and asks for the rest; a third asks for all at once. Fidelity is that on fresh rows of the space;
rows are counted by the original itself. `--remake` makes every family of a run with that many answers behind a real
server, which counts, and compares it with a run that asked for that family, byte by byte.

    python benchmarks/again.py --half reported [--first 3000] [--queries 10000]
    python benchmarks/again.py --remake [--queries 10000]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from originals import chosen_originals, original_options, subject
from workers import each

FRESH = 20_000
FAMILIES = ("blend", "mlp", "boosting", "forest", "tree", "linear")
WAYS = ("at once", "goes on", "given")

Row = dict[str, Any]


def copies(task: tuple[str, int], options: argparse.Namespace) -> Row:
    """An original, copied in three ways with one seed."""
    import numpy as np

    import ectype as ec

    warnings.simplefilter("ignore", UserWarning)
    name, seed = task
    model, space, *_ = subject(name, options.folder, seed)
    fresh = space.present(space.sample(FRESH, np.random.default_rng([seed, 99])))
    said, asked = model.predict(fresh), 0

    def predict(rows: Any) -> Any:
        nonlocal asked
        asked += len(rows)
        return model.predict(rows)

    def fidelity(budget: int, out: Path, **settings: Any) -> float:
        original = ec.Original(predict, model.classes_, name=name)
        fixed = dict[str, Any](certificate_n=0, repeat=0, seed=seed, progress=False)
        copy = ec.copy_classifier(original, space, budget=budget, out=out, **fixed, **settings).copy
        return round(float((copy.predict(fresh) == said).mean()), 5)

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found: Row = {"original": name, "seed": seed, "at once": fidelity(options.queries, place / "whole")}
        fidelity(options.first, place / "run")
        rest, asked = options.queries - options.first, 0
        found["given"] = fidelity(rest, place / "given", answers=str(place / "run"))
        found["asked given"], asked = asked, 0
        found["goes on"] = fidelity(options.queries, place / "run")
        found["asked"] = asked
    return found


def table(rows: list[Row], rest: int) -> str:
    lines = [f"{'original':<20}" + "".join(f"{way:>10}" for way in WAYS) + f"{'asked':>8}"]
    for name in dict.fromkeys(row["original"] for row in rows):
        own = [row for row in rows if row["original"] == name]
        means = "".join(f"{fmean(row[way] for row in own):>10.4f}" for way in WAYS)
        lines.append(f"{name:<20}{means}{max(row['asked'] for row in own):>8}")
    for way in WAYS[1:]:
        gains = [100 * (row[way] - row["at once"]) for row in rows]
        error = stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
        lines.append(f"{way}: {fmean(gains):+.2f} points beside all at once (standard error {error:.2f})")
    lines.append(f"asked {rest} exactly: {all(row['asked'] == rest for row in rows)}")
    return "\n".join(lines)


def remade(options: argparse.Namespace) -> None:
    """Every family from the answers of one run."""
    import numpy as np

    import ectype as ec

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from fault_server import FaultyServer  # type: ignore[import-not-found]

    def decide(rows: Any) -> Any:
        rows = np.asarray(rows, float)
        return (np.sin(2 * rows[:, 0]) + rows[:, 1] * rows[:, 2] > 0.3).astype(int) + (rows[:, 3] > 1)

    space, settings = ec.Space.normal(5), dict[str, Any](certificate_n=500, progress=False)
    with FaultyServer(decide, share=0.0) as server, tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        box = ec.open_original(f"{server.url}/v2/models/m", [0, 1, 2], protocol="v2", request_rows=2000)
        ec.copy_classifier(box, space, budget=options.queries, to="blend", out=place / "run", **settings)
        for family in FAMILIES:
            before = server.asked
            ec.remake(place / "run", to=family, out=place / f"re-{family}")
            asked = server.asked - before
            ec.copy_classifier(box, space, budget=options.queries, to=family, out=place / family, **settings)
            names = ("copy.safetensors", "copy.json")
            alike = all(
                (place / f"re-{family}" / name).read_bytes() == (place / family / name).read_bytes() for name in names
            )
            print(f"{family:<10} {asked} queries, {'the same bytes' if alike else 'OTHER BYTES'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers used again.")
    original_options(parser)
    parser.add_argument("--first", type=int, default=3000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--workers", type=int, default=2, help="processes, each pinned to a core; 0: this one")
    parser.add_argument("--remake", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.remake:
        remade(options)
        return
    tasks = [(name, seed) for name in chosen_originals(options) for seed in options.seeds]
    rows: list[Row] = list(each(partial(copies, options=options), tasks, options.workers))
    rows.sort(key=lambda row: (row["original"], row["seed"]))
    print(json.dumps(rows) if options.json else table(rows, options.queries - options.first))


if __name__ == "__main__":
    main()
