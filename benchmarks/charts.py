"""The chart that benchmarks share: mean fidelity by the number of answers, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def by_answers(
    curves: Mapping[str, Mapping[int, float]],
    path: Path,
    label: str,
    style: Callable[[str], dict[str, Any]],
    bar: float | None = None,
) -> None:
    """A line for each curve, in its style, and one across at the bar; the same curves give the same file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = path.stem
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, curve in curves.items():
        axes.plot(list(curve), list(curve.values()), label=name, **style(name))
    if bar is not None:
        axes.axhline(bar, color="0.7", linewidth=0.8)
    axes.set(xscale="log", xlabel=label, ylabel="mean fidelity on fresh rows")
    ticks = sorted({n for curve in curves.values() for n in curve})
    axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
