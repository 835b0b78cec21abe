"""`ectype demo`: the main job on a built-in original."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ectype.cli.copy import reported
from ectype.cli.terminal import say

if TYPE_CHECKING:
    import numpy as np

    from ectype.original import Original
    from ectype.runs.result import Result


# The name of our default, and the share of points that the sequential copy beside it keeps.
KEPT, SHARE = "all kept", 0.15


@click.command("demo")
@click.option("--problem", type=click.Choice(["spirals", "moons", "yin-yang"]), default="spirals", show_default=True)
@click.option("--budget", type=int, default=3000, show_default=True, help="Training queries, for each method.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("ectype-demo"),
    show_default=True,
    help="Directory for the copy and its report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(problem: str, budget: int, seed: int, out: Path, as_json: bool) -> None:
    """Train an RBF-SVM on a toy problem, copy it from its answers alone, certify the copy, and report.

    The table compares our default, which keeps all answers, with the sequential approach that never keeps more than
    15 % of them, and with single-pass copies by the paper's network: one-shot, and online.
    Everything is written to the directory given by --out; open its report.html.
    """
    from ectype.cli.progress import follow
    from ectype.plan.batch_schedule import LEAST
    from ectype.plan.resolve import resolve
    from ectype.plan.settings import Settings
    from ectype.runs.api import build_job, run_job
    from ectype.runs.extend import in_directory
    from ectype.space import Space

    # The certificate's rows cost nothing here, and more of them give a tighter bound.
    asked = Settings(budget=budget, seed=seed, certificate_n=5000)
    methods = {
        KEPT: asked,
        "sequential": replace(asked, max_kept=max(LEAST, round(SHARE * budget))),
        "one-shot": replace(asked, method="one-shot", preset="fast"),
        "online": replace(asked, method="online"),
    }
    plans = {name: resolve(settings) for name, settings in methods.items()}
    original, test, accuracy = _trained(problem)
    jobs = {name: build_job(original, Space.normal(2), plan, test=test) for name, plan in plans.items()}
    jobs[KEPT] = in_directory(jobs[KEPT], out)  # before the work, not after
    total = sum(plan.ask.total for plan in plans.values())
    say(f"{original.name}, accuracy {accuracy:.4f}; four methods will ask it {total} queries in all", err=True)
    results = {name: follow(name, run_job(job), plans[name].ask.rounds) for name, job in jobs.items()}
    report = reported(out / "report.html", results, f"A copy of {original.name}", original)
    _tell(results, out, report, as_json)


def _trained(problem: str) -> tuple[Original, tuple[np.ndarray, np.ndarray], float]:
    """An SVM of a toy problem, rows that it never saw with their true labels, and its accuracy on them."""
    from sklearn.svm import SVC

    from ectype.original import Original
    from ectype.toy_problems import TOYS

    X, y = TOYS[problem]()
    split = len(X) * 8 // 10
    svm = SVC(C=1000, gamma=1).fit(X[:split], y[:split])
    test = X[split:], y[split:]
    original = Original(svm.predict, svm.classes_, d=2, name=f"an RBF-SVM on {problem}")
    return original, test, float(svm.score(*test))


def _tell(results: dict[str, Result], out: Path, report: Path, as_json: bool) -> None:
    """The outcome, for people or for programs."""
    from ectype.cli.tables import comparison

    if not as_json:
        comparison(results)
        say()
        say(f"The copy is in {out}; open {report} to see both side by side.")
        return
    methods = {name: {**result.summary(), "accuracy": result.history[-1].accuracy} for name, result in results.items()}
    document = {**methods[KEPT], "out": str(out), "report": str(report), "methods": methods}
    click.echo(json.dumps(document))
