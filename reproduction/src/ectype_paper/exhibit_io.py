"""Exhibits as files: a figure as SVG and PNG, its numbers as CSV and Markdown. Each file appears whole."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ectype._common.atomic_io import directory_errors, write_bytes
from ectype.report import markdown_table
from ectype_paper.catalogue import MadeExhibit, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Dots per inch of a PNG.
DPI = 160


def write(made: MadeExhibit, folder: Path, name: str, title: str) -> list[Path]:
    """Write an exhibit's files into a folder, and say which they are."""
    contents = {f"{name}.csv": as_csv(made.rows).encode(), f"{name}.md": _page(made, name, title).encode()}
    if made.figure is not None:
        contents |= {f"{name}.{kind}": drawn(made.figure, kind) for kind in ("svg", "png")}
    with directory_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return [write_bytes(folder / file, content) for file, content in contents.items()]


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as a table with a header; numbers with six digits."""
    text = StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
    )
    return text.getvalue()


def as_markdown(rows: Sequence[Row], show: Callable[[object], str] | None = None) -> str:
    """Rows as a Markdown table; numbers with three places, and those that would be lost by it with three digits.

    >>> print(as_markdown([{"problem": "iris", "eff": 0.91666}, {"problem": "wine", "eff": None}]))
    | problem | eff |
    |---|---|
    | iris | 0.917 |
    | wine |  |
    """
    return markdown_table(rows[0], (row.values() for row in rows), show or _shown)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"


def _page(made: MadeExhibit, name: str, title: str) -> str:
    picture = "" if made.figure is None else f"![{title}]({name}.svg)\n\n"
    shown = made.rows if made.shown is None else made.shown
    return f"# {title}\n\n{picture}{made.notes.strip()}\n\n{as_markdown(shown)}\n"


def drawn(figure: Figure, kind: str) -> bytes:
    """A figure as a file of this kind; no date and no random names, so that the same numbers give the same file."""
    import matplotlib as mpl

    stream = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ectype", "svg.fonttype": "none"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(stream, format=kind, dpi=DPI, metadata=metadata)
    return stream.getvalue()
