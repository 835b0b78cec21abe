"""Results as a small table for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import click

from ectype._common.formatting import Grid
from ectype.certificate import formatting
from ectype.certificate.certificate import Certificate, Differences
from ectype.certificate.formatting import GIVEN
from ectype.cli.terminal import say
from ectype.ledger import Purpose
from ectype.runs.result import Result

# Columns of an example that a line shows, and examples; --json has all.
COLUMNS, EXAMPLES = 8, 5


def comparison(results: dict[str, Result]) -> None:
    """Print methods side by side."""
    numbers = ("queries", "kept", "eff", "accuracy", "seconds", "fidelity", "at least")
    rows = [(name, *cells(result)) for name, result in results.items()]
    click.echo(f"\n{Grid(('method', *numbers, 'worst label'), rows, right=numbers).text()}\n")
    proof = next(iter(results.values())).certificate
    if proof is not None:
        say(
            f"fidelity: share of {proof.n} fresh inputs with the original's label; "
            f"at least: with {proof.confidence:.0%} confidence"
        )
        say("worst label: the one that a copy agrees on least often, and on how many of the inputs with it")
    if proof is not None and proof.baseline is not None:
        say(f"always answering the commonest label, {proof.baseline.label!r}: {proof.baseline.estimate:.4f}")
    say("eff: share of points saved, over all rounds, against keeping every one")

    for name, result in results.items():
        if result.repeats is not None and result.repeats.text:
            say(f"{name}: {result.repeats.text}")


def cells(result: Result) -> list[str]:
    """A result as the cells of a row: queries, points, eff, accuracy, seconds, fidelity, its bound, the worst label."""
    accuracy, proof = result.history[-1].accuracy, result.certificate
    worst = None if proof is None else proof.worst
    return [
        f"{result.queries[Purpose.TRAINING]}",
        f"{result.kept}",
        f"{result.eff:.2f}",
        "-" if accuracy is None else f"{accuracy:.4f}",
        f"{result.seconds:.1f}",
        "-" if proof is None else f"{proof.estimate:.4f}",
        "-" if proof is None else f"{proof.lower:.4f}",
        "-" if worst is None else f"{worst}",
    ]


def certificate(proof: Certificate, data: str | None, given: Certificate | None = None) -> None:
    """Print what a certificate says, of rows of the space, of the user's, and of answers that were given."""
    parts = {"fresh rows of the space": proof} | ({} if proof.on_data is None else {f"rows of {data}": proof.on_data})
    parts |= {} if proof.on_answers is None else {GIVEN: proof.on_answers}
    parts = {GIVEN: proof} if proof is given else parts
    for title, part in parts.items():
        say(formatting.sentence(part, GIVEN if title == GIVEN else ""))
    click.echo(f"\n{formatting.table(*(formatting.bounds(part, title) for title, part in parts.items())).text()}\n")
    say(
        "fidelity: share of the rows with the original's label; "
        f"at least: with {100 * proof.confidence:g}% confidence, for each line by itself, but not for the best of "
        "several certificates"
    )
    for line in formatting.strata(proof):
        say(line)
    if proof.margin is not None:
        least = f": its two likeliest labels are less than {proof.margin:.3g} apart" if proof.margin < 0.999 else ""
        say(f"near the boundary: about the fifth of the space that the copy is least sure of{least}")
    if proof.ece is not None:
        say(f"calibration error: {proof.ece:.4f}, the mean gap between the copy's probabilities and what came true")
    if proof.on_data is not None:
        for line in formatting.about_rows(proof.on_data, f"rows of {data}"):
            say(line)
    if GIVEN in parts:
        say(f"the bound on {GIVEN} is about the population that they are a random sample of; nothing was asked for it")
    for title, part in parts.items():
        if part.differences is not None:
            say()
            say(f"where they differ, on {part.differences.n} of {part.sampled} {title}:")
            for line in _differences(part.differences):
                say(f"  {line}")


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
        yield f"  if {rule.text}: on {rule.share:.1%} of {rule.n} rows, at least {rule.lower:.1%}"
    if found.examples:
        yield "for example:"
    for example in found.examples[:EXAMPLES]:
        shown = ", ".join(f"{name}={_value(value)}" for name, value in islice(example.row.items(), COLUMNS))
        more = ", ..." if len(example.row) > COLUMNS else ""
        yield f"  original {example.original!r}, copy {example.copy!r}: {shown}{more}"


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
