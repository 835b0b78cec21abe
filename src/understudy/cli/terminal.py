"""What a terminal sends and shows: signals, and text of others."""

from __future__ import annotations


class Terminated(KeyboardInterrupt):
    """SIGTERM: an interrupt like Ctrl-C, with an exit code of its own."""


def printable(text: object) -> str:
    """Text of others on a terminal: what would move the cursor or change colours is spelled out.

    >>> printable("a\x1b[31m")
    'a\\\\x1b[31m'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text))
