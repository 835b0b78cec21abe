"""Options in groups, each under a heading of its own; and commands that have others below them."""

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


class WithDefault(click.Group):
    """A command that has others below it: words that name none of them are for the default one."""

    def __init__(self, *arguments: Any, default: str, **options: Any):
        super().__init__(*arguments, **options)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name before words that begin with none."""
        if args and args[0] not in (*self.commands, *self.get_help_option_names(ctx)):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
