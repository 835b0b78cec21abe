"""A result in words and in a picture: as text for a screen, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ectype._common.formatting import LINES, Grid, as_sentence, join_names, paragraphs, wrap_text
from ectype.certificate.formatting import GIVEN, about_rows, sentence
from ectype.certificate.formatting import short as in_short
from ectype.ledger import Purpose
from ectype.models.base import size_of
from ectype.models.distillation import NO_TEACHER
from ectype.queries import describe_answers as sentence_of

if TYPE_CHECKING:
    from ectype.runs.result import Result

# The most rounds that are shown, of more the last ones; and pieces of advice.
ROUNDS, ADVICE = 6, 3
# The picture's size and its margins, in pixels.
WIDE, HIGH, LEFT, EDGE = 320, 120, 46, 18


def title(result: Result) -> str:
    """What the copy is, of what."""
    return f"A copy of {result.settings.get('original', 'an original')}: {kind(result)}"


def kind(result: Result) -> str:
    """What the copy is."""
    labels = join_names([*map(repr, result.copy.classes.tolist())], 4)
    columns = f"{result.copy.space.d} column{'s' if result.copy.space.d > 1 else ''}"
    teacher = result.tried[0]["teacher"] if result.tried else NO_TEACHER
    taught = "" if teacher == NO_TEACHER else f" taught by a {teacher}"
    return f"{result.family}{taught}, {size_of(result.copy.model):,} bytes, {columns}, answers {labels}"


def short(result: Result) -> str:
    """A result in one line."""
    proof = result.certificate
    known = "no certificate" if proof is None else in_short(proof)
    return f"{result.family}, {known}, {result.queries[Purpose.TRAINING]} queries"


def text(result: Result) -> str:
    """A result in a few lines."""
    before = "\n".join(map(wrap_text, [title(result), *_proved(result), _spent(result)]))
    after = "\n".join(map(wrap_text, _notes(result)))
    if result.remade is not None:  # the rounds are those of another run, and led to another copy
        return f"{before}\n\n{after}".rstrip()
    room = LINES - before.count("\n") - after.count("\n") - 6  # beside both, two empty lines, and the table's head
    return f"{before}\n\n{_rounds(result, max(2, min(ROUNDS, room))).text()}\n\n{after}".rstrip()


def html(result: Result) -> str:
    """A result as HTML, for notebooks."""
    lines = [title(result), *_proved(result), _spent(result)]
    rounds = "" if result.remade is not None else curve(result) + _rounds(result).html()
    return paragraphs(lines) + rounds + paragraphs(list(_notes(result)))


def _proved(result: Result) -> list[str]:
    proof = result.certificate
    if proof is None:
        return ["There is no certificate: certificate_n was 0."]
    apart = [] if proof.on_answers is None else [sentence(proof.on_answers, GIVEN)]
    return [sentence(proof), *([] if proof.on_data is None else [sentence(proof.on_data)]), *apart]


def _spent(result: Result) -> str:
    made = [f"{n} {Purpose.describe(purpose)}" for purpose, n in result.queries.items() if n]
    took = f"{len(result.history)} rounds" if len(result.history) > 1 else "1 round"
    if result.remade is not None:
        whose = f"Made in {result.seconds:.1f} s of the answers in {result.remade['of']}, without a query."
        return f"{whose} Queries of that run: {', '.join(made)}. It stopped at its {result.stopped}, after {took}."
    left = f", and {result.left_over} of the budget left over, less than a batch" if result.left_over else ""
    ended = f"It stopped at its {result.stopped}, after {took} and {result.seconds:.1f} s."
    return f"Queries: {', '.join(made)}{left}. {ended}"


def _rounds(result: Result, most: int = ROUNDS) -> Grid:
    """The last rounds: how faithful the copy was after so many queries."""
    columns = {
        "queries": [f"{one.queries}" for one in result.history],
        "kept": [f"{one.kept}" for one in result.history],
        "fidelity": ["-" if one.fidelity is None else f"{one.fidelity:.4f}" for one in result.history],
    }
    if columns["kept"] == columns["queries"]:
        del columns["kept"]
    return Grid(tuple(columns), list(zip(*columns.values(), strict=True))[-most:], right=tuple(columns))


def _notes(result: Result) -> Iterator[str]:
    yield from map(sentence_of, result.supplied)
    if result.repeats is not None and result.repeats.text:
        yield as_sentence(result.repeats.text)
    own = None if result.certificate is None else result.certificate.on_data
    if own is not None and (own.left_out or own.further):
        yield f"Of rows of your own: {'; '.join(islice(about_rows(own), 1, None))}."
    yield from picking(result)
    if result.diagnosis is not None:
        yield f"The target was missed: {result.diagnosis.text}."
    for one in result.advice[:ADVICE]:
        yield f"Advice: {one.text}."


def picking(result: Result) -> Iterator[str]:
    """What the bound does not allow for, where its rows measured other copies too: that one is picked by it."""
    if result.certificate is None:
        return
    stages = [str(n) for n in result.settings.get("stages", ())]
    others = [f"this run's copies of {' and '.join(stages)} queries"] if stages else []
    others += [f"the copy in {result.remade['of']}, and all that is made of its answers"] if result.remade else []
    if (result.refreshed or {}).get("verdict") == "changed":
        others.append("the copy that was refreshed")
    if others:
        yield (
            f"Its held-out rows measured others, too: {'; '.join(others)}. The bound holds for this copy by itself; "
            "whoever picks the best of several by these figures should certify it once more, with another seed."
        )


def curve(result: Result) -> str:
    """Fidelity by the number of queries, as a small SVG; nothing if it was not measured."""
    points = result.trend
    if len(points) < 2:
        return ""
    most, low, high = points[-1][0], min(y for _, y in points), max(y for _, y in points)
    room = max(high - low, 0.01)

    def place(queries: float, fidelity: float) -> str:
        x = LEFT + (WIDE - LEFT - EDGE) * queries / most
        return f"{x:.1f},{EDGE + (HIGH - 2 * EDGE) * (high - fidelity) / room:.1f}"

    line = " ".join(place(*point) for point in points)
    dots = "".join('<circle cx="{}" cy="{}" r="3"/>'.format(*place(*point).split(",")) for point in points)
    words = (
        f'<text x="0" y="{EDGE + 4}">{high:.4f}</text><text x="0" y="{HIGH - EDGE + 4}">{high - room:.4f}</text>'
        f'<text x="{LEFT}" y="{HIGH - 2}">queries</text>'
        f'<text x="{WIDE - EDGE}" y="{HIGH - 2}" text-anchor="end">{most}</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}" '
        'role="img" font-family="sans-serif" font-size="11" fill="currentColor">'
        "<title>fidelity by the number of queries</title>"
        f'<polyline points="{line}" fill="none" stroke="#0072b2" stroke-width="2"/>'
        f'<g fill="#0072b2">{dots}</g>{words}</svg>'
    )
