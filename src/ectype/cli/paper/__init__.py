"""`ectype paper`: the experiments of the paper."""

from __future__ import annotations

import click

from ectype.cli.paper.all import all_command
from ectype.cli.paper.export import export_command
from ectype.cli.paper.import_ import import_command
from ectype.cli.paper.make import make_command
from ectype.cli.paper.report import report_command
from ectype.cli.paper.sweep import sweep_command
from ectype.paper.catalogue import NAMES


class Exhibits(click.Group):
    """A group with a command for every figure and table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Those that run things first, then the exhibits in the paper's order."""
        return [*self.commands, *NAMES]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command by its name; where there is none, all there are."""
        if name in NAMES:
            return make_command(name)
        if name not in self.commands:
            ctx.fail(f"there is no {name!r}; there are {', '.join(self.list_commands(ctx))}")
        return self.commands[name]


@click.group("paper", cls=Exhibits)
def command() -> None:
    """Run the experiments of the paper: its problems, its originals, its methods."""


command.add_command(all_command)
command.add_command(import_command)
command.add_command(sweep_command)
command.add_command(export_command)
command.add_command(report_command)
