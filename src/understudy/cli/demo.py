"""`understudy demo`: the main job on a built-in original."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click


@click.command("demo")
@click.option("--problem", type=click.Choice(["spirals", "moons", "yin-yang"]), default="spirals", show_default=True)
@click.option("--budget", type=int, default=3000, show_default=True, help="Training queries, for each method.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("understudy-demo"),
    show_default=True,
    help="Directory for the copy and its report.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, and nothing else.")
def command(problem: str, budget: int, seed: int, out: Path, as_json: bool) -> None:
    """Train an RBF-SVM on a toy problem, copy it from its answers alone, certify the copy, and report.

    The table compares the sequential approach with one-shot and online single-pass copies at the same number of
    queries. Everything is written to the directory given by --out; open its report.html.
    """
    from sklearn.svm import SVC

    from understudy.cli.progress import follow
    from understudy.original import Original
    from understudy.report import write_report
    from understudy.runs.copying import copy_steps, describe
    from understudy.runs.directory import claim
    from understudy.runs.settings import Settings
    from understudy.space import Space
    from understudy.toys import TOYS

    X, y = TOYS[problem]()
    split = len(X) * 8 // 10
    # The certificate's rows cost nothing here, and more of them give a tighter bound.
    asked = Settings(budget=budget, seed=seed, certificate_n=5000)
    methods = {name: replace(asked, method=name) for name in ("sequential", "one-shot", "online")}
    sizes = {name: settings.checked() for name, settings in methods.items()}
    svm = SVC(C=1000, gamma=1).fit(X[:split], y[:split])
    test = (X[split:], y[split:])
    original = Original(svm.predict, svm.classes_, d=2, name=f"an RBF-SVM on {problem}")
    space = Space.normal(2)
    claim(out, describe(original, space, sizes["sequential"], len(test[1])))  # before the work, not after
    total = sum(size.total for size in sizes.values())
    click.echo(
        f"{original.name}, accuracy {svm.score(*test):.4f}; three methods will ask it {total} queries in all", err=True
    )
    results = {
        name: follow(name, copy_steps(original, space, settings, test=test), sizes[name].iterations or 1)
        for name, settings in methods.items()
    }
    result = results["sequential"]
    result.save(out)
    report = write_report(out / "report.html", results, original=original, title=f"A copy of {original.name}")
    if as_json:
        document = {
            **result.summary(),
            "out": str(out),
            "report": str(report),
            "accuracy": result.history[-1].accuracy,
            "methods": {name: {**r.summary(), "accuracy": r.history[-1].accuracy} for name, r in results.items()},
        }
        click.echo(json.dumps(document))
        return
    from understudy.cli.table import comparison

    comparison(results)
    click.echo(f"\nThe copy is in {out}; open {report} to see both side by side.")
