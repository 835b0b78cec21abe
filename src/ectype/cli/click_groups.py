"""Help that fits on a screen: options under headings, the rest of them with `--help-all`; and commands below others."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from typing import Any

import click

ALL = "ectype.help_all"


class GroupedOption(click.Option):
    """An option that says under which heading it stands, and whether `--help` shows it or only `--help-all`."""

    def __init__(self, *arguments: Any, group: str = "Options", shown: bool = True, **options: Any):
        super().__init__(*arguments, **options)
        self.group, self.shown = group, shown


option = partial(click.option, cls=GroupedOption)


class Grouped(click.Command):
    """A command whose help lists its options under headings: those that people use, or with `--help-all` all."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, and `--help-all` where `--help` leaves some out."""
        found = super().get_params(ctx)
        return found if all(map(_is_shown, found)) else [*found, _HELP_ALL]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups in the order that their first options have."""
        complete = ctx.meta.get(ALL, False)
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if complete or _is_shown(parameter) else None
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _is_shown(parameter: click.Parameter) -> bool:
    return getattr(parameter, "shown", True)


def _print_all(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_all,
    help="Show all options, and exit.",
)


class SuggestingGroup(click.Group):
    """A group that asks whether another of its commands was meant where there is none of a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            near = get_close_matches(name, self.list_commands(ctx), 1)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)


class WithDefault(SuggestingGroup):
    """A command that has others below it: words that name none of them are for the default one."""

    def __init__(self, *arguments: Any, default: str, **options: Any):
        super().__init__(*arguments, **options)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name before words that begin with none."""
        if args and args[0] not in (*self.commands, *self.get_help_option_names(ctx)):
            args = [self.default, *args]
        return super().parse_args(ctx, args)
