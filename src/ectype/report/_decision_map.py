"""The decisions of copy and original over a plane, where the copy sees two columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from ectype.ledger import Purpose, open_session
from ectype.original import Labels, Original, as_original
from ectype.queries import Queries
from ectype.report._bins import shown
from ectype.report._filters import percent
from ectype.runs.decision_grid import COLOURS, PIXELS, Plane, plane_of
from ectype.runs.result import Result
from ectype.space import Space

# What stands for a point at which they differ, after the labels' colours.
DIFFERS = len(COLOURS)
# The side of a map, in the units of its text.
SIDE = 240
# How wide a digit of its text is at most.
LETTER = 6.5


@dataclass(frozen=True)
class DecisionMap:
    """One picture: its title, what it shows, and the labels with their colours."""

    title: str
    svg: str


def maps_of(result: Result, original: Original | None, run: Path | None = None) -> list[DecisionMap]:
    """Decision regions of the copy, and of the original if it may be asked and takes no other column.

    What is asked is kept in the directory of the run, if there is one.
    """
    space, copy = result.copy.space, result.copy
    plane = plane_of(space)
    if plane is None:
        return []
    pictures = {"The copy": copy.decide(copy.encoding(plane.rows))}
    if original is not None and result.space.d == space.d:
        answers = Labels(copy.classes_).encode(_answers(as_original(original), space, plane.rows, run))
        differ = answers != pictures["The copy"]
        share = f"Where they differ: {percent(float(differ.mean()))} of the area"
        pictures = {"The original": answers, **pictures, share: np.where(differ, DIFFERS, -1)}
    return [DecisionMap(title, _svg(title, codes, plane, space.names)) for title, codes in pictures.items()]


def _answers(original: Original, space: Space, rows: np.ndarray, run: Path | None) -> np.ndarray:
    with open_session(run, Purpose.PAGE, original, space, {}) as ledger:
        return Queries(original, space, {Purpose.PAGE: len(rows)}, ledger).query_labels(Purpose.PAGE, rows)


def _svg(title: str, codes: np.ndarray, plane: Plane, names: tuple[str, ...]) -> str:
    """Runs of equal labels, line by line from the top, one path for each label."""
    paths: dict[int, list[str]] = {}
    for y, line in enumerate(codes.reshape(PIXELS, PIXELS)[::-1]):
        starts = np.flatnonzero(np.append(True, line[1:] != line[:-1]))
        for start, end in zip(starts, np.append(starts[1:], len(line)), strict=True):
            if line[start] >= 0:
                paths.setdefault(int(line[start]), []).append(f"M{start} {y + 0.5}h{end - start}")
    drawn = "".join(f'<path class="{_colour(code)}" d="{"".join(path)}"/>' for code, path in sorted(paths.items()))
    ends = [shown(float(f"{number:.3g}")) for number in np.stack([plane.low, plane.high], axis=1).ravel()]
    wide = 8 + LETTER * max(map(len, ends[2:]))  # names stand beyond the numbers at the ends
    words = (
        f'<text class="axis" x="0" y="{SIDE + 12}">{ends[0]}</text>'
        f'<text class="axis end" x="{SIDE}" y="{SIDE + 12}">{ends[1]}</text>'
        f'<text class="axis end" x="-5" y="{SIDE}">{ends[2]}</text>'
        f'<text class="axis end" x="-5" y="9">{ends[3]}</text>'
        f'<text class="axis middle" x="{SIDE / 2}" y="{SIDE + 24}">{escape(names[0])}</text>'
        f'<text class="axis middle" transform="translate({-wide} {SIDE / 2}) rotate(-90)">{escape(names[1])}</text>'
    )
    said = f"{title}: decisions over {names[0]} and {names[1]}"
    size = f"{-wide - 14} -2 {wide + SIDE + 18} {SIDE + 32}"
    box = f'viewBox="{size}" role="img" aria-label="{escape(said)}"'
    frame = f'<rect class="frame" x="0" y="0" width="{SIDE}" height="{SIDE}"/>'
    return f'<svg class="map" {box}>{frame}<g transform="scale({SIDE / PIXELS})">{drawn}</g>{words}</svg>'


def _colour(code: int) -> str:
    return "differs" if code == DIFFERS else f"region r{code % len(COLOURS)}"
