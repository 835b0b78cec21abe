"""What people see: text that is safe on a terminal, numbers with the digits that matter, small tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from shutil import get_terminal_size
from textwrap import fill

# What fits on a screen without a second look.
WIDTH, LINES = 96, 24
# The least room of a table's last column, however long the names before it are.
LEAST = 24
# The spaces between columns, where there is room.
GAP = 3


def screen_width() -> int:
    """How many characters a line may have: what the terminal shows, if it is one, and not more than is easily read."""
    return min(WIDTH, get_terminal_size((WIDTH, LINES)).columns)


def printable(text: object) -> str:
    """Text of others on a terminal: what would move the cursor or change colours is spelled out.

    >>> printable("a\x1b[31m")
    'a\\\\x1b[31m'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))


def number(value: float) -> str:
    """A number for people: whole ones in full, others with four digits.

    >>> number(1234567.0), number(0.123456), number(1234567.8), number(2.5e-9)
    ('1234567', '0.1235', '1234568', '2.5e-09')
    """
    if abs(value) >= 1e12 or 0 < abs(value) < 1e-4:
        return f"{value:.4g}"
    return f"{value:.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.4g}"


def percent(share: float) -> str:
    """A share in percent, with two digits where it is close to all or nothing.

    >>> percent(0.99481), percent(0.5), percent(1.0)
    ('99.48%', '50.0%', '100.0%')
    """
    return f"{share:.2%}" if share < 0.02 or 0.98 < share < 1 else f"{share:.1%}"


def join_names(names: Sequence[object], most: int = 8) -> str:
    """Some things in a row, and how many more there are.

    >>> join_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(printable(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def as_sentence(text: str) -> str:
    """Words as a sentence.

    >>> as_sentence("more answers would help")
    'More answers would help.'
    """
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def wrap_text(text: str) -> str:
    """Text of others on lines as wide as the screen.

    >>> wrap_text("word " * 30).count("\\n")
    1
    """
    return fill(printable(text), screen_width(), break_long_words=False, break_on_hyphens=False)


def shorten(text: str, width: int) -> str:
    """Text of at most so many characters.

    >>> shorten("north, south, east", 12)
    'north, so...'
    """
    return text if len(text) <= width else f"{text[: width - 3]}..."


@dataclass(frozen=True)
class Grid:
    """A small table for people: as text on a terminal, as HTML in a notebook.

    Names are never cut. If a table is too wide, its last column is, unless it holds numbers.

    >>> print(Grid(("column", "rows"), [("age", "12"), ("income", "7")], right=("rows",)).text())
     column   rows
     ─────────────
     age        12
     income      7
    """

    headings: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    right: tuple[str, ...] = ()
    """The headings of columns that hold numbers."""

    def text(self, width: int | None = None) -> str:
        """As lines of text, as wide as the screen."""
        cells = [[printable(cell) for cell in row] for row in (self.headings, *self.rows)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(self.headings))]
        room = (screen_width() if width is None else width) - 1
        if self.headings[-1] not in self.right:
            widths[-1] = min(widths[-1], max(LEAST, room - sum(widths[:-1]) - GAP * (len(widths) - 1)))
        gap = max(1, min(GAP, (room - sum(widths)) // max(1, len(widths) - 1)))
        lines = [self._line(row, widths, " " * gap) for row in cells]
        return "\n".join([lines[0], " " + "─" * (sum(widths) + gap * (len(widths) - 1)), *lines[1:]])

    def _line(self, row: Sequence[str], widths: Sequence[int], gap: str) -> str:
        parts = [
            shorten(cell, width).rjust(width) if heading in self.right else shorten(cell, width).ljust(width)
            for cell, width, heading in zip(row, widths, self.headings, strict=True)
        ]
        return f" {gap.join(parts)}".rstrip()

    def html(self) -> str:
        """As an HTML table, with all text escaped."""
        sides = ["right" if heading in self.right else "left" for heading in self.headings]

        def line(tag: str, row: Sequence[str]) -> str:
            parts = zip(sides, row, strict=True)
            cells = [f'<{tag} style="text-align:{side};white-space:pre">{escape(cell)}</{tag}>' for side, cell in parts]
            return f"<tr>{''.join(cells)}</tr>"

        body = "".join(line("td", row) for row in self.rows)
        return f"<table><thead>{line('th', self.headings)}</thead><tbody>{body}</tbody></table>"


def paragraphs(lines: Sequence[str]) -> str:
    """Lines as HTML paragraphs, with all text escaped."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
