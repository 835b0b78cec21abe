"""A cascade in words: as text for a screen, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ectype._common.formatting import Grid, number, paragraphs, percent, wrap_text
from ectype.queries import reasons_in_words

if TYPE_CHECKING:
    from ectype.cascades._cascade import Cascade
    from ectype.cascades._routing import Routing

# Rows that savings are stated for.
EVERY = 1000


def short(routing: Routing) -> str:
    """The certified routing in one line."""
    if not routing.alone:
        return f"alone=0: nothing certified at agree={routing.agree:g}"
    sure = f"agree={routing.agree:g} with confidence={routing.confidence:g}"
    return f"alone={routing.alone:.4f}, threshold={routing.threshold:.4f}, {sure}"


def sentence(routing: Routing) -> str:
    """The certified routing in a sentence or two."""
    sure = f"with {100 * routing.confidence:g}% confidence"
    if not routing.alone:
        return (
            f"The copy answers no row alone: {routing.overall.n} {routing.source} do not show, {sure}, that it agrees "
            f"with the original on {percent(routing.agree)} of any part of them."
        )
    return (
        f"The copy answers alone where its margin is at least {routing.threshold:.4f}, on {percent(routing.alone)} of "
        f"the rows; all others are asked of the original. On the rows that it answers alone it gives the original's "
        f"label at least {percent(routing.agree)} of the time, {sure}."
    )


def advice(routing: Routing) -> str:
    """Advice, if nothing was certified; else empty."""
    if routing.alone:
        return ""
    least = f"{routing.fewest} rows without a difference are the fewest that can show it"
    if routing.enough is None:
        return f"more rows alone would not help: make a more faithful copy (a larger budget), or lower agree; {least}"
    more = f"about {routing.enough} rows would: n={routing.enough} asks as many, or copy with a larger certificate_n"
    return f"{more}; {least}"


def table(routing: Routing) -> Grid:
    """Shares, estimates and bounds."""
    lines = [("answered alone", "", f"{routing.alone:.4f}", f"{routing.alone_lower:.4f}")]
    parts = [("agrees where it answers alone", routing.agreement), ("agrees on all rows", routing.overall)]
    lines += [(name, f"{b.n}", f"{b.estimate:.4f}", f"{b.lower:.4f}") for name, b in parts if b is not None]
    return Grid(("the cascade", "rows", "estimate", "at least"), lines, right=("rows", "estimate", "at least"))


def text(routing: Routing) -> str:
    """The certified routing as text."""
    return "\n".join([wrap_text(sentence(routing)), "", table(routing).text(), "", *map(wrap_text, notes(routing))])


def html(routing: Routing) -> str:
    """The certified routing as HTML."""
    return paragraphs([sentence(routing)]) + table(routing).html() + paragraphs(list(notes(routing)))


def notes(routing: Routing) -> Iterator[str]:
    """Sentences about the rows that certified it, the worst label, and advice."""
    asked = f", {routing.queries} of them asked for it" if routing.queries else ", none of them asked for it"
    yield f"Certified by {routing.overall.n} {routing.source}{asked}."
    if routing.left_out:
        yield f"{sum(routing.left_out.values())} more were left out: {', '.join(reasons_in_words(routing.left_out))}."
    if routing.worst is not None and routing.alone:
        yield f"Its worst label, on all of these rows: {routing.worst}."
    if not routing.alone:
        yield f"What would help: {advice(routing)}."


def saving(cascade: Cascade) -> str:
    """The saving in a sentence."""
    paid = "" if cascade.cost is None else f", which saves {number(cascade.saved)} at {number(cascade.cost)} a row"
    return f"Of {EVERY} rows, about {EVERY * cascade.alone:.0f} are not asked{paid}."


def outage(cascade: Cascade) -> str:
    """A sentence on outages of the original."""
    if cascade.on_outage == "error":
        return "If the original is out, rows that need it are an error."
    return "If the original is out, the copy answers, which is marked and not certified."


def cascade_text(cascade: Cascade) -> str:
    """A cascade in a few lines."""
    return "\n".join([text(cascade.routing), *map(wrap_text, (saving(cascade), outage(cascade)))])


def cascade_html(cascade: Cascade) -> str:
    """A cascade as HTML."""
    return html(cascade.routing) + paragraphs([saving(cascade), outage(cascade)])
