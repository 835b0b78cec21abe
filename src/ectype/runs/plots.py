"""Plots of a result with matplotlib: fidelity by queries, and for two columns the map of the copy's decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ectype.errors import SettingError
from ectype.runs.decision_grid import COLOURS, PIXELS, Plane, plane_of

if TYPE_CHECKING:
    from ectype.runs.result import Result

FIDELITY, DECISIONS = "fidelity", "decisions"


def plot(result: Result, what: str | None = None, axes: Any = None) -> Any:
    """Draw fidelity by queries, or decisions; gives the axes."""
    plane = plane_of(result.copy.space)
    what = (FIDELITY if plane is None else DECISIONS) if what is None else what
    if what not in (FIDELITY, DECISIONS):
        raise SettingError("plot", f"{FIDELITY!r} or {DECISIONS!r}", repr(what))
    if what == DECISIONS and plane is None:
        found = f"{result.copy.space.d} columns"
        raise SettingError("plot", "two columns of numbers, to draw decisions over", found, f"plot {FIDELITY!r}")
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(5, 4) if what == DECISIONS else (6, 3.5), layout="constrained")[1]
    if what == FIDELITY or plane is None:
        _fidelity(result, axes)
    else:
        _decisions(result, plane, axes)
    return axes


def _fidelity(result: Result, axes: Any) -> None:
    points = result.trend
    if not points and result.remade is not None:
        hint = "plot the result of that run"
        raise SettingError("plot", "rounds of this copy's own", f"those of the run in {result.remade['of']}", hint)
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


def _decisions(result: Result, plane: Plane, axes: Any) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    copy, names = result.copy, [name.replace("$", r"\$") for name in result.copy.space.names]
    codes = copy.decide(copy.encoding(plane.rows)).reshape(PIXELS, PIXELS)
    shades = [COLOURS[code % len(COLOURS)] for code in range(len(copy.classes))]
    box = (plane.low[0], plane.high[0], plane.low[1], plane.high[1])
    many = {"cmap": ListedColormap(shades), "vmin": 0, "vmax": max(1, len(shades) - 1)}
    axes.imshow(codes, origin="lower", extent=box, aspect="auto", interpolation="nearest", **many)
    seen = np.unique(codes)[: len(COLOURS)]
    patches = [Patch(color=shades[code], label=str(copy.classes[code])) for code in seen]
    axes.legend(handles=patches, title="the copy says", loc="best", fontsize=9)
    axes.set(xlabel=names[0], ylabel=names[1])
