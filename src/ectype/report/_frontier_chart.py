"""The figure of a frontier, as SVG text."""

from __future__ import annotations

import warnings
from io import StringIO
from typing import TYPE_CHECKING

from ectype.types import Frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours of families; chosen to stay apart for colour-blind readers.
MARKS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def frontier(points: Frame) -> str:
    """Certified fidelity against bytes and against milliseconds; a line joins the Pareto frontier.

    The dotted line is what always answering the commonest label has.
    """
    figure = _figure(11, 4.2)
    families = list(dict.fromkeys(points["family"]))
    for number, (column, title) in enumerate({"bytes": "bytes", "ms": "milliseconds for a single row"}.items(), 1):
        axes = figure.add_subplot(1, 2, number)
        best = points[points[f"best_by_{column}"]].sort_values(column)
        axes.step(best[column], best["lower"], where="post", color="#999999", linewidth=1.2, zorder=1)
        for k, family in enumerate(families):
            own = points[points["family"] == family]
            axes.scatter(own[column], own["lower"], s=26, color=MARKS[k % len(MARKS)], label=_literal(family), zorder=2)
        axes.axhline(points["baseline"].iloc[0], color="#999999", linewidth=1, linestyle=":", zorder=1)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel(title, fontsize=9)
        title = "fidelity, at least; dotted: always the commonest label"
        axes.set_title(title if number == 1 else "", fontsize=10, loc="left")
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    axes.legend(fontsize=9, frameon=False, loc="lower right")
    return _svg(figure)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    # Fixed margins in inches: finding the best ones would draw everything twice.
    figure.subplots_adjust(0.55 / width, 0.5 / height, 1 - 0.1 / width, 1 - 0.35 / height, 0.17, 0.4)
    return figure


def _literal(text: str) -> str:
    """Text that is shown as it is: matplotlib would read dollar signs as mathematics."""
    return text.replace("$", r"\$")


def _svg(figure: Figure) -> str:
    import matplotlib

    text = StringIO()
    # A fixed salt and no date: the same run gives the same page.
    style = {"svg.hashsalt": "ectype", "svg.fonttype": "none", "font.family": "sans-serif"}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the reader's browser has the glyphs that our font lacks
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
