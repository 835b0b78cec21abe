"""The parts of exported C files: `snippets/*.c.in`, which are C but for the values to be filled in, as `${name}`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template


@cache
def snippet(name: str) -> str:
    """The text of a part.

    >>> snippet("softmax").splitlines()[0]
    'static void softmax(double *scores) {'
    """
    return (Path(__file__).with_name("snippets") / f"{name}.c.in").read_text(encoding="utf-8")


def fill_snippet(name: str, /, **values: object) -> str:
    """The text of a part with its values."""
    return Template(snippet(name)).substitute(values)
