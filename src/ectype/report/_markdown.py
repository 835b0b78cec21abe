"""Markdown tables, and escaping for text from outside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ectype._common.csv_injection import FORMULA


def markdown_table(heads: Iterable[str], rows: Iterable[Iterable[object]], show: Callable[[object], str] = str) -> str:
    """A table with a header; `show` makes the text of a cell.

    >>> print(markdown_table(["problem", "eff"], [("iris", 0.9166), ("wine", 1)], lambda cell: str(cell)[:5]))
    | problem | eff |
    |---|---|
    | iris | 0.916 |
    | wine | 1 |
    """
    heads = list(heads)
    return "\n".join([_line(heads), "|" + "---|" * len(heads), *(_line(map(show, row)) for row in rows)])


def escape_markdown(text: object) -> str:
    r"""Text from outside, on one line, with everything escaped that is Markdown or HTML syntax.

    >>> print(escape_markdown("a|b <i>"))
    a\|b \<i\>
    >>> print(escape_markdown("=1+1"), escape_markdown("-1"))
    \=1+1 -1
    """
    line = " ".join(str(text).split())
    plain = re.sub(r"([\\`*_{}\[\]<>#|~!$&])", r"\\\1", line)
    # A cell that is pasted into a spreadsheet must not be a formula there; numbers are none.
    return f"\\{plain}" if line.startswith(FORMULA) and not _is_number(line) else plain


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
