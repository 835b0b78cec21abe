"""What a terminal sends and shows: signals, and lines that end between words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import fill

import click

from ectype._common.formatting import printable, screen_width

# What is said of work in parts that was interrupted.
FINISHED = "what is finished is kept, and the same command goes on from there"


class Terminated(KeyboardInterrupt):
    """SIGTERM: an interrupt like Ctrl-C, with an exit code of its own."""


@contextmanager
def note_on_interrupt(what: Callable[[], str]) -> Iterator[None]:
    """Within, an interrupt is given a note on what is kept, which is printed at the end."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(what())
        raise


def say(text: str = "", err: bool = False) -> None:
    """Print a sentence; on a terminal its lines end between words. Further lines are indented as the first is."""
    line = printable(text)
    if (sys.stderr if err else sys.stdout).isatty() and line.strip():
        indent = " " * (len(line) - len(line.lstrip()))
        kept = {"break_long_words": False, "break_on_hyphens": False}
        line = fill(line, screen_width(), subsequent_indent=indent, **kept)  # type: ignore[arg-type]
    click.echo(line, err=err)
