"""Results as a small table for people."""

from __future__ import annotations

from understudy.result import Result


def comparison(results: dict[str, Result]) -> None:
    """Print methods side by side."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("method", no_wrap=True)
    for heading in ("queries", "kept", "accuracy", "fidelity", "at least", "seconds"):
        table.add_column(heading, justify="right")
    for name, result in results.items():
        table.add_row(name, *cells(result))
    Console().print(table)
    proof = next(iter(results.values())).certificate
    if proof is not None:
        print(
            f"fidelity: share of {proof.n} fresh inputs with the original's label; "
            f"at least: with {proof.confidence:.0%} confidence"
        )

    for name, result in results.items():
        if result.repeats is not None and result.repeats.disagreed:
            print(
                f"{name}: asked again, the original changed {result.repeats.disagreed} of {result.repeats.n} answers; "
                f"no copy can be expected to reach a fidelity above {result.repeats.ceiling:.4f}"
            )


def cells(result: Result) -> list[str]:
    """A result as the cells of a row: queries, points kept, accuracy, fidelity, its bound, seconds."""
    accuracy, proof = result.history[-1].accuracy, result.certificate
    return [
        f"{result.queries['training']}",
        f"{result.kept}",
        "-" if accuracy is None else f"{accuracy:.4f}",
        "-" if proof is None else f"{proof.estimate:.4f}",
        "-" if proof is None else f"{proof.lower:.4f}",
        f"{result.seconds:.1f}",
    ]
