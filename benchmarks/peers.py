"""Our copies beside what people would use instead: same originals, same spaces, as many queries, in one run.

PRESC's ClassifierCopy (pip install presc), scikit-learn's MLP and histogram boosting are fitted to the answers to 3000
random rows of the space, the first two with the paper's layers and until scikit-learn says that they have converged;
`PRESC long` trains as the paper does, for 1000 epochs of batches of 32.
Ours ask 3000 queries of the same space: `ectype` is the default, `network` the network that learns from round to
round, with room for all answers, `one-shot` the same in a single pass; `fast` and `paper` are the presets of these
names. No further query certifies them.

Every copy is made in a fresh process: cold is from its start, with imports; warm is a second copy in the same
process. Everybody's time has that of drawing the rows and of the original's answers in it: the others, who are
given both, are charged what these took in another process. Methods take turns problem by problem, and times are
compared as ratios: of seconds, and of seconds of work (`cpu`), which other work on the same machine does not change
much. Fidelity is measured on 5000 fresh rows of the space, and on the test rows of the data.

    python benchmarks/peers.py [--half odd] [--problems iris spirals] [--every 2] [--methods ectype PRESC] [--json]
                               [--presc PYTHON]

--presc names the Python that has presc, where that is another than this one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

from peer import BOOSTING, MLP, OURS, PRESC, PRESC_LONG, clocks
from subjects import subject
from workers import chosen_problems, problem_options

METHODS = (*OURS, PRESC, PRESC_LONG, MLP, BOOSTING)
FRESH = 5000
COLUMNS = ("fresh", "test", "accuracy", "queries", "kept", "cold", "warm", "cold_cpu", "warm_cpu", "peak_mb")
TIMES = COLUMNS[5:9]
Row = dict[str, Any]


def run(name: str, options: argparse.Namespace) -> Row:
    """One problem: every method on it, one after the other."""
    import numpy as np

    original, space, X_test, y_test = subject(name, options.folder)
    rng = np.random.default_rng([options.seed, 98])
    rows, fresh = space.sample(options.queries, rng), space.sample(FRESH, rng)
    labels, before = original.predict(rows), clocks()
    original.predict(space.sample(options.queries, rng))
    asking = [after - earlier for earlier, after in zip(before, clocks(), strict=True)]
    answers = {"fresh": original.predict(fresh), "test": original.predict(X_test)}
    found: dict[str, Row] = {}
    with TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(place / "rows.npz", X=rows, y=labels, fresh=fresh, test=X_test)
        for method in options.methods:
            task = {"problem": name, "folder": str(options.folder), "queries": options.queries}
            about = child(place, method, {**task, "epochs": options.epochs, "seed": options.seed}, options.presc)
            if method not in OURS:
                for key in TIMES:
                    about[key] += asking[key.endswith("_cpu")]
            said = dict(np.load(place / "found.npz"))
            agreed = {key: float((said[key] == answers[key]).mean()) for key in answers}
            correct = float((said["test"] == y_test).mean())
            found[method] = {**agreed, "accuracy": correct, "queries": options.queries, **about}
    return {"problem": name, "original": float((answers["test"] == y_test).mean()), "methods": found}


def child(place: Path, method: str, task: Row, presc: str) -> Row:
    """What a fresh process prints that makes a copy by this method."""
    command = [presc if method in (PRESC, PRESC_LONG) else sys.executable, str(Path(__file__).with_name("peer.py"))]
    (place / "task.json").write_text(json.dumps({**task, "started": time.time()}), encoding="utf-8")
    done = subprocess.run([*command, str(place), method], capture_output=True, text=True)
    if done.returncode:
        hint = (
            "; pip install presc, or name the Python that has it with --presc" if method in (PRESC, PRESC_LONG) else ""
        )
        sys.exit(f"peers.py: {method} on {task['problem']} failed{hint}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def summary(rows: list[Row]) -> dict[str, Any]:
    """Means by method (of times, medians), and what the project asks for where the methods for it were run."""
    methods = list(rows[0]["methods"])

    def values(method: str, key: str) -> list[float]:
        return [row["methods"][method][key] for row in rows]

    means = {
        method: {key: round((median if key in TIMES else fmean)(values(method, key)), 4) for key in COLUMNS}
        for method in methods
    }
    bars: dict[str, Any] = {}
    beside = [(own, peer) for own in ("ectype", "network", "fast") for peer in (PRESC, PRESC_LONG)]
    for own, peer in [pair for pair in beside if set(pair) <= set(methods)]:
        pairs = list(zip(values(own, "fresh"), values(peer, "fresh"), strict=True))
        bars[f"{own} beside {peer}"] = {
            "at_least_as_faithful_on": round(fmean(a >= b for a, b in pairs), 4),
            "mean_gain": round(fmean(a - b for a, b in pairs), 4),
            "times_faster": {
                key: round(median(b / a for a, b in zip(values(own, key), values(peer, key), strict=True)), 2)
                for key in TIMES
            },
        }
    mean = {method: fmean(values(method, "fresh")) for method in methods}
    if {"ectype", MLP, BOOSTING} <= set(methods):
        each = fmean(map(max, values(MLP, "fresh"), values(BOOSTING, "fresh")))
        bars["ectype beside single passes"] = {
            "over_the_better": round(mean["ectype"] - max(mean[MLP], mean[BOOSTING]), 4),
            "over_the_better_of_each": round(mean["ectype"] - each, 4),
        }
    return {"problems": len(rows), "means": means, "bars": bars}


def table(found: dict[str, Any]) -> str:
    """A line per method, then the comparisons."""
    heads = ("fresh", "test", "accuracy", "queries", "kept", "cold s", "warm s", "cold cpu", "warm cpu", "peak MB")
    lines = [f"{'mean of ' + str(found['problems']):<18}" + "".join(f"{head:>10}" for head in heads)]
    for method, row in found["means"].items():
        shares = "".join(f"{row[key]:>10.4f}" for key in COLUMNS[:3])
        times = "".join(f"{row[key]:>10.2f}" for key in TIMES)
        counts = f"{row['queries']:>10.0f}{row['kept']:>10.0f}"
        lines.append(f"{method:<18}{shares}{counts}{times}{row['peak_mb']:>10.0f}")
    for name, bar in found["bars"].items():
        lines.append(f"{name}: " + ", ".join(f"{key} {value}" for key, value in bar.items()))
    return "\n".join(lines)


def main() -> None:
    from ectype.errors import EctypeError
    from ectype.toy_problems import TOYS

    parser = argparse.ArgumentParser(description="Our copies beside PRESC's and single passes of scikit-learn.")
    problem_options(parser)
    parser.add_argument(
        "--problems", nargs="+", dest="only", metavar="NAME", help="the same as --only; toys have names"
    )
    parser.add_argument("--toys", action="store_true", help="the toy problems as well")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only every k-th of the problems chosen")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--queries", type=int, default=3000)
    parser.add_argument("--epochs", type=int, default=1000, help="the most that scikit-learn's networks may take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--presc", default=sys.executable, metavar="PYTHON", help="the one that has presc")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout, and nothing else")
    options = parser.parse_args()
    rows: list[Row] = []
    try:
        problems = [*chosen_problems(options)[:: options.every], *(TOYS if options.toys else ())]
        for name in problems:
            rows.append(run(name, options))
            print(f"{len(rows)}/{len(problems)}", json.dumps(rows[-1]), file=sys.stderr, flush=True)
    except EctypeError as error:
        sys.exit(f"peers.py: {error}")
    totals = summary(rows)
    print(json.dumps({"rows": rows, **totals}) if options.json else table(totals))


if __name__ == "__main__":
    main()
