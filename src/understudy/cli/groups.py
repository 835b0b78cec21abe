"""Options in groups, each under a heading of its own."""

from __future__ import annotations

from typing import Any

import click


class Grouped(click.Command):
    """A command that lists its options in groups, each under a heading of its own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups in the order that their first options have."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class GroupedOption(click.Option):
    """An option that says which group it belongs to."""

    def __init__(self, *arguments: Any, group: str = "Options", **options: Any):
        super().__init__(*arguments, **options)
        self.group = group
