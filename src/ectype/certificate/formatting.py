"""A certificate in words: as text for a screen, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ectype._common.formatting import Grid, join_names, paragraphs, percent, printable, screen_width, shorten, wrap_text
from ectype.queries import reasons_in_words

if TYPE_CHECKING:
    from ectype.certificate.certificate import Bound, Certificate

# The name of rows whose answers were given, not asked for.
GIVEN = "rows with given answers"
# The most characters of a label in a sentence.
NAME = 40
# What a screen has room for: labels, of more those with the lowest bounds, and conditions.
LABELS, RULES = 6, 3


def sentence(proof: Certificate, what: str = "") -> str:
    """The fidelity and its caveats; `what` names the rows, if they are neither fresh ones nor the user's own."""
    rows = f"{proof.n} {what or ('fresh rows of the space' if proof.distinct is None else 'rows of your own')}"
    sure = f"with {100 * proof.confidence:g}% confidence, on at least {percent(proof.lower)} of all such rows"
    if proof.strata:
        start = f"By {rows}, more of them where it is unsure, the copy gives the original's label on "
        first = f"{start}{percent(proof.estimate)} of the space; {sure}."
    else:
        first = f"The copy gives the original's label on {percent(proof.estimate)} of {rows}; {sure}."
    return " ".join([first, *caveats(proof)])


def caveats(proof: Certificate, share: Callable[[float], str] = percent) -> Iterator[str]:
    """Sentences that stand beside a fidelity: the worst label, the majority baseline, labels that were not measured.

    `share` writes a share in percent.
    """
    worst, baseline = proof.worst, proof.baseline
    if worst is not None and baseline is not None:
        plain = f" of the {baseline.n} that are a plain sample" if proof.strata else ""
        yield f"Its worst label is {worst.name}: it agrees on {worst.agreed} of the {worst.n} rows with it{plain}."
        yield f"Always answering the commonest, {baseline.name}, would agree on {share(baseline.estimate)}."
        if not proof.beats_baseline:
            yield "The copy is no better than that."
    if proof.absent:
        yield f"Not measured, as none of the rows had them: {join_names(_absent(proof))}."


def _absent(proof: Certificate) -> list[str]:
    return [shorten(repr(label), NAME) for label in proof.absent]


def short(proof: Certificate) -> str:
    """A certificate in a line."""
    return ", ".join([f"fidelity {proof.estimate:.4f}, at least {proof.lower:.4f}", *short_caveats(proof)])


def short_caveats(proof: Certificate) -> Iterator[str]:
    """The caveats in short, for a single line."""
    worst, baseline = proof.worst, proof.baseline
    if worst is not None and baseline is not None:
        yield f"worst label {worst}"
        yield f"baseline {baseline.estimate:.4f}{'' if proof.beats_baseline else ', which is not beaten'}"
    if proof.absent:
        yield f"not measured: {join_names(_absent(proof), 3)}"


def strata(proof: Certificate) -> Iterator[str]:
    """How the rows of a stratified certificate were drawn, and what that means for its parts."""
    if not proof.strata:
        return
    by = ", ".join(f"{part.agreed} of {part.n} {part.where} (weight {part.weight:g})" for part in proof.strata)
    yield f"stratified by the copy's margin, they agree on {by}; estimate and bound weigh these, and are exact"
    yield f"all else comes from the {proof.sampled} rows that are a plain sample of the space"


def bounds(proof: Certificate, title: str = "", most: int | None = None) -> Iterator[tuple[str, Bound]]:
    """The lines of a table: all rows, and parts of them; of more than so many labels, those with the lowest bounds."""
    yield title or ("fresh rows of the space" if proof.distinct is None else "rows of your own"), proof.whole
    labels = list(proof.per_class.items())
    if most is not None and len(labels) > most:
        labels = sorted(labels, key=lambda pair: pair[1].lower)[:most]
    for label, bound in labels:
        yield f"  the original says {label!r}", bound
    if proof.near is not None and proof.away is not None:
        yield "  near the boundary", proof.near
        yield "  away from it", proof.away


def table(*parts: Iterator[tuple[str, Bound]]) -> Grid:
    """Bounds as a table."""
    lines = [(name, f"{b.n}", f"{b.estimate:.4f}", f"{b.lower:.4f}") for part in parts for name, b in part]
    return Grid(("on", "rows", "fidelity", "at least"), lines, right=("rows", "fidelity", "at least"))


def text(proof: Certificate) -> str:
    """A certificate in a few lines."""
    notes = (shorten(printable(line), screen_width()) for line in _notes(proof))
    return "\n".join([wrap_text(sentence(proof)), "", _table(proof, LABELS).text(), "", *notes]).rstrip()


def html(proof: Certificate) -> str:
    """A certificate as HTML, for notebooks."""
    return paragraphs([sentence(proof)]) + _table(proof, None).html() + paragraphs(list(_notes(proof)))


def _table(proof: Certificate, most: int | None) -> Grid:
    own = [] if proof.on_data is None else [bounds(proof.on_data, most=0)]
    own += [] if proof.on_answers is None else [bounds(proof.on_answers, "answers that were given", most=0)]
    return table(bounds(proof, most=most), *own)


def _notes(proof: Certificate) -> Iterator[str]:
    yield from strata(proof)
    left = len(proof.per_class) - LABELS
    if left > 0:
        yield f"{left} other labels have higher bounds: .per_class"
    own = proof if proof.outside is not None else proof.on_data  # only of the user's own rows is that known
    if own is not None:
        yield from about_rows(own)
    if proof.ece is not None:
        yield f"calibration error {proof.ece:.4f}: the copy's probabilities are off by that much, on average"
    found = proof.differences
    if found is None:
        return
    flip = found.flips[0] if found.flips else None
    often = f", most often {flip.original!r} taken for {flip.copy!r} ({flip.n})" if flip else ""
    yield f"they differ on {found.n} rows{often}" + ("; .differences has examples" if found.examples else "")
    for rule in found.rules[:RULES]:
        yield f"  on {percent(rule.share)} of the rows where {rule.text}"


def about_rows(proof: Certificate, what: str = "rows of your own") -> Iterator[str]:
    """Sentences about the user's own rows: the population of the bound, rows left out, and columns sent."""
    yield (
        f"the bound on {what} is about the population that they are a random sample of; rows that come in groups, such "
        "as many of one customer or one day, are no random sample"
    )
    if proof.distinct is not None and proof.distinct != proof.n:
        yield f"only {proof.distinct} of them are different, and were asked about once each; all are counted"
    if proof.left_out:
        why = ", ".join(reasons_in_words(proof.reasons)) or "have levels that the space does not know"
        yield f"{proof.left_out} more were left out: {why}"
    if proof.outside:
        yield f"{proof.outside} of them are outside the space, and unlike any that the copy was made from"
    if proof.further:
        named = join_names([*map(repr, proof.further)])
        yield f"they were sent with columns that the space lacks, and that drawn rows never have: {named}"
