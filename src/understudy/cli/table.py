"""Results as a small table for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from understudy.certificate.values import Bound, Certificate, Differences
from understudy.cli.terminal import printable
from understudy.runs.result import Result

# Columns of an example that a line shows.
COLUMNS = 8


def comparison(results: dict[str, Result]) -> None:
    """Print methods side by side."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in ("queries", "kept", "eff", "accuracy", "fidelity", "at least", "seconds"):
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
    print("eff: share of points saved, over all rounds, against keeping every one")

    for name, result in results.items():
        if result.repeats is not None and result.repeats.disagreed:
            print(
                f"{name}: asked again, the original changed {result.repeats.disagreed} of {result.repeats.n} answers; "
                f"no copy can be expected to reach a fidelity above {result.repeats.ceiling:.4f}"
            )


def cells(result: Result) -> list[str]:
    """A result as the cells of a row: queries, points kept, eff, accuracy, fidelity, its bound, seconds."""
    accuracy, proof = result.history[-1].accuracy, result.certificate
    return [
        f"{result.queries['training']}",
        f"{result.kept}",
        f"{result.eff:.2f}",
        "-" if accuracy is None else f"{accuracy:.4f}",
        "-" if proof is None else f"{proof.estimate:.4f}",
        "-" if proof is None else f"{proof.lower:.4f}",
        f"{result.seconds:.1f}",
    ]


def certificate(proof: Certificate, data: str | None) -> None:
    """Print what a certificate says, of rows of the space and of the user's."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    parts = {"fresh rows of the space": proof} | ({} if proof.on_data is None else {f"rows of {data}": proof.on_data})
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("on")
    for heading in ("rows", "fidelity", "at least"):
        table.add_column(heading, justify="right")
    for title, part in parts.items():
        for name, bound in _bounds(title, part):
            table.add_row(Text(name), f"{bound.n}", f"{bound.estimate:.4f}", f"{bound.lower:.4f}")
    Console().print(table)
    print(
        "fidelity: share of the rows with the original's label; "
        f"at least: with {100 * proof.confidence:g} % confidence, for each line by itself"
    )
    if proof.margin is not None:
        print(f"near the boundary: where the copy's two likeliest labels are less than {proof.margin:.6g} apart")
    if proof.ece is not None:
        print(f"calibration error: {proof.ece:.4f}, the mean gap between the copy's probabilities and what came true")
    if proof.on_data is not None:
        print(f"the bound on rows of {data} is about the population that they are a random sample of")
        if proof.on_data.distinct != proof.on_data.n:
            print(
                f"only {proof.on_data.distinct} of them are different, and were asked about once each; all are counted"
            )
        if proof.on_data.left_out:
            print(f"{proof.on_data.left_out} more have levels that the space does not know, and were left out")
    for title, part in parts.items():
        if part.differences is not None:
            print(f"\nwhere they differ, on {part.differences.n} of {part.n} {title}:")
            for line in _differences(part.differences):
                print(f"  {line}")


def _bounds(title: str, proof: Certificate) -> Iterator[tuple[str, Bound]]:
    """The lines of a table: of all rows, and of parts of them."""
    yield title, Bound(proof.estimate, proof.lower, proof.n)
    for label, bound in proof.per_class.items():
        yield f"  the original says {label!r}", bound
    if proof.near is not None and proof.away is not None:
        yield "  near the boundary", proof.near
        yield "  away from it", proof.away


def _differences(found: Differences) -> Iterator[str]:
    for flip in found.flips[:20]:
        yield f"original {flip.original!r}, copy {flip.copy!r}: {flip.n} rows"
    if len(found.flips) > 20:
        yield f"and {len(found.flips) - 20} other pairs of labels"
    if found.rules:
        yield "most often (found on one half of the rows, measured on the other, the bounds for all of them at once):"
    else:
        yield f"no conditions: {found.note}"
    for rule in found.rules:
        yield f"  if {printable(rule.text)}: on {rule.share:.1%} of {rule.n} rows, at least {rule.lower:.1%}"
    if found.examples:
        yield "for example:"
    for example in found.examples:
        shown = ", ".join(f"{printable(name)}={value!r}" for name, value in islice(example.row.items(), COLUMNS))
        more = ", ..." if len(example.row) > COLUMNS else ""
        yield f"  original {example.original!r}, copy {example.copy!r}: {shown}{more}"
