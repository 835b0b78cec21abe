"""The decisions of copy and original over a plane, for spaces of two floats."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from understudy.original import Labels, Original, as_original
from understudy.report.bins import shown
from understudy.runs.result import Result

PIXELS = 240
# How many deviations from the middle a map reaches, and the colours that there are for labels.
REACH, COLOURS = 3.2, 8


@dataclass(frozen=True)
class Map:
    """One picture: its title, what it shows, and the labels with their colours."""

    title: str
    svg: str


def maps_of(result: Result, original: Original | None) -> list[Map]:
    """Decision regions of the copy, and of the original if it may be asked; none unless the space is two floats."""
    space, copy = result.space, result.copy
    if space.d != 2 or copy.space.d != 2 or any(c.kind != "float" or c.missing for c in space.columns):
        return []
    center, scale = space.moments
    low, high = center - REACH * scale, center + REACH * scale
    grid = np.meshgrid(*(np.linspace(a, b, PIXELS) for a, b in zip(low, high, strict=True)))
    plane = np.stack(grid, axis=-1).reshape(-1, 2)
    pictures = {"The copy": copy.decide(copy.encode(space.present(plane)))}
    if original is not None:
        answers = Labels(copy.classes_).encode(as_original(original).answer(space.present(plane)))
        differ = answers != pictures["The copy"]
        share = f"Where they differ: {100 * differ.mean():.1f} % of the area"
        pictures = {"The original": answers, **pictures, share: np.where(differ, COLOURS, -1)}
    return [
        Map(title, _svg(title, codes.reshape(PIXELS, PIXELS), low, high, space.names))
        for title, codes in pictures.items()
    ]


def _svg(title: str, codes: np.ndarray, low: np.ndarray, high: np.ndarray, names: tuple[str, ...]) -> str:
    """Runs of equal labels, line by line from the top, one path for each label."""
    paths: dict[int, list[str]] = {}
    for y, line in enumerate(codes[::-1]):
        starts = np.flatnonzero(np.append(True, line[1:] != line[:-1]))
        for start, end in zip(starts, np.append(starts[1:], len(line)), strict=True):
            if line[start] >= 0:
                paths.setdefault(int(line[start]), []).append(f"M{start} {y + 0.5}h{end - start}")
    drawn = "".join(f'<path class="{_colour(code)}" d="{"".join(path)}"/>' for code, path in sorted(paths.items()))
    ends = [shown(float(f"{number:.3g}")) for number in (low[0], high[0], low[1], high[1])]
    wide = PIXELS + 12
    words = (
        f'<text class="axis" x="0" y="{wide}">{ends[0]}</text>'
        f'<text class="axis middle" x="{PIXELS / 2}" y="{wide}">{escape(names[0])}</text>'
        f'<text class="axis end" x="{PIXELS}" y="{wide}">{ends[1]}</text>'
        f'<text class="axis end" x="-5" y="{PIXELS}">{ends[2]}</text>'
        f'<text class="axis end" x="-5" y="{PIXELS / 2}">{escape(names[1])}</text>'
        f'<text class="axis end" x="-5" y="9">{ends[3]}</text>'
    )
    said = f"{title}: decisions over {names[0]} and {names[1]}"
    box = f'viewBox="-34 -2 {PIXELS + 38} {PIXELS + 20}" role="img" aria-label="{escape(said)}"'
    frame = f'<rect class="frame" x="0" y="0" width="{PIXELS}" height="{PIXELS}"/>'
    return f'<svg class="map" {box}>{frame}{drawn}{words}</svg>'


def _colour(code: int) -> str:
    return "differs" if code == COLOURS else f"region r{code % COLOURS}"
