"""The reference of commands: written while the site is built, from what each command's own `--help` says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click
from sphinx.application import Sphinx

from ectype.cli import cli

MARK = "<!-- commands -->"


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill in the mark wherever a page has it."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the commands in place of the mark."""
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, "\n".join(described(cli, None, "ectype")))


def described(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    """A section about a command, and one about each of its own commands."""
    context = click.Context(command, parent, info_name=name, **command.context_settings)
    yield f"\n{'#' if parent is None else '##'}# {escaped(context.command_path)}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```\n"
    yield from prose(command.help or "")
    yield from options(command, context)
    yield from prose(command.epilog or "")
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from described(found(command, context, part), context, part)


def found(group: click.Group, context: click.Context, name: str) -> click.Command:
    """A command of a group, which must be there."""
    command = group.get_command(context, name)
    assert command is not None, name
    return command


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """The options, under the headings that the help has for them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in record[0]:
            groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
    for heading, records in groups.items():
        yield f"**{heading}**\n"
        for flag, text in records:
            yield f"`{flag}`\n: {escaped(text) or 'See above.'}\n"


def prose(text: str) -> Iterator[str]:
    """Paragraphs of a help text; those after a backspace are lines that click leaves alone."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph[1:].strip()}\n```\n"
        elif paragraph.strip():
            yield escaped(" ".join(paragraph.split())) + "\n"


def escaped(text: str) -> str:
    """Text in which nothing is taken for Markdown, and options are code."""
    plain = re.sub(r"([\\`*_<\[\]|#])", r"\\\1", text)
    return re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", plain)
