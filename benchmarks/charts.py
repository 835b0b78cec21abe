"""Pictures that benchmarks share, as SVG that can be read on a light page and on a dark one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from html import escape
from itertools import pairwise
from pathlib import Path

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 168, 96, 60
# Text and lines take these colours; an image follows what the system prefers, so it brings its own background.
STYLE = """
  svg { font: 18px system-ui, -apple-system, "Segoe UI", sans-serif }
  .page { fill: #ffffff } .ink { fill: #1f2328 } .quiet { fill: #59636e } .rule { stroke: #d1d9e0 }
  .own { stroke: #0b62d6; stroke-width: 3.2; fill: none } .dot { fill: #0b62d6 }
  .name { fill: #0b62d6; font-weight: 600 }
  .one { fill: #4f93e6 } .two { fill: #f3a64a } .dots { fill: none; stroke-width: 2.4; stroke-linecap: round }
  .one.dots { stroke: #2b6cc4 } .two.dots { stroke: #d97a12 } .edge { stroke: #1f2328; fill: none; stroke-width: 1.3 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #15191f } .ink { fill: #f0f3f6 } .quiet { fill: #a5aeb8 } .rule { stroke: #39414b }
    .own { stroke: #6cb0ff } .dot { fill: #6cb0ff } .name { fill: #6cb0ff }
    .one { fill: #2f6fbe } .two { fill: #b9722a } .edge { stroke: #f0f3f6 }
  }
"""
# Others than ours; each is told apart by its name at the end of its line too.
HUES = ("#d97706", "#059669", "#9061f9", "#db2777", "#0891b2", "#65a30d", "#8a8178")
# Names at the end of lines keep this distance.
APART = 21.0


def picture(body: str, title: str, height: int = HEIGHT) -> str:
    """An SVG document that holds this."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="8"/>\n{body}\n</svg>\n'
    )


def heading(left: int, title: str, below: str) -> str:
    """A title, and a line below it."""
    return (
        f'<text class="ink" x="{left}" y="36" font-weight="600">{escape(title)}</text>\n'
        f'<text class="quiet" x="{left}" y="62">{escape(below)}</text>'
    )


def by_answers(
    curves: Mapping[str, Mapping[int, float]],
    path: Path,
    label: str,
    own: Collection[str],
    *,
    bar: float | None = None,
    words: tuple[str, str] = ("", ""),
) -> None:
    """Mean fidelity by the number of answers: a line for each curve, ours the strongest, and one across at the bar.

    `words` are a title and a line below it.
    """
    budgets = sorted({n for curve in curves.values() for n in curve})
    values = [value for curve in curves.values() for value in curve.values()]
    low, high = math.floor(min(values) * 20) / 20, min(math.ceil(max(values) * 20) / 20, 1.0)

    def x(n: int) -> float:
        span = math.log(budgets[-1] / budgets[0]) or 1.0
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(n / budgets[0]) / span

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / ((high - low) or 1.0)

    parts = [heading(20, *words), *_axes(budgets, low, high, label, x, y)]
    if bar is not None:
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(bar):.1f}" y2="{y(bar):.1f}"/>')
    others = [name for name in curves if name not in own]
    for name in [*others, *(name for name in curves if name in own)]:  # ours on top
        points = [(x(n), y(value)) for n, value in sorted(curves[name].items())]
        hue = "" if name in own else HUES[others.index(name) % len(HUES)]
        parts += _line(points, hue)
    ends = {name: (x(max(curve)), y(curve[max(curve)])) for name, curve in curves.items()}
    for name, height in _apart({name: end[1] for name, end in ends.items()}).items():
        style = 'class="name"' if name in own else f'fill="{HUES[others.index(name) % len(HUES)]}"'
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{height + 6:.1f}" {style}>{escape(name)}</text>')
    path.write_text(picture("\n".join(parts), f"Mean fidelity by the number of {label}"))


def _line(points: list[tuple[float, float]], hue: str) -> list[str]:
    """A line through the points; of ours, the points as well."""
    way = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    if hue:
        return [f'<polyline points="{way}" fill="none" stroke="{hue}" stroke-width="1.6" stroke-dasharray="5 3"/>']
    dots = [f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="4"/>' for a, b in points]
    return [f'<polyline class="own" points="{way}"/>', *dots]


def _axes(
    budgets: list[int],
    low: float,
    high: float,
    label: str,
    x: Callable[[int], float],
    y: Callable[[float], float],
) -> list[str]:
    """Lines across with their values, and the numbers of answers below."""
    parts, steps = [], round((high - low) / 0.05) or 1
    for step in range(steps + 1):
        value = low + (high - low) * step / steps
        at = f"{y(value):.1f}"
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="quiet" x="{LEFT - 8}" y="{y(value) + 6:.1f}" text-anchor="end">{value:.2f}</text>')
    for n in budgets:
        where = f'x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 24}" text-anchor="middle"'
        text = str(n) if n % 1000 else f"{n // 1000}k"
        parts.append(f'<text class="quiet" {where}>{text}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="ink" x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(label)}</text>')
    turned = f'transform="translate(20 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle"'
    parts.append(f'<text class="ink" {turned}>fidelity on fresh rows</text>')
    return parts


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """The heights moved until none is too near to the next, as little as one pass up and one down can."""
    names = sorted(heights, key=lambda name: heights[name])
    made = dict(heights)
    for above, below in pairwise(names):
        made[below] = max(made[below], made[above] + APART)
    excess = max(made[names[-1]] - (HEIGHT - BOTTOM), 0.0)
    made[names[-1]] -= excess
    for below, above in pairwise(reversed(names)):
        made[above] = min(made[above], made[below] - APART)
    return made
