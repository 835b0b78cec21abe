"""Text that a spreadsheet would take for a formula, in tables that are written for others."""

from __future__ import annotations

from ectype.types import Frame

# What a cell with a formula begins with, for one program or another.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def literal(text: object) -> object:
    """A cell that stays what it is: a text that looks like a formula gets an apostrophe in front.

    >>> literal("=HYPERLINK(0)"), literal("good"), literal(-1.5)
    ("'=HYPERLINK(0)", 'good', -1.5)
    """
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA) else text


def without_formulas(frame: Frame) -> Frame:
    """A table whose names and cells stay what they are in a spreadsheet; numbers are left alone."""
    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"]).columns
    cells = frame.assign(**{name: frame[name].astype(object).map(literal) for name in texts})
    return cells.rename(columns=literal)
