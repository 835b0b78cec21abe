"""`understudy ledger`: what was asked, answered and paid; and what can be done with it."""

from __future__ import annotations

import click

from understudy.cli.ledger.compact import compact_command
from understudy.cli.ledger.merge import merge_command
from understudy.cli.ledger.show import show_command
from understudy.cli.ledger.verify import verify_command


class Shown(click.Group):
    """A group whose first argument may be a directory: it is then shown."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`understudy ledger DIR` is `understudy ledger show DIR`."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group("ledger", cls=Shown)
def command() -> None:
    """Show what a run has asked, or check, merge or compact such directories.

    `understudy ledger DIR` is short for `understudy ledger show DIR`. A directory that is called like one of the
    commands is named with its path: ./merge.
    """


command.add_command(show_command)
command.add_command(verify_command)
command.add_command(merge_command)
command.add_command(compact_command)
