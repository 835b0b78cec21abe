"""The curves of a run: fidelity by queries, and the paper's curves by iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import log2, log10

from ectype.algorithm.mlp import Network
from ectype.certificate.diagnosis import RISE
from ectype.report import _charts as charts
from ectype.report._charts import Axes, AxisScale, Line
from ectype.runs.result import Record, Result

# A flat part is worth marking if queries grew by this much in it.
WORTH = 1.4
KINDS = ("copy", "second", "third", "fourth")


@dataclass(frozen=True)
class LearningCurve:
    """Fidelity by queries, as a chart with a sentence about it."""

    chart: str
    flat: int | None
    """The number of queries from which on more of them hardly helped."""
    weaker: bool
    """Whether rounds before the last were measured with the quick model that chose the queries."""


def learning_curve(result: Result) -> LearningCurve | None:
    """Fidelity by queries; None where no round was measured."""
    points, proof = result.trend, result.certificate
    if not points or proof is None:
        return None
    model = result.copy.model  # the network of the loop is the copy itself
    weaker = len(points) > 1 and not (isinstance(model, Network) and model.activation == "relu")
    flat = flat_from(points[:-1] if weaker else points)
    most = points[-1][0]
    heights = charts.share_scale([proof.lower, *(fidelity for _, fidelity in points)])
    axes = Axes(AxisScale(0, most), heights, "training queries", size=(420, 220))
    more = "" if flat is None else charts.band(axes, flat, most, "flat")
    end = [(most, proof.estimate)]
    rounds = Line(points[:-1] if weaker else points, "rounds", dots=True)
    whisker = charts.whisker(axes, most, proof.lower, proof.estimate)
    ends = f"from {100 * points[0][1]:.1f} % after {points[0][0]} to {100 * proof.estimate:.1f} % after {most}"
    title = f"Fidelity by training queries, {ends}"
    drawn = charts.chart(axes, [rounds, Line(end, "copy", dots=True)], title, more=more + whisker)
    return LearningCurve(drawn, flat, weaker)


def flat_from(points: Sequence[tuple[int, float]]) -> int | None:
    """From how many queries on a curve is flat: twice as many never raised it by as much as 0.1 points again.

    >>> flat_from([(100, 0.8), (200, 0.9), (400, 0.9), (800, 0.9005)]), flat_from([(100, 0.8), (200, 0.9)])
    (200, None)
    """
    for k, (queries, fidelity) in enumerate(points):
        later = points[k + 1 :]
        if points[-1][0] < WORTH * queries:
            return None
        if all(one - fidelity < RISE * max(log2(n / queries), 1.0) for n, one in later):
            return queries
    return None


def paper_curves(results: Mapping[str, Result]) -> Iterator[tuple[str, str]]:
    """Accuracy, mean rho, points kept and lambda by iteration: a title and a chart each."""
    panels: list[tuple[str, Callable[[Record], float | None], bool]] = [
        ("accuracy on test data", lambda record: record.accuracy, False),
        ("mean \N{GREEK SMALL LETTER RHO} over the sample set", lambda record: record.mean_rho, True),
        ("points kept, |Sₜ|", lambda record: float(record.kept), False),
        ("λ, the weight of the memory term", lambda record: record.lam, True),
    ]
    for title, value, log in panels:
        found = {name: _points(result, value, log) for name, result in results.items()}
        if any(found.values()):
            yield title, _curves(title, found, log)


def _points(result: Result, value: Callable[[Record], float | None], log: bool) -> list[tuple[float, float]]:
    points = [(record.iteration + 1, value(record)) for record in result.history]
    return [(t, v) for t, v in points if v is not None and (v > 0 or not log)]


def _curves(title: str, found: Mapping[str, list[tuple[float, float]]], log: bool) -> str:
    every = [point for points in found.values() for point in points]
    heights = [log10(v) if log else v for _, v in every]
    low, high = min(heights), max(heights)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 0.5
    axes = Axes(
        AxisScale(0, max(t for t, _ in every) + 1), AxisScale(low - room if log else max(0.0, low - room), high + room),
        "iteration", percent=title.startswith("accuracy"), log=log,
    )  # fmt: skip
    kinds = zip(found.values(), cycle(KINDS), strict=False)
    lines = [Line(points, kind, dots=len(points) < 2) for points, kind in kinds if points]
    return charts.chart(axes, lines, f"{title} by iteration")
