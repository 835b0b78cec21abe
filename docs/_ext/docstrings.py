"""Docstrings as the site shows them: parameters as a list of definitions, everything else as plain text."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# "name : what it is", or several names that share a line.
PARAMETER = re.compile(r"^(\w+(?:, \w+)*) : (.*)$")
# "Parameters" and "Examples", whose line of dashes comes next: what follows shows what it is.
HEADING = re.compile(r"^\w+\n-{3,}$", flags=re.M)
# Characters that mean something in reStructuredText and only themselves in ours.
SPECIAL = re.compile(r"[*|]|(?<=\w)_(?=\W|$)")
CODE = (">>> ", "... ")


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite every docstring before it is read as reStructuredText."""
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def shorten(
    app: Sphinx, what: str, name: str, value: object, options: Any, signature: str | None, returns: str | None
) -> tuple[str, None] | None:
    """No signature for what only we make: its parts are listed below it."""
    return ("", None) if what == "class" and "<factory>" in (signature or "") else None


def rewrite(app: Sphinx, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place."""
    lines[:] = [made for block in blocks(lines) for made in (*block, "")]


def blocks(lines: list[str]) -> list[list[str]]:
    """Paragraphs: those with code as they are, in others each parameter apart and characters escaped."""
    paragraphs = re.split(r"\n\s*\n", HEADING.sub("", "\n".join(lines)).strip("\n"))
    return [
        made
        for paragraph in paragraphs
        for made in ([paragraph.split("\n")] if CODE[0] in paragraph else listed(paragraph.split("\n")))
    ]


def listed(lines: list[str]) -> list[list[str]]:
    """A paragraph, with every parameter in it as a term and its definition."""
    made: list[list[str]] = [[]]
    for line in lines:
        if found := PARAMETER.match(line):
            names = ", ".join(f"``{name}``" for name in found[1].split(", "))
            made.append([names, f"    {plain(found[2])}"])
        elif len(made) > 1 and not line.startswith(" "):  # a sentence after the list
            made.append([plain(line)])
        else:
            made[-1].append(plain(line))
    return [block for block in made if block]


def plain(line: str) -> str:
    """The line with characters escaped that are not meant as markup, code in backticks left alone."""
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(part if part.startswith("`") else SPECIAL.sub(r"\\\g<0>", part) for part in parts)
