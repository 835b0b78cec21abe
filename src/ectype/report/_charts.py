"""Charts as SVG: small ones that take their colours from the page, and the figure of a frontier, which stands alone.

Numbers stand in attributes, never in a style, which the page's policy would refuse. Text stays text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from math import ceil, floor, log10
from typing import TYPE_CHECKING

import numpy as np

from ectype.types import Frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The height of a track, and the size of a chart with axes: about what it is shown at, so that its text keeps its size.
HEIGHT = 14
WIDTH, TALL = 340, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 20, 10, 34
# How wide a track counts, whatever it is stretched to.
ACROSS = 1000
# The colours of families; chosen to stay apart for colour-blind readers.
MARKS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


@dataclass(frozen=True)
class AxisScale:
    """From numbers to a position between two ends."""

    low: float
    high: float

    def __call__(self, number: float) -> float:
        """The share of the way, cut off at the ends."""
        return min(max((number - self.low) / ((self.high - self.low) or 1.0), 0.0), 1.0)


def share_scale(shares: Iterable[float]) -> AxisScale:
    """A scale for shares up to 1, which begins at a round number below all of them.

    >>> share_scale([0.93, 0.99]).low, share_scale([0.4]).low
    (0.9, 0.25)
    """
    least = min(shares, default=0.0)
    steps = (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.25, 0.0)
    return AxisScale(next(step for step in steps if step <= max(least, 0.0)), 1.0)


def bar(share: float, kind: str, scale: AxisScale) -> str:
    """A bar, from the low end."""
    return _track(f'<line class="bar {kind}" x1="0" y1="7" x2="{_x(scale, share)}" y2="7"/>')


def interval(share: float, low: float, scale: AxisScale, mark: float | None = None, high: float | None = None) -> str:
    """A dot, with a line down to its lower bound, and up to an upper one if there is one; a tick where all are."""
    tick = "" if mark is None else f'<line class="tick" x1="{_x(scale, mark)}" y1="0" x2="{_x(scale, mark)}" y2="14"/>'
    ends = _x(scale, low), _x(scale, share if high is None else high)
    line = f'<line class="reach" x1="{ends[0]}" y1="7" x2="{ends[1]}" y2="7"/>'
    return _track(f"{tick}{line}{_dot(scale, share, 'copy')}")


def pair(first: float, second: float, scale: AxisScale) -> str:
    """The original's dot and the copy's, joined by a line."""
    ends = _x(scale, first), _x(scale, second)
    joined = f'<line class="reach" x1="{ends[0]}" y1="7" x2="{ends[1]}" y2="7"/>'
    return _track(f"{joined}{_dot(scale, first, 'original')}{_dot(scale, second, 'copy')}")


def _dot(scale: AxisScale, share: float, kind: str) -> str:
    x = _x(scale, share)
    return f'<line class="dot {kind}" x1="{x}" y1="7" x2="{x}" y2="7"/>'


def _track(inside: str) -> str:
    box = f'viewBox="0 0 {ACROSS} {HEIGHT}" preserveAspectRatio="none"'
    return f'<svg class="track" {box} aria-hidden="true">{inside}</svg>'


def _x(scale: AxisScale, number: float) -> int:
    return round(ACROSS * scale(number))


@dataclass(frozen=True)
class Line:
    """A curve: its points, what it is drawn as, and whether points are marked."""

    points: Sequence[tuple[float, float]]
    kind: str
    dots: bool = False
    line: bool = True


@dataclass(frozen=True)
class Axes:
    """Where curves are drawn: the ends of both axes, their names, and how numbers are written."""

    x: AxisScale
    y: AxisScale
    across: str
    percent: bool = True
    """Whether heights are shares."""
    log: bool = False
    """Whether heights are powers of ten."""
    size: tuple[int, int] = (WIDTH, TALL)
    x_label: Callable[[float], str] | None = None
    """How numbers of the horizontal axis are written, where they are not just numbers."""


def chart(axes: Axes, lines: Sequence[Line], title: str, *, more: str = "") -> str:
    """Curves with axes; the title is what a screen reader says."""
    wide, tall = axes.size
    parts = [_grid(axes), more]
    for line in lines:
        places = [_place(axes, point) for point in line.points]
        if len(places) > 1 and line.line:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            parts.append(f'<polyline class="curve {line.kind}" points="{path}"/>')
        if line.dots or len(places) == 1:
            parts += [f'<circle class="point {line.kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>' for x, y in places]
    svg = f'<svg class="chart" viewBox="0 0 {wide} {tall}" role="img" aria-label="{escape(title)}">'
    return f"{svg}{''.join(parts)}</svg>"


def band(axes: Axes, low: float, high: float, text: str) -> str:
    """A part of the horizontal axis, shaded, with a word at its top."""
    (left, top), (right, bottom) = _place(axes, (low, axes.y.high)), _place(axes, (high, axes.y.low))
    shade = f'<rect class="band" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
    return f'{shade}<text class="axis" x="{left + 5:.1f}" y="{bottom - 6:.1f}">{escape(text)}</text>'


def whisker(axes: Axes, x: float, low: float, high: float) -> str:
    """A vertical line from one height to another."""
    (left, bottom), (_, top) = _place(axes, (x, low)), _place(axes, (x, high))
    return f'<line class="whisker" x1="{left:.1f}" y1="{bottom:.1f}" x2="{left:.1f}" y2="{top:.1f}"/>'


def _place(axes: Axes, point: tuple[float, float]) -> tuple[float, float]:
    wide, tall = axes.size
    x = LEFT + (wide - LEFT - RIGHT) * axes.x(point[0])
    return x, tall - BOTTOM - (tall - TOP - BOTTOM) * axes.y(log10(point[1]) if axes.log else point[1])


def _grid(axes: Axes) -> str:
    wide, tall = axes.size
    parts = []
    for height in _ticks(axes.y, 3):
        y = tall - BOTTOM - (tall - TOP - BOTTOM) * axes.y(height)
        text = f"{10**height:.1g}" if axes.log else f"{100 * height:.4g} %" if axes.percent else f"{height:,.4g}"
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{wide - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text class="axis end" x="{LEFT - 6}" y="{y + 3.5:.1f}">{text}</text>')
    for number, text, anchor in _x_labels(axes):
        x = LEFT + (wide - LEFT - RIGHT) * axes.x(number)
        parts.append(f'<text class="axis {anchor}" x="{x:.1f}" y="{tall - BOTTOM + 15}">{escape(text)}</text>')
    if axes.across:
        middle = LEFT + (wide - LEFT - RIGHT) / 2
        parts.append(f'<text class="axis middle" x="{middle:.1f}" y="{tall - 4}">{escape(axes.across)}</text>')
    return "".join(parts)


def _x_labels(axes: Axes) -> list[tuple[float, str, str]]:
    """Labels of the horizontal axis, with their alignment: round numbers, or the two ends."""
    if axes.x_label is None:
        return [(number, f"{number:,.6g}", "middle") for number in _ticks(axes.x, 4)]
    return [(axes.x.low, axes.x_label(axes.x.low), "start"), (axes.x.high, axes.x_label(axes.x.high), "end")]


def _ticks(scale: AxisScale, about: int) -> list[float]:
    """Round numbers between the ends, about so many.

    >>> _ticks(AxisScale(0, 1000), 4)
    [0.0, 250.0, 500.0, 750.0, 1000.0]
    """
    wide = scale.high - scale.low
    if wide <= 0:
        return [scale.low]
    unit = 10.0 ** floor(log10(wide / about))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if wide / (unit * times) <= about + 0.5)
    first = ceil(scale.low / step - 1e-9)
    count = floor(scale.high / step + 1e-9) - first + 1
    return [float(np.round((first + k) * step, 12)) for k in range(count)]


def frontier_chart(points: Frame) -> str:
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
