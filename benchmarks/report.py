"""The page about a run on forty mixed columns: its bytes, how long it takes to write, and to open in a browser.

The original is a made-up rule over numbers, counts, flags and categories with gaps; its copy is the default blend. The
page is written several times and opened as often, in Chromium, until its form has answered; medians are printed.

    python benchmarks/report.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

import ectype as ec
from ectype.report import write_report
from ectype.types import Frame


def space() -> ec.Space:
    """Forty columns of every kind, some with gaps."""
    columns: list[dict[str, object]] = []
    columns += [
        {"name": f"amount {j}", "kind": "float", "mean": 100.0 * j, "std": 10.0 + j, "missing": 0.0 if j % 5 else 0.1}
        for j in range(20)
    ]
    columns += [{"name": f"count {j}", "kind": "integer", "low": 0, "high": 20 + 10 * j} for j in range(6)]
    columns += [{"name": f"flag {j}", "kind": "boolean", "missing": 0.0 if j else 0.05} for j in range(4)]
    columns += [
        {"name": f"kind {j}", "kind": "category", "levels": [f"level {k}" for k in range(3 + 2 * j)], "missing": 0.05}
        for j in range(6)
    ]
    columns += [{"name": f"grade {j}", "kind": "ordered", "levels": ["low", "medium", "high", "top"]} for j in range(4)]
    return ec.Space.from_json(json.dumps({"columns": columns}))


def decider(space: ec.Space) -> Callable[[Frame], np.ndarray]:
    """A rule with weights, products and thresholds."""
    weights = np.random.default_rng(7).normal(size=space.d) / 3

    def decide(rows: Frame) -> np.ndarray:
        z = np.nan_to_num((space.read(rows, "rows") - space.moments[0]) / space.moments[1], nan=-0.5)
        score = z @ weights + z[:, 0] * z[:, 20] - (z[:, 1] > 0.5) * z[:, 30] + 0.5 * np.sin(2 * z[:, 2])
        return np.where(score > 1.2, "refuse", np.where(score > -0.3, "review", "grant"))

    return decide


def opened(path: Path, times: int) -> float | None:
    """The median of seconds until the page has opened and its form answered; None where there is no browser."""
    program = shutil.which("chromium")
    if program is None:
        return None
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(times + 1):  # the first starts processes of the browser
            tab = browser.new_page()
            clock = perf_counter()
            tab.goto(path.as_uri())
            tab.wait_for_selector("html[data-ready]")
            found.append(perf_counter() - clock)
            tab.close()
        browser.close()
    return median(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=10_000, help="training queries")
    parser.add_argument("--times", type=int, default=5, help="how often the page is written, and opened")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        columns, path = space(), Path(folder) / "run"
        original = ec.Original(decider(columns), name="forty columns")
        result = ec.copy_classifier(original, columns, budget=asked.answers, out=path)
        seconds, busy = [], []
        for _ in range(asked.times):
            clock, own = perf_counter(), process_time()
            page = write_report(path / "report.html", {"sequential": result}, title="Forty columns", answers=path)
            seconds.append(perf_counter() - clock)
            busy.append(process_time() - own)
        print(f"{asked.answers} answers, {columns.d} columns, a {result.family}")
        print(f"bytes            {page.stat().st_size:>10,}")
        print(f"seconds to write {median(seconds):>10.2f}, of the processor {median(busy):.2f}")
        ready = opened(page, asked.times)
        print(f"seconds to open  {'no browser' if ready is None else f'{ready:>10.2f}'}")


if __name__ == "__main__":
    main()
