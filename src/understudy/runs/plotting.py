"""Plots of a result with matplotlib: fidelity by queries, and for two columns the map of the copy's decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.errors import SettingError
from understudy.space.columns import Number

if TYPE_CHECKING:
    from understudy.runs.result import Result

FIDELITY, DECISIONS = "fidelity", "decisions"
# Points along each side of the map, the share of drawn rows that it leaves out at each end, and how many are drawn.
PIXELS, TAIL, DRAWN = 200, 0.005, 4000


def plot(result: Result, what: str | None = None, axes: Any = None) -> Any:
    """Draw fidelity by queries, or decisions; gives the axes."""
    flat = result.copy.space.d == 2 and all(_is_plain(column) for column in result.copy.space.columns)
    what = (DECISIONS if flat else FIDELITY) if what is None else what
    if what not in (FIDELITY, DECISIONS):
        raise SettingError("plot", f"{FIDELITY!r} or {DECISIONS!r}", repr(what))
    if what == DECISIONS and not flat:
        found = f"{result.copy.space.d} columns"
        raise SettingError("plot", "two columns of numbers, to draw decisions over", found, f"plot {FIDELITY!r}")
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(5, 4) if what == DECISIONS else (6, 3.5), layout="constrained")[1]
    (_decisions if what == DECISIONS else _fidelity)(result, axes)
    return axes


def _is_plain(column: object) -> bool:
    return isinstance(column, Number) and column.kind in ("float", "integer") and not column.missing


def _fidelity(result: Result, axes: Any) -> None:
    points = [(one.queries, one.fidelity) for one in result.history if one.fidelity is not None]
    if not points:
        raise SettingError("plot", "rounds whose fidelity was measured", "certificate_n=0", "copy with a certificate")
    queries, fidelity = zip(*points, strict=True)
    axes.plot(queries, fidelity, marker="o", markersize=4, color="#0072b2", label="after a round")
    proof = result.certificate
    if proof is not None:
        axes.axhline(proof.lower, color="#d55e00", linestyle="--", linewidth=1.2)
        sure = f"at least {proof.lower:.4f}, with {100 * proof.confidence:g}% confidence"
        axes.annotate(sure, (0, proof.lower), (4, 4), xycoords=("axes fraction", "data"), textcoords="offset points")
    axes.set(xlabel="queries", ylabel=f"fidelity on {result.settings['certificate_n']} held-out rows")
    axes.grid(color="#e6e6e6", linewidth=0.6)


def _decisions(result: Result, axes: Any) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    copy, space = result.copy, result.copy.space
    rows = space.sample(DRAWN, np.random.default_rng(0))
    low, high = np.quantile(rows, [TAIL, 1 - TAIL], axis=0)
    sides = [np.linspace(a, b, PIXELS) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    codes = copy.decide(copy.encoding(grid)).reshape(PIXELS, PIXELS)
    colours = ["#f7d9c4", "#c6dcec", "#cfe8dc", "#ecd5e3", "#eee9c8", "#d9d9d9", "#d3c9e8", "#c8e6e9"]
    shades = [colours[code % len(colours)] for code in range(len(copy.classes))]
    box = (low[0], high[0], low[1], high[1])
    many = {"cmap": ListedColormap(shades), "vmin": 0, "vmax": max(1, len(shades) - 1)}
    axes.imshow(codes, origin="lower", extent=box, aspect="auto", interpolation="nearest", **many)
    seen = np.unique(codes)[: len(colours)]
    patches = [Patch(color=shades[code], label=str(copy.classes[code])) for code in seen]
    axes.legend(handles=patches, title="the copy says", loc="best", fontsize=9)
    axes.set(xlabel=space.names[0].replace("$", r"\$"), ylabel=space.names[1].replace("$", r"\$"))
