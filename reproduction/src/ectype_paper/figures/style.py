"""What the figures have in common: one look, one colour per method, bands of one standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ectype_paper.catalogue import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Those of the paper, where it has one.
COLOURS = {"pure": "#e07b1a", "sequential": "#e07b1a", "online": "#2a6fb0", "one-shot": "#8a8a8a"}
# For thresholds, problems and other things that have no colour of their own.
OTHERS = ("#2f9e62", "#c0394b", "#7a4fa3", "#8c6239", "#d45fa8", "#4f5b66", "#b0a01f", "#2a9db0")
# Lines of these are named where they end, one below the other, at least this share of the height apart.
APART = 0.055


class Mark(NamedTuple):
    """An entry of a legend: a marker, and what it stands for."""

    marker: str
    colour: str
    label: str
    size: float = 8


def new_figure(width: float, height: float) -> Figure:
    """A figure without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style(axes: Axes, x: str, y: str, panel: str = "") -> Axes:
    """Name the axes, and the panel by its letter."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    axes.set_axisbelow(True)
    if panel:
        axes.set_title(panel, loc="left", fontweight="bold")
    return axes


def band(axes: Axes, rows: Sequence[Row], column: str, colour: str, label: str, linestyle: str = "-") -> None:
    """A column by iteration, with a band of a standard deviation on either side."""
    t, mean, std = np.array([[row["iteration"], row[column], row[f"{column}_std"]] for row in rows]).T
    axes.plot(t, mean, color=colour, label=label, linestyle=linestyle, linewidth=1.6)
    axes.fill_between(t, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)


def levels(axes: Axes, named: Sequence[tuple[str, float]]) -> None:
    """Dashed level lines, each named at its right end, however near they are to one another."""
    for _, height in named:
        axes.axhline(height, color=COLOURS["one-shot"], linestyle="--", linewidth=1, zorder=1)
    low, high = axes.get_ylim()
    places = spaced([(height - low) / (high - low) for _, height in named], APART)
    for (name, height), place in zip(named, places, strict=True):
        axes.annotate(
            name,
            (1.0, height),
            (1.04, place),
            xycoords=("axes fraction", "data"),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color="#555555",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": COLOURS["one-shot"], "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )


def legend_below(figure: Figure, marks: Sequence[Mark]) -> None:
    """What colours and markers mean, in one line below the panels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker=mark.marker, color=mark.colour, linestyle="", label=mark.label, markersize=mark.size)
        for mark in marks
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def spaced(heights: Sequence[float], apart: float) -> list[float]:
    """Heights for names: in the same order, each at least so far from the next, and the middle of all where it was.

    >>> [round(height, 3) for height in spaced([0.9, 0.2, 0.91], 0.1)]
    [0.855, 0.2, 0.955]
    """
    order = sorted(range(len(heights)), key=lambda k: heights[k])
    groups: list[list[int]] = []
    middles: list[float] = []
    for k in order:
        groups.append([k])
        middles.append(heights[k])
        while len(groups) > 1 and _overlap(groups[-2:], middles[-2:], apart):
            groups[-2:] = [groups[-2] + groups[-1]]
            middles[-2:] = [float(np.mean([heights[member] for member in groups[-1]]))]
    found = dict.fromkeys(order, 0.0)
    for group, middle in zip(groups, middles, strict=True):
        for place, k in enumerate(group):
            found[k] = middle + (place - (len(group) - 1) / 2) * apart
    return [found[k] for k in range(len(heights))]


def _overlap(groups: Sequence[Sequence[int]], middles: Sequence[float], apart: float) -> bool:
    return middles[1] - middles[0] < apart * (len(groups[0]) + len(groups[1])) / 2 - 1e-12


def power(delta: float) -> str:
    """A number such as 1e-8 or 5e-7 as mathematical text.

    >>> power(1e-8), power(5e-07), power(0.1)
    ('$10^{-8}$', '$5\\\\cdot 10^{-7}$', '0.1')
    """
    digits, _, exponent = f"{delta:g}".partition("e")
    if not exponent:
        return digits
    times = "" if digits == "1" else f"{digits}\\cdot "
    return f"${times}10^{{{int(exponent)}}}$"
