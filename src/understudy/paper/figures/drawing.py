"""What the figures have in common: one look, one colour per method, bands of one standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.paper.units import Record

# Those of the paper, where it has one.
COLOURS = {"pure": "#e07b1a", "sequential": "#e07b1a", "online": "#2a6fb0", "one-shot": "#8a8a8a"}
# For thresholds, problems and other things that have no colour of their own.
OTHERS = ("#2f9e62", "#c0394b", "#7a4fa3", "#8c6239", "#d45fa8", "#4f5b66", "#b0a01f", "#2a9db0")


def new_figure(width: float, height: float) -> Any:
    """A figure without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style(axes: Any, x: str, y: str, panel: str = "") -> Any:
    """Name the axes, and the panel by its letter."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    if panel:
        axes.set_title(panel, loc="left", fontweight="bold")
    return axes


def curve(records: Sequence[Record], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the standard deviation over repetitions of something that is known by iteration."""
    values = np.array([record[name] for record in records], float)
    return values.mean(axis=0), values.std(axis=0)


def band(axes: Any, mean: np.ndarray, std: np.ndarray, colour: str, label: str, linestyle: str = "-") -> None:
    """A curve by iteration, from 1 on, with a band of a standard deviation on either side."""
    t = np.arange(1, len(mean) + 1)
    axes.plot(t, mean, color=colour, label=label, linestyle=linestyle, linewidth=1.6)
    axes.fill_between(t, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
