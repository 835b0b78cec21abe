"""The figures of a report, as SVG text."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.original import Labels, Original, as_original
from understudy.runs.result import Record, Result
from understudy.types import Frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The same colour for the same method in every figure; chosen to stay apart for colour-blind readers.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7")
REGIONS = ("#f7d9c4", "#c6dcec", "#cfe8dc", "#ecd5e3", "#eee9c8", "#d9d9d9", "#d3c9e8", "#c8e6e9")
PIXELS = 240
# The colours of families.
MARKS = (*COLOURS, "#e69f00", "#56b4e9")


def curves(results: Mapping[str, Result]) -> str:
    """Accuracy, fidelity, mean rho, points kept and lambda by iteration; a single iteration is a horizontal line."""
    panels: list[tuple[str, Callable[[Record], float | None], str]] = [
        ("accuracy on test data", lambda record: record.accuracy, "linear"),
        ("fidelity on held-out rows", lambda record: record.fidelity, "linear"),
        ("mean rho over the sample set", lambda record: record.mean_rho, "log"),
        ("points kept", lambda record: record.kept, "linear"),
        ("lambda", lambda record: record.lam, "log"),
    ]
    shown = [panel for panel in panels if any(panel[1](r.history[-1]) is not None for r in results.values())]
    figure = _figure(11, 3.1 * -(-len(shown) // 2))
    handles: dict[str, Any] = {}
    last = max(len(result.history) for result in results.values())
    for number, (title, value, scale) in enumerate(shown, 1):
        axes = figure.add_subplot(-(-len(shown) // 2), 2, number)
        for (name, result), colour in zip(results.items(), COLOURS, strict=False):
            t = [record.iteration + 1 for record in result.history]
            v = np.array([np.nan if value(record) is None else value(record) for record in result.history], float)
            if scale == "log":
                v[v <= 0] = np.nan
            if np.isnan(v).all():
                continue
            if len(v) == 1:
                handles[name] = axes.axhline(v[0], color=colour, linestyle="--", linewidth=1.3)
            else:
                (handles[name],) = axes.plot(t, v, color=colour, marker="o", markersize=3, linewidth=1.5)
        axes.set_xlim(0, last + 1)  # the same in every panel, also where only some iterations have a value
        axes.set_yscale(scale)
        if scale == "log":  # plain text: mathtext for powers of 10 takes longer than all the rest
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.yaxis.set_minor_formatter(lambda value, _: "")
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("iteration", fontsize=9)
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    if len(results) > 1:
        where = "lower right" if len(shown) % 2 else "upper right"  # an odd number of panels leaves a corner free
        figure.legend(list(handles.values()), list(map(_literal, handles)), loc=where, fontsize=10, frameon=False)
    return _svg(figure)


def boundaries(result: Result, original: Original | None) -> str:
    """Decision regions of the copy, and of the original if it may be asked; empty unless the space is two floats."""
    space, copy = result.space, result.copy
    if space.d != 2 or any(column.kind != "float" or column.missing for column in space.columns):
        return ""
    center, scale = space.moments
    low, high = center - 3.2 * scale, center + 3.2 * scale
    grid = np.stack(np.meshgrid(*(np.linspace(a, b, PIXELS) for a, b in zip(low, high, strict=True))), axis=-1)
    plane = grid.reshape(-1, 2)
    pictures = {"copy": copy.decide(copy.encode(space.present(plane)))}
    if original is not None:
        answers = Labels(copy.classes_).encode(as_original(original).answer(space.present(plane)))
        pictures = {"original": answers, **pictures, "where they differ": answers != pictures["copy"]}
    figure = _figure(3.9 * len(pictures), 4.0)
    from matplotlib.colors import ListedColormap

    regions = ListedColormap([REGIONS[code % len(REGIONS)] for code in range(max(2, len(copy.classes_)))])
    for number, (title, codes) in enumerate(pictures.items(), 1):
        axes = figure.add_subplot(1, len(pictures), number)
        differ = codes.dtype == bool
        share = f" ({codes.mean():.1%} of the area)" if differ else ""
        axes.imshow(
            codes.reshape(PIXELS, PIXELS),
            origin="lower",
            extent=(low[0], high[0], low[1], high[1]),
            aspect="auto",
            interpolation="nearest",
            cmap=ListedColormap(["#f4f4f4", "#b2182b"]) if differ else regions,
            vmin=0,
            vmax=1 if differ else regions.N - 1,
        )
        if not differ:
            axes.contour(
                *np.moveaxis(grid, -1, 0),
                codes.reshape(PIXELS, PIXELS),
                levels=np.arange(len(copy.classes_) - 1) + 0.5,
                colors="#444444",
                linewidths=0.8,
            )
        axes.set_title(title + share, fontsize=10, loc="left")
        axes.set_xlabel(_literal(space.names[0]), fontsize=9)
        axes.set_ylabel(_literal(space.names[1]) if number == 1 else "", fontsize=9)
        axes.tick_params(labelsize=8)
    return _svg(figure)


def frontier(points: Frame) -> str:
    """Certified fidelity against bytes and against milliseconds; a line joins the Pareto frontier."""
    figure = _figure(11, 4.2)
    families = list(dict.fromkeys(points["family"]))
    for number, (column, title) in enumerate({"bytes": "bytes", "ms": "milliseconds for a single row"}.items(), 1):
        axes = figure.add_subplot(1, 2, number)
        best = points[points[f"best_by_{column}"]].sort_values(column)
        axes.step(best[column], best["lower"], where="post", color="#999999", linewidth=1.2, zorder=1)
        for k, family in enumerate(families):
            own = points[points["family"] == family]
            axes.scatter(own[column], own["lower"], s=26, color=MARKS[k % len(MARKS)], label=_literal(family), zorder=2)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel(title, fontsize=9)
        axes.set_title("fidelity, at least" if number == 1 else "", fontsize=10, loc="left")
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
    style = {"svg.hashsalt": "understudy", "svg.fonttype": "none", "font.family": "sans-serif"}
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the reader's browser has the glyphs that our font lacks
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
